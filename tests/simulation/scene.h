/* SPDX-License-Identifier: MIT */
/* scene.h - a small virtual fleet: clients with tasks and a keeper each, a network
 * that loses and delays, one database, and a clock that moves from event to event.
 *
 * The machines of src/strategy and the heartbeat of src/core run here unchanged;
 * what the core does round them (connections, sessions, the keeper's sweep) is
 * played in the same order and by the same rules, without threads. The database
 * is tests/lib/sim_world. Everything follows from the seed, so a seed replays. */
#ifndef DBLOCK_TEST_SCENE_H
#define DBLOCK_TEST_SCENE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "core/environment.h"
#include "core/heartbeat.h"
#include "sim_world.h"
#include "strategy/strategy.h"

enum {
    SCENE_CLIENTS_MAX = 8,
    SCENE_TASKS_MAX = 6, /* of one client; its keeper is one more actor */
    SCENE_SHARED_MAX = 4,
    SCENE_NAMES_MAX = SCENE_SHARED_MAX + SCENE_CLIENTS_MAX, /* an anchor's name for each client */
    SCENE_HELD_MAX = 2 * SCENE_NAMES_MAX,
    SCENE_LIVE_MAX = 256, /* attempts that one client still has to do with */
    SCENE_ATTEMPTS_MAX = 1 << 14,
    SCENE_SESSIONS_MAX = 1 << 13,
    SCENE_REQUESTS_MAX = 1 << 11,
    SCENE_EVENTS_MAX = 1 << 13,
    SCENE_LAZY_MAX = 32,
    SCENE_NOTES_MAX = 30,
    SCENE_READ_EVERY = 8 /* heartbeats */
};

#define SCENE_NOBODY UINT32_MAX

/* Mistakes that can be planted, to prove that the checks see them. All are made here, in the
 * wrapping round the machines or round the database; none is in src. */
enum scene_mistake {
    SCENE_FAITHFUL = 0,
    SCENE_DEADLINE_FROM_ANSWER, /* belief counts from the answer's arrival, not from the sending */
    SCENE_NO_MARGIN,            /* belief lasts the whole ttl, whatever the clocks' rates */
    SCENE_NOT_AFTER_IGNORED,    /* a take is granted however late it comes */
    SCENE_RENEWAL_REVIVES,      /* a renewal brings back a session that has expired */
    SCENE_REASK_IS_TAKE,        /* a lost answer is settled by sending the take again */
    SCENE_TOKEN_BEFORE_WAIT,    /* the token is computed before the row was waited for */
    SCENE_NO_WITHOUT_LOOK,      /* a lost answer is taken for a no */
    SCENE_YES_WITHOUT_LOOK,     /* a lost answer is taken for a yes */
    SCENE_DROP_BY_NAME,         /* a release ends whoever holds the name */
    SCENE_NO_SWEEP,             /* the read-back does not give back surplus grants */
    SCENE_OWN_SESSION_UNCHECKED, /* a take is granted although its own session is over */
    SCENE_EXTEND_FORGETS,       /* an extend whose answer was lost leaves the old deadline */
    SCENE_FIRST_LINK_UNREAD,    /* the keeper's first connection is not a reason to read back */
    SCENE_NO_REGULAR_READ,      /* nothing is read back unless something gave reason to */
    SCENE_MISTAKES
};

extern const char *const scene_mistake_names[SCENE_MISTAKES];

/* What goes wrong by itself, each kind on or off for a whole seed: so that some seeds have, say,
 * no clock steps, and nothing is excused in them. */
enum scene_fault {
    SCENE_FAULT_NETWORK = 1 << 0, /* requests and answers lost, slow, connections cut */
    SCENE_FAULT_STUCK = 1 << 1,   /* statements that wait in the server */
    SCENE_FAULT_CRASH = 1 << 2,   /* kill -9 of a client */
    SCENE_FAULT_PAUSE = 1 << 3,   /* a client stands still while time goes on */
    SCENE_FAULT_RESTART = 1 << 4, /* of the server, losing releases that were not durable */
    SCENE_FAULT_BACK = 1 << 5,    /* the server's clock is set back */
    SCENE_FAULT_FORWARD = 1 << 6, /* ... and forward */
    SCENE_FAULT_GUARD = 1 << 7,   /* transactions that pin rows */
    SCENE_FAULT_BREAK = 1 << 8,   /* an administrator ends grants */
    SCENE_FAULT_CLOSE = 1 << 9,   /* clients that are closed properly, and cancelled waits */
    SCENE_FAULT_DRIFT = 1 << 10,  /* clocks of clients that run up to 8 % off */
    SCENE_FAULT_CONFLICT = 1 << 11, /* the database undoes a statement and says: again */
    SCENE_FAULT_LAG = 1 << 12,      /* commits that take long: judged, and not yet to be seen */
    SCENE_FAULTS = (1 << 13) - 1
};

