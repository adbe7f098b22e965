/* SPDX-License-Identifier: MIT */
/* mysql_bell.h - the bells of grants: named locks that a connection has from a take to the
 * drop, and for which the first in line waits (sql/line.sql).
 *
 * A grant may be given back by another connection than the one that took it, or end
 * without a word: then its bell is marked, and its own connection unlocks it at the end of
 * the next step. Which connection has which bells is written down here, for all
 * connections of a target. */
#ifndef DBLOCK_MYSQL_BELL_H
#define DBLOCK_MYSQL_BELL_H

#include <dblock/sys/driver.h>

struct mysql_bells;         /* of a connection */
struct mysql_bell_register; /* of a target */

/* NULL: no memory. */
struct mysql_bell_register *mysql_bell_register_new(void);
void mysql_bell_register_free(struct mysql_bell_register *all); /* takes NULL */

/* The bell's name, from a prefix and an owner in hex. */
#define MYSQL_BELL_SIZE 72
void mysql_bell_name(
    const struct dblock_connection *connection, const char *owner, char name[MYSQL_BELL_SIZE]);

/* Before a take: puts the bell into the statement's inputs, or that there can be none. */
void mysql_bell_offer(struct dblock_connection *connection, const unsigned char *owner);
/* Before a take of several: 1 if each of them is to have its bell. */
int mysql_bell_offer_many(struct dblock_connection *connection, size_t n_names);
/* After it: the bell is locked. `is_granted` 0: and it is of no use. */
void mysql_bell_locked(
    struct dblock_connection *connection, const unsigned char *owner, int is_granted);
/* Before a drop: puts the bell into the inputs if this connection has it (1), else that it
 * has not (0). */
int mysql_bell_find(struct dblock_connection *connection, const unsigned char *owner);
/* After it: that statement has unlocked the bell. */
void mysql_bell_rung(struct dblock_connection *connection, const unsigned char *owner);
/* Whichever connection has it unlocks it. */
void mysql_bell_mark(struct dblock_connection *connection, const unsigned char *owner);
/* Unlocks what was marked, at the end of a step: a round trip, and none if nothing was. What
 * becomes of it changes nothing in the step's own answer. */
void mysql_bell_settle(struct dblock_connection *connection, const struct dblock_call *call);

/* The connection has ended, and all its bells with it. */
void mysql_bell_end(struct dblock_connection *connection);

#endif
