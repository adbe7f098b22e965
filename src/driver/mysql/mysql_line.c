/* SPDX-License-Identifier: MIT */
/* mysql_line.c - see mysql_line.h. How a line is made of named locks, and why nobody sleeps
 * too long: sql/line.sql. */
#include "mysql_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mysql_bell.h"
#include "mysql_connection.h"
#include "mysql_error.h"
#include "mysql_server.h"
#include "mysql_sql.h"
#include "mysql_target.h"
#include "mysql_text.h"

/* One statement in the queue of the gate: the next would begin at its end. */
#define STAND_SLICE_US ((uint64_t)MYSQL_LONG_WAIT_S * 1000000)
/* The server ends its waits itself; this is for when it does not. */
#define LATE_US 500000u
#define NAP_FIRST_US 20000u
#define FIRST_REST_US 200000u
#define NAP_LAST_US 500000u

#define SQL_MAX 2000

enum { ANSWER_FIRST = 1, ANSWER_RUNG = 1, ANSWER_OVER = 0, ANSWER_LOST = -1, ANSWER_KILLED = -2 };

static struct mysql_literal number(uint64_t value)
{
    return (struct mysql_literal) { MYSQL_LITERAL_NUMBER, value, NULL, 0 };
}

static struct mysql_literal bytes(const void *data, size_t size)
{
    return (struct mysql_literal) { MYSQL_LITERAL_BYTES, 0, data, size };
}

/* For GET_LOCK: MySQL rounds, so there it is told more, and the statement's own limit, a
 * number of milliseconds, ends it in time. */
static struct mysql_literal seconds(const struct dblock_connection *connection, uint64_t time_us)
{
    return connection->is_mariadb
        ? (struct mysql_literal) { MYSQL_LITERAL_SECONDS, time_us, NULL, 0 }
        : number((time_us + 999999) / 1000000);
}

/* Three marks: prefix, letter, name. */
static void put_gate(const struct dblock_connection *connection, struct mysql_literal *literals)
{
    const struct mysql_bytes *prefix = &connection->in.bytes[MYSQL_B_PREFIX];
    const struct mysql_place *place = &connection->place;

    literals[0] = bytes(prefix->data, prefix->size);
    literals[1] = bytes(place->letter, 1);
    literals[2] = bytes(place->name, place->name_size);
}

static unsigned int fail_fill(struct dblock_connection *connection)
{
    mysql_note_error(connection, 1210, "HY000", "the name is too long", 0);
    return connection->error_code;
}

/* Runs a statement that waits on the server for `time_us`. 0 with what it says, or
 * MYSQL_TEXT_CANCELLED, or a native code. */
static unsigned int wait_on_server(struct dblock_connection *connection,
    const struct dblock_call *call, const char *sql, uint64_t time_us, int *ret_answer)
{
    struct dblock_call limit = { dblock_clock_us() + time_us + LATE_US, call->cancel_fd };
    /* of a rest the call's deadline is the end of the rest, and not of what it may take */
    const struct dblock_call whole = { limit.deadline_us + connection->target->io_timeout_us / 2, -1 };
    struct mysql_text_answer answer;
    unsigned int code, asked;

    code = asked = mysql_text_run(connection, sql, &limit, 1, 0, &answer);
    if (code == MYSQL_TEXT_CANCELLED || code == MYSQL_TEXT_DEADLINE)
        code = mysql_text_interrupt(connection, &whole, code == MYSQL_TEXT_CANCELLED, &answer);
    if (asked == MYSQL_TEXT_CANCELLED)
        return asked; /* whatever came of it: the caller leaves the line */
    *ret_answer = ANSWER_OVER;
    if (code == 0 && (answer.is_null[0] || !answer.has_row))
        *ret_answer = asked == 0 ? ANSWER_KILLED : ANSWER_OVER;
    else if (code == 0)
        *ret_answer = (int)strtol(answer.values[0], NULL, 10);
    else if (code == 1317 && asked == 0)
        *ret_answer = ANSWER_KILLED;
    else if (mysql_error_class(code) != MYSQL_CLASS_TIMEOUT)
        return code;
    return 0;
}

/* Has a place no more, if it had one, and its connection may idle again. */
static int fill_leave(const struct dblock_connection *connection, char sql[SQL_MAX])
{
    struct mysql_literal literals[4];

    literals[0] = number(MYSQL_IDLE_SECONDS);
    put_gate(connection, literals + 1);
    return mysql_text_fill(sql, SQL_MAX, mysql_sql_line_leave, literals, 4);
}

