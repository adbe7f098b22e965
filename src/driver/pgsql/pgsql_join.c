/* SPDX-License-Identifier: MIT */
/* pgsql_join.c - row and advisory locks in a transaction of the application. The statements, and
 * why they are safe, are in sql/joined.sql; what is done around them in src/core/join.c. */
#include <dblock/pgsql.h>

#include "pgsql_application.h"
#include "pgsql_line.h"
#include "pgsql_target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Holding no snapshot for longer would be better still (pgsql_line.c), but see joined_row_wait. */
#define SLICE_US 900000u
#define PAST_DEADLOCK_US 100000u
#define EARLY_US 20000u

enum { TEXT_MAX = 8192 };

struct part {
    const char *mark;
    const char *value;
};

/* 0, or it does not fit. */
static int fill(char *text, size_t size, const char *format, const struct part *parts, size_t n)
{
    char *end = text + size - 1;
    const char *mark;
    size_t i, step;

    while ((mark = strchr(format, '@')) != NULL) {
        step = (size_t)(mark - format);
        for (i = 0; i < n && strncmp(mark, parts[i].mark, strlen(parts[i].mark)) != 0;)
            ++i;
        if (i == n) /* it stands for itself */
            ++step;
        if (step >= (size_t)(end - text))
            return -1;
        memcpy(text, format, step);
        text += step;
        format += step;
        if (i == n)
            continue;
        step = strlen(parts[i].value);
        if (step >= (size_t)(end - text))
            return -1;
        memcpy(text, parts[i].value, step);
        text += step;
        format += strlen(parts[i].mark);
    }
    step = strlen(format);
    if (step > (size_t)(end - text))
        return -1;
    memcpy(text, format, step + 1);
    return 0;
}

static void write_hex(char *hex, const struct dblock_subject *subject)
{
    static const char digits[] = "0123456789abcdef";
    size_t i;

    for (i = 0; i < subject->name_size; ++i) {
        *hex++ = digits[(unsigned char)subject->name[i] >> 4];
        *hex++ = digits[(unsigned char)subject->name[i] & 15];
    }
    *hex = 0;
}

/* One of the statements of sql/joined.sql, and its result. */
static dblock_status ask(const struct dblock_joining *joining, int statement, uint64_t slice_us,
    int cancel_fd, PGresult **ret_result, struct dblock_error *reterr)
{
    const struct pgsql_application application = { joining->target, joining->connection, "lock",
        joining->subject.name, "GRANT SELECT, UPDATE ON dblock_row TO this role",
        joining->io_timeout_us + slice_us };
    char hex[2 * DBLOCK_NAME_MAX + 1], high[16] = "", low[16] = "", id[24] = "NULL", slice[24] = "";
    const struct part parts[] = { { "@NAME@", hex }, { "@ID@", id }, { "@HIGH@", high },
        { "@LOW@", low }, { "@SLICE@", slice } };
    char text[TEXT_MAX];
    uint64_t key;

    write_hex(hex, &joining->subject);
    if (joining->subject.has_advisory_id) /* in quotes: the smallest one has no literal */
        (void)snprintf(id, sizeof id, "'%lld'", (long long)joining->subject.advisory_id);
    if (slice_us > 0) {
        key = pgsql_line_key(joining->target, DBLOCK_ROW, &joining->subject);
        (void)snprintf(high, sizeof high, "%ld", (long)(int32_t)(key >> 32));
        (void)snprintf(low, sizeof low, "%ld", (long)(int32_t)key);
        (void)snprintf(slice, sizeof slice, "%llu", (unsigned long long)(slice_us / 1000 + 1));
    }
    if (fill(text, sizeof text, joining->target->texts[statement], parts,
            sizeof parts / sizeof parts[0]) != 0)
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED, NULL,
            "cannot lock \"%s\": the name of the schema is too long", joining->subject.name);
    return pgsql_application_run(&application, text, cancel_fd, ret_result, reterr);
}

static int is_true(const PGresult *result, int column)
{
    return PQntuples(result) == 1 && pgsql_get_letter(result, 0, column) == 't';
}

static dblock_status check(void *connection, const char *name, struct dblock_error *reterr)
{
    return pgsql_application_check(connection, "lock", name, reterr);
}

static dblock_status look_at_row(
    const struct dblock_joining *joining, int *ret_outcome, struct dblock_error *reterr)
{
    PGresult *result;
    int is_there, is_read_committed;
    dblock_status status = ask(joining, STATEMENT_JOINED_ROW_LOOK, 0, -1, &result, reterr);

    if (status != DBLOCK_OK)
        return status;
    is_there = is_true(result, 0);
    is_read_committed = is_true(result, 1);
    PQclear(result);
    if (!is_there && joining->is_seeded && !is_read_committed)
        return DBLOCK_STALE_SNAPSHOT;
    *ret_outcome = is_there ? DBLOCK_ANSWER_BUSY : DBLOCK_ANSWER_UNSEEDED;
    return DBLOCK_OK;
}

