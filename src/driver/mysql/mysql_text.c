/* SPDX-License-Identifier: MIT */
/* mysql_text.c - statements sent as text: filled in, sent, waited for, interrupted. */
#include "mysql_text.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "mysql_call.h"
#include "mysql_connection.h"
#include "mysql_error.h"
#include "mysql_target.h"

#define INTERRUPT_LIMIT_US 2000000u /* a KILL QUERY and the answer to it */
/* The same for who was cancelled and shall not wait for a server that is out of reach. */
#define CANCEL_LIMIT_US 300000u
#define KILL_AGAIN_US 10000u

static size_t write_literal(char *target, size_t size, const struct mysql_literal *literal)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *data = literal->data;
    size_t i;
    int n;

    if (literal->kind == MYSQL_LITERAL_NUMBER) {
        n = snprintf(target, size, "%llu", (unsigned long long)literal->number);
        return (size_t)n;
    }
    if (literal->kind == MYSQL_LITERAL_SECONDS) {
        n = snprintf(target, size, "%llu.%06llu", (unsigned long long)(literal->number / 1000000),
            (unsigned long long)(literal->number % 1000000));
        return (size_t)n;
    }
    if (data == NULL) {
        n = snprintf(target, size, "NULL");
        return (size_t)n;
    }
    if (2 * literal->size + 4 > size)
        return size;
    target[0] = 'x';
    target[1] = '\'';
    for (i = 0; i < literal->size; ++i) {
        target[2 + 2 * i] = digits[data[i] >> 4];
        target[3 + 2 * i] = digits[data[i] & 15];
    }
    target[2 + 2 * literal->size] = '\'';
    return 3 + 2 * literal->size;
}

int mysql_text_fill(char *target, size_t size, const char *sql,
    const struct mysql_literal *literals, size_t n_literals)
{
    size_t n = 0;
    size_t used = 0;

    for (;;) {
        size_t n_plain = used < n_literals ? strcspn(sql, "?") : strlen(sql);

        if (n_plain >= size - n)
            return 0;
        memcpy(target + n, sql, n_plain);
        n += n_plain;
        if (sql[n_plain] == 0)
            break;
        n += write_literal(target + n, size - n, &literals[used++]);
        if (n >= size)
            return 0;
        sql += n_plain + 1;
    }
    if (used != n_literals)
        return 0;
    target[n] = 0;
    return 1;
}

static unsigned int note_text_error(struct dblock_connection *connection, int is_write)
{
    unsigned int code = mysql_errno(connection->mysql);

    if (code == 0)
        code = 2013;
    mysql_note_error(connection, code, mysql_sqlstate(connection->mysql),
        mysql_error(connection->mysql), is_write && mysql_error_is_lost_answer(code));
    return code;
}

static void copy_row(MYSQL_RES *rows, struct mysql_text_answer *answer)
{
    MYSQL_ROW row = mysql_fetch_row(rows);
    unsigned int n = mysql_num_fields(rows);
    unsigned int i;

    if (row == NULL)
        return;
    answer->has_row = 1;
    answer->n_columns = (int)(n < 6 ? n : 6);
    for (i = 0; i < n && i < 6; ++i) {
        answer->is_null[i] = row[i] == NULL;
        if (row[i] != NULL)
            dblock_text_copy(answer->values[i], sizeof answer->values[i], row[i]);
    }
}

/* The answer is on its way, or `is_here`. An error may come with the rows only (GET_LOCK). */
static unsigned int read_answer(struct dblock_connection *connection,
    const struct dblock_call *call, int is_here, int is_write, struct mysql_text_answer *answer)
{
    MYSQL_RES *rows;

    if (answer != NULL)
        memset(answer, 0, sizeof *answer);
    if (mysql_call_answer(connection->mysql, call, is_here, &rows) != 0)
        return note_text_error(connection, is_write);
    if (rows == NULL)
        return 0;
    if (answer != NULL)
        copy_row(rows, answer);
    mysql_free_result(rows);
    return 0;
}

unsigned int mysql_text_run(struct dblock_connection *connection, const char *sql,
    const struct dblock_call *call, int heed_cancel, int is_write,
    struct mysql_text_answer *answer)
{
    int ready;

