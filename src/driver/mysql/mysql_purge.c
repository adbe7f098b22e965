/* SPDX-License-Identifier: MIT */
/* mysql_purge.c - removes a batch of what nobody needs: sessions that died an hour ago,
 * rows that have been free for an hour, after their tokens have raised the floor.
 *
 * Candidates are read without locks; each DELETE judges its row again and waits for
 * nobody. Why no token can go back: head of sql/lease.sql. */
#include "mysql_observe.h"

#include <stdlib.h>
#include <string.h>

#include "mysql_advisory.h"
#include "mysql_connection.h"
#include "mysql_error.h"

/* One row that a purge will delete. */
struct candidate {
    int64_t token;
    int strategy;
    struct mysql_bytes name; /* or a session's id */
};

/* Reads candidates; the floor of their strategy then covers them. 0 or a native code. */
static unsigned int read_candidates(struct dblock_connection *connection,
    const struct dblock_call *call, enum mysql_statement_id id, int strategy,
    struct candidate *candidates, size_t *ret_n)
{
    int64_t highest[5] = { 0 };
    size_t n = 0;
    int i;

    mysql_in_number(connection, MYSQL_N_LIMIT, MYSQL_BATCH_MAX);
    if (mysql_run_rows(connection, id, call) != 0)
        return connection->error_code;
    while (n < MYSQL_BATCH_MAX && mysql_fetch(connection, id)) {
        struct candidate *candidate = &candidates[n++];

        candidate->strategy = strategy != 0
            ? strategy
            : (int)mysql_out_number(connection, MYSQL_N_STRATEGY) & 7;
        candidate->token = mysql_out_number(connection, MYSQL_N_TOKEN);
        candidate->name = *mysql_out_bytes(
            connection, id == MYSQL_SESSION_PURGE_CANDIDATES ? MYSQL_B_SESSION : MYSQL_B_NAME);
        if (candidate->strategy < 5 && candidate->token > highest[candidate->strategy])
            highest[candidate->strategy] = candidate->token;
    }
    mysql_end_rows(connection, id);
    *ret_n = n;
    if (id == MYSQL_SESSION_PURGE_CANDIDATES || id == MYSQL_ROW_PURGE_CANDIDATES)
        return 0; /* these carry no tokens */
    for (i = 1; i < 5; ++i) {
        if (highest[i] == 0)
            continue;
        mysql_in_number(connection, MYSQL_N_TOKEN, highest[i]);
        mysql_in_number(connection, MYSQL_N_STRATEGY, i);
        if (mysql_run(connection, MYSQL_FLOOR_RAISE, call, NULL) != 0)
            return connection->error_code;
    }
    return 0;
}

/* Whether a DELETE of the candidate would wait, where DELETE cannot be told not to. */
static int is_locked(struct dblock_connection *connection, const struct dblock_call *call,
    enum mysql_statement_id delete_id)
{
    enum mysql_statement_id probe = delete_id == MYSQL_LEASE_PURGE ? MYSQL_LEASE_PROBE
        : delete_id == MYSQL_INSERT_PURGE                          ? MYSQL_INSERT_PROBE
        : delete_id == MYSQL_ROW_PURGE                             ? MYSQL_ROW_PURGE_PROBE
        : delete_id == MYSQL_TOKEN_PURGE || delete_id == MYSQL_TOKEN_KEEP ? MYSQL_TOKEN_PROBE
                                                                   : MYSQL_CLOCK;
    int has_row;

    if (connection->is_mariadb || probe == MYSQL_CLOCK)
        return 0;
    return mysql_run_row(connection, probe, call, &has_row) != 0;
}

