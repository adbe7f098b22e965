/* SPDX-License-Identifier: MIT */
/* sim_world.h - what a database holds for dblock, as plain data: sessions, rows
 * of lease and insert, locks that live in connections. No thread, no lock and no
 * clock: time is an argument, in microseconds, so a simulation can replay it.
 *
 * The functions are the steps of dblock/sys/driver.h without connections, faults
 * and waiting; those are in sim_driver.h. Each is atomic, and returns DBLOCK_OK,
 * or a refusal with nothing changed. */
#ifndef DBLOCK_TEST_SIM_WORLD_H
#define DBLOCK_TEST_SIM_WORLD_H

#include <dblock/sys/driver.h>

/* On whose behalf a step is made. */
struct sim_caller {
    uint64_t connection; /* number of the connection, above 0; its locks live as long as it */
    const char *host;
    const char *label;
    int64_t pid;
};

struct sim_session {
    unsigned char id[DBLOCK_ID_SIZE];
    uint64_t ttl_us;
    int64_t since_us;
    int64_t expires_us;
    uint64_t n_beats;
    uint64_t changed;
    int64_t pid;
    char host[256];
};

/* A row of lease or insert. In force: it has an owner, and either its session's row is there and
 * has not expired, or it names no session and has not expired itself. */
struct sim_row {
    int32_t strategy;
    int has_owner;
    int has_session;
    unsigned n_guards; /* transactions that stand on it */
    unsigned char owner[DBLOCK_ID_SIZE];
    unsigned char session[DBLOCK_ID_SIZE];
    int64_t token;
    int64_t since_us;
    int64_t expires_us; /* timed grants only */
    int64_t free_us;    /* when it was last seen to become free; 0 never */
    int64_t pid;
    char name[256];
    char label[128];
    char host[256];
};

/* A row or advisory lock, with the last token drawn for it. */
struct sim_lock {
    int32_t strategy;
    int is_seeded;       /* row: there is something to lock */
    int64_t id;          /* advisory: the key */
    int64_t token;       /* last one drawn */
    int64_t grant_token; /* drawn by the present holder; 0 none */
    unsigned n_guards;   /* transactions that stand on the row of the token */
    uint64_t holder;     /* connection; 0 nobody */
    int64_t since_us;
    int64_t pid;
    char name[256];
    char label[128];
    char host[256];
};

/* A connection that stands in the queue of a lock. */
struct sim_waiter {
    uint64_t connection;
    uint64_t place; /* lower ones are served first */
    int32_t strategy;
    int64_t id;
    int64_t pid;
    char name[256];
    char label[128];
    char host[256];
};

struct sim_array {
    void *items;
    size_t n_items;
    size_t room;
};

enum sim_notice {
    SIM_GRANTED = 1, /* the connection stood in a queue and now holds the lock */
    SIM_ENDED        /* the server ended the connection */
};

struct sim_world {
    int is_installed; /* the tables are there */
    int is_denied;    /* this role may do nothing with them */
    int is_read_only;
    int64_t floor;    /* every later token is above it; carries what deleted rows knew */
    int64_t start_us; /* of the server */
    uint64_t last_place;
    struct sim_array sessions; /* of struct sim_session, and so on */
    struct sim_array rows;
    struct sim_array locks;
    struct sim_array waiters;
    /* Called from within a step; must not call into the world. May be NULL. */
    void (*notice)(void *context, uint64_t connection, enum sim_notice notice);
    void *notice_context;
};

void sim_world_init(struct sim_world *world, int64_t now_us);
void sim_world_fini(struct sim_world *world);

/* ----------------------------------------------------------------- sessions */

