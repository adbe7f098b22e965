/* SPDX-License-Identifier: MIT */
/* mysql_guard.c - a transaction of the application that is bound to a grant. Why that works is
 * said in sql/guard.sql. */
#include <dblock/sys/driver.h>

#include <mysql.h>

#include <dblock/mysql.h>

#include <errmsg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mysql_advisory.h"
#include "mysql_application.h"
#include "mysql_call.h"
#include "mysql_connection.h"
#include "mysql_sql.h"
#include "mysql_target.h"
#include "mysql_text.h"

#define LOOK_AGAIN_US 5000u

enum { /* of what a statement came to */
    CODE_WAIT = 1205,   /* somebody stands on the row */
    CODE_NO_WAIT = 3572 /* the same, MySQL 8 */
};

struct question {
    const struct dblock_guarded *guarded;
    MYSQL *mysql;
    struct dblock_error *reterr;
};

static struct mysql_application application_of(const struct question *question)
{
    struct mysql_application application = { question->mysql, question->guarded->target->database,
        "guard", question->guarded->subject.name, question->reterr };

    return application;
}

static int is_in_transaction(const MYSQL *mysql)
{
    return mysql_application_is_in_transaction(mysql);
}

/* 0 or the native code. `*ret_rows` NULL: it has none. */
static unsigned int run(const struct question *question, const char *text,
    const struct mysql_literal *literals, size_t n_literals, const char *clause,
    MYSQL_RES **ret_rows)
{
    const struct mysql_application application = application_of(question);

    return mysql_application_run(&application, text, literals, n_literals, clause, ret_rows);
}

static dblock_status fail(const struct question *question, unsigned int code)
{
    const struct mysql_application application = application_of(question);
    dblock_status status;

    if (code != CODE_WAIT && code != CODE_NO_WAIT)
        return mysql_application_fail(&application, code);
    /* innodb_rollback_on_timeout makes an end of the transaction of it */
    if (!is_in_transaction(question->mysql))
        return DBLOCK_ROLLED_BACK;
    status = dblock_error_set(question->reterr, DBLOCK_E_DATABASE, "roll back, and begin again",
        "cannot guard \"%s\": another transaction stands on its row", application.name);
    dblock_error_native(question->reterr, (int32_t)code, NULL, 1);
    return status;
}

/* Shared, and without waiting where the server can: else as long as innodb_lock_wait_timeout. */
static const char *clause_of(MYSQL *mysql)
{
    unsigned long version = mysql_get_server_version(mysql);

    if (strstr(mysql_get_server_info(mysql), "MariaDB") != NULL)
        return version >= 100300 ? " LOCK IN SHARE MODE NOWAIT" : " LOCK IN SHARE MODE";
    return version >= 80000 ? " FOR SHARE NOWAIT" : " LOCK IN SHARE MODE";
}

static dblock_status judge(MYSQL_ROW row)
{
    if (row[0] == NULL || row[0][0] != '1')
        return DBLOCK_LOST;
    if (row[1] != NULL && row[1][0] == '1')
        return DBLOCK_OK;
    /* by a heartbeat that may be an old one; a timed grant has no other end than this */
    return row[2] != NULL && row[2][0] == '1' ? DBLOCK_STALE_SNAPSHOT : DBLOCK_LOST;
}

static int is_live(const struct dblock_guarded *guarded)
{
    return guarded->strategy == DBLOCK_ROW || guarded->strategy == DBLOCK_ADVISORY;
}

/* By which its token is kept; see mysql_advisory_name(). */
static struct mysql_literal token_name_of(
    const struct dblock_guarded *guarded, char *buffer, size_t size)
{
    struct mysql_literal name = { MYSQL_LITERAL_BYTES, 0, guarded->subject.name,
        guarded->subject.name_size };

    if (guarded->strategy == DBLOCK_ADVISORY)
        name.data = mysql_advisory_name(&guarded->subject, buffer, size, &name.size);
    return name;
}

struct sight {
    int64_t token; /* 0: there is no row */
    int is_over;   /* its session is */
};

/* What the snapshot shows of the name, or (with the clause) the newest of it. */
static unsigned int look(
    const struct question *question, const char *clause, struct sight *ret_sight)
{
    const struct dblock_guarded *guarded = question->guarded;
    char buffer[32];
    const struct mysql_literal literals[2] = {
        { MYSQL_LITERAL_NUMBER, (uint64_t)guarded->strategy, NULL, 0 },
        token_name_of(guarded, buffer, sizeof buffer) };
    MYSQL_RES *rows;
    MYSQL_ROW row;
    unsigned int code = is_live(guarded)
        ? run(question, mysql_sql_token_guard_look, literals, 2, clause, &rows)
        : run(question,
              guarded->strategy == DBLOCK_LEASE ? mysql_sql_lease_guard_look
                                                : mysql_sql_insert_guard_look,
              literals + 1, 1, clause, &rows);

    memset(ret_sight, 0, sizeof *ret_sight);
    if (code != 0 || rows == NULL)
        return code != 0 ? code : CR_UNKNOWN_ERROR;
    row = mysql_call_row(rows, is_live(guarded) ? 1 : 3);
    if (row != NULL && row[0] != NULL) {
        ret_sight->token = strtoll(row[0], NULL, 10);
        ret_sight->is_over = !is_live(guarded) && row[1] != NULL && row[1][0] == '1' &&
            (row[2] == NULL || row[2][0] != '1');
    }
    mysql_free_result(rows);
    return 0;
}

