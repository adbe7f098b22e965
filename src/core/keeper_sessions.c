/* SPDX-License-Identifier: MIT */
/* keeper_sessions.c - renewing sessions, ending those that are over, and reading
 * back what one holds.
 *
 * The read-back answers two questions at once. Missing: a grant that we believe
 * in and the database does not list has been broken or taken; its holder is
 * told. Surplus: a row of our session whose owner nobody here knows (a release
 * that a server crash undid, a take that was abandoned and granted later) would
 * stay taken for ever, because the session is renewed for its other grants; it
 * is given back. */
#include <string.h>

#include "core/driver_steps.h"
#include "core/hex.h"
#include "core/keeper.h"
#include "core/keeper_work.h"
#include "core/link.h"
#include "core/lock.h"
#include "core/queue.h"
#include "core/session.h"
#include "core/trace.h"

enum {
    LOST_RETRY_US = 500000,
    /* For what no sign tells of: a take that was let through after its not_after (a commit that
     * waited for a standby, a clock set back). Rarely, as it reads the whole table. */
    READ_EVERY_BEATS = 64
};

static struct dblk_session *find_due(dblock_client *client, uint64_t now_us)
{
    struct dblk_session *session;

    for (session = client->sessions; session != NULL; session = session->next)
        if ((session->state == DBLK_SESSION_ALIVE && now_us >= session->beat.next_us) ||
            (session->state == DBLK_SESSION_LOST && now_us >= session->retry_us))
            return session;
    return NULL;
}

/* Deletes the row of a session that is lost, or that nobody needs any more. */
static void end_session(dblock_client *client, struct dblk_session *session, uint64_t limit_us)
{
    struct dblock_call call = { limit_us, client->stop_fd };
    struct dblock_answer answer;
    struct dblock_error error;
    struct dblk_link *link = NULL;
    dblock_status status;

    /* from here on no acquire uses it; without users nothing is lost by that */
    dblk_session_lose(client, session, DBLOCK_CAUSE_DEADLINE, NULL);
    ++session->n_refs;
    dblk_unlock_client(client);
    memset(&answer, 0, sizeof answer);
    status = dblk_keeper_link(client, limit_us, &link, &error);
    if (status == DBLOCK_OK)
        status = client->driver->session.end(
            link->connection, &call, session->id, &answer, &error);
    if (status != DBLOCK_OK)
        dblk_keeper_check_link(client);
    dblk_lock_client(client);
    if ((status == DBLOCK_OK && answer.outcome != DBLOCK_ANSWER_AGAIN) ||
        dblk_now_us() >= session->give_up_us) {
        dblk_session_ended(client, session, DBLOCK_CAUSE_DEADLINE, NULL);
    } else {
        session->retry_us = dblk_now_us() + LOST_RETRY_US;
    }
    dblk_session_unref(client, session);
}

static void judge_renewal(dblock_client *client, struct dblk_session *session, uint64_t sent_us,
    const struct dblock_answer *answer)
{
    uint64_t now_us = dblk_now_us();
    int was_announced = session->is_announced;
    enum dblk_heartbeat_verdict verdict = dblk_heartbeat_answered(&session->beat, sent_us, now_us,
        answer->outcome == DBLOCK_ANSWER_YES, answer->changed);

    ++client->stats.heartbeats;
    if (verdict == DBLK_BEAT_LOST) {
        /* "no": somebody ended the session, so by the database's clock it had expired */
        dblk_session_lose(client, session,
            answer->outcome == DBLOCK_ANSWER_YES ? DBLOCK_CAUSE_DEADLINE : DBLOCK_CAUSE_SERVER,
            NULL);
        return;
    }
    atomic_store(&session->deadline_us, session->beat.deadline_us);
    session->is_announced = 0;
    if (was_announced)
        dblk_clock_due(client, 0); /* whoever was told EXPIRING is told RESTORED */
    if (verdict == DBLK_BEAT_READ) {
        session->is_broken = 1;
        dblk_session_read_back(client, session, now_us);
    }
    if (++session->n_beats % READ_EVERY_BEATS == 0)
        dblk_session_read_back(client, session, now_us);
    /* a pooler hides a restart of the server: its start time does not */
    if (answer->server_start_us != 0 && answer->server_start_us != client->keeper.server_start_us) {
        if (client->keeper.server_start_us != 0)
            dblk_session_read_back(client, session, now_us);
        client->keeper.server_start_us = answer->server_start_us;
    }
}

