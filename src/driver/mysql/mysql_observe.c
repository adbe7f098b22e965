/* SPDX-License-Identifier: MIT */
/* mysql_observe.c - lists grants and ends them (mysql_purge.c: removes what nobody needs).
 *
 * Row and advisory are listed as far as the server tells: row by asking for each name of
 * dblock_row whether it is locked, advisory by asking for each name that ever drew a
 * token who has it. */
#include "mysql_observe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mysql_advisory.h"
#include "mysql_connection.h"
#include "mysql_error.h"
#include "mysql_grant.h"
#include "mysql_hold.h"
#include "mysql_line.h"
#include "mysql_text.h"

#define LIST_MAX 1000 /* names of one page that are asked for one by one */

/* From where to where, in bytes: after < name, from <= name < below. */
static void put_range(struct dblock_connection *connection, const struct dblock_page *page)
{
    unsigned char below[257];
    size_t size;

    mysql_in_text(connection, MYSQL_B_AFTER, page->after != NULL ? page->after : "");
    mysql_in_number(connection, MYSQL_N_LIMIT,
        page->limit < INT32_MAX ? (int64_t)page->limit : INT32_MAX);
    mysql_in_number(connection, MYSQL_N_IDLE, page->is_idle != 0);
    if (page->name != NULL) {
        size = strlen(page->name);
        if (size > 256)
            size = 256;
        mysql_in_bytes(connection, MYSQL_B_FROM, page->name, size);
        memcpy(below, page->name, size);
        below[size++] = 0; /* the next string in the order of bytes */
        mysql_in_bytes(connection, MYSQL_B_BELOW, below, size);
        return;
    }
    mysql_in_text(connection, MYSQL_B_FROM, page->prefix != NULL ? page->prefix : "");
    size = page->prefix != NULL ? strlen(page->prefix) : 0;
    if (size > 255)
        size = 255;
    if (size > 0)
        memcpy(below, page->prefix, size);
    while (size > 0 && below[size - 1] == 0xFF)
        --size;
    if (size > 0)
        ++below[size - 1];
    else
        below[size++] = 0xFF; /* above all UTF-8 */
    mysql_in_bytes(connection, MYSQL_B_BELOW, below, size);
}

/* How many wait for each name of a page, in the order of names. */
struct waiters {
    int is_known;
    size_t n;
    struct waiting {
        char name[DBLOCK_NAME_MAX + 1];
        uint32_t n_waiters;
    } *all;
};

/* What cannot be told is no failure. The range is there already. */
static void read_waiters(const struct mysql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, struct waiters *waiters)
{
    char pattern[MYSQL_LINE_PATTERN_SIZE];
    size_t n;

    memset(waiters, 0, sizeof *waiters);
    if (!connection->has_line || (!connection->is_mariadb && connection->version < 80022))
        return;
    mysql_line_pattern(connection, hold, pattern);
    mysql_in_text(connection, MYSQL_B_PATTERN, pattern);
    if (mysql_run_rows(connection, MYSQL_LINE_WAITERS, call) != 0)
        return;
    n = mysql_count_rows(connection, MYSQL_LINE_WAITERS);
    waiters->all = calloc(n + 1, sizeof *waiters->all);
    while (waiters->all != NULL && waiters->n < n && mysql_fetch(connection, MYSQL_LINE_WAITERS)) {
        struct waiting *each = &waiters->all[waiters->n++];

        dblock_text_copy(
            each->name, sizeof each->name, mysql_out_bytes(connection, MYSQL_B_NAME)->data);
        each->n_waiters = (uint32_t)mysql_out_number(connection, MYSQL_N_ANSWER);
    }
    waiters->is_known = waiters->all != NULL;
    mysql_end_rows(connection, MYSQL_LINE_WAITERS);
}

static uint32_t count_waiters(const struct waiters *waiters, const char *name)
{
    size_t i;

    if (!waiters->is_known)
        return UINT32_MAX;
    for (i = 0; i < waiters->n; ++i)
        if (strcmp(waiters->all[i].name, name) == 0)
            return waiters->all[i].n_waiters;
    return 0;
}