    if (mysql_check_sendable(connection, call) != 0)
        return connection->error_code;
    if (mysql_call_send(connection->mysql, sql, call) != 0)
        return note_text_error(connection, is_write);
    if (!heed_cancel && MYSQL_IS_MARIADB_CLIENT) /* the library waits as we say: no poll before */
        return read_answer(connection, call, 0, is_write, answer);
    ready = dblock_fd_wait(mysql_socket(connection), POLLIN, call, heed_cancel);
    if (ready > 0) {
        connection->used_us = dblock_clock_us(); /* which may be long after it was sent */
        return read_answer(connection, call, 1, is_write, answer);
    }
    mysql_note_error(connection, 2013, "HY000", "no answer in time", is_write);
    if (!heed_cancel)
        return connection->error_code;
    connection->is_dead = 0; /* the caller interrupts it, or closes */
    return ready < 0 ? MYSQL_TEXT_CANCELLED : MYSQL_TEXT_DEADLINE;
}

void mysql_text_roll_back(struct dblock_connection *connection, const struct dblock_call *call)
{
    if (!connection->is_dead && mysql_text_run(connection, "ROLLBACK", call, 0, 0, NULL) != 0)
        connection->is_dead = 1;
}

unsigned int mysql_text_send(
    struct dblock_connection *connection, const char *sql, const struct dblock_call *call)
{
    if (mysql_check_sendable(connection, call) != 0)
        return connection->error_code;
    if (mysql_call_send(connection->mysql, sql, call) != 0)
        return note_text_error(connection, 0);
    connection->is_answer_due = 1;
    return 0;
}

unsigned int mysql_text_collect(
    struct dblock_connection *connection, const struct dblock_call *call)
{
    connection->is_answer_due = 0;
    return read_answer(connection, call, 0, 0, NULL);
}

/* A KILL QUERY that arrives before the server has begun the statement is forgotten when it begins:
 * so again, until there is an answer. */
static int kill_until_answered(struct dblock_connection *connection,
    struct dblock_connection *killer, const struct dblock_call *call)
{
    struct dblock_call pause = { 0, -1 };
    char sql[64];
    int is_answered = 0;

    (void)snprintf(sql, sizeof sql, "KILL QUERY %lu", connection->server_id);
    while (!is_answered && dblock_clock_us() < call->deadline_us &&
           mysql_text_run(killer, sql, call, 0, 0, NULL) == 0) {
        pause.deadline_us = dblock_clock_us() + KILL_AGAIN_US;
        is_answered = dblock_fd_wait(mysql_socket(connection), POLLIN, &pause, 0) > 0;
    }
    return is_answered;
}

unsigned int mysql_text_interrupt(struct dblock_connection *connection,
    const struct dblock_call *whole, int is_cancelled, struct mysql_text_answer *answer)
{
    uint64_t limit_us = is_cancelled ? CANCEL_LIMIT_US : INTERRUPT_LIMIT_US;
    struct dblock_call call = { dblock_clock_us() + limit_us, -1 };
    struct dblock_connection *killer = NULL;
    unsigned int code;
    int is_answered;

    if (call.deadline_us > whole->deadline_us)
        call.deadline_us = whole->deadline_us;
    if (mysql_connect((struct dblock_target *)connection->target, DBLOCK_ROLE_SHORT, &call,
            &killer, NULL) == DBLOCK_OK) {
        is_answered = kill_until_answered(connection, killer, &call);
        mysql_connection_close(killer, killer->is_dead ? DBLOCK_CLOSE_ABORT : DBLOCK_CLOSE_POLITE);
        if (is_answered) {
            code = read_answer(connection, &call, 1, 0, answer);
            /* If the statement had ended by itself, the kill may be in wait for the next
             * one: let it have one that does nothing. */
            if (!connection->is_dead)
                (void)mysql_text_run(connection, "DO 0", &call, 0, 0, NULL);
            return code;
        }
    }
    mysql_note_error(connection, 2013, "HY000",
        "a statement was given up and could not be interrupted", 0);
    return connection->error_code;
}