/* Whether somebody has the row or advisory lock of that token. 0, or the native code. */
static unsigned int find_held(struct dblock_connection *connection, const struct dblock_call *call,
    const struct candidate *candidate, int *ret_is_held)
{
    char name[sizeof candidate->name.data + 1];
    struct dblock_subject subject = { name, candidate->name.size, 0, 0 };
    char *end = NULL;
    int has_row;
    unsigned int code;

    if (candidate->strategy == DBLOCK_ROW) {
        code = mysql_run_row(connection, MYSQL_ROW_PURGE_PROBE, call, &has_row);
        *ret_is_held = code != 0 && mysql_error_class(code) == MYSQL_CLASS_LOCKED;
        return *ret_is_held ? 0 : code;
    }
    memcpy(name, candidate->name.data, candidate->name.size);
    name[candidate->name.size] = 0;
    code = mysql_advisory_ask(connection, call, &subject);
    *ret_is_held = code == 0 && !mysql_out_is_null(connection, MYSQL_N_ANSWER);
    if (code != 0 || *ret_is_held || name[0] != '#')
        return code;
    subject.advisory_id = strtoll(name + 1, &end, 10); /* perhaps the number of one */
    subject.has_advisory_id = *end == 0;
    if (subject.has_advisory_id) {
        code = mysql_advisory_ask(connection, call, &subject);
        *ret_is_held = code == 0 && !mysql_out_is_null(connection, MYSQL_N_ANSWER);
    }
    return code;
}

static void put_candidate(
    struct dblock_connection *connection, const struct candidate *candidate)
{
    mysql_in_bytes(connection, MYSQL_B_NAME, candidate->name.data, candidate->name.size);
    mysql_in_bytes(connection, MYSQL_B_SESSION, candidate->name.data, candidate->name.size);
    mysql_in_number(connection, MYSQL_N_STRATEGY, candidate->strategy);
    mysql_in_number(connection, MYSQL_N_TOKEN, candidate->token);
}

static unsigned int purge_one(struct dblock_connection *connection, const struct dblock_call *call,
    enum mysql_statement_id read_id, enum mysql_statement_id delete_id, int strategy,
    struct dblock_answer *answer)
{
    struct candidate candidates[MYSQL_BATCH_MAX];
    struct mysql_result result;
    size_t n = 0;
    size_t i;

    if (read_candidates(connection, call, read_id, strategy, candidates, &n) != 0)
        return connection->error_code;
    for (i = 0; i < n; ++i) {
        enum mysql_statement_id id = delete_id;
        int is_held = 0;

        put_candidate(connection, &candidates[i]);
        if (delete_id == MYSQL_TOKEN_PURGE) {
            if (find_held(connection, call, &candidates[i], &is_held) != 0)
                return connection->error_code;
            put_candidate(connection, &candidates[i]);
        }
        if (is_held)
            id = MYSQL_TOKEN_KEEP;
        if (!is_locked(connection, call, id) && mysql_run(connection, id, call, &result) == 0) {
            if (!is_held)
                answer->n_rows += result.affected_rows;
            continue;
        }
        switch (mysql_error_class(connection->error_code)) {
        case MYSQL_CLASS_LOCKED: /* another time */
        case MYSQL_CLASS_CONFLICT:
            continue;
        case MYSQL_CLASS_REFUSED:
        case MYSQL_CLASS_TIMEOUT:
        case MYSQL_CLASS_GONE:
            return connection->error_code;
        }
    }
    return 0;
}

dblock_status mysql_observe_purge(struct dblock_connection *connection,
    const struct dblock_call *call, struct dblock_answer *answer, struct dblock_error *reterr)
{
    answer->outcome = DBLOCK_ANSWER_YES;
    if (purge_one(connection, call, MYSQL_SESSION_PURGE_CANDIDATES, MYSQL_SESSION_END_EXPIRED, 0,
            answer) != 0 ||
        purge_one(connection, call, MYSQL_LEASE_PURGE_CANDIDATES, MYSQL_LEASE_PURGE, DBLOCK_LEASE,
            answer) != 0 ||
        purge_one(connection, call, MYSQL_INSERT_PURGE_CANDIDATES, MYSQL_INSERT_PURGE,
            DBLOCK_INSERT, answer) != 0 ||
        purge_one(connection, call, MYSQL_TOKEN_PURGE_CANDIDATES, MYSQL_TOKEN_PURGE, 0, answer) !=
            0 ||
        purge_one(connection, call, MYSQL_ROW_PURGE_CANDIDATES, MYSQL_ROW_PURGE, DBLOCK_ROW,
            answer) != 0) {
        enum mysql_class class_ = mysql_error_class(connection->error_code);

        if (class_ == MYSQL_CLASS_CONFLICT || class_ == MYSQL_CLASS_LOCKED) {
            answer->outcome = DBLOCK_ANSWER_AGAIN;
            return DBLOCK_OK;
        }
        return mysql_fail(connection, reterr, "cannot purge");
    }
    return DBLOCK_OK;
}
