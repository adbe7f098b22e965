/* SPDX-License-Identifier: MIT */
/* pgsql_advisory.h - what the takes of strategy advisory that wait, and those that do
 * not, have in common. */
#ifndef DBLK_PGSQL_ADVISORY_H
#define DBLK_PGSQL_ADVISORY_H

#include "pgsql_connection.h"
#include "pgsql_value.h"

enum { /* what becomes of a take, as the server tells it */
    PGSQL_TAKEN_BY_OTHER = 0, /* or, of a wait: not yet had */
    PGSQL_TAKEN = 1,
    PGSQL_TAKE_CANCELLED = 2, /* the session has no lock at all */
    PGSQL_TAKE_ON_STANDBY = 3
};

int64_t pgsql_advisory_id(
    struct dblock_connection *connection, const struct dblock_subject *subject);
/* The id, and what proves that the server's process is the connection's own: the first parameters
 * of most statements. */
void pgsql_advisory_put(struct pgsql_parameters *parameters,
    const struct dblock_connection *connection, int64_t id);
/* What a take answers, in its only column: that is refused, or YES or BUSY. */
dblock_status pgsql_advisory_judge(struct dblock_connection *connection,
    const struct dblock_subject *subject, const PGresult *taken, struct dblock_answer *answer,
    struct dblock_error *reterr);
dblock_status pgsql_advisory_refuse_standby(
    const struct dblock_subject *subject, struct dblock_error *reterr);
/* The server answered from another session than the connection's. */
dblock_status pgsql_advisory_refuse_other(struct dblock_connection *connection,
    const struct dblock_subject *subject, struct dblock_error *reterr) DBLOCK_COLD_;
/* Unlocks what a message got and nobody wants; the connection is given up if that fails. */
dblock_status pgsql_advisory_give_back(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_subject *subject, int64_t *ret_now_us,
    struct dblock_error *reterr) DBLOCK_COLD_;

/* Of a connection that is not ours: gives back all that it holds for us. */
void pgsql_advisory_leave(struct dblock_connection *connection);

/* Until the lock is had or the wait is over, on a connection without a lock, which has room for
 * an id. What it gets it does not have already. */
dblock_status pgsql_advisory_wait(struct dblock_connection *connection,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_answer *answer,
    struct dblock_error *reterr);

#endif
