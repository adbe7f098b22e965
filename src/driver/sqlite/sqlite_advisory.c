/* SPDX-License-Identifier: MIT */
/* sqlite_advisory.c - the strategy advisory: a byte of the side file, held by the connection
 * (sqlite_byte.c). SQLite itself is asked for tokens only. */
#include "sqlite_byte.h"
#include "sqlite_steps.h"

dblock_status sqlite_advisory_take(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    return sqlite_byte_take(connection, call, DBLOCK_ADVISORY, take, holder, answer, reterr);
}

dblock_status sqlite_advisory_drop(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    (void)call;
    (void)reterr;
    return sqlite_byte_drop(connection, DBLOCK_ADVISORY, subject, answer);
}

dblock_status sqlite_advisory_prove(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    (void)call;
    (void)reterr;
    return sqlite_byte_prove(connection, DBLOCK_ADVISORY, subject, answer);
}

/* Only while it is held here, so that a token always belongs to a grant. */
dblock_status sqlite_advisory_draw(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    (void)sqlite_byte_prove(connection, DBLOCK_ADVISORY, subject, answer);
    if (answer->outcome != DBLOCK_ANSWER_YES)
        return DBLOCK_OK;
    return sqlite_byte_draw(connection, call, DBLOCK_ADVISORY, subject, answer, reterr);
}
