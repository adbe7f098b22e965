/* SPDX-License-Identifier: MIT */
/* link.c - see link.h. */
#include "core/link.h"

#include <poll.h>
#include <string.h>

#include "core/borrowed.h"
#include "core/error.h"
#include "core/session.h"
#include "core/trace.h"
#include "strategy/backoff.h"

dblock_status dblk_link_open(dblock_client *client, int role, uint64_t deadline_us, int cancel_fd,
    struct dblk_link **ret_link, struct dblock_error *reterr)
{
    struct dblock_error error;
    struct dblock_answer answer;
    struct dblock_call call;
    struct dblock_target *target = dblk_way_of(client, role, reterr);
    struct dblk_link *link = target != NULL ? dblk_allocate(sizeof *link) : NULL;
    uint64_t sent_us = dblk_now_us();
    dblock_status status;

    if (target == NULL)
        return DBLOCK_E_UNSUPPORTED;
    if (link == NULL)
        return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "out of memory");
    memset(&answer, 0, sizeof answer);
    memset(&error, 0, sizeof error);
    link->role = role;
    call.deadline_us =
        dblk_sooner(deadline_us, dblk_later(sent_us, client->settings.connect_us));
    call.cancel_fd = cancel_fd;
    status = client->driver->connection.open(
        target, role, &call, &link->connection, &answer, &error);
    if (status == DBLOCK_CANCELLED && cancel_fd == client->stop_fd)
        status = dblk_client_closed(&error);
    dblk_trace(client, DBLOCK_TRACE_CONNECT, status, NULL, error.message, 0, sent_us);
    if (status != DBLOCK_OK) {
        dblk_release(link);
        if (status < 0)
            dblk_error_tell(reterr, &error);
        return status;
    }
    link->clock_offset_us = answer.now_us - (int64_t)dblk_now_us();
    dblk_lock_client(client);
    link->id = ++client->next_link_id;
    ++client->n_connections;
    dblk_unlock_client(client);
    *ret_link = link;
    return DBLOCK_OK;
}

void dblk_link_close(dblock_client *client, struct dblk_link *link, int how)
{
    if (link == NULL)
        return;
    dblk_alarm_forget(&client->alarms, &link->alarm, how == DBLOCK_CLOSE_FORKED);
    client->driver->connection.close(link->connection, how);
    if (how != DBLOCK_CLOSE_FORKED) {
        dblk_lock_client(client);
        --client->n_connections;
        dblk_unlock_client(client);
    }
    dblk_release(link);
}

int dblk_link_begin(dblock_client *client, struct dblk_link *link, struct dblock_call *call)
{
    int socket = link->alarm.is_set_up > 0 ? -1 : client->driver->connection.fd(link->connection);

    if (!dblk_alarm_begin(&client->alarms, &link->alarm, socket, call->deadline_us))
        return 0;
    call->cancel_fd = DBLOCK_CALL_IS_WATCHED;
    return 1;
}

dblock_status dblk_link_end(dblock_client *client, struct dblk_link *link, int is_watched,
    dblock_status status, dblock_status lost, struct dblock_error *error)
{
    if (!is_watched || !dblk_alarm_end(&client->alarms, &link->alarm))
        return status;
    link->is_over = 1;
    if (status != DBLOCK_OK)
        return status;
    /* the answer and the end of its time met: what was got by this connection has gone with it */
    return dblock_error_set(error, lost, NULL, "no answer from the server in time");
}

int dblk_link_is_alive(const dblock_client *client, const struct dblk_link *link)
{
    return !link->is_over && client->driver->connection.is_alive(link->connection);
}

int dblk_link_is_quiet(const dblock_client *client, const struct dblk_link *link)
{
    struct pollfd descriptor = { client->driver->connection.fd(link->connection), POLLIN, 0 };

    if (!dblk_link_is_alive(client, link))
        return 0;
    return descriptor.fd < 0 || dblk_wait(&descriptor, 1, 0) <= 0;
}

enum { JUST_HEARD_US = 250 };

int dblk_link_is_good(
    const dblock_client *client, const struct dblk_link *link, uint64_t now_us)
{
    if (now_us < link->heard_us + JUST_HEARD_US)
        return dblk_link_is_alive(client, link);
    return dblk_link_is_quiet(client, link);
}

