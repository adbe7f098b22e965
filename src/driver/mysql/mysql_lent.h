/* SPDX-License-Identifier: MIT */
/* mysql_lent.h - the steps as the driver's table has them: each takes the connection first, if that
 * is the application's (mysql_loan.h), and gives it back. Those that such a connection never does
 * are in the table as they are. */
#ifndef DBLOCK_MYSQL_LENT_H
#define DBLOCK_MYSQL_LENT_H

#include <dblock/sys/driver.h>

#define LENT_CONNECTION struct dblock_connection *connection, const struct dblock_call *call
#define LENT_ANSWER struct dblock_answer *answer, struct dblock_error *reterr
#define LENT_SUBJECT const struct dblock_subject *subject

dblock_status mysql_lent_open(struct dblock_target *target, int role, const struct dblock_call *call,
    struct dblock_connection **ret_connection, LENT_ANSWER);
void mysql_lent_close(struct dblock_connection *connection, int how);
int mysql_lent_fd(const struct dblock_connection *connection);
dblock_status mysql_lent_ping(LENT_CONNECTION, LENT_ANSWER);
dblock_status mysql_lent_verify(LENT_CONNECTION, LENT_ANSWER);

dblock_status mysql_lent_session_begin(
    LENT_CONNECTION, const unsigned char *session, uint64_t ttl_us, LENT_ANSWER);
dblock_status mysql_lent_session_end(LENT_CONNECTION, const unsigned char *session, LENT_ANSWER);

#define LENT_HOLD(kind)                                                                            \
    dblock_status mysql_lent_##kind##_take(LENT_CONNECTION, const struct dblock_take *take,        \
        struct dblock_grant *holder, LENT_ANSWER);                                                 \
    dblock_status mysql_lent_##kind##_drop(LENT_CONNECTION, LENT_SUBJECT,                          \
        const unsigned char *owner, uint64_t keep_us, LENT_ANSWER);                                \
    dblock_status mysql_lent_##kind##_extend(LENT_CONNECTION, LENT_SUBJECT,                        \
        const unsigned char *owner, uint64_t ttl_us, LENT_ANSWER);                                 \
    dblock_status mysql_lent_##kind##_look(                                                        \
        LENT_CONNECTION, LENT_SUBJECT, struct dblock_grant *grant, LENT_ANSWER);                   \
    dblock_status mysql_lent_##kind##_draw(                                                        \
        LENT_CONNECTION, LENT_SUBJECT, const unsigned char *owner, LENT_ANSWER);                   \
    dblock_status mysql_lent_##kind##_take_many(LENT_CONNECTION, const struct dblock_take *terms,  \
        const struct dblock_many *many, size_t *ret_place, struct dblock_grant *holder,            \
        LENT_ANSWER);                                                                              \
    dblock_status mysql_lent_##kind##_drop_many(                                                   \
        LENT_CONNECTION, const struct dblock_many *many, LENT_ANSWER)

LENT_HOLD(lease);
LENT_HOLD(insert);

dblock_status mysql_lent_advisory_take(LENT_CONNECTION, const struct dblock_take *take,
    struct dblock_grant *holder, LENT_ANSWER);
dblock_status mysql_lent_advisory_drop(LENT_CONNECTION, LENT_SUBJECT, LENT_ANSWER);
dblock_status mysql_lent_advisory_prove(LENT_CONNECTION, LENT_SUBJECT, LENT_ANSWER);
dblock_status mysql_lent_advisory_draw(LENT_CONNECTION, LENT_SUBJECT, LENT_ANSWER);

dblock_status mysql_lent_list(LENT_CONNECTION, const struct dblock_page *page, dblock_grant_fn fn,
    void *context, LENT_ANSWER);
dblock_status mysql_lent_break(
    LENT_CONNECTION, int strategy, LENT_SUBJECT, int64_t token, LENT_ANSWER);
dblock_status mysql_lent_end_token(
    LENT_CONNECTION, int strategy, LENT_SUBJECT, int64_t token, LENT_ANSWER);
dblock_status mysql_lent_purge(LENT_CONNECTION, LENT_ANSWER);
dblock_status mysql_lent_check(
    LENT_CONNECTION, dblock_finding_fn fn, void *context, LENT_ANSWER);

#endif
