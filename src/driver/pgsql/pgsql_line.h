/* SPDX-License-Identifier: MIT */
/* pgsql_line.h - the lines of those who wait for lease or insert. Their keys are in
 * statements of others too: takes heed a line, and whatever frees a name wakes its first. */
#ifndef DBLK_PGSQL_LINE_H
#define DBLK_PGSQL_LINE_H

#include "pgsql_connection.h"
#include "pgsql_value.h"

/* The key of the line of that name: an advisory lock on its upper and its lower half. */
uint64_t pgsql_line_key(const struct dblock_target *target, int32_t strategy,
    const struct dblock_subject *subject);
/* Adds two parameters: that key. */
void pgsql_put_line(struct pgsql_parameters *parameters, const struct dblock_target *target,
    int32_t strategy, const struct dblock_subject *subject);

/* How a wait on the server goes on: some slices, all of one length, in one statement. */
struct pgsql_slices {
    uint64_t n;
    uint64_t each_us;
};
struct pgsql_slices pgsql_slices_of(
    const struct dblock_connection *connection, uint64_t wait_us);

/* Of a statement that waits on the server: so long, and one limit of the I/O. */
struct dblock_call pgsql_slices_call(const struct dblock_connection *connection,
    const struct dblock_call *call, uint64_t wait_us);

enum { /* what dblock_stand answers */
    PGSQL_STOOD_NOT_YET = 0,
    PGSQL_STOOD_FIRST = 1,
    PGSQL_STOOD_CANCELLED = 2,
    PGSQL_STOOD_MAY_PASS = 3,
    PGSQL_STOOD_WITHOUT_BELL = 4
};

/* What a statement line_stand hands on to the next. */
struct pgsql_standing {
    int32_t outcome;
    int32_t ticket; /* -1: none yet */
    int64_t seen;   /* -1: nothing */
};
#define PGSQL_STANDING_INIT { 0, -1, -1 }
/* The parameters of line_stand, and its row. */
void pgsql_line_put(struct pgsql_parameters *parameters,
    const struct dblock_connection *connection, int32_t strategy,
    const struct dblock_subject *subject, int is_fair, struct pgsql_slices slices,
    const struct pgsql_standing *standing);
void pgsql_line_get(struct pgsql_standing *standing, const PGresult *result);

dblock_status pgsql_line_stand(struct dblock_connection *connection,
    const struct dblock_call *call, int strategy, const struct dblock_subject *subject,
    uint64_t wait_us, int is_fair, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status pgsql_line_rest(struct dblock_connection *connection, const struct dblock_call *call,
    const char *owner, struct dblock_answer *answer, struct dblock_error *reterr);
void pgsql_line_leave(struct dblock_connection *connection);

/* Row and advisory: OK, or E_UNSUPPORTED if `take` is to wait in order of arrival and cannot: without
 * the routines that keep a place from slice to slice each slice begins at the end of the queue. They
 * are looked for when a connection is opened, so one without them ends here: the next may have them. */
dblock_status pgsql_line_check_take(struct dblock_connection *connection,
    const struct dblock_take *take, struct dblock_error *reterr);

/* Before the end of a connection: waits a moment for the answer to the last leave. The server's
 * would go to a closed socket, and that is two lines in its log. */
void pgsql_line_settle(struct dblock_connection *connection);
/* Takes NULL. */
void pgsql_line_free(struct pgsql_line *line);

#endif