dblock_status sim_session_begin(struct sim_world *world, int64_t now_us,
    const struct sim_caller *caller, const unsigned char *session, uint64_t ttl_us,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status sim_session_renew(struct sim_world *world, int64_t now_us,
    const unsigned char *session, uint64_t ttl_us, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status sim_session_end(struct sim_world *world, int64_t now_us, const unsigned char *session,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status sim_session_holds(struct sim_world *world, int64_t now_us,
    const unsigned char *session, dblock_grant_fn fn, void *context, struct dblock_answer *answer,
    struct dblock_error *reterr);

/* --------------------------------------------------------- lease and insert */

dblock_status sim_hold_take(struct sim_world *world, int64_t now_us,
    const struct sim_caller *caller, int32_t strategy, const struct dblock_take *take,
    struct dblock_grant *holder, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status sim_hold_drop(struct sim_world *world, int64_t now_us, int32_t strategy,
    const char *name, const unsigned char *owner, uint64_t keep_us, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status sim_hold_extend(struct sim_world *world, int64_t now_us, int32_t strategy,
    const char *name, const unsigned char *owner, uint64_t ttl_us, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status sim_hold_draw(struct sim_world *world, int64_t now_us, int32_t strategy,
    const char *name, const unsigned char *owner, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status sim_hold_look(struct sim_world *world, int64_t now_us, int32_t strategy,
    const char *name, struct dblock_grant *grant, struct dblock_answer *answer,
    struct dblock_error *reterr);

/* A transaction begins or ends to stand on the row; 0 if there is no such row. */
int sim_hold_guard(struct sim_world *world, int32_t strategy, const char *name, int by);

/* The row itself, for tests that alter it behind everybody's back. NULL: none. */
struct sim_row *sim_hold_row(struct sim_world *world, int32_t strategy, const char *name);
/* A row made by hand, owned by `owner` and naming `session`. */
void sim_hold_plant(struct sim_world *world, int64_t now_us, int32_t strategy, const char *name,
    const unsigned char *owner, const unsigned char *session);
/* The row is deleted by hand, and what it knew of tokens with it. */
void sim_hold_delete(struct sim_world *world, int32_t strategy, const char *name);

/* --------------------------------------------------------- row and advisory */

dblock_status sim_lock_seed(struct sim_world *world, int64_t now_us,
    const struct dblock_subject *subject, struct dblock_answer *answer,
    struct dblock_error *reterr);
/* One attempt, without waiting. */
dblock_status sim_lock_take(struct sim_world *world, int64_t now_us,
    const struct sim_caller *caller, int32_t strategy, const struct dblock_take *take,
    struct dblock_grant *holder, struct dblock_answer *answer, struct dblock_error *reterr);
/* After an attempt that was answered BUSY: stands in the queue until it is served (SIM_GRANTED;
 * sim_lock_is_held tells too) or leaves. */
void sim_lock_enqueue(struct sim_world *world, const struct sim_caller *caller, int32_t strategy,
    const struct dblock_take *take);
void sim_lock_leave(struct sim_world *world, uint64_t connection);
int sim_lock_is_held(const struct sim_world *world, uint64_t connection, int32_t strategy,
    const struct dblock_subject *subject);
dblock_status sim_lock_drop(struct sim_world *world, int64_t now_us, uint64_t connection,
    int32_t strategy, const struct dblock_subject *subject, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status sim_lock_prove(struct sim_world *world, int64_t now_us, uint64_t connection,
    int32_t strategy, const struct dblock_subject *subject, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status sim_lock_draw(struct sim_world *world, int64_t now_us, uint64_t connection,
    int32_t strategy, const struct dblock_subject *subject, struct dblock_answer *answer,
    struct dblock_error *reterr);
/* A transaction begins or ends to stand on the row of the last token; 0 if none was drawn. */
int sim_lock_guard(struct sim_world *world, int32_t strategy, const char *name, int by);
/* The connection is gone, and all that lived in it. */
void sim_connection_end(struct sim_world *world, int64_t now_us, uint64_t connection);

/* ------------------------------------------------------------------ observe */

dblock_status sim_list(struct sim_world *world, int64_t now_us, const struct dblock_page *page,
    dblock_grant_fn fn, void *context, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status sim_end(struct sim_world *world, int64_t now_us, int32_t strategy,
    const struct dblock_subject *subject, int64_t token, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status sim_end_token(struct sim_world *world, int64_t now_us, int32_t strategy,
    const struct dblock_subject *subject, int64_t token, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status sim_purge(struct sim_world *world, int64_t now_us, struct dblock_answer *answer,
    struct dblock_error *reterr);
/* YES, or a refusal. */
dblock_status sim_verify(struct sim_world *world, int64_t now_us, struct dblock_answer *answer,
    struct dblock_error *reterr);

#endif