static dblock_status list_holds(const struct mysql_hold *hold,
    struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_page *page, dblock_grant_fn fn, void *context,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    enum mysql_statement_id id = mysql_hold_statement(hold, MYSQL_LEASE_LIST);
    struct dblock_grant grant;
    struct waiters waiters;

    put_range(connection, page);
    read_waiters(hold, connection, call, &waiters);
    if (mysql_run_rows(connection, id, call) != 0) {
        free(waiters.all);
        return mysql_fail(connection, reterr, "cannot list grants of the strategy %s", hold->what);
    }
    while (mysql_fetch(connection, id)) {
        uint64_t remaining_us;

        memset(&grant, 0, sizeof grant);
        grant.struct_size = sizeof grant;
        grant.strategy = hold->strategy;
        mysql_grant_fill(connection, &grant);
        grant.n_waiters = count_waiters(&waiters, grant.name);
        grant.is_heartbeat = !mysql_out_bytes(connection, MYSQL_B_SESSION)->is_null;
        if (grant.is_heartbeat)
            grant.expires_us = mysql_out_number(connection, MYSQL_N_SESSION_END);
        if (!mysql_grant_is_in_force(connection, &remaining_us))
            grant.owner[0] = 0; /* an idle row: nobody holds it */
        grant.remaining_ms = remaining_us / 1000;
        answer->now_us = grant.now_us;
        if (fn(&grant, context) != 0)
            break;
    }
    mysql_end_rows(connection, id);
    free(waiters.all);
    return DBLOCK_OK;
}

/* The names of a page, in memory, so that each can be asked for. */
struct names {
    size_t n;
    struct dblock_grant *grants;
};

static dblock_status read_names(struct dblock_connection *connection,
    const struct dblock_call *call, enum mysql_statement_id id, const struct dblock_page *page,
    int strategy, struct names *names, struct dblock_error *reterr)
{
    size_t limit = page->limit < LIST_MAX ? page->limit : LIST_MAX;

    names->n = 0;
    names->grants = calloc(limit + 1, sizeof *names->grants);
    if (names->grants == NULL)
        return dblock_error_set(
            reterr, DBLOCK_E_MEMORY, NULL, "cannot list grants: out of memory");
    put_range(connection, page);
    mysql_in_number(connection, MYSQL_N_LIMIT, (int64_t)limit);
    if (mysql_run_rows(connection, id, call) != 0)
        return mysql_fail(connection, reterr, "cannot list grants of the strategy %s",
            strategy == DBLOCK_ROW ? "row" : "advisory");
    while (names->n < limit && mysql_fetch(connection, id)) {
        struct dblock_grant *grant = &names->grants[names->n++];

        grant->struct_size = sizeof *grant;
        grant->strategy = strategy;
        grant->n_waiters = UINT32_MAX;
        grant->now_us = mysql_out_number(connection, MYSQL_N_CLOCK);
        dblock_text_copy(
            grant->name, sizeof grant->name, mysql_out_bytes(connection, MYSQL_B_NAME)->data);
        if (strategy == DBLOCK_ADVISORY) {
            grant->token = mysql_out_number(connection, MYSQL_N_TOKEN);
            grant->server_pid = mysql_out_number(connection, MYSQL_N_ANSWER);
        }
    }
    mysql_end_rows(connection, id);
    return DBLOCK_OK;
}

/* Names that nobody holds are read too, and mostly not told of; so a batch of which little was told
 * is not the last one. What follows it begins behind its last name. 0: nothing follows. */
static int turn_page(struct dblock_page *page, char after[DBLOCK_NAME_MAX + 1],
    const struct names *names)
{
    size_t limit = page->limit < LIST_MAX ? page->limit : LIST_MAX;

    if (limit == 0 || names->n < limit || page->name != NULL)
        return 0;
    dblock_text_copy(after, DBLOCK_NAME_MAX + 1, names->grants[names->n - 1].name);
    page->after = after;
    return 1;
}

/* One batch. `*n_left`: of how many grants may be told yet; 0 also if `fn` wants no more. */
static dblock_status list_some_rows(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_page *page, dblock_grant_fn fn,
    void *context, size_t *n_left, struct names *names, struct dblock_error *reterr)
{
    dblock_status status =
        read_names(connection, call, MYSQL_ROW_LIST, page, DBLOCK_ROW, names, reterr);
    size_t i;

    for (i = 0; status == DBLOCK_OK && i < names->n && *n_left > 0; ++i) {
        int has_row;
        unsigned int code;

        mysql_in_text(connection, MYSQL_B_NAME, names->grants[i].name);
        code = mysql_run_row(connection, MYSQL_ROW_LIST_PROBE, call, &has_row);
        if (code != 0 && mysql_error_class(code) != MYSQL_CLASS_LOCKED) {
            status = mysql_fail(connection, reterr, "cannot list grants of the strategy row");
            break;
        }
        if (code == 0 && !page->is_idle)
            continue;
        if (code != 0)
            names->grants[i].remaining_ms = DBLOCK_FOREVER;
        *n_left = fn(&names->grants[i], context) != 0 ? 0 : *n_left - 1;
    }
    return status;
}

