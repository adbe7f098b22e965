/* SPDX-License-Identifier: MIT */
/* pgsql_line.c - standing in line for a lease or insert, and being woken. Why that works
 * is said in sql/line.sql; the server's part of the waiting is the procedure dblock_stand
 * (0001_create.sql).
 *
 * The first in line rests in poll(), without a statement on the server. Whatever goes wrong
 * while standing ends the connection: with its session of the server goes all that it may
 * have got. */
#include "pgsql_line.h"

#include "pgsql_error.h"
#include "pgsql_statement.h"

#include <poll.h>
#include <stdlib.h>

enum { /* columns of its row */
    STAND_OUTCOME,
    STAND_TICKET,
    STAND_SEEN
};

enum {
    N_SLICES = 12,              /* of one statement */
    SLEEP_FIRST_US = 50000,     /* between two looks of a first one that nobody wakes */
    SLEEP_LAST_US = 250000,
    SETTLE_US = 100000          /* at the end of a connection */
};

struct pgsql_line {
    int has_bell;    /* it is the first, and LISTENs */
    int is_first;
    uint64_t sleep_us;
    struct pgsql_parameters ticket; /* its key; n 0: none */
    struct pgsql_message leaving; /* sent, and not answered yet: connection->is_leaving */
};

struct wish {
    int strategy;
    const struct dblock_subject *subject;
    int is_fair;
};

/* FNV-1a, and what spreads it over all 64 bits: an equal key is a shared line, which costs time
 * and nothing else. */
