/* SPDX-License-Identifier: MIT */
/* pgsql_line.h - the lines of those who wait for lease or insert. Their keys are in
 * statements of others too: takes heed a line, and whatever frees a name wakes its first. */
#ifndef DBLK_PGSQL_LINE_H
#define DBLK_PGSQL_LINE_H

#include "pgsql_connection.h"
#include "pgsql_value.h"

/* Adds two parameters: the key of the line of that name. */
void pgsql_put_line(struct pgsql_parameters *parameters, const struct dblock_target *target,
    int32_t strategy, const struct dblock_subject *subject);

dblock_status pgsql_line_stand(struct dblock_connection *connection,
    const struct dblock_call *call, int strategy, const struct dblock_subject *subject,
    uint64_t wait_us, int is_fair, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status pgsql_line_rest(struct dblock_connection *connection, const struct dblock_call *call,
    const char *owner, struct dblock_answer *answer, struct dblock_error *reterr);
void pgsql_line_leave(struct dblock_connection *connection);

/* Before the end of a connection: waits a moment for the answer to the last leave. The server's
 * would go to a closed socket, and that is two lines in its log. */
void pgsql_line_settle(struct dblock_connection *connection);
/* Takes NULL. */
void pgsql_line_free(struct pgsql_line *line);

#endif
