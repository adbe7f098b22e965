/* SPDX-License-Identifier: MIT */
/* mysql_row.c - row locks: a row kept locked by an open transaction, on a connection of
 * its own without autocommit. A try and a COMMIT are one round trip each; a wait is text,
 * so that it can be cancelled. sql/row.sql has the arguments. */
#include "mysql_row.h"

#include <stdio.h>
#include <string.h>

#include "mysql_connection.h"
#include "mysql_error.h"
#include "mysql_server.h"
#include "mysql_sql.h"
#include "mysql_target.h"
#include "mysql_text.h"

/* One statement in the server's queue lasts no longer: so long may the server go on for
 * a client that is gone. But the next one begins at the end of the queue, which is no order of
 * arrival: then it is the whole wait, up to what ends that of a row itself. */
#define WAIT_SLICE_US 60000000u
#define FAIR_SLICE_US ((uint64_t)(MYSQL_LONG_WAIT_S - 1) * 1000000)

static dblock_status refuse_cluster(
    const struct dblock_connection *connection, struct dblock_error *reterr)
{
    return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED, "use the strategy lease or insert",
        "row locks exclude nobody on other nodes of %s", connection->multi_writer);
}

static void put_subject(
    struct dblock_connection *connection, const struct dblock_subject *subject)
{
    mysql_in_bytes(connection, MYSQL_B_NAME, subject->name, subject->name_size);
}

/* After a try that got nothing: no transaction, no lock, no snapshot stays. */
static void roll_back(struct dblock_connection *connection, const struct dblock_call *call)
{
    connection->has_transaction = 0;
    mysql_text_roll_back(connection, call);
}

/* MariaDB has the limit in the statement itself; a connection for rows of MySQL 8 has one that is
 * meant for waiting in line (set_session() in mysql_server.c). */
static unsigned int limit_waiting(
    struct dblock_connection *connection, const struct dblock_call *call, int is_short)
{
    char sql[64];

    if (connection->role != DBLOCK_ROLE_ROW || connection->is_mariadb ||
        connection->version < 80000)
        return 0;
    (void)snprintf(sql, sizeof sql, "SET innodb_lock_wait_timeout = %u",
        is_short ? 1u : (unsigned)MYSQL_LONG_WAIT_S);
    return mysql_text_run(connection, sql, call, 0, 0, NULL);
}

static unsigned int make_row(struct dblock_connection *connection, const struct dblock_call *call)
{
    unsigned int code = limit_waiting(connection, call, 1);

    if (code != 0)
        return code;
    code = mysql_run(connection, MYSQL_ROW_SEED, call, NULL);
    if (limit_waiting(connection, call, 0) != 0)
        connection->is_dead = 1; /* it would lose its place in line each second */
    return code;
}

dblock_status mysql_row_seed(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    dblock_status status = DBLOCK_OK;
    unsigned int code;

    if (connection->is_multi_writer)
        return refuse_cluster(connection, reterr);
    put_subject(connection, subject);
    code = make_row(connection, call);
    answer->outcome = DBLOCK_ANSWER_YES;
    if (code != 0 && mysql_error_class(code) == MYSQL_CLASS_LOCKED)
        code = 0; /* somebody holds the row: it is there */
    if (code == 0 && connection->role == DBLOCK_ROLE_ROW) /* has no autocommit */
        code = mysql_text_run(connection, "COMMIT", call, 0, 1, NULL);
    if (code != 0 && mysql_error_class(code) == MYSQL_CLASS_CONFLICT)
        answer->outcome = DBLOCK_ANSWER_AGAIN;
    else if (code != 0)
        status = mysql_fail(connection, reterr, "cannot make the row of \"%s\"", subject->name);
    if (code != 0 && connection->role == DBLOCK_ROLE_ROW)
        roll_back(connection, call);
    return status;
}

/* What a failed SELECT ... FOR UPDATE says. */
static dblock_status explain_take(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, unsigned int code,
    struct dblock_grant *holder, struct dblock_answer *answer, struct dblock_error *reterr)
{
    enum mysql_class class_ = mysql_error_class(code);
    dblock_status status = DBLOCK_OK;

