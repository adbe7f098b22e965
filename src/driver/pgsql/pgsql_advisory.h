/* SPDX-License-Identifier: MIT */
/* pgsql_advisory.h - what the takes of strategy advisory that wait, and those that do
 * not, have in common. */
#ifndef DBLK_PGSQL_ADVISORY_H
#define DBLK_PGSQL_ADVISORY_H

#include "pgsql_connection.h"
#include "pgsql_value.h"

/* Name and id, the first parameters of most statements. */
void pgsql_advisory_put(
    struct pgsql_parameters *parameters, const struct dblock_subject *subject);
void pgsql_advisory_remember(
    struct dblock_connection *connection, const struct dblock_subject *subject, int64_t id);
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
