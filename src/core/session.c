/* SPDX-License-Identifier: MIT */
/* session.c - see session.h. Beginning a session is done by the thread that
 * needs it; renewing and ending it by the keeper. */
#include "core/session.h"

#include <string.h>

#include "core/error.h"
#include "core/keeper.h"
#include "core/link.h"
#include "core/lock.h"

static struct dblk_session *find_usable(dblock_client *client, uint64_t ttl_us, uint64_t now_us)
{
    struct dblk_session *session;

    for (session = client->sessions; session != NULL; session = session->next)
        if (session->ttl_us == ttl_us &&
            (session->state == DBLK_SESSION_BEGINNING ||
                (session->state == DBLK_SESSION_ALIVE && now_us < atomic_load(&session->deadline_us))))
            return session;
    return NULL;
}

static dblock_status begin_step(dblock_client *client, struct dblk_session *session,
    uint64_t deadline_us, int cancel_fd, uint64_t *ret_sent_us, struct dblock_error *error)
{
    uint64_t now_us = dblk_now_us();
    struct dblock_call call = { deadline_us, cancel_fd };
    struct dblock_answer answer;
    unsigned n_tries;
    dblock_status status = DBLOCK_E_CONNECTION;

    for (n_tries = 0; n_tries < 3; ++n_tries) {
        struct dblk_link *link = NULL;
        int is_reused;

        memset(&answer, 0, sizeof answer);
        memset(error, 0, sizeof *error);
        status = dblk_link_lend(client, &now_us, call.deadline_us, cancel_fd, &link, error);
        if (status != DBLOCK_OK)
            return status;
        is_reused = link->is_reused;
        *ret_sent_us = now_us;
        status = client->driver->session.begin(
            link->connection, &call, session->id, session->ttl_us, &answer, error);
        now_us = dblk_now_us();
        if (status == DBLOCK_OK)
            dblk_link_saw_clock(client, link, *ret_sent_us, now_us, answer.now_us);
        dblk_link_return(client, link);
        if (status != DBLOCK_E_CONNECTION || !is_reused)
            break;
    }
    if (status == DBLOCK_E_UNCERTAIN) {
        status = DBLOCK_E_CONNECTION;
        error->status = status;
    }
    return status;
}

static dblock_status begin_new(dblock_client *client, uint64_t ttl_us, uint64_t deadline_us,
    int cancel_fd, struct dblk_session **ret_session, struct dblock_error *error)
{
    struct dblk_session *session = dblk_allocate(sizeof *session);
    uint64_t sent_us = 0;
    dblock_status status;

    if (session == NULL || dblk_client_new_id(client, session->id) != 0) {
        dblk_release(session);
        return dblock_error_set(error, DBLOCK_E_MEMORY, NULL, "out of memory or randomness");
    }
    session->ttl_us = ttl_us;
    session->state = DBLK_SESSION_BEGINNING;
    session->n_refs = 1;
    session->read_back_us = DBLK_NEVER;
    session->next = client->sessions;
    client->sessions = session;
    dblk_unlock_client(client);

    status = begin_step(client, session, deadline_us, cancel_fd, &sent_us, error);

    dblk_lock_client(client);
    if (status == DBLOCK_OK) {
        dblk_heartbeat_start(&session->beat, sent_us, ttl_us);
        atomic_store(&session->deadline_us, session->beat.deadline_us);
        session->state = DBLK_SESSION_ALIVE;
        dblk_keeper_due(client, session->beat.next_us);
        *ret_session = session;
    } else {
        session->state = DBLK_SESSION_ENDED;
        dblk_session_unref(client, session);
    }
    (void)pthread_cond_broadcast(&client->changed);
    return status;
}

dblock_status dblk_session_get(dblock_client *client, uint64_t now_us, uint64_t ttl_us,
    uint64_t deadline_us, int cancel_fd, struct dblk_session **ret_session,
    struct dblock_error *reterr)
{
    struct dblk_session *session;
    struct dblock_error error;
    dblock_status status = DBLOCK_OK;

    dblk_error_clear(&error);
    dblk_lock_client(client);
    for (;;) {
        session = find_usable(client, ttl_us, now_us);
        if (session == NULL) {
            status = begin_new(client, ttl_us, deadline_us, cancel_fd, &session, &error);
            break;
        }
        if (session->state == DBLK_SESSION_ALIVE) {
            ++session->n_refs;
            break;
        }
        if (atomic_load(&client->is_closing)) {
            status = dblk_client_closed(&error);
            break;
        }
        if (now_us >= deadline_us) {
            status = dblock_error_set(
                &error, DBLOCK_E_CONNECTION, NULL, "no session within the I/O limit");
            break;
        }
        dblk_client_wait(client, deadline_us);
        now_us = dblk_now_us();
    }
    dblk_unlock_client(client);
    if (status == DBLOCK_OK)
        *ret_session = session;
    else if (status < 0)
        dblk_error_tell(reterr, &error);
    return status;
}

void dblk_session_unref(dblock_client *client, struct dblk_session *session)
{
    struct dblk_session **link = &client->sessions;

    if (session == NULL || --session->n_refs > 0 || session->state != DBLK_SESSION_ENDED)
        return; /* one that is alive without users is ended by the keeper when it is due */
    while (*link != session)
        link = &(*link)->next;
    *link = session->next;
    dblk_release(session);
}

static void lose_grants(dblock_client *client, struct dblk_session *session, int cause,
    const struct dblock_error *error)
{
    struct dblock_lock *lock = client->held.first;

    while (lock != NULL) {
        struct dblock_lock *next = lock->next;

        if (lock->session == session)
            dblk_lock_lose(lock, cause, error);
        lock = next;
    }
}

void dblk_session_lose(dblock_client *client, struct dblk_session *session, int cause,
    const struct dblock_error *error)
{
    uint64_t now_us = dblk_now_us();

    if (session->state != DBLK_SESSION_ALIVE)
        return;
    session->state = DBLK_SESSION_LOST;
    session->give_up_us = dblk_later(now_us, session->ttl_us + client->settings.io_us);
    session->retry_us = now_us;
    session->read_back_us = DBLK_NEVER;
    atomic_store(&session->deadline_us, 0);
    lose_grants(client, session, cause, error);
}

void dblk_session_ended(dblock_client *client, struct dblk_session *session, int cause,
    const struct dblock_error *error)
{
    dblk_session_lose(client, session, cause, error);
    if (session->state == DBLK_SESSION_LOST) {
        ++session->n_refs; /* so that it is unlinked by the same function as ever */
        session->state = DBLK_SESSION_ENDED;
        dblk_session_unref(client, session);
    }
}

void dblk_session_read_back(dblock_client *client, struct dblk_session *session, uint64_t at_us)
{
    if (session == NULL || session->state != DBLK_SESSION_ALIVE)
        return;
    session->read_back_us = dblk_sooner(session->read_back_us, at_us);
    dblk_keeper_due(client, session->read_back_us);
}