static uint64_t hash(uint64_t value, const char *bytes, size_t size)
{
    size_t i;

    for (i = 0; i < size; ++i)
        value = (value ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
    return value;
}

uint64_t pgsql_line_key(const struct dblock_target *target, int32_t strategy,
    const struct dblock_subject *subject)
{
    uint64_t key = UINT64_C(0xcbf29ce484222325) + (uint64_t)strategy;

    key = hash(key, target->schema, strlen(target->schema) + 1);
    key = hash(key, subject->name, subject->name_size);
    key = (key ^ key >> 33) * UINT64_C(0xff51afd7ed558ccd);
    key = (key ^ key >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return key ^ key >> 33;
}

static void put_key(struct pgsql_parameters *parameters, uint64_t high, uint64_t low)
{
    pgsql_put_int32(parameters, (int32_t)(uint32_t)high);
    pgsql_put_int32(parameters, (int32_t)(uint32_t)low);
}

void pgsql_put_line(struct pgsql_parameters *parameters, const struct dblock_target *target,
    int32_t strategy, const struct dblock_subject *subject)
{
    uint64_t key = pgsql_line_key(target, strategy, subject);

    put_key(parameters, key >> 32, key);
}

/* As dblock_stand makes it. */
static void put_ticket(struct pgsql_parameters *parameters, const struct dblock_target *target,
    const struct wish *wish, int32_t ticket)
{
    uint64_t key = pgsql_line_key(target, wish->strategy, wish->subject);

    put_key(parameters, ~(key >> 32), (key & UINT64_C(0xf0000000)) | (uint32_t)ticket);
}

/* Below what the server gives a statement on the connections of locks (add_settings). */
struct pgsql_slices pgsql_slices_of(
    const struct dblock_connection *connection, uint64_t wait_us)
{
    uint64_t each_us = wait_us < connection->slice_us ? wait_us : connection->slice_us;
    struct pgsql_slices slices = { each_us > 0 ? wait_us / each_us : 1, each_us };
    uint64_t n_most = connection->target->io_timeout_us / connection->slice_us;

    if (n_most > N_SLICES)
        n_most = N_SLICES;
    if (slices.n > n_most)
        slices.n = n_most > 0 ? n_most : 1;
    return slices;
}

struct dblock_call pgsql_slices_call(const struct dblock_connection *connection,
    const struct dblock_call *call, uint64_t wait_us)
{
    struct dblock_call bounded = { dblock_clock_us() + wait_us + connection->target->io_timeout_us,
        call->cancel_fd };

    if (bounded.deadline_us > call->deadline_us)
        bounded.deadline_us = call->deadline_us;
    return bounded;
}

/* How many wake-ups have come. */
static unsigned drain(PGconn *pg)
{
    unsigned n_heard = 0;
    PGnotify *heard;

    for (; (heard = PQnotifies(pg)) != NULL; ++n_heard)
        PQfreemem(heard);
    return n_heard;
}

/* The answer to the last leave. */
static dblock_status settle(
    struct dblock_connection *connection, uint64_t limit_us, struct dblock_error *reterr)
{
    struct dblock_call call = { dblock_clock_us() + limit_us, -1 };
    struct pgsql_line *line = connection->line;
    struct dblock_answer unused;
    dblock_status status;

    if (!connection->is_leaving)
        return DBLOCK_OK;
    connection->is_leaving = 0;
    line->leaving.call = &call;
    status = pgsql_message_collect(&line->leaving, reterr);
    if (status != DBLOCK_OK)
        connection->is_broken = 1;
    (void)drain(connection->pg);
    return pgsql_message_fini(&line->leaving, status, &unused);
}

void pgsql_line_put(struct pgsql_parameters *parameters,
    const struct dblock_connection *connection, int32_t strategy,
    const struct dblock_subject *subject, int is_fair, struct pgsql_slices slices,
    const struct pgsql_standing *standing)
{
    parameters->n = 0;
    pgsql_put_text(parameters, connection->target->schema_quoted);
    pgsql_put_int32(parameters, strategy);
    pgsql_put_name(parameters, subject);
    pgsql_put_line(parameters, connection->target, strategy, subject);
    pgsql_put_bool(parameters, is_fair);
    pgsql_put_int32(parameters, (int32_t)(slices.each_us / 1000 + 1));
    pgsql_put_int32(parameters, (int32_t)slices.n);
    pgsql_put_int32(parameters, 0);
    if (standing->ticket >= 0)
        pgsql_put_int32(parameters, standing->ticket);
    else
        pgsql_put_null_int32(parameters);
    if (standing->seen >= 0)
        pgsql_put_int64(parameters, standing->seen);
    else
        pgsql_put_null_int64(parameters);
}

void pgsql_line_get(struct pgsql_standing *standing, const PGresult *result)
{
    standing->outcome = pgsql_get_int32(result, 0, STAND_OUTCOME);
    standing->ticket =
        PQgetisnull(result, 0, STAND_TICKET) ? -1 : pgsql_get_int32(result, 0, STAND_TICKET);
    standing->seen =
        PQgetisnull(result, 0, STAND_SEEN) ? -1 : pgsql_get_int64(result, 0, STAND_SEEN);
}

/* One statement: some slices of the wait. A server may not notice before its end that its client
 * has died; what that one gets then goes with the connection. */
static dblock_status stand_on(struct dblock_connection *connection,
    const struct dblock_call *call, const struct wish *wish, uint64_t wait_us,
    struct pgsql_standing *standing, int *ret_is_cancelled, struct dblock_error *reterr)
{
    struct pgsql_slices slices = pgsql_slices_of(connection, wait_us);
    struct dblock_call step = pgsql_slices_call(connection, call, slices.n * slices.each_us);
    struct dblock_answer conflict = { 0 };
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    dblock_status status;

    pgsql_line_put(&parameters, connection, wish->strategy, wish->subject, wish->is_fair, slices,
        standing);
    pgsql_message_init(&message, connection, &step, "stand in line for", wish->subject->name,
        PGSQL_READS | PGSQL_WAITS);
    status = pgsql_message_ask(&message, STATEMENT_LINE_STAND, &parameters, reterr);
    if (status == DBLOCK_OK)
        pgsql_line_get(standing, message.results[0]);
    *ret_is_cancelled = message.is_cancelled;
    status = pgsql_message_fini(&message, status, &conflict);
    if (conflict.outcome == DBLOCK_ANSWER_AGAIN) { /* cannot be: its waits are too short for it */
        standing->outcome = PGSQL_STOOD_MAY_PASS;
        connection->is_broken = 1;
    }
    return status;
}

static int32_t tell(struct pgsql_line *line, int32_t outcome)
{
    line->is_first = outcome == PGSQL_STOOD_FIRST || outcome == PGSQL_STOOD_WITHOUT_BELL;
    line->has_bell = outcome == PGSQL_STOOD_FIRST;
    line->sleep_us = SLEEP_FIRST_US;
    switch (outcome) {
    case PGSQL_STOOD_FIRST:
    case PGSQL_STOOD_WITHOUT_BELL:
        return DBLOCK_ANSWER_YES;
    case PGSQL_STOOD_MAY_PASS:
        return DBLOCK_ANSWER_AGAIN;
    default:
        return DBLOCK_ANSWER_BUSY;
    }
}

static dblock_status stand_until(struct dblock_connection *connection,
    const struct dblock_call *call, const struct wish *wish, uint64_t wait_us,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct pgsql_standing standing = PGSQL_STANDING_INIT;
    uint64_t now_us = dblock_clock_us();
    uint64_t until_us = wait_us < UINT64_MAX - now_us ? now_us + wait_us : UINT64_MAX;
    int is_cancelled = 0;
    dblock_status status;

    connection->line->is_first = 0;
    connection->line->ticket.n = 0;
    do {
        status = stand_on(connection, call, wish, until_us > now_us ? until_us - now_us : 0,
            &standing, &is_cancelled, reterr);
        now_us = dblock_clock_us();
    } while (status == DBLOCK_OK && !is_cancelled && standing.outcome == PGSQL_STOOD_NOT_YET &&
        now_us < until_us);
    if (status != DBLOCK_OK)
        connection->is_broken = 1;
    else
        answer->outcome = tell(connection->line, standing.outcome);
    if (wish->is_fair && (connection->line->is_first || standing.outcome == PGSQL_STOOD_NOT_YET))
        put_ticket(&connection->line->ticket, connection->target, wish, standing.ticket);
    if (status == DBLOCK_OK && standing.outcome == PGSQL_STOOD_NOT_YET)
        pgsql_line_leave(connection);
    if (!is_cancelled)
        return status;
    if (status == DBLOCK_OK)
        pgsql_line_leave(connection);
    return DBLOCK_CANCELLED;
}

dblock_status pgsql_line_check_take(struct dblock_connection *connection,
    const struct dblock_take *take, struct dblock_error *reterr)
{
    if (take->wait_us == 0 || !take->is_fair || connection->has_queue)
        return DBLOCK_OK;
    if (!connection->is_pooled && !connection->is_holding && connection->n_ids == 0)
        connection->is_broken = 1;
    return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED,
        connection->is_pooled
            ? "use a URL that leads to the server directly, or leave DBLOCK_FAIR out"
            : "make the tables, or grant the rights to the routines beside them, or leave DBLOCK_FAIR"
              " out",
        "nobody keeps his place over this connection, so lock \"%s\" cannot be waited for in order "
        "of arrival", take->subject.name);
}

dblock_status pgsql_line_stand(struct dblock_connection *connection,
    const struct dblock_call *call, int strategy, const struct dblock_subject *subject,
    uint64_t wait_us, int is_fair, struct dblock_answer *answer, struct dblock_error *reterr)
{
    const struct wish wish = { strategy, subject, is_fair };
    dblock_status status;

    answer->outcome = DBLOCK_ANSWER_NO;
    if (connection->is_pooled)
        return DBLOCK_OK;
    if (connection->line == NULL)
        connection->line = calloc(1, sizeof *connection->line);
    if (connection->line == NULL)
        return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "out of memory");
    status = settle(connection, connection->target->io_timeout_us, reterr);
    if (status == DBLOCK_OK)
        status = stand_until(connection, call, &wish, wait_us, answer, reterr);
    if (status == DBLOCK_E_SCHEMA || status == DBLOCK_E_PERMISSION ||
        status == DBLOCK_E_READ_ONLY) { /* no procedure, no right to it, a standby */
        answer->outcome = DBLOCK_ANSWER_NO;
        status = DBLOCK_OK;
    }
    return status;
}

