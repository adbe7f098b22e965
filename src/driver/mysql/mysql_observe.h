/* SPDX-License-Identifier: MIT */
/* mysql_observe.h - the steps of struct dblock_driver_observe. */
#ifndef DBLOCK_MYSQL_OBSERVE_H
#define DBLOCK_MYSQL_OBSERVE_H

#include <dblock/sys/driver.h>

dblock_status mysql_observe_list(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_page *page, dblock_grant_fn fn,
    void *context, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status mysql_observe_end(struct dblock_connection *connection,
    const struct dblock_call *call, int strategy, const struct dblock_subject *subject,
    int64_t token, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status mysql_observe_end_token(struct dblock_connection *connection,
    const struct dblock_call *call, int strategy, const struct dblock_subject *subject,
    int64_t token, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status mysql_observe_purge(struct dblock_connection *connection,
    const struct dblock_call *call, struct dblock_answer *answer, struct dblock_error *reterr);
/* mysql_check.c */
dblock_status mysql_observe_check(struct dblock_connection *connection,
    const struct dblock_call *call, dblock_finding_fn fn, void *context,
    struct dblock_answer *answer, struct dblock_error *reterr);

#endif