struct scene_plan { /* chosen by the seed */
    unsigned n_clients, n_tasks, n_names;
    unsigned faults;         /* of enum scene_fault */
    uint64_t io_us;          /* the I/O limit of a call */
    uint64_t statement_us;   /* of that, for the statement of a take; the rest is for settling it */
    uint64_t ttl_us[2];      /* in use, one heartbeat class each */
    uint64_t hold_us;        /* how long grants are held at most */
    uint64_t latency_us;     /* one way, most of the time */
    uint64_t slow_us;        /* one way, sometimes: at most */
    uint64_t stuck_us;       /* in the server, sometimes: at most */
    uint64_t fault_every_us; /* on average */
    /* of a thousand messages */
    unsigned n_lost, n_answers_lost, n_slow, n_stuck, n_cut, n_conflicts, n_lags;
};

enum scene_request_kind {
    SCENE_OPEN = 1,
    SCENE_BEGIN,
    SCENE_RENEW,
    SCENE_END_SESSION,
    SCENE_HOLDS,
    SCENE_TAKE,
    SCENE_DROP,
    SCENE_EXTEND,
    SCENE_LOOK
};

struct scene_request {
    enum scene_request_kind kind;
    int is_used;
    unsigned client, actor;
    uint64_t serial;
    unsigned server_life; /* a restarted server knows nothing of older requests */
    uint32_t attempt, session;
    uint64_t ttl_us, keep_us;
    int64_t not_after_us;
    uint64_t sent_us; /* client's clock */
    int64_t early_token; /* SCENE_TOKEN_BEFORE_WAIT */
    int is_again;        /* SCENE_REASK_IS_TAKE */
    int is_judged;       /* a take that is being committed */
    /* the answer */
    dblock_status status;
    struct dblock_answer answer;
    uint32_t owner; /* LOOK: the attempt that holds the name */
    unsigned n_held;
    uint32_t held[SCENE_HELD_MAX];
};

enum scene_attempt_state {
    SCENE_TAKING = 1,
    SCENE_HELD,
    SCENE_RELEASING, /* belief is over, the release is under way */
    SCENE_ORPHAN,    /* the keeper gives it back */
    SCENE_GONE       /* the client has nothing more to do with it */
};

/* One owner id: an attempt to take, then perhaps a grant. */
struct scene_attempt {
    unsigned char owner[DBLOCK_ID_SIZE]; /* begins with its index */
    int32_t strategy;
    unsigned name, client, life;
    uint32_t session; /* SCENE_NOBODY: timed */
    /* the client's view, by its own clock */
    enum scene_attempt_state state;
    uint64_t ttl_us;
    uint64_t keep_us;     /* min_hold */
    uint64_t deadline_us; /* of a timed grant */
    uint64_t least_us;    /* the earliest end that an extend under way or unsettled may set */
    uint64_t least_ttl_us; /* the shortest ttl of those unsettled */
    uint64_t taken_us;    /* when the request left that was granted */
    uint64_t granted_us;  /* when its answer was seen */
    int64_t token;
    int64_t not_after_us;
    uint64_t retry_us, hopeless_us; /* orphan */
    unsigned n_retries;
    uint64_t read_round;
    /* the truth */
    int is_granted;
    int is_over;    /* dropped, broken, or taken over */
    int is_broken;  /* by an administrator: the one end that a holder learns of late */
    int is_slow;     /* its commit took long */
    int is_restored; /* a crash of the server undid its release */
    int is_denied;  /* its caller was told that it was not granted */
    int64_t true_token;
    uint32_t true_session; /* that the row names; SCENE_NOBODY: timed */
    int64_t expires_us;    /* timed: the server's clock */
    uint64_t basis_us;     /* when the server last counted from now; true time */
    uint64_t basis_ttl_us;
    int64_t basis_offset_us;
    uint64_t granted_true_us;
    uint64_t over_us; /* when somebody else was granted the name, or 0 */
    int64_t over_offset_us;
    uint64_t n_back; /* steps back of the server's clock before it was sent */
};