    if (class_ == MYSQL_CLASS_LOCKED || class_ == MYSQL_CLASS_TIMEOUT) {
        answer->outcome = DBLOCK_ANSWER_BUSY;
        answer->remaining_us = DBLOCK_NO_END;
        if (holder != NULL) { /* the server does not tell who locks a row */
            memset(holder, 0, sizeof *holder);
            holder->struct_size = sizeof *holder;
            holder->strategy = DBLOCK_ROW;
            holder->n_waiters = UINT32_MAX;
            holder->remaining_ms = DBLOCK_FOREVER;
            dblock_text_copy(holder->name, sizeof holder->name, take->subject.name);
        }
    } else if (class_ == MYSQL_CLASS_CONFLICT) {
        answer->outcome = DBLOCK_ANSWER_AGAIN;
    } else {
        status = mysql_fail(connection, reterr, "cannot lock the row of \"%s\"", take->subject.name);
    }
    roll_back(connection, call);
    return status;
}

/* Stands in the server's queue. 0, a native code, or MYSQL_TEXT_CANCELLED. */
static unsigned int wait_in_queue(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, int *ret_has_row)
{
    uint64_t now = dblock_clock_us();
    uint64_t end = take->wait_us < UINT64_MAX - now ? now + take->wait_us : UINT64_MAX;
    uint64_t longest_us = take->is_fair ? FAIR_SLICE_US : WAIT_SLICE_US;
    struct mysql_text_answer answer;
    struct dblock_call wait = *call;
    char sql[1200];
    unsigned int code;

    if (end > call->deadline_us)
        end = call->deadline_us;
    do {
        uint64_t slice_us = end > now ? end - now : 0;
        struct mysql_literal literals[3];

        if (slice_us > longest_us)
            slice_us = longest_us;
        if (slice_us < 1000)
            slice_us = 1000; /* 0 is "no limit" to both servers */
        literals[0] = (struct mysql_literal) { MYSQL_LITERAL_SECONDS, slice_us, NULL, 0 };
        literals[1] = (struct mysql_literal) { MYSQL_LITERAL_NUMBER, slice_us / 1000, NULL, 0 };
        literals[2] = (struct mysql_literal) { MYSQL_LITERAL_BYTES, 0, take->subject.name,
            take->subject.name_size };
        if (!mysql_text_fill(sql, sizeof sql, mysql_sql_row_wait, literals, 3)) {
            mysql_note_error(connection, 1210, "HY000", "the name is too long", 0);
            return connection->error_code;
        }
        wait.deadline_us = now + slice_us + 500000; /* the server ends it; this is the net */
        if (wait.deadline_us > call->deadline_us)
            wait.deadline_us = call->deadline_us;
        code = mysql_text_run(connection, sql, &wait, 1, 1, &answer);
        if (code == MYSQL_TEXT_CANCELLED || code == MYSQL_TEXT_DEADLINE) {
            unsigned int asked = code;

            code = mysql_text_interrupt(
                connection, call, asked == MYSQL_TEXT_CANCELLED, &answer);
            if (asked == MYSQL_TEXT_CANCELLED)
                return MYSQL_TEXT_CANCELLED; /* also if it was granted in between */
        }
        now = dblock_clock_us();
    } while (code != 0 && now < end && mysql_error_class(code) != MYSQL_CLASS_GONE &&
        (mysql_error_class(code) == MYSQL_CLASS_LOCKED ||
            mysql_error_class(code) == MYSQL_CLASS_TIMEOUT));
    *ret_has_row = answer.has_row;
    return code;
}

dblock_status mysql_row_take(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_take *take, struct dblock_grant *holder, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    unsigned int code;
    int has_row = 0;

    if (connection->is_multi_writer)
        return refuse_cluster(connection, reterr);
    if (connection->role != DBLOCK_ROLE_ROW || connection->has_transaction)
        return dblock_error_set(reterr, DBLOCK_E_DRIVER, NULL,
            "cannot lock the row of \"%s\": not a free connection of the role row",
            take->subject.name);
    if (take->wait_us > 0) {
        code = wait_in_queue(connection, call, take, &has_row);
    } else {
        put_subject(connection, &take->subject);
        code = mysql_run_row(connection, MYSQL_ROW_TAKE, call, &has_row);
    }
    if (code == MYSQL_TEXT_CANCELLED) {
        struct dblock_call last = { dblock_clock_us() + connection->target->io_timeout_us, -1 };

        roll_back(connection, &last);
        return DBLOCK_CANCELLED;
    }
    if (code != 0)
        return explain_take(connection, call, take, code, holder, answer, reterr);
    if (!has_row) {
        answer->outcome = DBLOCK_ANSWER_UNSEEDED;
        roll_back(connection, call);
        return DBLOCK_OK;
    }
    if (!mysql_is_in_transaction(connection)) {
        connection->is_dead = 1; /* its session may have been set anew: the next one may do */
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED,
            "connect to the server itself, or turn multiplexing off",
            "cannot lock the row of \"%s\": something between here and the server ends "
            "transactions", take->subject.name);
    }
    connection->has_transaction = 1;
    answer->outcome = DBLOCK_ANSWER_YES;
    answer->remaining_us = DBLOCK_NO_END;
    return DBLOCK_OK;
}

