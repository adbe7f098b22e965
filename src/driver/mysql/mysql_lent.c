/* SPDX-License-Identifier: MIT */
/* mysql_lent.c - see mysql_lent.h. */
#include "mysql_lent.h"

#include <stdlib.h>
#include <string.h>

#include "mysql_advisory.h"
#include "mysql_bell.h"
#include "mysql_connection.h"
#include "mysql_insert.h"
#include "mysql_lease.h"
#include "mysql_loan.h"
#include "mysql_observe.h"
#include "mysql_session.h"
#include "mysql_target.h"

/* The whole of a step: of `call`, on `name`. */
#define LENT(action, name, step)                                                                   \
    dblock_status status = mysql_loan_take(connection, call, action, name, reterr);                \
                                                                                                   \
    return status == DBLOCK_OK ? mysql_loan_end(connection, step) : status

dblock_status mysql_lent_ping(LENT_CONNECTION, LENT_ANSWER)
{
    LENT("ping", NULL, mysql_connection_ping(connection, call, answer, reterr));
}

dblock_status mysql_lent_verify(LENT_CONNECTION, LENT_ANSWER)
{
    LENT("use the tables of dblock", NULL, mysql_connection_verify(connection, call, answer, reterr));
}

dblock_status mysql_lent_session_begin(
    LENT_CONNECTION, const unsigned char *session, uint64_t ttl_us, LENT_ANSWER)
{
    LENT("begin a session", NULL,
        mysql_session_begin(connection, call, session, ttl_us, answer, reterr));
}

dblock_status mysql_lent_session_end(LENT_CONNECTION, const unsigned char *session, LENT_ANSWER)
{
    LENT("end a session", NULL, mysql_session_end(connection, call, session, answer, reterr));
}

/* -------------------------------------------------------------- lease and insert */

