/* SPDX-License-Identifier: MIT */
/* row_table.h - what an administrator who empties the table of row locks meets, while
 * one of its rows is held; the same on each server. */
#ifndef DBLOCK_TEST_ROW_TABLE_H
#define DBLOCK_TEST_ROW_TABLE_H

#include <dblock/dblock.h>

struct row_table {
    const dblock_driver *driver;
    const char *url;
    const char *schema; /* NULL: the one of the URL */
    /* Runs the statement on a connection of its own, waiting so many seconds for locks. 1 done,
     * 0 it waited for all of that time, -1 anything else. Any thread. */
    int (*run)(const char *sql, unsigned seconds);
    int (*count_waiting)(void); /* statements that wait for a lock on the table */
};

/* TRUNCATE and DELETE wait for the holder, who notices nothing; once he is gone they pass, and the
 * next acquire makes the row anew. */
void row_table__waits_for_its_holders(const struct row_table *table);

/* Who comes after a TRUNCATE that waits stands behind it. Every call ends in its time all the same,
 * and what is held stays held. */
void waiting_truncate__lets_every_call_end(const struct row_table *table);

#endif