static void renew(dblock_client *client, struct dblk_session *session, uint64_t limit_us)
{
    /* a quarter of the ttl, so that an answer that never comes leaves time for another try */
    struct dblock_call call = { dblk_sooner(limit_us,
                                    dblk_sooner(session->beat.deadline_us,
                                        dblk_later(dblk_now_us(), session->ttl_us / 4))),
        client->stop_fd };
    struct dblock_answer answer;
    struct dblock_error error;
    struct dblk_link *link = NULL;
    uint64_t sent_us = 0;
    dblock_status status;

    ++session->n_refs;
    dblk_unlock_client(client);
    memset(&answer, 0, sizeof answer);
    memset(&error, 0, sizeof error);
    status = dblk_keeper_link(client, call.deadline_us, &link, &error);
    if (status == DBLOCK_OK) {
        sent_us = dblk_now_us();
        status = client->driver->session.renew(
            link->connection, &call, session->id, session->ttl_us, &answer, &error);
        if (status == DBLOCK_OK)
            dblk_link_saw_clock(client, link, sent_us, dblk_now_us(), answer.now_us);
        dblk_trace(client, DBLOCK_TRACE_RENEW, status, NULL, error.message, 0, sent_us);
    }
    if (status != DBLOCK_OK)
        dblk_keeper_check_link(client);
    dblk_lock_client(client);
    if (session->state == DBLK_SESSION_ALIVE) {
        if (status == DBLOCK_OK && answer.outcome != DBLOCK_ANSWER_AGAIN) {
            judge_renewal(client, session, sent_us, &answer);
        } else {
            ++client->stats.heartbeats_late;
            if (dblk_heartbeat_failed(&session->beat, dblk_now_us(), dblk_random_u64()) ==
                DBLK_BEAT_LOST)
                dblk_session_lose(client, session, DBLOCK_CAUSE_DEADLINE, &error);
        }
    }
    dblk_session_unref(client, session);
}

int dblk_keeper_beat(dblock_client *client, uint64_t now_us, uint64_t limit_us)
{
    struct dblk_session *session = find_due(client, now_us);

    if (session == NULL)
        return 0;
    /* an idle client costs the server nothing: a session without users is given up */
    if (session->state == DBLK_SESSION_LOST || session->n_refs == 0)
        end_session(client, session, limit_us);
    else
        renew(client, session, limit_us);
    return 1;
}

struct surplus {
    struct surplus *next;
    int32_t strategy;
    unsigned char owner[DBLOCK_ID_SIZE];
    size_t name_size;
    char name[DBLOCK_NAME_MAX + 1];
};

struct reading {
    dblock_client *client;
    uint64_t sent_us; /* names it, too */
    struct surplus *surplus;
};

static int see_row(const struct dblock_grant *grant, void *context)
{
    struct reading *reading = context;
    unsigned char owner[DBLOCK_ID_SIZE];
    struct surplus *surplus;
    dblock_lock *lock;

    if (dblk_hex_read_id(grant->owner, owner) != 0)
        return 0;
    dblk_lock_client(reading->client);
    lock = dblk_registry_find(&reading->client->registry, owner);
    if (lock != NULL)
        lock->read_us = reading->sent_us;
    dblk_unlock_client(reading->client);
    if (lock != NULL)
        return 0;
    surplus = dblk_allocate(sizeof *surplus);
    if (surplus == NULL)
        return 0; /* found again by the next read-back */
    surplus->strategy = grant->strategy;
    memcpy(surplus->owner, owner, sizeof owner);
    surplus->name_size = strlen(grant->name);
    memcpy(surplus->name, grant->name, surplus->name_size + 1);
    surplus->next = reading->surplus;
    reading->surplus = surplus;
    return 0;
}