dblock_status mysql_row_drop(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    /* Nobody else uses the connection: what its last answer said of the transaction still
     * holds, unless the COMMIT fails because the server has ended all of it. */
    int stood = connection->has_transaction && mysql_is_in_transaction(connection);

    connection->has_transaction = 0;
    if (mysql_text_run(connection, "COMMIT", call, 0, 1, NULL) != 0)
        return mysql_fail(connection, reterr, "cannot unlock the row of \"%s\"", subject->name);
    answer->outcome = stood ? DBLOCK_ANSWER_YES : DBLOCK_ANSWER_NO;
    return DBLOCK_OK;
}

dblock_status mysql_row_prove(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    int had = connection->has_transaction;

    (void)subject;
    if (mysql_connection_ping(connection, call, answer, reterr) != DBLOCK_OK)
        return mysql_fail(connection, reterr, "cannot prove the lock of \"%s\"", subject->name);
    if (!had)
        answer->outcome = DBLOCK_ANSWER_NO;
    return DBLOCK_OK;
}

/* Whether a guarded transaction stands on the row of the last token. 0, or the native code. */
static unsigned int probe_token(
    struct dblock_connection *connection, const struct dblock_call *call, int *ret_is_pinned)
{
    int has_row;
    unsigned int code = mysql_run_row(connection, MYSQL_TOKEN_PROBE, call, &has_row);

    *ret_is_pinned = code != 0 && mysql_error_class(code) == MYSQL_CLASS_LOCKED;
    return *ret_is_pinned ? 0 : code;
}

dblock_status mysql_token_draw(struct dblock_connection *connection,
    const struct dblock_call *call, int strategy, const char *name, size_t name_size,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct mysql_result result;
    int is_pinned = 0;
    unsigned int code = 0;

    mysql_in_bytes(connection, MYSQL_B_NAME, name, name_size);
    mysql_in_number(connection, MYSQL_N_STRATEGY, strategy);
    if (!connection->is_mariadb) /* the draw itself would wait */
        code = probe_token(connection, call, &is_pinned);
    if (code == 0 && !is_pinned)
        code = mysql_run(connection, MYSQL_TOKEN_DRAW, call, &result);
    if (code != 0 && mysql_error_class(code) == MYSQL_CLASS_LOCKED) {
        answer->outcome = DBLOCK_ANSWER_AGAIN; /* of the row, or of the floor */
        code = probe_token(connection, call, &is_pinned);
        if (code == 0 && !is_pinned)
            return DBLOCK_OK;
    }
    if (code != 0 && mysql_error_class(code) == MYSQL_CLASS_CONFLICT) {
        answer->outcome = DBLOCK_ANSWER_AGAIN;
        return DBLOCK_OK;
    }
    if (code != 0)
        return mysql_fail(connection, reterr, "cannot draw a token for \"%s\"", name);
    if (is_pinned) {
        answer->outcome = DBLOCK_ANSWER_PINNED;
        return DBLOCK_OK;
    }
    if (result.insert_id == 0)
        return dblock_error_set(reterr, DBLOCK_E_SCHEMA, "run: dblock init",
            "cannot draw a token for \"%s\": a row of dblock_floor is missing", name);
    if (result.insert_id >= (uint64_t)1 << 53)
        return dblock_error_set(reterr, DBLOCK_E_DATABASE, MYSQL_HINT_RANGE,
            "cannot draw a token for \"%s\": the last one was above all that are given", name);
    answer->outcome = DBLOCK_ANSWER_YES;
    answer->token = (int64_t)result.insert_id;
    return DBLOCK_OK;
}

dblock_status mysql_row_draw(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    if (connection->is_multi_writer)
        return refuse_cluster(connection, reterr);
    if (connection->role == DBLOCK_ROLE_ROW) /* it would join the lock's transaction */
        return dblock_error_set(reterr, DBLOCK_E_DRIVER, NULL,
            "cannot draw a token for \"%s\" on the connection of a row lock", subject->name);
    return mysql_token_draw(connection, call, DBLOCK_ROW, subject->name, subject->name_size,
        answer, reterr);
}
