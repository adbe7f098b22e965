/* SPDX-License-Identifier: MIT */
/* mysql_advisory.c - the server's named locks. They live in the connection: a try and a
 * release are one round trip each, in the server's memory; a wait is text, so that it can
 * be cancelled. sql/advisory.sql has the names and the arguments. */
#include "mysql_advisory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mysql_connection.h"
#include "mysql_error.h"
#include "mysql_row.h"
#include "mysql_server.h"
#include "mysql_sql.h"
#include "mysql_target.h"
#include "mysql_text.h"

/* One statement in the queue: the next would begin at its end. The server notices within a second
 * that a waiting client is gone. */
#define WAIT_SLICE_US ((uint64_t)MYSQL_LONG_WAIT_S * 1000000)

static dblock_status refuse(struct dblock_connection *connection, struct dblock_error *reterr)
{
    if (connection->is_multi_writer)
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED, "use the strategy lease or insert",
            "advisory locks exclude nobody on other nodes of %s", connection->multi_writer);
    if (mysql_server_has_one_lock(connection))
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED,
            "use the strategy lease or insert, or upgrade the server",
            "a server of this version gives up one advisory lock of a connection for the next");
    if (!connection->has_locks)
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED,
            "use a URL that leads to the server itself, or the strategy lease or insert",
            "something between lends out connections of its own, and may give the one that has an"
            " advisory lock to somebody else");
    return dblock_error_set(reterr, DBLOCK_E_READ_ONLY,
        "connect to the primary, or turn read_only off",
        "advisory locks of a read-only server exclude nobody on its primary");
}

static int is_refused(const struct dblock_connection *connection)
{
    return connection->is_multi_writer || connection->is_read_only || !connection->has_locks;
}

/* The name at the server, of which the last one is not made again. */
static void put_subject(
    struct dblock_connection *connection, const struct dblock_subject *subject)
{
    const struct mysql_bytes *prefix = &connection->in.bytes[MYSQL_B_PREFIX];
    unsigned char digest[DBLOCK_SHA256_SIZE];
    char half[40], name[80];

    if (subject->has_advisory_id) {
        (void)snprintf(name, sizeof name, "%lld", (long long)subject->advisory_id);
        connection->lock_of_size = 0;
    } else if (connection->lock_of_size == subject->name_size &&
        memcmp(connection->lock_of, subject->name, subject->name_size) == 0) {
        return;
    } else {
        dblock_sha256(subject->name, subject->name_size, digest);
        dblock_id_text(digest, half); /* of 32 bytes the first 16 */
        (void)snprintf(name, sizeof name, "%.*s%s", (int)prefix->size, prefix->data, half);
        memcpy(connection->lock_of, subject->name, subject->name_size);
        connection->lock_of_size = subject->name_size;
    }
    mysql_in_text(connection, MYSQL_B_LOCK, name);
}

const char *mysql_advisory_name(
    const struct dblock_subject *subject, char *buffer, size_t size, size_t *ret_size)
{
    if (!subject->has_advisory_id) {
        *ret_size = subject->name_size;
        return subject->name;
    }
    *ret_size = (size_t)snprintf(buffer, size, "#%lld", (long long)subject->advisory_id);
    return buffer;
}

unsigned int mysql_advisory_ask(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject)
{
    put_subject(connection, subject);
    return mysql_run_row(connection, MYSQL_ADVISORY_HOLDER, call, NULL);
}

void mysql_advisory_fill(struct dblock_connection *connection, const struct dblock_call *call,
    int64_t server_pid, struct dblock_grant *grant)
{
    const struct mysql_bytes *host = mysql_out_bytes(connection, MYSQL_B_HOST);
    char *colon;
    int has_row;

    grant->server_pid = server_pid;
    grant->remaining_ms = DBLOCK_FOREVER;
    grant->n_waiters = UINT32_MAX;
    mysql_in_number(connection, MYSQL_N_MINE, server_pid);
    if (mysql_run_row(connection, MYSQL_ADVISORY_CONNECTION, call, &has_row) != 0 || !has_row)
        return; /* without the right PROCESS only one's own are seen */
    dblock_text_copy(grant->host, sizeof grant->host, host->data);
    colon = strrchr(grant->host, ':');
    if (colon != NULL)
        *colon = 0; /* the client's port */
}