static dblock_status list_some_advisory(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_page *page, dblock_grant_fn fn,
    void *context, size_t *n_left, struct names *names, struct dblock_error *reterr)
{
    struct dblock_subject subject = { page->name, 0, page->advisory_id, page->has_advisory_id };
    struct dblock_page tokens = *page;
    char buffer[32];
    dblock_status status;
    size_t i;

    if (page->name != NULL) {
        subject.name_size = strlen(page->name);
        tokens.name = mysql_advisory_name(&subject, buffer, sizeof buffer, &i);
    }
    status = read_names(
        connection, call, MYSQL_ADVISORY_LIST, &tokens, DBLOCK_ADVISORY, names, reterr);
    if (status == DBLOCK_OK && page->name != NULL && names->n == 0 && page->limit > 0) {
        /* one name is asked for: that the server can tell, token or not */
        if (mysql_advisory_ask(connection, call, &subject) != 0) {
            status = mysql_fail(connection, reterr, "cannot look at advisory lock \"%s\"",
                page->name);
        } else if (!mysql_out_is_null(connection, MYSQL_N_ANSWER)) {
            struct dblock_grant *grant = &names->grants[names->n++];

            grant->struct_size = sizeof *grant;
            grant->strategy = DBLOCK_ADVISORY;
            grant->n_waiters = UINT32_MAX;
            grant->now_us = mysql_out_number(connection, MYSQL_N_CLOCK);
            grant->server_pid = mysql_out_number(connection, MYSQL_N_ANSWER);
            dblock_text_copy(grant->name, sizeof grant->name, tokens.name);
        }
    }
    for (i = 0; status == DBLOCK_OK && i < names->n && *n_left > 0; ++i) {
        struct dblock_grant *grant = &names->grants[i];

        if (grant->server_pid != 0)
            mysql_advisory_fill(connection, call, grant->server_pid, grant);
        else if (!page->is_idle)
            continue;
        *n_left = fn(grant, context) != 0 ? 0 : *n_left - 1;
    }
    return status;
}

typedef dblock_status (*list_some_fn)(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_page *page, dblock_grant_fn fn,
    void *context, size_t *n_left, struct names *names, struct dblock_error *reterr);

/* A page of row or advisory, by as many batches of names as it takes. */
static dblock_status list_by_names(list_some_fn list_some, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_page *page, dblock_grant_fn fn,
    void *context, struct dblock_error *reterr)
{
    struct dblock_page batch = *page;
    char after[DBLOCK_NAME_MAX + 1];
    size_t n_left = page->limit;
    dblock_status status;
    int is_more;

    do {
        struct names names = { 0, NULL };

        status = list_some(connection, call, &batch, fn, context, &n_left, &names, reterr);
        is_more = status == DBLOCK_OK && n_left > 0 && turn_page(&batch, after, &names);
        free(names.grants);
    } while (is_more);
    return status;
}

dblock_status mysql_observe_list(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_page *page, dblock_grant_fn fn,
    void *context, struct dblock_answer *answer, struct dblock_error *reterr)
{
    answer->outcome = DBLOCK_ANSWER_YES;
    switch (page->strategy) {
    case DBLOCK_LEASE:
        return list_holds(
            &mysql_hold_lease, connection, call, page, fn, context, answer, reterr);
    case DBLOCK_INSERT:
        return list_holds(
            &mysql_hold_insert, connection, call, page, fn, context, answer, reterr);
    case DBLOCK_ROW:
        return list_by_names(
            list_some_rows, connection, call, page, fn, context, reterr);
    default:
        return list_by_names(
            list_some_advisory, connection, call, page, fn, context, reterr);
    }
}

/* 0 and the last token drawn (0: none), or a native code. */
static unsigned int read_token(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject, int64_t *ret_token)
{
    char buffer[32];
    size_t size;
    const char *name = mysql_advisory_name(subject, buffer, sizeof buffer, &size);
    int has_row;
    unsigned int code;

    mysql_in_bytes(connection, MYSQL_B_NAME, name, size);
    code = mysql_run_row(connection, MYSQL_ADVISORY_TOKEN, call, &has_row);
    *ret_token = code == 0 && has_row ? mysql_out_number(connection, MYSQL_N_TOKEN) : 0;
    return code;
}

