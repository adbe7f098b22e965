/* SPDX-License-Identifier: MIT */
/* sqlite_row.c - the strategy row: a byte of the side file, held by the connection
 * (sqlite_byte.c). SQLite itself is asked for tokens only. */
#include "sqlite_byte.h"
#include "sqlite_steps.h"

#include "sqlite_clock.h"

/* Every name has its byte: nothing has to be made first, and no take answers UNSEEDED. */
dblock_status sqlite_row_seed(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, struct dblock_answer *answer, struct dblock_error *reterr)
{
    (void)connection;
    (void)call;
    (void)subject;
    (void)reterr;
    answer->now_us = sqlite_clock_us();
    answer->outcome = DBLOCK_ANSWER_YES;
    return DBLOCK_OK;
}

dblock_status sqlite_row_take(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_take *take, struct dblock_grant *holder, struct dblock_answer *answer,
    struct dblock_error *reterr)
{
    return sqlite_byte_take(connection, call, DBLOCK_ROW, take, holder, answer, reterr);
}

dblock_status sqlite_row_drop(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, struct dblock_answer *answer, struct dblock_error *reterr)
{
    (void)call;
    (void)reterr;
    return sqlite_byte_drop(connection, DBLOCK_ROW, subject, answer);
}

dblock_status sqlite_row_prove(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, struct dblock_answer *answer, struct dblock_error *reterr)
{
    (void)call;
    (void)reterr;
    return sqlite_byte_prove(connection, DBLOCK_ROW, subject, answer);
}

dblock_status sqlite_row_draw(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, struct dblock_answer *answer, struct dblock_error *reterr)
{
    return sqlite_byte_draw(connection, call, DBLOCK_ROW, subject, answer, reterr);
}