static void fill_holder(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, struct dblock_grant *holder)
{
    if (holder == NULL)
        return;
    memset(holder, 0, sizeof *holder);
    holder->struct_size = sizeof *holder;
    holder->strategy = DBLOCK_ADVISORY;
    holder->remaining_ms = DBLOCK_FOREVER;
    holder->n_waiters = UINT32_MAX;
    dblock_text_copy(holder->name, sizeof holder->name, subject->name);
    if (mysql_advisory_ask(connection, call, subject) != 0)
        return;
    holder->now_us = mysql_out_number(connection, MYSQL_N_CLOCK);
    if (!mysql_out_is_null(connection, MYSQL_N_ANSWER))
        mysql_advisory_fill(
            connection, call, mysql_out_number(connection, MYSQL_N_ANSWER), holder);
}

/* One statement in the server's queue. 0, a native code, or MYSQL_TEXT_CANCELLED. */
static unsigned int wait_once(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_take *take, uint64_t slice_us, struct mysql_text_answer *answer)
{
    const struct mysql_bytes *lock = &connection->in.bytes[MYSQL_B_LOCK];
    struct dblock_call wait = *call;
    struct mysql_literal literals[4];
    char sql[400];
    unsigned int code;

    put_subject(connection, &take->subject);
    literals[0] = (struct mysql_literal) { MYSQL_LITERAL_NUMBER, (slice_us + 999) / 1000, NULL, 0 };
    literals[1] = literals[2] =
        (struct mysql_literal) { MYSQL_LITERAL_BYTES, 0, lock->data, lock->size };
    literals[3] = connection->is_mariadb
        ? (struct mysql_literal) { MYSQL_LITERAL_SECONDS, slice_us, NULL, 0 }
        : (struct mysql_literal) { MYSQL_LITERAL_NUMBER, (slice_us + 999999) / 1000000, NULL, 0 };
    if (!mysql_text_fill(sql, sizeof sql, mysql_sql_advisory_wait, literals, 4)) {
        mysql_note_error(connection, 1210, "HY000", "the name is too long", 0);
        return connection->error_code;
    }
    wait.deadline_us = dblock_clock_us() + slice_us + 500000; /* the server ends it before */
    if (wait.deadline_us > call->deadline_us)
        wait.deadline_us = call->deadline_us;
    code = mysql_text_run(connection, sql, &wait, 1, 1, answer);
    if (code == MYSQL_TEXT_CANCELLED || code == MYSQL_TEXT_DEADLINE) {
        unsigned int interrupted =
            mysql_text_interrupt(connection, call, code == MYSQL_TEXT_CANCELLED, answer);

        if (interrupted == 0 && answer->values[0][0] == '1' && code == MYSQL_TEXT_CANCELLED) {
            /* granted while it was being cancelled: give it back */
            struct dblock_call last = { dblock_clock_us() + connection->target->io_timeout_us,
                -1 };

            if (mysql_run_row(connection, MYSQL_ADVISORY_DROP, &last, NULL) != 0)
                connection->is_dead = 1;
        }
        if (code == MYSQL_TEXT_CANCELLED)
            return code;
        if (interrupted == 0 && answer->is_null[0])
            dblock_text_copy(answer->values[0], sizeof answer->values[0], "0");
        code = interrupted;
    }
    return code;
}