#define HOLD(kind)                                                                                 \
    dblock_status mysql_lent_##kind##_take(LENT_CONNECTION, const struct dblock_take *take,        \
        struct dblock_grant *holder, LENT_ANSWER)                                                  \
    {                                                                                              \
        LENT("take " #kind, take->subject.name,                                                    \
            mysql_##kind##_take(connection, call, take, holder, answer, reterr));                  \
    }                                                                                              \
    dblock_status mysql_lent_##kind##_drop(LENT_CONNECTION, LENT_SUBJECT,                          \
        const unsigned char *owner, uint64_t keep_us, LENT_ANSWER)                                 \
    {                                                                                              \
        LENT("release " #kind, subject->name,                                                      \
            mysql_##kind##_drop(connection, call, subject, owner, keep_us, answer, reterr));       \
    }                                                                                              \
    dblock_status mysql_lent_##kind##_extend(LENT_CONNECTION, LENT_SUBJECT,                        \
        const unsigned char *owner, uint64_t ttl_us, LENT_ANSWER)                                  \
    {                                                                                              \
        LENT("extend " #kind, subject->name,                                                       \
            mysql_##kind##_extend(connection, call, subject, owner, ttl_us, answer, reterr));      \
    }                                                                                              \
    dblock_status mysql_lent_##kind##_look(                                                        \
        LENT_CONNECTION, LENT_SUBJECT, struct dblock_grant *grant, LENT_ANSWER)                    \
    {                                                                                              \
        LENT("look at " #kind, subject->name,                                                      \
            mysql_##kind##_look(connection, call, subject, grant, answer, reterr));                \
    }                                                                                              \
    dblock_status mysql_lent_##kind##_draw(                                                        \
        LENT_CONNECTION, LENT_SUBJECT, const unsigned char *owner, LENT_ANSWER)                    \
    {                                                                                              \
        LENT("draw a token of", subject->name,                                                     \
            mysql_##kind##_draw(connection, call, subject, owner, answer, reterr));                \
    }                                                                                              \
    dblock_status mysql_lent_##kind##_take_many(LENT_CONNECTION, const struct dblock_take *terms,  \
        const struct dblock_many *many, size_t *ret_place, struct dblock_grant *holder,            \
        LENT_ANSWER)                                                                               \
    {                                                                                              \
        LENT("take several of " #kind, many->subjects[0].name,                                     \
            mysql_##kind##_take_many(                                                              \
                connection, call, terms, many, ret_place, holder, answer, reterr));                \
    }                                                                                              \
    dblock_status mysql_lent_##kind##_drop_many(                                                   \
        LENT_CONNECTION, const struct dblock_many *many, LENT_ANSWER)                              \
    {                                                                                              \
        LENT("release several of " #kind, many->subjects[0].name,                                  \
            mysql_##kind##_drop_many(connection, call, many, answer, reterr));                     \
    }                                                                                              \
    struct dblock_connection

HOLD(lease);
HOLD(insert);

/* ---------------------------------------------------------------------- advisory */

/* What the session holds for us, to be given back when the client goes and the session stays. */
struct mysql_held {
    struct mysql_held *next;
    struct dblock_subject subject;
    char name[DBLOCK_NAME_MAX + 1];
};

static struct mysql_held *keep(const struct dblock_subject *subject)
{
    struct mysql_held *held = calloc(1, sizeof *held);

    if (held == NULL)
        return NULL;
    held->subject = *subject;
    memcpy(held->name, subject->name, subject->name_size);
    held->subject.name = held->name;
    return held;
}

static int is_same(const struct dblock_subject *one, const struct dblock_subject *other)
{
    if (one->has_advisory_id || other->has_advisory_id)
        return one->has_advisory_id && other->has_advisory_id &&
            one->advisory_id == other->advisory_id;
    return one->name_size == other->name_size &&
        memcmp(one->name, other->name, one->name_size) == 0;
}

static void forget(struct dblock_connection *connection, const struct dblock_subject *subject)
{
    struct mysql_held **place = &connection->held;
    struct mysql_held *held;

    while ((held = *place) != NULL && !is_same(&held->subject, subject))
        place = &held->next;
    if (held == NULL)
        return;
    *place = held->next;
    free(held);
}

static dblock_status try_once(LENT_CONNECTION, const struct dblock_take *take,
    struct dblock_grant *holder, LENT_ANSWER)
{
    struct dblock_take once = *take;

    once.wait_us = 0;
    {
        LENT("take advisory lock", take->subject.name,
            mysql_advisory_take(connection, call, &once, holder, answer, reterr));
    }
}

enum { ASK_FIRST_US = 5000, ASK_LAST_US = 100000 };

/* The server's queue would keep the application's connection, and a KILL is needed to leave it: so
 * it is asked from time to time. */
static dblock_status ask_again(LENT_CONNECTION, const struct dblock_take *take,
    struct dblock_grant *holder, LENT_ANSWER)
{
    uint64_t now_us = dblock_clock_us();
    uint64_t until_us = take->wait_us < UINT64_MAX - now_us ? now_us + take->wait_us : UINT64_MAX;
    uint64_t pause_us = ASK_FIRST_US;
    dblock_status status;

    for (;;) {
        struct dblock_call pause = { 0, call->cancel_fd };
        struct dblock_call step = { now_us + connection->target->io_timeout_us, -1 };

        status = try_once(connection, &step, take, holder, answer, reterr);
        now_us = dblock_clock_us();
        if (status != DBLOCK_OK || answer->outcome == DBLOCK_ANSWER_YES || now_us >= until_us)
            return status;
        pause.deadline_us = pause_us < until_us - now_us ? now_us + pause_us : until_us;
        if (dblock_fd_wait(-1, 0, &pause, 1) < 0)
            return DBLOCK_CANCELLED;
        pause_us = 2 * pause_us < ASK_LAST_US ? 2 * pause_us : ASK_LAST_US;
        now_us = dblock_clock_us();
    }
}

dblock_status mysql_lent_advisory_take(LENT_CONNECTION, const struct dblock_take *take,
    struct dblock_grant *holder, LENT_ANSWER)
{
    struct mysql_held *held;
    dblock_status status;

    if (!connection->is_lent)
        return mysql_advisory_take(connection, call, take, holder, answer, reterr);
    if (!connection->has_locks)
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED, "use the strategy lease or insert",
            "cannot take advisory lock \"%s\": something between lends out connections of its own",
            take->subject.name);
    if (take->is_fair && take->wait_us > 0)
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED, "leave DBLOCK_FAIR out",
            "cannot take advisory lock \"%s\" in order of arrival over a connection of the"
            " application", take->subject.name);
    held = keep(&take->subject); /* first: what was got must not be forgotten */
    if (held == NULL)
        return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "out of memory");
    status = ask_again(connection, call, take, holder, answer, reterr);
    if (status == DBLOCK_OK && answer->outcome == DBLOCK_ANSWER_YES) {
        held->next = connection->held;
        connection->held = held;
    } else {
        free(held);
    }
    return status;
}

