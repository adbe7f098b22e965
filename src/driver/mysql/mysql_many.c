/* SPDX-License-Identifier: MIT */
/* mysql_many.c - several names of lease or insert at once: one statement takes them, one tells what
 * came of it. Why that is safe: sql/many.sql. */
#include "mysql_hold.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mysql_bell.h"
#include "mysql_call.h"
#include "mysql_connection.h"
#include "mysql_error.h"
#include "mysql_grant.h"
#include "mysql_sql.h"
#include "mysql_target.h"
#include "mysql_text.h"

enum { /* what a look says of a name */
    STATE_FREE = 0,
    STATE_MINE = 1,
    STATE_HELD = 2,
    STATE_ENDED = 3
};

/* Hex digits are two bytes each; a take has the names in four places. */
#define ROW_SIZE (2 * DBLOCK_NAME_MAX + 2 * DBLOCK_ID_SIZE + 80)
#define LIST_SIZE ((size_t)DBLOCK_MANY_MAX * ROW_SIZE)
#define SQL_SIZE (4 * LIST_SIZE + 8192)

struct attempt {
    const struct mysql_hold *hold;
    struct dblock_connection *connection;
    const struct dblock_call *call;
    const struct dblock_take *terms;
    const struct dblock_many *many;
    char prefix[DBLOCK_ID_SIZE + 16]; /* of the gates of lines, with the strategy's letter */
    char *wanted, *names, *owners;    /* lists of the statements */
    char *template, *sql;
    /* of the last look */
    int states[DBLOCK_MANY_MAX];
    int has_line[DBLOCK_MANY_MAX];
    int is_in_force[DBLOCK_MANY_MAX];
    int64_t now_us, my_end_us; /* 0: gone */
};

static const struct mysql_literal none = { MYSQL_LITERAL_BYTES, 0, NULL, 0 };

static struct mysql_literal bytes(const void *data, size_t size)
{
    return (struct mysql_literal) { MYSQL_LITERAL_BYTES, 0, data, size };
}

static struct mysql_literal number(uint64_t value)
{
    return (struct mysql_literal) { MYSQL_LITERAL_NUMBER, value, NULL, 0 };
}

static struct mysql_literal id_or_null(const unsigned char *id)
{
    return id != NULL ? bytes(id, DBLOCK_ID_SIZE) : none;
}

static int make_lists(struct attempt *attempt)
{
    const struct dblock_many *many = attempt->many;
    size_t n_wanted = 0, n_names = 0, n_owners = 0;
    struct mysql_literal literals[3];
    size_t i;

    for (i = 0; i < many->n_names; ++i) {
        literals[0] = number(i);
        literals[1] = bytes(many->subjects[i].name, many->subjects[i].name_size);
        literals[2] = bytes(many->owners[i], DBLOCK_ID_SIZE);
        if (!mysql_text_fill(attempt->wanted + n_wanted, LIST_SIZE - n_wanted,
                i == 0 ? "SELECT ? AS place, ? AS name, ? AS owner" : " UNION ALL SELECT ?, ?, ?",
                literals, 3) ||
            !mysql_text_fill(attempt->names + n_names, LIST_SIZE - n_names, i == 0 ? "?" : ", ?",
                &literals[1], 1) ||
            !mysql_text_fill(attempt->owners + n_owners, LIST_SIZE - n_owners,
                i == 0 ? "?" : ", ?", &literals[2], 1))
            return 0;
        n_wanted += strlen(attempt->wanted + n_wanted);
        n_names += strlen(attempt->names + n_names);
        n_owners += strlen(attempt->owners + n_owners);
    }
    return 1;
}