/* 1 taken, 0 busy, -1 this connection has it; or a native code, or MYSQL_TEXT_CANCELLED. */
static unsigned int wait_in_queue(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, int64_t *ret_answer)
{
    uint64_t now = dblock_clock_us();
    uint64_t end = take->wait_us < UINT64_MAX - now ? now + take->wait_us : UINT64_MAX;
    struct mysql_text_answer answer;
    unsigned int code;

    if (end > call->deadline_us)
        end = call->deadline_us;
    do {
        uint64_t slice_us = end > now ? end - now : 0;

        if (slice_us > WAIT_SLICE_US)
            slice_us = WAIT_SLICE_US;
        if (slice_us < 1000)
            slice_us = 1000; /* 0 is "no limit" to the hint */
        memset(&answer, 0, sizeof answer);
        code = wait_once(connection, call, take, slice_us, &answer);
        if (code != 0 && mysql_error_class(code) == MYSQL_CLASS_TIMEOUT) {
            code = 0;
            answer.values[0][0] = '0';
        }
        now = dblock_clock_us();
    } while (code == 0 && answer.values[0][0] == '0' && now < end);
    *ret_answer = strtoll(answer.values[0], NULL, 10);
    return code;
}

dblock_status mysql_advisory_take(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    int64_t got = 0;
    unsigned int code;

    if (is_refused(connection))
        return refuse(connection, reterr);
    if (take->wait_us > 0) {
        code = wait_in_queue(connection, call, take, &got);
    } else {
        put_subject(connection, &take->subject);
        code = mysql_run_row(connection, MYSQL_ADVISORY_TAKE, call, NULL);
        got = mysql_out_number(connection, MYSQL_N_ANSWER);
        if (code == 0 && mysql_out_is_null(connection, MYSQL_N_ANSWER)) {
            mysql_note_error(connection, 1317, "70100", "GET_LOCK gave NULL", 0);
            code = connection->error_code;
        }
    }
    if (code == MYSQL_TEXT_CANCELLED)
        return DBLOCK_CANCELLED;
    if (code != 0) {
        if (mysql_error_class(code) != MYSQL_CLASS_CONFLICT)
            return mysql_fail(
                connection, reterr, "cannot take advisory lock \"%s\"", take->subject.name);
        /* A deadlock with another connection: what this one holds stays. */
        answer->outcome = DBLOCK_ANSWER_AGAIN;
        return DBLOCK_OK;
    }
    answer->remaining_us = DBLOCK_NO_END;
    if (got == 1) {
        answer->outcome = DBLOCK_ANSWER_YES;
        return DBLOCK_OK;
    }
    answer->outcome = DBLOCK_ANSWER_BUSY;
    fill_holder(connection, call, &take->subject, holder);
    return DBLOCK_OK;
}

dblock_status mysql_advisory_drop(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    put_subject(connection, subject);
    if (mysql_run_row(connection, MYSQL_ADVISORY_DROP, call, NULL) != 0)
        return mysql_fail(
            connection, reterr, "cannot release advisory lock \"%s\"", subject->name);
    answer->outcome = mysql_out_number(connection, MYSQL_N_ANSWER) == 1 ? DBLOCK_ANSWER_YES
                                                                        : DBLOCK_ANSWER_NO;
    return DBLOCK_OK;
}

dblock_status mysql_advisory_prove(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    if (mysql_advisory_ask(connection, call, subject) != 0)
        return mysql_fail(connection, reterr, "cannot prove advisory lock \"%s\"", subject->name);
    answer->now_us = mysql_out_number(connection, MYSQL_N_CLOCK);
    answer->outcome = !mysql_out_is_null(connection, MYSQL_N_ANSWER) &&
            mysql_out_number(connection, MYSQL_N_ANSWER) ==
                mysql_out_number(connection, MYSQL_N_MINE)
        ? DBLOCK_ANSWER_YES
        : DBLOCK_ANSWER_NO;
    return DBLOCK_OK;
}

dblock_status mysql_advisory_draw(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    char buffer[32];
    const char *name;
    size_t size;

    if (is_refused(connection))
        return refuse(connection, reterr);
    name = mysql_advisory_name(subject, buffer, sizeof buffer, &size);
    return mysql_token_draw(connection, call, DBLOCK_ADVISORY, name, size, answer, reterr);
}