void mysql_line_leave(struct dblock_connection *connection)
{
    struct dblock_call limit = { dblock_clock_us() + connection->target->io_timeout_us, -1 };
    char sql[SQL_MAX];

    connection->place.is_watched = 0;
    if (!fill_leave(connection, sql) || mysql_text_send(connection, sql, &limit) != 0)
        connection->is_dead = 1;
}

/* A KILL QUERY that was to wake him may have met the leave instead: then the place is still his,
 * and nobody would take it from him while he stands in another line. 0 or a native code. */
static unsigned int settle_leave(
    struct dblock_connection *connection, const struct dblock_call *call)
{
    char sql[SQL_MAX];

    if (!connection->is_answer_due || mysql_text_collect(connection, call) == 0)
        return 0;
    return connection->is_dead    ? connection->error_code
        : fill_leave(connection, sql) ? mysql_text_run(connection, sql, call, 0, 0, NULL)
                                      : fail_fill(connection);
}

static dblock_status fail_line(
    struct dblock_connection *connection, const char *verb, struct dblock_error *reterr)
{
    dblock_status status =
        mysql_fail(connection, reterr, "cannot %s for \"%s\"", verb, connection->place.name);

    mysql_line_leave(connection);
    return status;
}

static void note_place(struct dblock_connection *connection, int strategy,
    const struct dblock_subject *subject)
{
    struct mysql_place *place = &connection->place;

    place->letter = strategy == DBLOCK_INSERT ? "i" : "l";
    place->name_size = subject->name_size < DBLOCK_NAME_MAX ? subject->name_size : DBLOCK_NAME_MAX;
    memcpy(place->name, subject->name, place->name_size);
    place->name[place->name_size] = 0;
    place->met[0] = 0;
    place->n_met = 0;
}

/* From now on it must not idle. */
static unsigned int begin_watch(
    struct dblock_connection *connection, const struct dblock_call *call)
{
    char sql[64];

    if (connection->place.is_watched)
        return 0;
    connection->place.is_watched = 1;
    (void)snprintf(sql, sizeof sql, "SET SESSION wait_timeout = %d", MYSQL_WATCHED_SECONDS);
    return mysql_text_run(connection, sql, call, 0, 0, NULL);
}

static unsigned int stand_once(struct dblock_connection *connection,
    const struct dblock_call *call, uint64_t time_us, int *ret_answer)
{
    struct mysql_literal literals[5];
    char sql[SQL_MAX];

    literals[0] = number((time_us + 999) / 1000);
    put_gate(connection, literals + 1);
    literals[4] = seconds(connection, time_us);
    if (!mysql_text_fill(sql, sizeof sql, mysql_sql_line_stand, literals, 5))
        return fail_fill(connection);
    return wait_on_server(connection, call, sql, time_us, ret_answer);
}

dblock_status mysql_line_stand(struct dblock_connection *connection,
    const struct dblock_call *call, int strategy, const struct dblock_subject *subject,
    uint64_t wait_us, int is_fair, struct dblock_answer *answer, struct dblock_error *reterr)
{
    uint64_t now_us = dblock_clock_us();
    uint64_t end_us = wait_us < UINT64_MAX - now_us ? now_us + wait_us : UINT64_MAX;
    int said = ANSWER_OVER;
    unsigned int code;

    (void)is_fair; /* it is */
    answer->outcome = DBLOCK_ANSWER_NO;
    if (!connection->has_line)
        return DBLOCK_OK;
    code = settle_leave(connection, call);
    note_place(connection, strategy, subject);
    if (code == 0)
        code = begin_watch(connection, call);
    if (end_us > call->deadline_us)
        end_us = call->deadline_us;
    while (code == 0 && said != ANSWER_FIRST && now_us < end_us) {
        uint64_t slice_us = end_us - now_us;

        if (slice_us > STAND_SLICE_US)
            slice_us = STAND_SLICE_US;
        if (slice_us < 1000)
            slice_us = 1000; /* 0 is "no limit" to the hint */
        code = stand_once(connection, call, slice_us, &said);
        now_us = dblock_clock_us();
    }
    if (code == MYSQL_TEXT_CANCELLED) {
        mysql_line_leave(connection);
        return DBLOCK_CANCELLED;
    }
    if (code != 0 && connection->is_multi_writer &&
        mysql_error_class(code) == MYSQL_CLASS_REFUSED) {
        connection->has_line = 0; /* some releases of Galera refuse such locks */
        return DBLOCK_OK;
    }
    if (code != 0 && mysql_error_class(code) != MYSQL_CLASS_CONFLICT)
        return fail_line(connection, "stand in line", reterr);
    answer->outcome = DBLOCK_ANSWER_YES;
    if (said != ANSWER_FIRST) {
        mysql_line_leave(connection);
        answer->outcome = code != 0 ? DBLOCK_ANSWER_AGAIN : DBLOCK_ANSWER_BUSY;
    }
    return DBLOCK_OK;
}