enum scene_session_state {
    SCENE_SESSION_BEGINNING = 1,
    SCENE_SESSION_ALIVE,
    SCENE_SESSION_LOST,
    SCENE_SESSION_ENDED
};

struct scene_session {
    unsigned char id[DBLOCK_ID_SIZE];
    unsigned client;
    uint64_t ttl_us;
    /* the client's view */
    enum scene_session_state state;
    struct dblk_heartbeat beat;
    unsigned n_refs, n_beats;
    uint64_t read_back_us, give_up_us, retry_us;
    int is_broken; /* a heartbeat told that something of it was broken */
    /* the truth */
    int is_there;
    int64_t expires_us; /* the server's clock */
    uint64_t basis_us;
    int64_t basis_offset_us;
    uint64_t over_us; /* when somebody who wanted one of its names ended it, or 0 */
    int64_t over_offset_us;
};

struct scene_link {
    int is_open;
    int is_cut; /* the other side has gone; the next use finds out */
    unsigned n_uses;
    int64_t offset_us; /* database clock minus this machine's, as dblk_link */
};

/* What can have one request under way: a task, or the keeper. */
struct scene_actor {
    struct scene_link link;
    uint64_t waiting; /* serial of the request that it waits for; 0 none */
    uint64_t timer;   /* serial of its timer; 0 none */
    struct scene_request wish; /* sent as soon as the connection is there */
    uint64_t limit_us;
};

enum scene_doing {
    SCENE_RESTING = 1,
    SCENE_ACQUIRING,
    SCENE_HOLDING,
    SCENE_SHORT /* release, extend or confirm under way: `short_kind` */
};

struct scene_task {
    struct scene_actor actor;
    enum scene_doing doing;
    int is_anchor; /* holds a lease of its own all the time: keeps the session alive */
    struct dblk_machine machine;
    struct dblk_step step;
    uint32_t attempt;
    unsigned name;
    int32_t strategy;
    int is_heartbeat, is_cancelled, is_waiting_for_session;
    uint64_t ttl_us, keep_us;
    uint64_t begun_us, give_up_us; /* an acquire; its clock */
    uint64_t begun_paused_us;      /* how long its client had been paused then */
    uint32_t session; /* being begun */
    uint32_t in_use;  /* the session that the next take names */
    unsigned n_begins;
    uint64_t hold_until_us;
    enum scene_request_kind short_kind;
    uint64_t short_limit_us, short_ttl_us, least_before_us;
    unsigned n_tries;
    int was_uncertain;
};

enum scene_work { /* what the keeper is at */
    SCENE_WORK_NONE = 0,
    SCENE_WORK_RENEW,
    SCENE_WORK_END,
    SCENE_WORK_READ,
    SCENE_WORK_SWEEP,
    SCENE_WORK_ORPHAN
};

struct scene_keeper {
    struct scene_actor actor;
    enum scene_work work;
    uint32_t session, attempt;
    uint64_t read_sent_us;
    unsigned n_surplus;
    int is_open; /* something of the sweep was not settled */
    uint32_t surplus[SCENE_HELD_MAX];
    int64_t server_start_us;
};

struct scene_client {
    int is_running;
    int is_closing;
    uint64_t close_us; /* closing: when the process ends whatever is left; its clock */
    unsigned life;     /* incarnation: events of an earlier one are void */
    uint64_t paused_until_us; /* true time; 0 not paused */
    uint64_t paused_us;       /* in all */
    uint64_t clock_base_us;
    int64_t clock_ppm; /* how much faster its clock runs */
    uint64_t crashed_us;
    struct scene_task tasks[SCENE_TASKS_MAX];
    struct scene_keeper keeper;
    unsigned n_sessions;
    uint32_t sessions[64];
    unsigned n_live;
    uint32_t live[SCENE_LIVE_MAX];
};

enum scene_event_kind {
    SCENE_ARRIVES = 1, /* a request reaches the server */
    SCENE_EXECUTES,    /* ... and is done there */
    SCENE_ANSWERS,     /* its answer reaches the client, if that waits for it still */
    SCENE_FAILS,       /* the client learns that its connection is broken */
    SCENE_TIMER,       /* of an actor */
    SCENE_STARTS,      /* a client's process begins */
    SCENE_FREED,       /* a dead client's locks must be free by now */
    SCENE_MISHAP,      /* something goes wrong */
    SCENE_UNPINS,
    SCENE_SERVER_UP
};

