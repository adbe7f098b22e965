/* SPDX-License-Identifier: MIT */
/* sqlite_end.h - the locks that end with a transaction of the application. */
#ifndef DBLK_SQLITE_END_H
#define DBLK_SQLITE_END_H

#include <dblock/sys/driver.h>

#include <sqlite3.h>

struct sqlite_end; /* of one connection of the application, until that is closed */

/* NULL: an SQLite error code is in `*ret_code`. To be called by the thread that uses the
 * connection, as all of these. */
struct sqlite_end *sqlite_end_of(sqlite3 *handle, int *ret_code);

/* Whether the transaction that is open now has the lock of that number. */
int sqlite_end_has(const struct sqlite_end *end, int strategy, int64_t number);

/* Makes the transaction the file's writer, if it is not; from then on its end is seen.
 * SQLITE_OK, or an extended error code. */
int sqlite_end_await(struct sqlite_end *end);

/* After that: the lock is released and freed at that end. 0, or no memory. */
int sqlite_end_add(struct sqlite_end *end, int strategy, int64_t number, dblock_lock *lock);

#endif