/* 0: all given back, or at least tried; else the read-back comes again. */
static int give_back_surplus(dblock_client *client, struct dblk_link *link,
    const struct dblock_call *call, struct surplus *surplus)
{
    struct dblock_subject subject = { surplus->name, surplus->name_size, 0, 0 };
    struct dblock_answer answer;
    struct dblock_error error;
    uint64_t begun_us = dblk_now_us();
    dblock_status status;

    memset(&answer, 0, sizeof answer);
    memset(&error, 0, sizeof error);
    status = dblk_hold_steps(client, surplus->strategy)
                 ->drop(link->connection, call, &subject, surplus->owner, 0, &answer, &error);
    dblk_trace(client, DBLOCK_TRACE_SETTLE, status, surplus->name,
        "a grant that nobody here owns was given back", 0, begun_us);
    return status == DBLOCK_OK &&
            (answer.outcome == DBLOCK_ANSWER_YES || answer.outcome == DBLOCK_ANSWER_NO)
        ? 0
        : -1;
}

static void lose_missing(
    dblock_client *client, struct dblk_session *session, uint64_t sent_us, int cause)
{
    dblock_lock *lock = client->held.first;

    while (lock != NULL) {
        dblock_lock *next = lock->next;

        /* one that was granted while the reading was under way, or is just being made a timed one,
         * proves nothing by its absence; to be handed over is not to be granted */
        if (lock->session == session && lock->read_us != sent_us &&
            dblk_queue_since(lock) < sent_us && lock->n_extending == 0)
            dblk_lock_lose(lock, cause, NULL);
        lock = next;
    }
}

int dblk_keeper_read_back(dblock_client *client, uint64_t now_us, uint64_t limit_us)
{
    struct dblock_call call = { limit_us, client->stop_fd };
    struct reading reading = { client, 0, NULL };
    struct dblk_session *session = client->sessions;
    struct dblock_answer answer;
    struct dblock_error error;
    struct dblk_link *link = NULL;
    dblock_status status;
    int is_broken;
    int is_open = 0;

    while (session != NULL &&
        (session->state != DBLK_SESSION_ALIVE || now_us < session->read_back_us))
        session = session->next;
    if (session == NULL)
        return 0;
    session->read_back_us = DBLK_NEVER;
    is_broken = session->is_broken;
    ++session->n_refs;
    dblk_unlock_client(client);

    memset(&answer, 0, sizeof answer);
    memset(&error, 0, sizeof error);
    status = dblk_keeper_link(client, limit_us, &link, &error);
    if (status == DBLOCK_OK) {
        reading.sent_us = dblk_now_us();
        status = client->driver->session.holds(
            link->connection, &call, session->id, see_row, &reading, &answer, &error);
        /* not decided: an empty list would say that everything is lost */
        if (status == DBLOCK_OK && answer.outcome != DBLOCK_ANSWER_YES)
            status = DBLOCK_E_DATABASE;
    }
    while (reading.surplus != NULL) {
        struct surplus *surplus = reading.surplus;

        reading.surplus = surplus->next;
        if (status == DBLOCK_OK && give_back_surplus(client, link, &call, surplus) != 0)
            is_open = 1;
        dblk_release(surplus);
    }
    if (status != DBLOCK_OK)
        dblk_keeper_check_link(client);

    dblk_lock_client(client);
    if (status == DBLOCK_OK) {
        session->is_broken = 0;
        session->read_us = reading.sent_us;
        lose_missing(client, session, reading.sent_us,
            is_broken ? DBLOCK_CAUSE_BROKEN : DBLOCK_CAUSE_SERVER);
    }
    if (status != DBLOCK_OK || is_open)
        dblk_session_read_back(client, session, dblk_now_us() + session->ttl_us / 16);
    dblk_session_unref(client, session);
    return 1;
}