void dblk_link_saw_clock(dblock_client *client, struct dblk_link *link, uint64_t sent_us,
    uint64_t seen_us, int64_t database_us)
{
    int64_t offset_us = database_us - (int64_t)seen_us;
    int64_t step_us = offset_us - link->clock_offset_us;
    int64_t slack_us = (int64_t)(seen_us - sent_us) + 1000000;

    link->heard_us = seen_us;
    if (database_us == 0)
        return;
    if (step_us > slack_us || step_us < -slack_us)
        dblk_trace(client, DBLOCK_TRACE_CLOCK, DBLOCK_OK, NULL,
            step_us > 0 ? "the database's clock went forward" : "the database's clock went back", 0,
            seen_us - (uint64_t)(step_us > 0 ? step_us : -step_us));
    link->clock_offset_us = offset_us;
}

static void close_stale(dblock_client *client, struct dblk_link *link)
{
    struct dblk_session *session;

    dblk_lock_client(client);
    --client->n_short;
    ++client->stats.reconnects;
    /* what it was asked last may have been undone by a crash of the server */
    for (session = client->sessions; session != NULL; session = session->next)
        dblk_session_read_back(client, session, dblk_now_us());
    (void)pthread_cond_signal(&client->changed);
    dblk_unlock_client(client);
    dblk_link_close(client, link, DBLOCK_CLOSE_ABORT);
}

/* That one, else the one that was used last. */
static struct dblk_link *take_idle(dblock_client *client, uint64_t link_id)
{
    struct dblk_link **place = &client->idle;
    struct dblk_link *link;

    while (*place != NULL && (*place)->id != link_id)
        place = &(*place)->next;
    if (*place == NULL)
        place = &client->idle;
    link = *place;
    if (link != NULL)
        *place = link->next;
    return link;
}

static dblock_status lend(dblock_client *client, uint64_t link_id, uint64_t *now_us,
    uint64_t deadline_us, int cancel_fd, struct dblk_link **ret_link, struct dblock_error *reterr)
{
    struct pollfd cancel = { cancel_fd, POLLIN, 0 };
    struct dblk_link *link;
    dblock_status status;

    dblk_lock_client(client);
    for (;;) {
        if (atomic_load(&client->is_closing)) {
            dblk_unlock_client(client);
            return dblk_client_closed(reterr);
        }
        link = take_idle(client, link_id);
        if (link != NULL) {
            link->next = NULL;
            dblk_unlock_client(client);
            if (dblk_link_is_good(client, link, *now_us)) {
                link->is_reused = 1;
                *ret_link = link;
                return DBLOCK_OK;
            }
            close_stale(client, link);
            *now_us = dblk_now_us();
            dblk_lock_client(client);
            continue;
        }
        if (client->n_short < client->settings.connections_max)
            break;
        if (*now_us >= deadline_us) {
            dblk_unlock_client(client);
            status = dblock_error_set(reterr, DBLOCK_E_CONNECTION,
                "raise connections_max, or let fewer threads call at once",
                "all %u connections were in use all the time",
                (unsigned)client->settings.connections_max);
            return status;
        }
        dblk_client_wait(client, deadline_us);
        *now_us = dblk_now_us();
        if (dblk_wait(&cancel, 1, 0) > 0 && !atomic_load(&client->is_closing)) {
            dblk_unlock_client(client);
            return DBLOCK_CANCELLED;
        }
    }
    ++client->n_short;
    dblk_unlock_client(client);
    status = dblk_link_open(
        client, DBLOCK_ROLE_SHORT, deadline_us, cancel_fd, ret_link, reterr);
    *now_us = dblk_now_us();
    if (status != DBLOCK_OK) {
        dblk_lock_client(client);
        --client->n_short;
        (void)pthread_cond_signal(&client->changed);
        dblk_unlock_client(client);
    }
    return status;
}

dblock_status dblk_link_lend(dblock_client *client, uint64_t *now_us, uint64_t deadline_us,
    int cancel_fd, struct dblk_link **ret_link, struct dblock_error *reterr)
{
    return lend(client, 0, now_us, deadline_us, cancel_fd, ret_link, reterr);
}