struct scene_event {
    uint64_t at_us;
    uint64_t order; /* ties are broken by the order of posting */
    enum scene_event_kind kind;
    unsigned client, actor, life;
    uint64_t serial;
    uint32_t request; /* index, or what the kind makes of it */
};

struct scene_note {
    uint64_t at_us, step;
    const char *what;
    unsigned client, actor;
    uint32_t attempt;
    int64_t number;
};

/* A release that a crash of the server would undo. */
struct scene_lazy {
    struct sim_row row;
    uint32_t attempt;
};

struct scene_counts {
    uint64_t steps, seeds, grants, uncertain, settled_yes, settled_no, given_back, lost, swept;
    uint64_t late_refused, restored, excused_forward, excused_back, excused_broken, excused_lag;
    uint64_t slowest_end_us; /* of an acquire past its wait, in I/O limits x 1000 */
};

struct scene {
    uint64_t seed, random;
    struct scene_plan plan;
    enum scene_mistake mistake;
    unsigned with, without; /* of enum scene_fault: in every seed of this run, or in none */
    int is_tracing;
    uint64_t now_us; /* true time */
    int is_calm;     /* no faults any more, no new acquires */
    uint64_t calm_us, rest_us; /* since when; since when nobody has anything left to do */
    int64_t server_offset_us; /* the database's clock minus true time */
    int64_t highest_offset_us;
    uint64_t n_forward, n_back; /* steps of it so far */
    int is_server_up;
    unsigned server_life;
    uint64_t blackout_until_us;
    struct sim_world world;
    uint64_t order, serial;
    size_t n_events;
    struct scene_event events[SCENE_EVENTS_MAX];
    uint32_t next_request;
    struct scene_request requests[SCENE_REQUESTS_MAX];
    struct scene_client clients[SCENE_CLIENTS_MAX];
    uint32_t n_attempts, n_sessions;
    struct scene_attempt attempts[SCENE_ATTEMPTS_MAX];
    struct scene_session sessions[SCENE_SESSIONS_MAX];
    uint32_t holder[2][SCENE_NAMES_MAX]; /* of lease and of insert: the attempt last granted */
    int64_t last_token[2][SCENE_NAMES_MAX];
    int is_committing[2][SCENE_NAMES_MAX]; /* a take holds the row's lock, and is not seen yet */
    unsigned n_lazy;
    struct scene_lazy lazy[SCENE_LAZY_MAX];
    uint64_t n_notes;
    struct scene_note notes[SCENE_NOTES_MAX];
    struct scene_counts counts; /* over all seeds of one process */
    char violation[400];        /* "": none */
};

/* ---------------------------------------------------------------- scene.c */

/* Plays one seed for about `n_steps` steps, then until all is calm. 0, or -1: see `violation`. */
int scene_play(struct scene *scene, uint64_t seed, uint64_t n_steps, unsigned n_clients,
    enum scene_mistake mistake, int is_tracing);

