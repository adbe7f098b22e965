/* SPDX-License-Identifier: MIT */
/* mysql_wire.h - the socket under MariaDB's client library, read and written by us.
 *
 * The library reads a socket through a table of functions, which plug-ins may bring along
 * (ma_pvio.h). Here a connection gets a copy of its own, with a read and a write that wait
 * until the deadline of the call that is going on, however small the pieces are in which an
 * answer comes. So the library's plain calls can be used. By themselves these count whole
 * seconds, and anew for each piece; and they look for an answer before they wait for it,
 * which is one system call more. The calls that can be left and come back to cost another
 * tenth of the client's time.
 *
 * Not under TLS, which reads the socket itself. */
#ifndef DBLOCK_MYSQL_WIRE_H
#define DBLOCK_MYSQL_WIRE_H

#include <dblock/sys/driver.h>

#include "mysql_statement.h"

#if MYSQL_IS_MARIADB_CLIENT
#include <ma_pvio.h>

struct mysql_wire {
    PVIO_METHODS methods; /* first: what the library hands to them leads here */
    struct dblock_call limit;
    int is_lent;
    int is_here; /* what is read next has been waited for */
};

/* For the time of one step, that of a connection of the application. Returns what its methods
 * were, to be put back; NULL: nothing was done. Under TLS the library goes on reading by itself. */
PVIO_METHODS *mysql_wire_lend(struct mysql_wire *wire, MYSQL *mysql);

/* Whether the wire is ours. If so, what is read and written from now on ends in time. */
int mysql_wire_limit(MYSQL *mysql, const struct dblock_call *call);
/* The socket is readable: the next read is not to wait for that once more. */
void mysql_wire_is_here(MYSQL *mysql);

#else

struct mysql_wire {
    int is_unused;
};

#endif

/* Once it is connected; `wire`, which was zero, stays until mysql_close() is through. Does
 * nothing where the library reads by itself. */
void mysql_wire_take(struct mysql_wire *wire, MYSQL *mysql);

#endif
