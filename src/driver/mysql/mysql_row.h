/* SPDX-License-Identifier: MIT */
/* mysql_row.h - the steps of the strategy row, and the drawing of tokens. */
#ifndef DBLOCK_MYSQL_ROW_H
#define DBLOCK_MYSQL_ROW_H

#include <dblock/sys/driver.h>

dblock_status mysql_row_seed(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status mysql_row_take(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_take *take, struct dblock_grant *holder, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status mysql_row_drop(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status mysql_row_prove(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status mysql_row_draw(struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_subject *subject, struct dblock_answer *answer,
    struct dblock_error *reterr);

/* The next token of a name of row or advisory, by its name in dblock_token. */
dblock_status mysql_token_draw(struct dblock_connection *connection,
    const struct dblock_call *call, int strategy, const char *name, size_t name_size,
    struct dblock_answer *answer, struct dblock_error *reterr);

#endif
