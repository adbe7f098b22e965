/* SPDX-License-Identifier: MIT */
/* mysql_statement.c - prepares a statement when it is first used, binds it once to the
 * connection's boards, and runs it.
 *
 * Which values a statement takes and gives is the table below, in the order of the
 * question marks and the columns of its text in sql/. What the values mean is the
 * business of the steps. */
#include "mysql_statement.h"

#include <string.h>

#include "mysql_call.h"
#include "mysql_connection.h"
#include "mysql_error.h"
#include "mysql_sql.h"

#define N_IN 20
#define N_OUT 12

/* A value: 0 ends a list, then numbers, then bytes. */
#define NUMBER(id) (1 + (id))
#define BYTES(id) (64 + (id))
#define CLOCK NUMBER(MYSQL_N_CLOCK)
#define TTL NUMBER(MYSQL_N_TTL)
#define NOT_AFTER NUMBER(MYSQL_N_NOT_AFTER)
#define TOKEN NUMBER(MYSQL_N_TOKEN)
#define PID NUMBER(MYSQL_N_PID)
#define STRATEGY NUMBER(MYSQL_N_STRATEGY)
#define LIMIT NUMBER(MYSQL_N_LIMIT)
#define IDLE NUMBER(MYSQL_N_IDLE)
#define SESSION_END NUMBER(MYSQL_N_SESSION_END)
#define MY_END NUMBER(MYSQL_N_MY_END)
#define EXPIRES NUMBER(MYSQL_N_EXPIRES)
#define SINCE NUMBER(MYSQL_N_SINCE)
#define ANSWER NUMBER(MYSQL_N_ANSWER)
#define MINE NUMBER(MYSQL_N_MINE)
#define PASSES NUMBER(MYSQL_N_PASSES)
#define NAME BYTES(MYSQL_B_NAME)
#define OWNER BYTES(MYSQL_B_OWNER)
#define SESSION BYTES(MYSQL_B_SESSION)
#define HOST BYTES(MYSQL_B_HOST)
#define LABEL BYTES(MYSQL_B_LABEL)
#define LOCK BYTES(MYSQL_B_LOCK)
#define PREFIX BYTES(MYSQL_B_PREFIX)
#define BELL NUMBER(MYSQL_N_RINGS), BYTES(MYSQL_B_BELL)
#define PATTERN BYTES(MYSQL_B_PATTERN)
#define GATE PREFIX, NAME
#define RANGE BYTES(MYSQL_B_AFTER), BYTES(MYSQL_B_FROM), BYTES(MYSQL_B_BELOW)

struct statement {
    const char *sql;
    int is_write; /* or locks: a lost answer leaves open whether it took effect */
    unsigned char in[N_IN];
    unsigned char out[N_OUT];
};