/* 1: the table, and the lists in place of their marks. Lists hold no mark themselves. */
static int expand(struct attempt *attempt, const char *text)
{
    static const char table[] = "dblock_lease", wanted[] = "@WANTED", names[] = "@NAMES",
                      owners[] = "@OWNERS";
    char *target = attempt->template;
    size_t left = SQL_SIZE;

    while (*text != 0) {
        const char *piece = NULL;
        size_t size;

        if (strncmp(text, table, sizeof table - 1) == 0) {
            piece = attempt->hold->strategy == DBLOCK_INSERT ? "dblock_insert" : table;
            text += sizeof table - 1;
        } else if (strncmp(text, wanted, sizeof wanted - 1) == 0) {
            piece = attempt->wanted;
            text += sizeof wanted - 1;
        } else if (strncmp(text, names, sizeof names - 1) == 0) {
            piece = attempt->names;
            text += sizeof names - 1;
        } else if (strncmp(text, owners, sizeof owners - 1) == 0) {
            piece = attempt->owners;
            text += sizeof owners - 1;
        }
        size = piece != NULL ? strlen(piece) : 1;
        if (size >= left)
            return 0;
        memcpy(target, piece != NULL ? piece : text, size);
        text += piece == NULL;
        target += size;
        left -= size;
    }
    *target = 0;
    return 1;
}

/* Into attempt->sql. 0: does not fit, and the error is noted. */
static int prepare(struct attempt *attempt, const char *text, const struct mysql_literal *literals,
    size_t n_literals)
{
    if (expand(attempt, text) &&
        mysql_text_fill(attempt->sql, SQL_SIZE, attempt->template, literals, n_literals))
        return 1;
    mysql_note_error(attempt->connection, 2020, "HY000", "a statement that is too long", 0);
    return 0;
}

/* 0 or the native code. `*ret_has_bells`: those of all of them are locked now. */
static unsigned int run_take(struct attempt *attempt, uint64_t *ret_n_rows, int *ret_has_bells)
{
    const struct dblock_take *terms = attempt->terms;
    const struct dblock_target *target = attempt->connection->target;
    struct dblock_connection *connection = attempt->connection;
    const struct mysql_literal session = id_or_null(terms->session);
    const struct mysql_literal not_after = number((uint64_t)terms->not_after_us);
    const struct mysql_bytes *prefix = &connection->in.bytes[MYSQL_B_PREFIX];
    const int has_bells = mysql_bell_offer_many(connection, attempt->many->n_names);
    char bell[sizeof attempt->prefix] = "";
    const struct mysql_literal literals[] = { session, number(terms->ttl_us),
        number((uint64_t)target->pid), number((uint64_t)has_bells), bytes(bell, prefix->size + 1),
        bytes(target->client_host, strlen(target->client_host)),
        bytes(terms->label, strlen(terms->label)), session, session, not_after,
        number(!(terms->heeds_line && connection->has_line)),
        bytes(attempt->prefix, strlen(attempt->prefix)), not_after };
    unsigned int code;

    (void)snprintf(bell, sizeof bell, "%.*sb", (int)prefix->size, prefix->data);
    if (!prepare(attempt, mysql_sql_many_take, literals, sizeof literals / sizeof *literals))
        return connection->error_code;
    code = mysql_text_run(connection, attempt->sql, attempt->call, 0, 1, NULL);
    if (code == 0)
        *ret_n_rows = (uint64_t)mysql_affected_rows(connection->mysql);
    *ret_has_bells = has_bells && (code != 0 || mysql_has_selected(connection));
    return code;
}

static int64_t read_number(const char *text)
{
    return text != NULL ? mysql_bound(strtoll(text, NULL, 10)) : 0;
}

static void read_look(struct attempt *attempt, MYSQL_RES *rows)
{
    MYSQL_ROW row;
    size_t place;

    while ((row = mysql_call_row(rows, 7)) != NULL) {
        place = (size_t)read_number(row[0]);
        if (place >= attempt->many->n_names)
            continue;
        attempt->states[place] = (int)read_number(row[1]);
        if (attempt->states[place] == STATE_MINE)
            attempt->many->tokens[place] = read_number(row[2]);
        attempt->has_line[place] = read_number(row[3]) != 0;
        attempt->now_us = read_number(row[4]);
        attempt->my_end_us = read_number(row[5]);
        attempt->is_in_force[place] = read_number(row[6]) != 0;
    }
}

