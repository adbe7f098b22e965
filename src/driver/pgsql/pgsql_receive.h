/* SPDX-License-Identifier: MIT */
/* pgsql_receive.h - who waits for an answer: poll(), or the read itself. */
#ifndef DBLK_PGSQL_RECEIVE_H
#define DBLK_PGSQL_RECEIVE_H

#include "pgsql_connection.h"

enum pgsql_receives {
    PGSQL_RECEIVES_AFTER_POLL = 0,
    PGSQL_RECEIVES_BY_WAITING,
    PGSQL_RECEIVES_NEVER_BY_WAITING
};

/* For a watched call (sys/driver.h): 1 if PQconsumeInput() waits from now on. */
int pgsql_receive_by_waiting(struct dblock_connection *connection);

void pgsql_receive_not_waiting(struct dblock_connection *connection);

/* Before any other call: neither a read nor a write may wait by itself. */
static inline void pgsql_receive_after_poll(struct dblock_connection *connection)
{
    if (connection->receives == PGSQL_RECEIVES_BY_WAITING)
        pgsql_receive_not_waiting(connection);
}

#endif