/* Waits for the bell of the grant of `owner`. */
static unsigned int await_bell(struct dblock_connection *connection,
    const struct dblock_call *call, const char *owner, uint64_t time_us, int *ret_answer)
{
    struct mysql_literal literals[7];
    char bell[MYSQL_BELL_SIZE];
    char sql[SQL_MAX];

    mysql_bell_name(connection, owner, bell);
    literals[0] = number((time_us + 999) / 1000);
    put_gate(connection, literals + 1);
    literals[4] = bytes(bell, strlen(bell));
    literals[5] = seconds(connection, time_us);
    literals[6] = literals[4];
    if (!mysql_text_fill(sql, sizeof sql, mysql_sql_line_rest, literals, 7))
        return fail_fill(connection);
    return wait_on_server(connection, call, sql, time_us, ret_answer);
}

/* Is the grant that is waited for not the name's any more? 0 or a native code. */
static unsigned int look(struct dblock_connection *connection, const char *owner, int *ret_is_gone)
{
    const struct mysql_place *place = &connection->place;
    const struct dblock_subject subject = { place->name, place->name_size, 0, 0 };
    struct dblock_call limit = { dblock_clock_us() + connection->target->io_timeout_us, -1 };
    const struct mysql_bytes *found;
    char text[40] = "";
    unsigned int code = mysql_hold_read(
        place->letter[0] == 'i' ? &mysql_hold_insert : &mysql_hold_lease, connection, &limit,
        &subject);

    if (code != 0)
        return code;
    found = mysql_out_bytes(connection, MYSQL_B_OWNER);
    if (!found->is_null && found->size == DBLOCK_ID_SIZE)
        dblock_id_text((const unsigned char *)found->data, text);
    *ret_is_gone = strcmp(text, owner) != 0;
    return 0;
}

/* Whoever gives it back over another connection than the one with the bell interrupts the wait
 * (mysql_line_wake_connection); and interrupts nothing, if the wait has not begun on the server
 * yet. So a moment after its beginning it is looked once whether that has happened. */
static unsigned int await_bell_and_look(struct dblock_connection *connection,
    const struct dblock_call *call, const char *owner, uint64_t time_us, int *ret_answer)
{
    uint64_t first_us = time_us < FIRST_REST_US ? time_us : FIRST_REST_US;
    uint64_t first_end_us = dblock_clock_us() + first_us;
    int is_gone = 0;
    unsigned int code = await_bell(connection, call, owner, first_us, ret_answer);

    /* one that was interrupted is over, too, but before its time */
    if (code != 0 || *ret_answer != ANSWER_OVER || first_us == time_us ||
        dblock_clock_us() < first_end_us)
        return code;
    code = look(connection, owner, &is_gone);
    if (code != 0 || is_gone) {
        *ret_answer = ANSWER_RUNG;
        return code;
    }
    return await_bell(connection, call, owner, time_us - first_us, ret_answer);
}

/* His bell is not locked, and yet that grant is there: its drop may not be committed yet. */
static unsigned int await_row(struct dblock_connection *connection, const struct dblock_call *call)
{
    enum mysql_statement_id id =
        connection->place.letter[0] == 'i' ? MYSQL_INSERT_WAIT : MYSQL_LEASE_WAIT;
    struct dblock_call limit = { dblock_clock_us() + connection->target->io_timeout_us,
        call->cancel_fd };
    enum mysql_class class_;
    int has_row;

    mysql_in_bytes(connection, MYSQL_B_NAME, connection->place.name, connection->place.name_size);
    if (mysql_run_row(connection, id, &limit, &has_row) == 0)
        return 0;
    class_ = mysql_error_class(connection->error_code);
    return class_ == MYSQL_CLASS_GONE || class_ == MYSQL_CLASS_REFUSED ? connection->error_code : 0;
}