/* 0 or the native code. */
static unsigned int run_look(struct attempt *attempt)
{
    struct dblock_connection *connection = attempt->connection;
    const struct mysql_literal literals[] = {
        number(attempt->terms->heeds_line && connection->has_line),
        bytes(attempt->prefix, strlen(attempt->prefix)), id_or_null(attempt->terms->session) };
    MYSQL_RES *rows = NULL;

    if (!prepare(attempt, mysql_sql_many_look, literals, sizeof literals / sizeof *literals) ||
        mysql_check_sendable(connection, attempt->call) != 0)
        return connection->error_code;
    if (mysql_call_send(connection->mysql, attempt->sql, attempt->call) != 0 ||
        mysql_call_answer(connection->mysql, attempt->call, 0, &rows) != 0 || rows == NULL) {
        mysql_note_error(connection,
            mysql_errno(connection->mysql) != 0 ? mysql_errno(connection->mysql) : 2013,
            mysql_sqlstate(connection->mysql), mysql_error(connection->mysql), 0);
        return connection->error_code;
    }
    read_look(attempt, rows);
    mysql_free_result(rows);
    return 0;
}

/* A conflict is an answer; the rest is a failure. */
static dblock_status fail(
    struct attempt *attempt, struct dblock_answer *answer, struct dblock_error *reterr)
{
    enum mysql_class class_ = mysql_error_class(attempt->connection->error_code);

    if (class_ == MYSQL_CLASS_CONFLICT || class_ == MYSQL_CLASS_LOCKED ||
        class_ == MYSQL_CLASS_TIMEOUT) {
        answer->outcome = DBLOCK_ANSWER_AGAIN;
        return DBLOCK_OK;
    }
    return mysql_fail(attempt->connection, reterr, "cannot take %s \"%s\"", attempt->hold->what,
        attempt->many->subjects[0].name);
}

static size_t count(const struct attempt *attempt, int state)
{
    size_t n = 0;
    size_t i;

    for (i = 0; i < attempt->many->n_names; ++i)
        n += attempt->states[i] == state;
    return n;
}

static size_t find(const struct attempt *attempt, int state)
{
    size_t i = 0;

    while (i < attempt->many->n_names && attempt->states[i] != state)
        ++i;
    return i;
}

/* A part of them was taken, as somebody was faster with another one. */
static dblock_status give_part_back(
    struct attempt *attempt, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct dblock_answer dropped;
    dblock_status status = DBLOCK_OK;
    size_t i;

    for (i = 0; i < attempt->many->n_names && status == DBLOCK_OK; ++i) {
        if (attempt->states[i] != STATE_MINE)
            continue;
        memset(&dropped, 0, sizeof dropped);
        status = mysql_hold_drop(attempt->hold, attempt->connection, attempt->call,
            &attempt->many->subjects[i], attempt->many->owners[i], 0, &dropped, reterr);
        if (status == DBLOCK_OK && dropped.outcome != DBLOCK_ANSWER_YES &&
            dropped.outcome != DBLOCK_ANSWER_NO)
            status = dblock_error_set(reterr, DBLOCK_E_UNCERTAIN, NULL,
                "cannot take %s \"%s\": others stand on a part of them", attempt->hold->what,
                attempt->many->subjects[i].name);
    }
    answer->outcome = DBLOCK_ANSWER_AGAIN;
    /* what is left of them is found and given back by whoever settles this */
    return status < 0 ? DBLOCK_E_UNCERTAIN : status;
}

static dblock_status tell_holder(struct attempt *attempt, size_t place, size_t *ret_place,
    struct dblock_grant *holder, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct dblock_connection *connection = attempt->connection;
    const struct dblock_subject *subject = &attempt->many->subjects[place];
    size_t i;

    *ret_place = place;
    answer->outcome = DBLOCK_ANSWER_BUSY;
    for (i = 0; i < attempt->many->n_names; ++i)
        if (attempt->states[i] == STATE_HELD || attempt->has_line[i])
            attempt->many->outcomes[i] = DBLOCK_ANSWER_BUSY;
    if (mysql_hold_read(attempt->hold, connection, attempt->call, subject) != 0)
        return fail(attempt, answer, reterr);
    (void)mysql_grant_is_in_force(connection, &answer->remaining_us);
    if (!mysql_out_bytes(connection, MYSQL_B_OWNER)->is_null)
        mysql_grant_fill_holder(connection, attempt->hold->strategy, subject, holder);
    return DBLOCK_OK;
}