static dblock_status drop(LENT_CONNECTION, LENT_SUBJECT, LENT_ANSWER)
{
    LENT("release advisory lock", subject->name,
        mysql_advisory_drop(connection, call, subject, answer, reterr));
}

dblock_status mysql_lent_advisory_drop(LENT_CONNECTION, LENT_SUBJECT, LENT_ANSWER)
{
    dblock_status status = drop(connection, call, subject, answer, reterr);

    if (status == DBLOCK_OK && connection->is_lent)
        forget(connection, subject);
    return status;
}

/* The session stays, and holds nothing for us. */
static void leave(struct dblock_connection *connection)
{
    struct dblock_call call = { dblock_clock_us() + connection->target->io_timeout_us, -1 };
    struct dblock_answer answer;
    struct dblock_error error;
    struct mysql_held *held;

    while ((held = connection->held) != NULL) {
        connection->held = held->next;
        memset(&answer, 0, sizeof answer);
        if (!connection->is_dead)
            (void)drop(connection, &call, &held->subject, &answer, &error);
        free(held);
    }
}

dblock_status mysql_lent_advisory_prove(LENT_CONNECTION, LENT_SUBJECT, LENT_ANSWER)
{
    LENT("prove advisory lock", subject->name,
        mysql_advisory_prove(connection, call, subject, answer, reterr));
}

dblock_status mysql_lent_advisory_draw(LENT_CONNECTION, LENT_SUBJECT, LENT_ANSWER)
{
    LENT("draw a token of", subject->name,
        mysql_advisory_draw(connection, call, subject, answer, reterr));
}

/* ------------------------------------------------------------------ look and mend */

dblock_status mysql_lent_list(LENT_CONNECTION, const struct dblock_page *page, dblock_grant_fn fn,
    void *context, LENT_ANSWER)
{
    LENT("list locks", NULL,
        mysql_observe_list(connection, call, page, fn, context, answer, reterr));
}

dblock_status mysql_lent_break(
    LENT_CONNECTION, int strategy, LENT_SUBJECT, int64_t token, LENT_ANSWER)
{
    LENT("break", subject->name,
        mysql_observe_end(connection, call, strategy, subject, token, answer, reterr));
}

dblock_status mysql_lent_end_token(
    LENT_CONNECTION, int strategy, LENT_SUBJECT, int64_t token, LENT_ANSWER)
{
    LENT("break", subject->name,
        mysql_observe_end_token(connection, call, strategy, subject, token, answer, reterr));
}

dblock_status mysql_lent_purge(LENT_CONNECTION, LENT_ANSWER)
{
    LENT("purge the tables of dblock", NULL, mysql_observe_purge(connection, call, answer, reterr));
}

dblock_status mysql_lent_check(
    LENT_CONNECTION, dblock_finding_fn fn, void *context, LENT_ANSWER)
{
    LENT("look at the server", NULL,
        mysql_observe_check(connection, call, fn, context, answer, reterr));
}

/* ------------------------------------------------------------------- the connection */

dblock_status mysql_lent_open(struct dblock_target *target, int role, const struct dblock_call *call,
    struct dblock_connection **ret_connection, LENT_ANSWER)
{
    return target->lent != NULL
        ? mysql_loan_open(target, role, call, ret_connection, answer, reterr)
        : mysql_connection_open(target, role, call, ret_connection, answer, reterr);
}

void mysql_lent_close(struct dblock_connection *connection, int how)
{
    if (connection == NULL || !connection->is_lent) {
        mysql_connection_close(connection, how);
        return;
    }
    if (how == DBLOCK_CLOSE_FORKED)
        return; /* the parent may have been at work with it: the memory stays */
    leave(connection);
    mysql_bell_end(connection);
    free(connection);
}

int mysql_lent_fd(const struct dblock_connection *connection)
{
    return connection->is_lent ? -1 : mysql_connection_fd(connection);
}