/* It is not in the snapshot: over, or newer than that. */
static dblock_status find_why(const struct question *question)
{
    struct sight seen;
    unsigned int code = look(question, "", &seen);

    if (code != 0)
        return fail(question, code);
    if (seen.token >= question->guarded->token)
        return DBLOCK_LOST;
    if (seen.token != 0)
        return DBLOCK_STALE_SNAPSHOT;
    code = look(question, clause_of(question->mysql), &seen); /* made after it, or deleted */
    return code == 0 && seen.token == 0 ? DBLOCK_LOST : DBLOCK_STALE_SNAPSHOT;
}

static unsigned int run_guard(const struct question *question, MYSQL_RES **ret_rows)
{
    const struct dblock_guarded *guarded = question->guarded;
    char buffer[32];
    const struct mysql_literal owner = { MYSQL_LITERAL_BYTES, 0, guarded->owner, DBLOCK_ID_SIZE };
    const struct mysql_literal token = { MYSQL_LITERAL_NUMBER, (uint64_t)guarded->token, NULL, 0 };
    const struct mysql_literal name = token_name_of(guarded, buffer, sizeof buffer);
    const struct mysql_literal recorded[5] = { owner, token, name, owner, token };
    const struct mysql_literal live[4] = { token,
        { MYSQL_LITERAL_NUMBER, (uint64_t)guarded->strategy, NULL, 0 }, name, token };

    if (is_live(guarded))
        return run(question, mysql_sql_token_guard, live, 4, clause_of(question->mysql), ret_rows);
    return run(question,
        guarded->strategy == DBLOCK_LEASE ? mysql_sql_lease_guard : mysql_sql_insert_guard,
        recorded, 5, clause_of(question->mysql), ret_rows);
}

static dblock_status pin(const struct question *question)
{
    const struct dblock_guarded *guarded = question->guarded;
    uint64_t until_us = dblock_clock_us() + guarded->io_timeout_us;
    struct dblock_call pause = { 0, -1 };
    MYSQL_RES *rows;
    MYSQL_ROW row;
    dblock_status status;
    unsigned int code;

    for (;;) {
        code = run_guard(question, &rows);
        if (code == 0 && rows != NULL) {
            row = mysql_call_row(rows, 3);
            status = row != NULL ? judge(row) : DBLOCK_OK;
            mysql_free_result(rows);
            return row != NULL ? status : find_why(question);
        }
        if ((code != CODE_WAIT && code != CODE_NO_WAIT) || !is_in_transaction(question->mysql) ||
            dblock_clock_us() >= until_us)
            return fail(question, code);
        pause.deadline_us = dblock_clock_us() + LOOK_AGAIN_US;
        (void)dblock_fd_wait(-1, 0, &pause, 0);
    }
}

/* Several nodes are written to: the guard is a change. */
static dblock_status pin_by_change(const struct question *question)
{
    const struct dblock_guarded *guarded = question->guarded;
    int is_lease = guarded->strategy == DBLOCK_LEASE;
    const struct mysql_literal literals[4] = {
        { MYSQL_LITERAL_NUMBER, mysql_count_seconds(guarded->io_timeout_us), NULL, 0 },
        { MYSQL_LITERAL_BYTES, 0, guarded->subject.name, guarded->subject.name_size },
        { MYSQL_LITERAL_BYTES, 0, guarded->owner, DBLOCK_ID_SIZE },
        { MYSQL_LITERAL_NUMBER, (uint64_t)guarded->token, NULL, 0 } };
    struct sight seen;
    MYSQL_RES *rows;
    unsigned int code = look(question, "", &seen);

    if (code != 0)
        return fail(question, code);
    if (seen.token != guarded->token)
        return find_why(question);
    if (seen.is_over)
        return DBLOCK_STALE_SNAPSHOT; /* as in judge() */
    code = run(question, is_lease ? mysql_sql_lease_guard_write : mysql_sql_insert_guard_write,
        literals, 4, "", &rows);
    if (code != 0)
        return fail(question, code);
    return mysql_affected_rows(question->mysql) == 1 ? DBLOCK_OK : DBLOCK_LOST;
}