/* Ends the expired session and the grant, unless somebody stands on the row: `*ret_is_pinned`.
 * 0 or the native code. */
static unsigned int free_ended(struct attempt *attempt, size_t place, int *ret_is_pinned)
{
    struct dblock_connection *connection = attempt->connection;
    const struct dblock_subject *subject = &attempt->many->subjects[place];
    const struct mysql_bytes *session = mysql_out_bytes(connection, MYSQL_B_SESSION);
    struct mysql_literal literals[2];
    int has_row;

    if (mysql_hold_read(attempt->hold, connection, attempt->call, subject) != 0)
        return connection->error_code;
    if (!session->is_null && !mysql_out_is_null(connection, MYSQL_N_SESSION_END)) {
        mysql_in_bytes(connection, MYSQL_B_SESSION, session->data, DBLOCK_ID_SIZE);
        if (mysql_run(connection, MYSQL_SESSION_END_EXPIRED, attempt->call, NULL) != 0)
            return connection->error_code;
    }
    literals[0] = bytes(subject->name, subject->name_size);
    literals[1] = number((uint64_t)mysql_out_number(connection, MYSQL_N_TOKEN));
    mysql_in_number(connection, MYSQL_N_TOKEN, mysql_out_number(connection, MYSQL_N_TOKEN));
    if (mysql_run_row(connection, mysql_hold_statement(attempt->hold, MYSQL_LEASE_PROBE),
            attempt->call, &has_row) != 0) {
        *ret_is_pinned = mysql_error_class(connection->error_code) == MYSQL_CLASS_LOCKED &&
            !mysql_hold_is_lock_brief(attempt->hold, connection, attempt->call);
        return connection->error_code;
    }
    if (!has_row || !prepare(attempt, mysql_sql_many_free, literals, 2))
        return has_row ? connection->error_code : 0;
    return mysql_text_run(connection, attempt->sql, attempt->call, 0, 0, NULL);
}

/* Nothing is taken: why? 0 as outcome: ended grants are out of the way now. */
static dblock_status explain(struct attempt *attempt, size_t *ret_place,
    struct dblock_grant *holder, struct dblock_answer *answer, struct dblock_error *reterr)
{
    size_t n_names = attempt->many->n_names;
    int is_pinned = 0;
    size_t i;

    if (attempt->terms->session != NULL && attempt->my_end_us <= attempt->now_us) {
        answer->outcome = DBLOCK_ANSWER_SESSION;
        return DBLOCK_OK;
    }
    if (find(attempt, STATE_HELD) < n_names)
        return tell_holder(
            attempt, find(attempt, STATE_HELD), ret_place, holder, answer, reterr);
    if (attempt->now_us > attempt->terms->not_after_us) {
        answer->outcome = DBLOCK_ANSWER_LATE;
        return DBLOCK_OK;
    }
    for (i = 0; i < n_names; ++i)
        if (attempt->has_line[i])
            return tell_holder(attempt, i, ret_place, holder, answer, reterr);
    if (count(attempt, STATE_ENDED) == 0) {
        answer->outcome = DBLOCK_ANSWER_AGAIN;
        return DBLOCK_OK;
    }
    for (i = 0; i < n_names; ++i) {
        if (attempt->states[i] != STATE_ENDED || free_ended(attempt, i, &is_pinned) == 0)
            continue;
        if (!is_pinned)
            return fail(attempt, answer, reterr);
        *ret_place = i;
        answer->outcome = DBLOCK_ANSWER_PINNED;
        answer->remaining_us = DBLOCK_NO_END;
        if (holder != NULL) {
            mysql_grant_fill_holder(attempt->connection, attempt->hold->strategy,
                &attempt->many->subjects[i], holder);
            holder->is_pinned = 1;
        }
        return DBLOCK_OK;
    }
    return DBLOCK_OK;
}

