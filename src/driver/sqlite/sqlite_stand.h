/* SPDX-License-Identifier: MIT */
/* sqlite_stand.h - what the steps of lease and insert have to do with those who wait
 * for the name. All of it is nothing where the side file cannot be had. */
#ifndef DBLK_SQLITE_STAND_H
#define DBLK_SQLITE_STAND_H

#include "sqlite_connection.h"

/* Whether somebody stands in line and does what is to be expected. No system call if nobody does. */
int sqlite_stand_is_waited(
    struct dblock_connection *connection, int strategy, const struct dblock_subject *subject);
/* Whether a release has woken the first since the last take, so that the name is most likely free. */
int sqlite_stand_was_woken(
    struct dblock_connection *connection, int strategy, const struct dblock_subject *subject);
/* After the commit that freed the name, or moved its end: wakes the first. No system call if there
 * is nobody. */
void sqlite_stand_wake(
    struct dblock_connection *connection, int strategy, const struct dblock_subject *subject);
/* UINT32_MAX: not known. */
uint32_t sqlite_stand_count(struct dblock_connection *connection, int strategy, const char *name);

#endif