void dblk_link_return(dblock_client *client, struct dblk_link *link)
{
    if (!dblk_link_is_alive(client, link)) {
        close_stale(client, link);
        return;
    }
    dblk_lock_client(client);
    if (atomic_load(&client->is_closing)) {
        --client->n_short;
        dblk_unlock_client(client);
        dblk_link_close(client, link, DBLOCK_CLOSE_POLITE);
        return;
    }
    link->next = client->idle;
    client->idle = link;
    (void)pthread_cond_signal(&client->changed);
    dblk_unlock_client(client);
}

/* A row that is locked is most often so for the moment of somebody's take; a guarded transaction
 * still stands there after this. Both, as on a machine that is busy one look may take longer. */
enum { PINNED_LONG_US = 40000, PINNED_LOOKS = 4 };

static int may_repeat(dblock_status status, int is_reused, const struct dblock_answer *answer,
    unsigned n_tries, uint64_t since_us)
{
    if (status == DBLOCK_OK && answer->outcome == DBLOCK_ANSWER_PINNED)
        return since_us < PINNED_LONG_US || n_tries < PINNED_LOOKS;
    if (status == DBLOCK_OK)
        return answer->outcome == DBLOCK_ANSWER_AGAIN && n_tries < 60;
    return (status == DBLOCK_E_CONNECTION && is_reused && n_tries < 4) ||
        (status == DBLOCK_E_UNCERTAIN && n_tries < 4);
}

dblock_status dblk_short(dblock_client *client, uint64_t now_us, uint64_t link_id,
    dblk_short_fn fn, void *context,
    struct dblk_short_result *ret_result, struct dblock_error *reterr)
{
    uint64_t begun_us = now_us != 0 ? now_us : dblk_now_us();
    struct dblock_call call = { dblk_later(begun_us, client->settings.io_us), -1 };
    struct dblk_short_result result;
    struct dblock_error error;
    unsigned n_tries = 0;

    memset(&result, 0, sizeof result);
    now_us = begun_us;
    for (;;) {
        struct dblk_link *link = NULL;
        int is_reused = 0;
        int is_watched;
        dblock_status status;

        dblk_error_clear(&error);
        memset(&result.answer, 0, sizeof result.answer);
        status = lend(
            client, link_id, &now_us, call.deadline_us, client->stop_fd, &link, &error);
        if (status == DBLOCK_OK) {
            is_reused = link->is_reused;
            result.sent_us = now_us;
            is_watched = dblk_link_begin(client, link, &call);
            status = fn(client, link, &call, context, &result.answer, &error);
            status = dblk_link_end(client, link, is_watched, status, DBLOCK_E_UNCERTAIN, &error);
            call.cancel_fd = -1;
            now_us = dblk_now_us();
            if (status == DBLOCK_OK)
                dblk_link_saw_clock(client, link, result.sent_us, now_us, result.answer.now_us);
            dblk_link_return(client, link);
        }
        ++n_tries;
        if (status == DBLOCK_E_UNCERTAIN)
            result.was_uncertain = 1;
        if (now_us >= call.deadline_us ||
            !may_repeat(status, is_reused, &result.answer, n_tries, now_us - begun_us)) {
            if (status == DBLOCK_OK && result.answer.outcome == DBLOCK_ANSWER_AGAIN) {
                if (error.status == DBLOCK_OK) {
                    (void)dblock_error_set(&error, DBLOCK_E_DATABASE, "try again",
                        "the database chose this statement as a victim each time");
                    error.is_transient = 1;
                }
                status = error.status;
            }
            /* the last try had no effect; whether an earlier one had is not known */
            if (result.was_uncertain && status < 0 && status != DBLOCK_E_UNCERTAIN) {
                status = DBLOCK_E_UNCERTAIN;
                error.status = status;
            }
            if (status == DBLOCK_OK)
                *ret_result = result;
            else if (status < 0)
                dblk_error_tell(reterr, &error);
            return status;
        }
        if (status == DBLOCK_OK || n_tries > 1) {
            struct pollfd stop = { client->stop_fd, POLLIN, 0 };

            (void)dblk_wait(
                &stop, 1, now_us + dblk_backoff(n_tries, dblk_random_u64(), 500, 20000));
            now_us = dblk_now_us();
        }
    }
}
