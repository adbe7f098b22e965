/* SPDX-License-Identifier: MIT */
/* mysql_line.h - the lines of those who wait for lease and insert: the steps of struct
 * dblock_driver_line, and who wakes the first. */
#ifndef DBLOCK_MYSQL_LINE_H
#define DBLOCK_MYSQL_LINE_H

#include <dblock/sys/driver.h>

#include "mysql_hold.h"

dblock_status mysql_line_stand(struct dblock_connection *connection,
    const struct dblock_call *call, int strategy, const struct dblock_subject *subject,
    uint64_t wait_us, int is_fair, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status mysql_line_rest(struct dblock_connection *connection, const struct dblock_call *call,
    const char *owner, struct dblock_answer *answer, struct dblock_error *reterr);
void mysql_line_leave(struct dblock_connection *connection);

/* Makes the first in line look, if there is one, over any connection: for whoever ended a
 * grant whose bell is not his. Tries; that it may fail is in the contract. */
void mysql_line_wake(const struct mysql_hold *hold, struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject);
/* The same, when the drop has told which connection that is. */
void mysql_line_wake_connection(
    struct dblock_connection *connection, const struct dblock_call *call, uint64_t server_id);
/* Matches the statements of those who wait, for line_waiters. */
#define MYSQL_LINE_PATTERN_SIZE 160
void mysql_line_pattern(const struct dblock_connection *connection,
    const struct mysql_hold *hold, char pattern[MYSQL_LINE_PATTERN_SIZE]);

#endif