/* Those of what was not taken are of no use. */
static void note_bells(const struct attempt *attempt, int has_bells)
{
    size_t i;

    for (i = 0; has_bells && i < attempt->many->n_names; ++i)
        mysql_bell_locked(
            attempt->connection, attempt->many->owners[i], attempt->states[i] == STATE_MINE);
}

static dblock_status take_once(struct attempt *attempt, size_t *ret_place,
    struct dblock_grant *holder, struct dblock_answer *answer, struct dblock_error *reterr)
{
    uint64_t n_rows = 0;
    size_t n_mine;
    int has_bells = 0;

    answer->outcome = 0;
    memset(attempt->states, 0, sizeof attempt->states);
    if (run_take(attempt, &n_rows, &has_bells) != 0) {
        note_bells(attempt, has_bells);
        return fail(attempt, answer, reterr);
    }
    if (run_look(attempt) != 0) {
        note_bells(attempt, has_bells);
        if (n_rows == 0)
            return fail(attempt, answer, reterr);
        (void)mysql_fail(attempt->connection, reterr, "cannot take %s \"%s\"", attempt->hold->what,
            attempt->many->subjects[0].name);
        if (reterr != NULL)
            reterr->status = DBLOCK_E_UNCERTAIN;
        return DBLOCK_E_UNCERTAIN; /* taken, and nobody knows what */
    }
    answer->now_us = attempt->now_us;
    if (attempt->my_end_us > attempt->now_us)
        answer->session_remaining_us = (uint64_t)(attempt->my_end_us - attempt->now_us);
    note_bells(attempt, has_bells);
    n_mine = count(attempt, STATE_MINE);
    if (n_mine == attempt->many->n_names) {
        answer->outcome = DBLOCK_ANSWER_YES;
        answer->remaining_us = attempt->terms->session != NULL ? answer->session_remaining_us
                                                               : attempt->terms->ttl_us;
        return DBLOCK_OK;
    }
    return n_mine > 0 ? give_part_back(attempt, answer, reterr)
                      : explain(attempt, ret_place, holder, answer, reterr);
}

/* 1, or `*ret_status` says why not. */
static int begin(struct attempt *attempt, dblock_status *ret_status, struct dblock_error *reterr)
{
    const struct mysql_bytes *prefix = &attempt->connection->in.bytes[MYSQL_B_PREFIX];

    (void)snprintf(attempt->prefix, sizeof attempt->prefix, "%.*s%s", (int)prefix->size,
        prefix->data, attempt->hold->strategy == DBLOCK_INSERT ? "i" : "l");
    attempt->wanted = malloc(3 * LIST_SIZE + 2 * SQL_SIZE);
    if (attempt->wanted == NULL) {
        *ret_status = dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "out of memory");
        return 0;
    }
    attempt->names = attempt->wanted + LIST_SIZE;
    attempt->owners = attempt->names + LIST_SIZE;
    attempt->template = attempt->owners + LIST_SIZE;
    attempt->sql = attempt->template + SQL_SIZE;
    if (make_lists(attempt))
        return 1;
    *ret_status = dblock_error_set(
        reterr, DBLOCK_E_ARGUMENT, NULL, "the names are too long for one statement");
    return 0;
}

dblock_status mysql_hold_take_many(const struct mysql_hold *hold,
    struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_take *terms, const struct dblock_many *many, size_t *ret_place,
    struct dblock_grant *holder, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct attempt attempt = { .hold = hold, .connection = connection, .call = call,
        .terms = terms, .many = many };
    dblock_status status = DBLOCK_OK;

    if (begin(&attempt, &status, reterr)) {
        status = take_once(&attempt, ret_place, holder, answer, reterr);
        if (status == DBLOCK_OK && answer->outcome == 0) {
            mysql_bell_settle(connection, call);
            status = take_once(&attempt, ret_place, holder, answer, reterr);
        }
        if (status == DBLOCK_OK && answer->outcome == 0)
            answer->outcome = DBLOCK_ANSWER_AGAIN;
    }
    free(attempt.wanted);
    mysql_bell_settle(connection, call);
    return status;
}