void scene_violate(struct scene *scene, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void scene_note(struct scene *scene, const char *what, unsigned client, unsigned actor,
    uint32_t attempt, int64_t number);
void scene_print_notes(const struct scene *scene);

uint64_t scene_random(struct scene *scene);
uint64_t scene_below(struct scene *scene, uint64_t limit); /* limit above 0 */
int scene_chance(struct scene *scene, unsigned per_thousand);

/* The clock of a client, and when it will show `local_us`. */
uint64_t scene_local_us(const struct scene *scene, unsigned client);
uint64_t scene_true_us(const struct scene *scene, unsigned client, uint64_t local_us);
int64_t scene_server_us(const struct scene *scene);

const char *scene_name(unsigned name);
static inline unsigned scene_slot(int32_t strategy)
{
    return strategy == DBLOCK_INSERT;
}

/* ---------------------------------------------------------- scene_queue.c */

void scene_post(struct scene *scene, const struct scene_event *event);
int scene_pop(struct scene *scene, struct scene_event *ret_event);
void scene_set_timer(struct scene *scene, unsigned client, unsigned actor, uint64_t local_us);
void scene_stop_timer(struct scene *scene, unsigned client, unsigned actor);

/* -------------------------------------------------------- scene_network.c */

struct scene_actor *scene_actor(struct scene *scene, unsigned client, unsigned actor);
/* Sends `wish`, over a new connection if need be; the result comes by scene_result(). */
void scene_ask(struct scene *scene, unsigned client, unsigned actor,
    const struct scene_request *wish, uint64_t limit_us);
void scene_arrive(struct scene *scene, struct scene_request *request);
void scene_execute(struct scene *scene, struct scene_request *request);
void scene_answer(struct scene *scene, struct scene_request *request);
void scene_fail(struct scene *scene, const struct scene_event *event);
/* The limit of what it waits for has come. 0: it waits for nothing. */
int scene_time_out(struct scene *scene, unsigned client, unsigned actor);
void scene_cut(struct scene *scene, unsigned client, unsigned actor);

/* --------------------------------------------------------- scene_server.c */

void scene_serve(struct scene *scene, struct scene_request *request);
/* Would a take be granted just now? Then it may be long in committing. */
int scene_would_grant(struct scene *scene, const struct scene_request *request);
void scene_server_restart(struct scene *scene);
void scene_break(struct scene *scene, unsigned name, int32_t strategy);

/* --------------------------------------------------------- scene_client.c */

uint32_t scene_attempt_new(struct scene *scene, unsigned client, const struct scene_task *task);
void scene_attempt_hold(struct scene *scene, uint32_t attempt, uint64_t sent_us, int64_t token);
void scene_attempt_orphan(struct scene *scene, uint32_t attempt, int64_t not_after_us);
void scene_attempt_lose(struct scene *scene, uint32_t attempt, const char *why);
void scene_attempt_gone(struct scene *scene, uint32_t attempt);
uint64_t scene_attempt_deadline(const struct scene *scene, const struct scene_attempt *attempt);

uint32_t scene_session_usable(struct scene *scene, unsigned client, uint64_t ttl_us);
uint32_t scene_session_new(struct scene *scene, unsigned client, uint64_t ttl_us);
void scene_session_unref(struct scene *scene, uint32_t session);
void scene_session_lose(struct scene *scene, uint32_t session, const char *why);

void scene_client_start(struct scene *scene, unsigned client);
void scene_client_die(struct scene *scene, unsigned client);
void scene_client_close(struct scene *scene, unsigned client);
/* Deadlines that have passed, by the client's clock alone; before anything else that it does. */
void scene_client_clock(struct scene *scene, unsigned client);
/* A request of an actor has ended; `request` is NULL unless the status is DBLOCK_OK. */
void scene_result(struct scene *scene, unsigned client, unsigned actor, dblock_status status,
    int is_reused, const struct scene_request *request);

/* ----------------------------------------- scene_acquire.c, scene_task.c */

void scene_acquire_begin(struct scene *scene, unsigned client, unsigned task, uint64_t wait_us);
void scene_acquire_event(
    struct scene *scene, unsigned client, unsigned task, struct dblk_event *event);
void scene_acquire_result(struct scene *scene, unsigned client, unsigned task,
    dblock_status status, int is_reused, const struct scene_request *request);
void scene_acquire_timer(struct scene *scene, unsigned client, unsigned task);
void scene_session_begun(struct scene *scene, unsigned client);

void scene_task_timer(struct scene *scene, unsigned client, unsigned task);
void scene_task_result(struct scene *scene, unsigned client, unsigned task, dblock_status status,
    int is_reused, const struct scene_request *request);
void scene_task_acquired(
    struct scene *scene, unsigned client, unsigned task, dblock_status status, int is_open);
void scene_task_close(struct scene *scene, unsigned client, unsigned task);

/* --------------------------------------------------------- scene_keeper.c */

void scene_keeper_due(struct scene *scene, unsigned client);
void scene_keeper_step(struct scene *scene, unsigned client);
void scene_keeper_result(struct scene *scene, unsigned client, dblock_status status,
    const struct scene_request *request);
void scene_keeper_reconnected(struct scene *scene, unsigned client);

/* --------------------------------------------------------- scene_faults.c */

void scene_plan_choose(struct scene *scene, unsigned n_clients);
void scene_mishap(struct scene *scene);
void scene_faults_end(struct scene *scene);

/* --------------------------------------------------------- scene_checks.c */

/* In force by the truth, without asking the database. */
int scene_is_in_force(const struct scene *scene, const struct scene_attempt *attempt);
/* No two believe at once, and nobody believes what is not in force. */
void scene_check_belief(struct scene *scene);
/* Its caller was told, or is told now, that the attempt was not granted. */
void scene_check_denied(struct scene *scene, uint32_t attempt);
/* Everything of a client that died is free. */
void scene_check_freed(struct scene *scene, unsigned client, unsigned life);
/* In the calm: everybody is served, and then nothing stays taken; each within its bound. 1: all
 * that has been seen, the seed is over. */
int scene_check_calm(struct scene *scene);

#endif
