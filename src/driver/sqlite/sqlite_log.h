/* SPDX-License-Identifier: MIT */
/* sqlite_log.h - the write-ahead log of a file that holds our tables alone. */
#ifndef DBLK_SQLITE_LOG_H
#define DBLK_SQLITE_LOG_H

#include "sqlite_connection.h"

/* Before the handle is closed: leaves the log where it is, should this be the last connection, if
 * that harms nobody. */
void sqlite_log_keep(struct dblock_connection *connection);

#endif