/* Can one statement give all of them back, and ring? */
static int can_drop_at_once(
    struct dblock_connection *connection, const struct dblock_many *many)
{
    int can = connection->is_mariadb && !connection->is_multi_writer && many->n_names > 1;
    size_t i;

    for (i = 0; can && i < many->n_names; ++i)
        can = many->outcomes[i] == 0 && mysql_bell_find(connection, many->owners[i]);
    return can;
}

/* 0 or the native code. */
static unsigned int drop_at_once(struct attempt *attempt)
{
    struct dblock_connection *connection = attempt->connection;
    const struct dblock_many *many = attempt->many;
    const struct mysql_bytes *prefix = &connection->in.bytes[MYSQL_B_PREFIX];
    char bell[sizeof attempt->prefix] = "";
    const struct mysql_literal literal = bytes(bell, prefix->size + 1);
    size_t i;

    (void)snprintf(bell, sizeof bell, "%.*sb", (int)prefix->size, prefix->data);
    if (run_look(attempt) != 0 || !prepare(attempt, mysql_sql_many_drop, &literal, 1) ||
        mysql_text_run(connection, attempt->sql, attempt->call, 0, 1, NULL) != 0)
        return connection->error_code;
    for (i = 0; i < many->n_names; ++i)
        if (attempt->states[i] == STATE_MINE && attempt->is_in_force[i]) {
            many->outcomes[i] = DBLOCK_ANSWER_YES;
            mysql_bell_rung(connection, many->owners[i]);
        } else {
            many->outcomes[i] = DBLOCK_ANSWER_NO;
            mysql_bell_mark(connection, many->owners[i]);
        }
    return 0;
}

static dblock_status drop_each(const struct mysql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_many *many, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    dblock_status status = DBLOCK_OK;
    size_t i;

    for (i = 0; i < many->n_names && status == DBLOCK_OK; ++i) {
        if (many->outcomes[i] == DBLOCK_ANSWER_YES || many->outcomes[i] == DBLOCK_ANSWER_NO)
            continue;
        answer->outcome = 0;
        status = mysql_hold_drop(hold, connection, call, &many->subjects[i], many->owners[i], 0,
            answer, reterr);
        if (status == DBLOCK_OK)
            many->outcomes[i] = answer->outcome;
    }
    answer->outcome = 0; /* the library looks for the worst */
    return status;
}

dblock_status mysql_hold_drop_many(const struct mysql_hold *hold,
    struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_many *many, struct dblock_answer *answer, struct dblock_error *reterr)
{
    const struct dblock_take terms = { .session = NULL };
    struct attempt attempt = { .hold = hold, .connection = connection, .call = call,
        .terms = &terms, .many = many };
    dblock_status status = DBLOCK_OK;
    unsigned int code = 0;

    if (!can_drop_at_once(connection, many))
        return drop_each(hold, connection, call, many, answer, reterr);
    if (begin(&attempt, &status, reterr))
        code = drop_at_once(&attempt);
    free(attempt.wanted);
    if (status != DBLOCK_OK)
        return status;
    if (code == 0) {
        answer->now_us = attempt.now_us;
        mysql_bell_settle(connection, call);
        return DBLOCK_OK;
    }
    /* somebody stands on one of them, or there was a conflict: nothing was done */
    if (!connection->is_dead && mysql_error_class(code) != MYSQL_CLASS_REFUSED &&
        mysql_error_class(code) != MYSQL_CLASS_GONE)
        return drop_each(hold, connection, call, many, answer, reterr);
    return mysql_fail(connection, reterr, "cannot release %s \"%s\"", hold->what,
        many->subjects[0].name);
}