/* It was, and is there all the same: nobody will ring. */
static unsigned int nap(struct dblock_connection *connection, const struct dblock_call *call,
    uint64_t time_us, int *ret_answer)
{
    unsigned n_before = connection->place.n_met - 2;
    uint64_t nap_us = n_before < 5 ? (uint64_t)NAP_FIRST_US << n_before : NAP_LAST_US;
    struct mysql_literal literals[4];
    char sql[SQL_MAX];

    if (nap_us > NAP_LAST_US)
        nap_us = NAP_LAST_US;
    if (nap_us > time_us)
        nap_us = time_us;
    put_gate(connection, literals);
    literals[3] = (struct mysql_literal) { MYSQL_LITERAL_SECONDS, nap_us, NULL, 0 };
    if (!mysql_text_fill(sql, sizeof sql, mysql_sql_line_nap, literals, 4))
        return fail_fill(connection);
    return wait_on_server(connection, call, sql, nap_us, ret_answer);
}

dblock_status mysql_line_rest(struct dblock_connection *connection, const struct dblock_call *call,
    const char *owner, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct mysql_place *place = &connection->place;
    uint64_t now_us = dblock_clock_us();
    uint64_t time_us = call->deadline_us > now_us ? call->deadline_us - now_us : 0;
    int said = ANSWER_OVER;
    unsigned int code;

    answer->outcome = DBLOCK_ANSWER_NO;
    if (time_us < 1000)
        time_us = 1000;
    if (strlen(owner) == 2 * DBLOCK_ID_SIZE && strcmp(owner, place->met) != 0) {
        place->n_met = 0;
        code = await_bell_and_look(connection, call, owner, time_us, &said);
        if (said == ANSWER_RUNG)
            dblock_text_copy(place->met, sizeof place->met, owner);
    } else if (++place->n_met == 1) {
        code = await_row(connection, call);
        said = ANSWER_RUNG;
    } else {
        code = nap(connection, call, time_us, &said);
    }
    if (code == MYSQL_TEXT_CANCELLED) {
        mysql_line_leave(connection);
        return DBLOCK_CANCELLED;
    }
    if (code != 0 && mysql_error_class(code) != MYSQL_CLASS_CONFLICT)
        return fail_line(connection, "rest as the first in line", reterr);
    if (code != 0 || said == ANSWER_LOST) {
        mysql_line_leave(connection);
        answer->outcome = DBLOCK_ANSWER_AGAIN;
    } else if (said != ANSWER_OVER || dblock_clock_us() < call->deadline_us) {
        answer->outcome = DBLOCK_ANSWER_YES;
    }
    return DBLOCK_OK;
}

void mysql_line_wake_connection(
    struct dblock_connection *connection, const struct dblock_call *call, uint64_t server_id)
{
    char sql[64];

    (void)snprintf(sql, sizeof sql, "KILL QUERY %llu", (unsigned long long)server_id);
    (void)mysql_text_run(connection, sql, call, 0, 0, NULL);
}

void mysql_line_wake(const struct mysql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject)
{
    const struct mysql_bytes *prefix = &connection->in.bytes[MYSQL_B_PREFIX];
    struct mysql_literal literals[3];
    struct mysql_text_answer answer;
    char sql[SQL_MAX];

    literals[0] = bytes(prefix->data, prefix->size);
    literals[1] = bytes(hold->strategy == DBLOCK_INSERT ? "i" : "l", 1);
    literals[2] = bytes(subject->name, subject->name_size);
    if (connection->has_line &&
        mysql_text_fill(sql, sizeof sql, mysql_sql_line_first, literals, 3) &&
        mysql_text_run(connection, sql, call, 0, 0, &answer) == 0 && !answer.is_null[0])
        mysql_line_wake_connection(connection, call, strtoull(answer.values[0], NULL, 10));
}

void mysql_line_pattern(const struct dblock_connection *connection,
    const struct mysql_hold *hold, char pattern[MYSQL_LINE_PATTERN_SIZE])
{
    const struct mysql_bytes *prefix = &connection->in.bytes[MYSQL_B_PREFIX];
    struct mysql_literal literals[2];

    literals[0] = bytes(prefix->data, prefix->size);
    literals[1] = bytes(hold->strategy == DBLOCK_INSERT ? "i" : "l", 1);
    if (!mysql_text_fill(pattern, MYSQL_LINE_PATTERN_SIZE,
            "%LOCK(CONCAT(?, ?, LEFT(SHA2(x'%", literals, 2))
        pattern[0] = 0;
}
