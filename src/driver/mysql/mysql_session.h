/* SPDX-License-Identifier: MIT */
/* mysql_session.h - the steps of struct dblock_driver_session. */
#ifndef DBLOCK_MYSQL_SESSION_H
#define DBLOCK_MYSQL_SESSION_H

#include <dblock/sys/driver.h>

dblock_status mysql_session_begin(struct dblock_connection *connection,
    const struct dblock_call *call, const unsigned char *session, uint64_t ttl_us,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status mysql_session_renew(struct dblock_connection *connection,
    const struct dblock_call *call, const unsigned char *session, uint64_t ttl_us,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status mysql_session_end(struct dblock_connection *connection,
    const struct dblock_call *call, const unsigned char *session, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status mysql_session_holds(struct dblock_connection *connection,
    const struct dblock_call *call, const unsigned char *session, dblock_grant_fn fn,
    void *context, struct dblock_answer *answer, struct dblock_error *reterr);

#endif