static dblock_status try_row(
    const struct dblock_joining *joining, int *ret_outcome, struct dblock_error *reterr)
{
    PGresult *result;
    int is_locked;
    dblock_status status = ask(joining, STATEMENT_JOINED_ROW_TAKE, 0, -1, &result, reterr);

    if (status != DBLOCK_OK)
        return status;
    is_locked = PQntuples(result) == 1;
    PQclear(result);
    *ret_outcome = DBLOCK_ANSWER_YES;
    return is_locked ? DBLOCK_OK : look_at_row(joining, ret_outcome, reterr);
}

static dblock_status try_advisory(
    const struct dblock_joining *joining, int *ret_outcome, struct dblock_error *reterr)
{
    PGresult *result;
    dblock_status status = ask(joining, STATEMENT_JOINED_ADVISORY_TAKE, 0, -1, &result, reterr);

    if (status != DBLOCK_OK)
        return status;
    *ret_outcome = is_true(result, 0) ? DBLOCK_ANSWER_YES : DBLOCK_ANSWER_BUSY;
    if (PQgetisnull(result, 0, 0))
        status = dblock_error_set(reterr, DBLOCK_E_READ_ONLY, "connect to the primary",
            "cannot lock \"%s\": this server is a standby, and its locks exclude nobody elsewhere",
            joining->subject.name);
    PQclear(result);
    return status;
}

static uint64_t read_ms(const PGresult *result, int column)
{
    return PQgetisnull(result, 0, column) ? 0
                                          : strtoull(PQgetvalue(result, 0, column), NULL, 10);
}

/* How long one statement may wait, see joined_row_wait; and never so long that a limit of the
 * application ends it. */
static dblock_status find_slice(
    const struct dblock_joining *joining, uint64_t *ret_slice_us, struct dblock_error *reterr)
{
    PGresult *result;
    uint64_t deadlock_us, limit_us;
    dblock_status status = ask(joining, STATEMENT_JOINED_LIMITS, 0, -1, &result, reterr);

    if (status != DBLOCK_OK)
        return status;
    deadlock_us = read_ms(result, 0) * 1000;
    limit_us = read_ms(result, 1) * 1000;
    PQclear(result);
    *ret_slice_us =
        deadlock_us + PAST_DEADLOCK_US > SLICE_US ? deadlock_us + PAST_DEADLOCK_US : SLICE_US;
    if (limit_us > 0 && *ret_slice_us > limit_us / 4 * 3)
        *ret_slice_us = limit_us / 4 * 3;
    return DBLOCK_OK;
}

/* One slice. OK with YES, BUSY or UNSEEDED. */
static dblock_status wait_slice(const struct dblock_joining *joining, uint64_t slice_us,
    int cancel_fd, int *ret_outcome, struct dblock_error *reterr)
{
    int is_row = joining->strategy == DBLOCK_ROW;
    uint64_t begun_us = dblock_clock_us();
    PGresult *result;
    int is_held, is_read_committed;
    dblock_status status =
        ask(joining, is_row ? STATEMENT_JOINED_ROW_WAIT : STATEMENT_JOINED_ADVISORY_WAIT, slice_us,
            cancel_fd, &result, reterr);

    if (status != DBLOCK_OK)
        return status;
    is_held = is_true(result, 0);
    is_read_committed = PQntuples(result) == 1 && is_true(result, 1);
    PQclear(result);
    *ret_outcome = is_held ? DBLOCK_ANSWER_YES : DBLOCK_ANSWER_BUSY;
    if (is_held) /* what it reads is older than the end of whom it waited for */
        return is_read_committed ? DBLOCK_OK : DBLOCK_STALE_SNAPSHOT;
    if (dblock_clock_us() - begun_us + EARLY_US >= slice_us)
        return DBLOCK_OK;
    if (is_row) /* its row is gone, or it was cancelled */
        status = look_at_row(joining, ret_outcome, reterr);
    return status == DBLOCK_OK && *ret_outcome == DBLOCK_ANSWER_BUSY ? DBLOCK_CANCELLED : status;
}

static dblock_status take(const struct dblock_joining *joining, uint64_t wait_us, int cancel_fd,
    int *ret_outcome, struct dblock_error *reterr)
{
    uint64_t until_us = dblock_clock_us(), now_us = until_us, slice_us;
    dblock_status status;

    if (wait_us == 0)
        return joining->strategy == DBLOCK_ROW ? try_row(joining, ret_outcome, reterr)
                                               : try_advisory(joining, ret_outcome, reterr);
    until_us = wait_us < UINT64_MAX - now_us ? now_us + wait_us : UINT64_MAX;
    status = find_slice(joining, &slice_us, reterr);
    *ret_outcome = DBLOCK_ANSWER_BUSY;
    for (; status == DBLOCK_OK && *ret_outcome == DBLOCK_ANSWER_BUSY && now_us < until_us;
         now_us = dblock_clock_us())
        status = wait_slice(joining, until_us - now_us < slice_us ? until_us - now_us : slice_us,
            cancel_fd, ret_outcome, reterr);
    return status;
}

dblock_status dblock_pgsql_acquire_in(dblock_client *client, struct pg_conn *connection,
    const char *name, const struct dblock_options *options, dblock_lock **ret_lock,
    struct dblock_error *reterr)
{
    static const struct dblock_join_steps steps = { .check = check, .take = take };

    return dblock_join(
        client, dblock_pgsql_driver(), &steps, connection, name, options, ret_lock, reterr);
}