/* 0, or a native code. The outcome becomes PINNED if a guarded transaction stands on it. */
static unsigned int end_token(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject, int64_t token,
    struct dblock_answer *answer)
{
    char buffer[32];
    size_t size;
    const char *name = mysql_advisory_name(subject, buffer, sizeof buffer, &size);
    int has_row;
    unsigned int code = 0;

    mysql_in_bytes(connection, MYSQL_B_NAME, name, size);
    mysql_in_number(connection, MYSQL_N_STRATEGY, DBLOCK_ADVISORY);
    mysql_in_number(connection, MYSQL_N_TOKEN, token);
    if (!connection->is_mariadb)
        code = mysql_run_row(connection, MYSQL_TOKEN_PROBE, call, &has_row);
    if (code == 0)
        code = mysql_run(connection, MYSQL_ADVISORY_TOKEN_END, call, NULL);
    if (code == 0 || mysql_error_class(code) != MYSQL_CLASS_LOCKED)
        return code;
    answer->outcome = DBLOCK_ANSWER_PINNED;
    answer->token = token;
    return 0;
}

/* Ends the server's connection that has an advisory lock, and its token. */
static dblock_status end_advisory(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject, int64_t token,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    char sql[64];
    int64_t drawn;
    long long holder;

    answer->outcome = DBLOCK_ANSWER_NO;
    if (read_token(connection, call, subject, &drawn) != 0) {
        if (token != 0 || !mysql_connection_is_alive(connection))
            return mysql_fail(
                connection, reterr, "cannot break advisory lock \"%s\"", subject->name);
        drawn = 0; /* these locks work without the tables */
    }
    if (token != 0 && drawn != token)
        return DBLOCK_OK;
    if (mysql_advisory_ask(connection, call, subject) != 0)
        return mysql_fail(connection, reterr, "cannot break advisory lock \"%s\"", subject->name);
    answer->now_us = mysql_out_number(connection, MYSQL_N_CLOCK);
    if (mysql_out_is_null(connection, MYSQL_N_ANSWER))
        return DBLOCK_OK;
    holder = (long long)mysql_out_number(connection, MYSQL_N_ANSWER);
    if (holder == mysql_out_number(connection, MYSQL_N_MINE))
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED, "release it instead",
            "cannot break advisory lock \"%s\": this very connection has it", subject->name);
    (void)snprintf(sql, sizeof sql, "KILL CONNECTION %lld", holder);
    if (mysql_text_run(connection, sql, call, 0, 1, NULL) != 0) {
        if (connection->error_code == 1094) /* it has just gone by itself */
            return DBLOCK_OK;
        return mysql_fail(connection, reterr, "cannot break advisory lock \"%s\" of connection %lld",
            subject->name, holder);
    }
    answer->outcome = DBLOCK_ANSWER_YES;
    if (drawn != 0 && end_token(connection, call, subject, drawn, answer) != 0) {
        (void)mysql_fail(connection, reterr,
            "advisory lock \"%s\" was broken, and it is not known whether its token was ended",
            subject->name);
        reterr->status = DBLOCK_E_UNCERTAIN; /* asked again, nobody may hold it */
        reterr->is_transient = 1;
        return DBLOCK_E_UNCERTAIN;
    }
    return DBLOCK_OK;
}

dblock_status mysql_observe_end_token(struct dblock_connection *connection,
    const struct dblock_call *call, int strategy, const struct dblock_subject *subject,
    int64_t token, struct dblock_answer *answer, struct dblock_error *reterr)
{
    (void)strategy; /* that of a row lock is not ended */
    answer->outcome = DBLOCK_ANSWER_YES;
    return end_token(connection, call, subject, token, answer) == 0
        ? DBLOCK_OK
        : mysql_fail(connection, reterr, "cannot end the token of \"%s\"", subject->name);
}

dblock_status mysql_observe_end(struct dblock_connection *connection,
    const struct dblock_call *call, int strategy, const struct dblock_subject *subject,
    int64_t token, struct dblock_answer *answer, struct dblock_error *reterr)
{
    switch (strategy) {
    case DBLOCK_LEASE:
        return mysql_hold_end(
            &mysql_hold_lease, connection, call, subject, token, answer, reterr);
    case DBLOCK_INSERT:
        return mysql_hold_end(
            &mysql_hold_insert, connection, call, subject, token, answer, reterr);
    case DBLOCK_ADVISORY:
        return end_advisory(connection, call, subject, token, answer, reterr);
    default:
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED,
            "find the connection in SHOW ENGINE INNODB STATUS or performance_schema.data_locks "
            "and KILL it",
            "cannot break row lock \"%s\": the server does not tell who locks a row",
            subject->name);
    }
}