/* What is pinned is given back by this transaction. */
static dblock_status leave(const struct question *question)
{
    const struct dblock_guarded *guarded = question->guarded;
    int is_lease = guarded->strategy == DBLOCK_LEASE;
    const struct mysql_literal literals[4] = {
        { MYSQL_LITERAL_BYTES, 0, guarded->kept_owner, DBLOCK_ID_SIZE },
        { MYSQL_LITERAL_NUMBER, guarded->keep_us, NULL, 0 },
        { MYSQL_LITERAL_BYTES, 0, guarded->subject.name, guarded->subject.name_size },
        { MYSQL_LITERAL_BYTES, 0, guarded->owner, DBLOCK_ID_SIZE } };
    MYSQL_RES *rows;
    unsigned int code;

    if (guarded->keep_us == 0)
        code = run(question, is_lease ? mysql_sql_lease_leave : mysql_sql_insert_leave,
            literals + 2, 2, "", &rows);
    else
        code = run(question, is_lease ? mysql_sql_lease_keep : mysql_sql_insert_keep, literals, 4,
            "", &rows);

    if (code != 0)
        return fail(question, code);
    return mysql_affected_rows(question->mysql) == 1 ? DBLOCK_OK : DBLOCK_NOT_HELD;
}

static dblock_status pin_somehow(const struct question *question)
{
    return atomic_load(&question->guarded->target->is_multi_writer) ? pin_by_change(question)
                                                                    : pin(question);
}

/* The session's clock, if the application has set it, so that it stands still. Else "". */
static unsigned int read_frozen(const struct question *question, char *clock, size_t size)
{
    unsigned int code = 0;
    char seen[32] = "";
    int i;

    for (i = 0; i < 2 && code == 0; ++i) {
        MYSQL_RES *rows;
        MYSQL_ROW row;

        dblock_text_copy(clock, size, seen);
        code = run(question, mysql_sql_loan_clock, NULL, 0, "", &rows);
        row = code == 0 ? mysql_call_row(rows, 1) : NULL;
        dblock_text_copy(seen, sizeof seen, row != NULL && row[0] != NULL ? row[0] : "");
        mysql_free_result(rows);
    }
    if (strcmp(clock, seen) != 0)
        clock[0] = 0;
    return code;
}

static unsigned int set_clock(const struct question *question, const char *clock)
{
    MYSQL_RES *rows;
    char sql[64];

    (void)snprintf(sql, sizeof sql, "SET timestamp = %s", clock);
    return run(question, sql, NULL, 0, "", &rows);
}

/* The grant's end is judged by the session's clock. Where that stands still and the grant seems
 * over, it is asked again by the server's. The other way round nothing is wrong: an expired grant
 * that is pinned before anybody else took it is not taken until the transaction ends. */
static dblock_status pin_by_the_clock(const struct question *question)
{
    dblock_status status = pin_somehow(question);
    char clock[32];
    unsigned int code;

    if ((status != DBLOCK_LOST && status != DBLOCK_STALE_SNAPSHOT) ||
        mysql_errno(question->mysql) != 0)
        return status;
    code = read_frozen(question, clock, sizeof clock);
    if (code == 0 && clock[0] == 0)
        return status;
    if (code == 0)
        code = set_clock(question, "DEFAULT");
    if (code != 0)
        return fail(question, code);
    status = pin_somehow(question);
    code = set_clock(question, clock);
    return code == 0 || status < 0 ? status : fail(question, code);
}

static dblock_status bind(
    dblock_lock *lock, void *mysql, const char *client_text, int gives_back,
    struct dblock_error *reterr)
{
    struct dblock_guarded guarded;
    struct question question = { &guarded, mysql, reterr };
    struct mysql_application application;
    dblock_status status = gives_back ? dblock_guard_check_release(lock, reterr) : DBLOCK_OK;

    if (status == DBLOCK_OK)
        status = dblock_guard_begin(lock, dblock_mysql_driver(), &guarded, reterr);
    if (status != DBLOCK_OK)
        return status;
    application = application_of(&question);
    status = mysql_application_check(&application, client_text);
    if (status == DBLOCK_OK)
        status = pin_by_the_clock(&question);
    if (status == DBLOCK_OK && gives_back) {
        status = leave(&question);
        if (status == DBLOCK_OK)
            dblock_guard_gives_back(lock);
    }
    return dblock_guard_end(lock, status, reterr);
}

dblock_status dblock_mysql_guard_(
    dblock_lock *lock, void *mysql, const char *client_text, struct dblock_error *reterr)
{
    return bind(lock, mysql, client_text, 0, reterr);
}

dblock_status dblock_mysql_release_in_(
    dblock_lock *lock, void *mysql, const char *client_text, struct dblock_error *reterr)
{
    return bind(lock, mysql, client_text, 1, reterr);
}