/* clang-format off */
#define HOLD_STATEMENTS(NAME_, name_)                                                              \
    [MYSQL_##NAME_##_TAKE] = { mysql_sql_##name_##_take, 1, { NAME, OWNER, TTL, PID, BELL, HOST,   \
        LABEL, SESSION, NAME, SESSION, NOT_AFTER, PASSES, GATE, NOT_AFTER }, { 0 } },              \
    [MYSQL_##NAME_##_LOOK] = { mysql_sql_##name_##_look, 0, { NAME, SESSION }, { CLOCK, TOKEN,     \
        OWNER, SESSION, SESSION_END, MY_END, EXPIRES, SINCE, PID, HOST, LABEL } },                 \
    [MYSQL_##NAME_##_PROBE] = { mysql_sql_##name_##_probe, 0, { NAME, TOKEN }, { TOKEN } },        \
    [MYSQL_##NAME_##_WAIT] = { mysql_sql_##name_##_wait, 0, { NAME }, { TOKEN } },                 \
    [MYSQL_##NAME_##_TAKE_ENDED] = { mysql_sql_##name_##_take_ended, 1, { OWNER, SESSION, TTL,     \
        SESSION, SESSION, HOST, LABEL, PID, BELL, NAME, TOKEN, SESSION, SESSION, NOT_AFTER,        \
        PASSES, GATE }, { 0 } },                                                                   \
    [MYSQL_##NAME_##_DROP] = { mysql_sql_##name_##_drop, 1, { BELL, GATE, NAME, OWNER },           \
        { 0 } },                                                                                   \
    [MYSQL_##NAME_##_DROP_NOWAIT] = { mysql_sql_##name_##_drop_nowait, 1,                          \
        { BELL, GATE, NAME, OWNER }, { 0 } },                                                      \
    [MYSQL_##NAME_##_EXTEND] = { mysql_sql_##name_##_extend, 1, { TTL, NAME, OWNER }, { 0 } },     \
    [MYSQL_##NAME_##_DRAW] = { mysql_sql_##name_##_draw, 1, { NAME, OWNER }, { 0 } },              \
    [MYSQL_##NAME_##_BREAK] = { mysql_sql_##name_##_break, 1, { NAME, TOKEN }, { 0 } },            \
    [MYSQL_##NAME_##_LIST] = { mysql_sql_##name_##_list, 0, { RANGE, IDLE, LIMIT }, { CLOCK, NAME, \
        TOKEN, OWNER, SESSION, SESSION_END, EXPIRES, SINCE, PID, HOST, LABEL } },                  \
    [MYSQL_##NAME_##_PURGE_CANDIDATES] = { mysql_sql_##name_##_purge_candidates, 0, { LIMIT },     \
        { NAME, TOKEN } },                                                                         \
    [MYSQL_##NAME_##_PURGE] = { mysql_sql_##name_##_purge, 1, { NAME, TOKEN }, { 0 } }

static const struct statement statements[MYSQL_N_STATEMENTS] = {
    [MYSQL_CLOCK] = { mysql_sql_clock, 0, { 0 }, { CLOCK } },
    [MYSQL_SESSION_BEGIN] = { mysql_sql_session_begin, 1,
        { SESSION, TTL, TTL, HOST, PID, LABEL }, { 0 } },
    [MYSQL_SESSION_RENEW] = { mysql_sql_session_renew, 1, { TTL, TTL, SESSION }, { 0 } },
    [MYSQL_SESSION_END] = { mysql_sql_session_end, 1, { SESSION }, { 0 } },
    [MYSQL_SESSION_END_EXPIRED] = { mysql_sql_session_end_expired, 1, { SESSION }, { 0 } },
    [MYSQL_SESSION_HOLDS] = { mysql_sql_session_holds, 0, { SESSION, SESSION },
        { STRATEGY, NAME, OWNER, TOKEN, SINCE, EXPIRES, PID, HOST, LABEL, CLOCK } },
    [MYSQL_SESSION_CHANGED] = { mysql_sql_session_changed, 1, { SESSION }, { 0 } },
    [MYSQL_SESSION_PURGE_CANDIDATES] = { mysql_sql_session_purge_candidates, 0, { LIMIT },
        { SESSION } },
    HOLD_STATEMENTS(LEASE, lease),
    HOLD_STATEMENTS(INSERT, insert),
    [MYSQL_ROW_TAKE] = { mysql_sql_row_take, 1, { NAME }, { ANSWER } },
    [MYSQL_ROW_SEED] = { mysql_sql_row_seed, 1, { NAME, NAME }, { 0 } },
    [MYSQL_ROW_LIST] = { mysql_sql_row_list, 0, { RANGE, LIMIT }, { NAME, SINCE, CLOCK } },
    [MYSQL_ROW_LIST_PROBE] = { mysql_sql_row_list_probe, 0, { NAME }, { ANSWER } },
    [MYSQL_ROW_PURGE_CANDIDATES] = { mysql_sql_row_purge_candidates, 0, { LIMIT }, { NAME } },
    [MYSQL_ROW_PURGE_PROBE] = { mysql_sql_row_purge_probe, 0, { NAME }, { SINCE } },
    [MYSQL_ROW_PURGE] = { mysql_sql_row_purge, 1, { NAME }, { 0 } },
    [MYSQL_TOKEN_DRAW] = { mysql_sql_token_draw, 1, { STRATEGY, NAME, STRATEGY }, { 0 } },
    [MYSQL_TOKEN_PROBE] = { mysql_sql_token_probe, 0, { STRATEGY, NAME }, { TOKEN } },
    [MYSQL_TOKEN_KEEP] = { mysql_sql_token_keep, 1, { STRATEGY, NAME, TOKEN }, { 0 } },
    [MYSQL_TOKEN_PURGE_CANDIDATES] = { mysql_sql_token_purge_candidates, 0, { LIMIT },
        { STRATEGY, NAME, TOKEN } },
    [MYSQL_TOKEN_PURGE] = { mysql_sql_token_purge, 1, { STRATEGY, NAME, TOKEN }, { 0 } },
    [MYSQL_ADVISORY_TAKE] = { mysql_sql_advisory_take, 1, { LOCK, LOCK }, { ANSWER } },
    [MYSQL_ADVISORY_DROP] = { mysql_sql_advisory_drop, 1, { LOCK }, { ANSWER } },
    [MYSQL_ADVISORY_HOLDER] = { mysql_sql_advisory_holder, 0, { LOCK }, { ANSWER, MINE, CLOCK } },
    [MYSQL_ADVISORY_CONNECTION] = { mysql_sql_advisory_connection, 0, { MINE }, { HOST } },
    [MYSQL_ADVISORY_LIST] = { mysql_sql_advisory_list, 0, { PREFIX, RANGE, LIMIT },
        { NAME, TOKEN, ANSWER, CLOCK } },
    [MYSQL_ADVISORY_TOKEN] = { mysql_sql_advisory_token, 0, { NAME }, { TOKEN } },
    [MYSQL_ADVISORY_TOKEN_END] = { mysql_sql_advisory_token_end, 1, { NAME, TOKEN }, { 0 } },
    [MYSQL_LINE_WAITERS] = { mysql_sql_line_waiters, 0, { PATTERN, RANGE, LIMIT },
        { NAME, ANSWER } },
    [MYSQL_FLOOR_RAISE] = { mysql_sql_floor_raise, 1, { TOKEN, STRATEGY, TOKEN }, { 0 } },
    [MYSQL_VERIFY_VERSION] = { mysql_sql_verify_version, 0, { 0 }, { ANSWER } },
    [MYSQL_VERIFY_NAMES] = { mysql_sql_verify_names, 0, { 0 }, { ANSWER, MINE } },
};
/* clang-format on */

void mysql_in_number(struct dblock_connection *connection, enum mysql_number_id id, int64_t value)
{
    connection->in.numbers[id].value = value;
}

void mysql_in_bytes(
    struct dblock_connection *connection, enum mysql_bytes_id id, const void *data, size_t size)
{
    struct mysql_bytes *bytes = &connection->in.bytes[id];

    bytes->is_null = data == NULL;
    if (data == NULL)
        return;
    if (size > sizeof bytes->data)
        size = sizeof bytes->data;
    memcpy(bytes->data, data, size);
    bytes->size = (unsigned long)size;
}

void mysql_in_text(struct dblock_connection *connection, enum mysql_bytes_id id, const char *text)
{
    mysql_in_bytes(connection, id, text, text != NULL ? strlen(text) : 0);
}

int64_t mysql_bound(int64_t number)
{
    return number > MYSQL_NUMBER_MAX ? MYSQL_NUMBER_MAX
        : number < -MYSQL_NUMBER_MAX ? -MYSQL_NUMBER_MAX
                                     : number;
}

int64_t mysql_out_number(const struct dblock_connection *connection, enum mysql_number_id id)
{
    return connection->out.numbers[id].is_null ? 0 : mysql_bound(connection->out.numbers[id].value);
}

int mysql_out_is_null(const struct dblock_connection *connection, enum mysql_number_id id)
{
    return connection->out.numbers[id].is_null != 0;
}

const struct mysql_bytes *mysql_out_bytes(
    const struct dblock_connection *connection, enum mysql_bytes_id id)
{
    return &connection->out.bytes[id];
}

/* Points `binds` at the board's values of the list; returns how many. */
static unsigned int bind_list(
    MYSQL_BIND *binds, const unsigned char *list, size_t size, struct mysql_board *board)
{
    unsigned int n = 0;

    for (; n < size && list[n] != 0; ++n) {
        MYSQL_BIND *bind = &binds[n];

        if (list[n] < 64) {
            struct mysql_number *number = &board->numbers[list[n] - 1];

            bind->buffer_type = MYSQL_TYPE_LONGLONG;
            bind->buffer = &number->value;
            bind->is_null = &number->is_null;
        } else {
            struct mysql_bytes *bytes = &board->bytes[list[n] - 64];

            /* What becomes the name of a lock is ASCII in the connection's character set;
             * everything else is bytes. */
            bind->buffer_type =
                list[n] == BYTES(MYSQL_B_LOCK) || list[n] == PREFIX ||
                    list[n] == BYTES(MYSQL_B_BELL) || list[n] == PATTERN
                ? MYSQL_TYPE_STRING
                : MYSQL_TYPE_BLOB;
            bind->buffer = bytes->data;
            bind->buffer_length = sizeof bytes->data - 1;
            bind->length = &bytes->size;
            bind->is_null = &bytes->is_null;
        }
    }
    return n;
}

static void note_statement_error(
    struct dblock_connection *connection, MYSQL_STMT *handle, int is_write)
{
    unsigned int code = mysql_stmt_errno(handle);

    /* An error that comes instead of a row (MySQL: 3024 of a SELECT that waits) is noted with the
     * connection alone by MariaDB's library. */
    if (code == 0 && mysql_errno(connection->mysql) != 0)
        mysql_note_error(connection, mysql_errno(connection->mysql),
            mysql_sqlstate(connection->mysql), mysql_error(connection->mysql),
            is_write && mysql_error_is_lost_answer(mysql_errno(connection->mysql)));
    else if (code == 0) /* no error says so, yet the call failed */
        mysql_note_error(connection, 2013, "HY000", "the client library gave no reason", is_write);
    else
        mysql_note_error(connection, code, mysql_stmt_sqlstate(handle), mysql_stmt_error(handle),
            is_write && mysql_error_is_lost_answer(code));
}

unsigned int mysql_prepare(struct dblock_connection *connection, enum mysql_statement_id id,
    const struct dblock_call *call)
{
    const struct statement *statement = &statements[id];
    MYSQL_BIND in[N_IN];
    MYSQL_BIND out[N_OUT];
    MYSQL_STMT *handle;
    unsigned int n_in, n_out;

    if (connection->statements[id] != NULL)
        return 0;
    if (mysql_check_sendable(connection, call) != 0)
        return connection->error_code;
    handle = mysql_stmt_init(connection->mysql);
    if (handle == NULL) {
        mysql_note_error(connection, 2008, "HY000", "out of memory", 0);
        return connection->error_code;
    }
    if (mysql_call_prepare(connection->mysql, handle, statement->sql, call) != 0)
        goto failed;
    memset(in, 0, sizeof in);
    memset(out, 0, sizeof out);
    n_in = bind_list(in, statement->in, N_IN, &connection->in);
    n_out = bind_list(out, statement->out, N_OUT, &connection->out);
    if (mysql_stmt_param_count(handle) != n_in || mysql_stmt_field_count(handle) != n_out) {
        mysql_note_error(connection, 1210, "HY000", "a statement and its table disagree", 0);
        mysql_call_forget(handle);
        return connection->error_code;
    }
    if ((n_in > 0 && mysql_stmt_bind_param(handle, in) != 0) ||
        (n_out > 0 && mysql_stmt_bind_result(handle, out) != 0))
        goto failed;
    connection->statements[id] = handle;
    return 0;
failed:
    note_statement_error(connection, handle, 0); /* nothing was executed */
    mysql_call_forget(handle);
    return connection->error_code;
}

/* Not if a server gives another number of columns than when the statement was prepared, or says that
 * another result follows: MariaDB's library has then forgotten what is bound, and would write to it. */
static int has_its_columns(
    struct dblock_connection *connection, MYSQL_STMT *handle, enum mysql_statement_id id)
{
    unsigned int n = 0;

    while (n < N_OUT && statements[id].out[n] != 0)
        ++n;
    return mysql_stmt_field_count(handle) == n && !mysql_more_results(connection->mysql);
}

static unsigned int execute(struct dblock_connection *connection, enum mysql_statement_id id,
    const struct dblock_call *call)
{
    MYSQL_STMT *handle;

    if (connection->statements[id] == NULL && mysql_prepare(connection, id, call) != 0)
        return connection->error_code;
    if (mysql_check_sendable(connection, call) != 0)
        return connection->error_code;
    handle = connection->statements[id];
    if (mysql_call_execute(connection->mysql, handle, call) == 0)
        return 0;
    note_statement_error(connection, handle, statements[id].is_write);
    if (connection->error_code == 1243) { /* to be prepared anew */
        mysql_call_forget(handle);
        connection->statements[id] = NULL;
    }
    return connection->error_code;
}

unsigned int mysql_run(struct dblock_connection *connection, enum mysql_statement_id id,
    const struct dblock_call *call, struct mysql_result *ret_result)
{
    MYSQL_STMT *handle;
    unsigned int code = execute(connection, id, call);

    /* The server does not know it any more, and has done nothing. What is in a transaction begins
     * that again, as this session may not be the one in which it began. */
    if (code == 1243 && (connection->mysql->server_status & SERVER_STATUS_IN_TRANS) == 0)
        code = execute(connection, id, call);
    if (code != 0)
        return code;
    handle = connection->statements[id];
    if (!has_its_columns(connection, handle, id)) {
        mysql_note_error(connection, 2027, "HY000",
            "the server answered with another result than it was asked for", statements[id].is_write);
        return connection->error_code;
    }
    if (ret_result != NULL) {
        ret_result->affected_rows = mysql_stmt_affected_rows(handle);
        ret_result->insert_id = mysql_stmt_insert_id(handle);
    }
    return 0;
}

/* "Records: 0  Duplicates: 0  Warnings: 0", in whatever language the server speaks. */
int mysql_has_selected(const struct dblock_connection *connection)
{
    const char *info = mysql_info(connection->mysql);

    return info == NULL || info[strcspn(info, "0123456789")] != '0';
}

/* Ends the fetched texts with a zero. */
static void end_texts(struct dblock_connection *connection, enum mysql_statement_id id)
{
    const unsigned char *list = statements[id].out;
    size_t i;

    for (i = 0; i < N_OUT && list[i] != 0; ++i) {
        struct mysql_bytes *bytes;

        if (list[i] < 64)
            continue;
        bytes = &connection->out.bytes[list[i] - 64];
        if (bytes->is_null)
            bytes->size = 0;
        else if (bytes->size > sizeof bytes->data - 1)
            bytes->size = sizeof bytes->data - 1;
        bytes->data[bytes->size] = 0;
    }
}

unsigned int mysql_run_row(struct dblock_connection *connection, enum mysql_statement_id id,
    const struct dblock_call *call, int *ret_has_row)
{
    MYSQL_STMT *handle;
    int fetched;

    if (mysql_run(connection, id, call, NULL) != 0)
        return connection->error_code;
    handle = connection->statements[id];
    fetched = mysql_call_fetch(connection->mysql, handle, call);
    if (fetched == 0 || fetched == MYSQL_DATA_TRUNCATED) {
        end_texts(connection, id);
        if (ret_has_row != NULL)
            *ret_has_row = 1;
        /* the end, or an error that came after the row */
        fetched = mysql_call_fetch(connection->mysql, handle, call);
    } else if (fetched == MYSQL_NO_DATA) {
        if (ret_has_row == NULL) {
            mysql_note_error(connection, 1329, "02000", "no row where one must be", 0);
            (void)mysql_stmt_free_result(handle);
            return connection->error_code;
        }
        *ret_has_row = 0;
    }
    if (fetched != MYSQL_NO_DATA) {
        note_statement_error(connection, handle, statements[id].is_write);
        (void)mysql_stmt_free_result(handle);
        return connection->error_code;
    }
    (void)mysql_stmt_free_result(handle); /* all was read: no I/O */
    return 0;
}

unsigned int mysql_run_rows(struct dblock_connection *connection, enum mysql_statement_id id,
    const struct dblock_call *call)
{
    if (mysql_run(connection, id, call, NULL) != 0)
        return connection->error_code;
    if (mysql_call_store(connection->mysql, connection->statements[id], call) != 0) {
        note_statement_error(connection, connection->statements[id], statements[id].is_write);
        (void)mysql_stmt_free_result(connection->statements[id]);
        return connection->error_code;
    }
    return 0;
}

size_t mysql_count_rows(const struct dblock_connection *connection, enum mysql_statement_id id)
{
    return (size_t)mysql_stmt_num_rows(connection->statements[id]);
}

int mysql_fetch(struct dblock_connection *connection, enum mysql_statement_id id)
{
    int fetched = mysql_stmt_fetch(connection->statements[id]);

    if (fetched != 0 && fetched != MYSQL_DATA_TRUNCATED)
        return 0;
    end_texts(connection, id);
    return 1;
}

void mysql_end_rows(struct dblock_connection *connection, enum mysql_statement_id id)
{
    if (connection->statements[id] != NULL)
        (void)mysql_stmt_free_result(connection->statements[id]);
}