/* One wait for the bell: 1 it rang, 0 not in time, -1 cancelled, -2 the connection is lost. */
static int await_bell(struct dblock_connection *connection, const struct dblock_call *call)
{
    int ready = 1;

    while (drain(connection->pg) == 0) {
        ready = dblock_fd_wait(PQsocket(connection->pg), POLLIN, call, 1);
        if (ready <= 0)
            return ready;
        if (!PQconsumeInput(connection->pg))
            return -2;
    }
    return 1;
}

dblock_status pgsql_line_rest(struct dblock_connection *connection, const struct dblock_call *call,
    const char *owner, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct pgsql_line *line = connection->line;
    struct dblock_call nap = *call;
    int is_short = 0;
    int ready;

    (void)owner;
    answer->outcome = DBLOCK_ANSWER_AGAIN;
    if (line == NULL || !line->is_first)
        return DBLOCK_OK;
    if (!line->has_bell) {
        nap.deadline_us = dblock_clock_us() + line->sleep_us;
        is_short = nap.deadline_us < call->deadline_us;
        if (!is_short)
            nap.deadline_us = call->deadline_us;
        line->sleep_us = line->sleep_us * 2 < SLEEP_LAST_US ? line->sleep_us * 2 : SLEEP_LAST_US;
    }
    ready = await_bell(connection, &nap);
    if (ready == -2) {
        connection->is_broken = 1;
        return pgsql_connection_error(
            connection, "rest in line", NULL, DBLOCK_E_CONNECTION, NULL, reterr);
    }
    if (ready == -1) {
        pgsql_line_leave(connection);
        return DBLOCK_CANCELLED;
    }
    answer->outcome = ready == 1 || is_short ? DBLOCK_ANSWER_YES : DBLOCK_ANSWER_NO;
    return DBLOCK_OK;
}

void pgsql_line_leave(struct dblock_connection *connection)
{
    struct pgsql_line *line = connection->line;

    if (connection->is_leaving || connection->is_broken)
        return;
    line->is_first = 0;
    pgsql_message_init(&line->leaving, connection, NULL, "leave the line", NULL, PGSQL_READS);
    if (line->ticket.n > 0)
        pgsql_message_add_quiet(&line->leaving, STATEMENT_LINE_LEAVE_TICKET, &line->ticket);
    else
        pgsql_message_add_quiet(&line->leaving, STATEMENT_LINE_LEAVE, NULL);
    if (line->has_bell)
        pgsql_message_add_quiet(&line->leaving, STATEMENT_LINE_UNLISTEN, NULL);
    connection->is_leaving = pgsql_message_post(&line->leaving);
}

void pgsql_line_settle(struct dblock_connection *connection)
{
    if (connection->is_leaving)
        (void)settle(connection, SETTLE_US, NULL); /* or the server says so in its log */
}

void pgsql_line_free(struct pgsql_line *line)
{
    free(line); /* a message that was not answered has no results */
}
