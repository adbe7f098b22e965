/* SPDX-License-Identifier: MIT */
/* mysql_advisory.h - the steps of the strategy advisory. */
#ifndef DBLOCK_MYSQL_ADVISORY_H
#define DBLOCK_MYSQL_ADVISORY_H

#include <dblock/sys/driver.h>

dblock_status mysql_advisory_take(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status mysql_advisory_drop(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status mysql_advisory_prove(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status mysql_advisory_draw(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr);

/* Who holds it: 0 and the outputs of advisory_holder, or a native code. */
unsigned int mysql_advisory_ask(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject);
/* From the server's connection number to what is known of its client. */
void mysql_advisory_fill(struct dblock_connection *connection, const struct dblock_call *call,
    int64_t server_pid, struct dblock_grant *grant);
/* The name under which tokens are kept: the name, or "#NUMBER" into `buffer`. */
const char *mysql_advisory_name(
    const struct dblock_subject *subject, char *buffer, size_t size, size_t *ret_size);

#endif
