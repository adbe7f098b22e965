/* SPDX-License-Identifier: MIT */
/* pgsql_receive.c - see pgsql_receive.h. libpq makes its sockets non-blocking, asks poll() and then
 * reads. A watched call needs no time limit of its own, so there a socket that blocks spares it
 * the poll(): one system call less in each round trip.
 *
 * Over TCP alone. On a local socket the server's reading of our message wakes whoever waits in a
 * read, to no purpose, where poll() sleeps on; that costs more than is gained. Not under
 * encryption, where libpq's layer of it has read and waiting rules of its own. */
#include "pgsql_receive.h"

#include <fcntl.h>
#include <sys/socket.h>

static int set_blocking(int fd, int is_blocking)
{
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 &&
        fcntl(fd, F_SETFL, is_blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK) == 0;
}

static int is_possible(const struct dblock_connection *connection)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address;

    return !connection->is_lent && !PQsslInUse(connection->pg) &&
        !PQgssEncInUse(connection->pg) &&
        getpeername(PQsocket(connection->pg), (struct sockaddr *)&address, &size) == 0 &&
        (address.ss_family == AF_INET || address.ss_family == AF_INET6);
}

int pgsql_receive_by_waiting(struct dblock_connection *connection)
{
    if (connection->receives == PGSQL_RECEIVES_AFTER_POLL)
        connection->receives =
            is_possible(connection) && set_blocking(PQsocket(connection->pg), 1)
            ? PGSQL_RECEIVES_BY_WAITING
            : PGSQL_RECEIVES_NEVER_BY_WAITING;
    return connection->receives == PGSQL_RECEIVES_BY_WAITING;
}

void pgsql_receive_not_waiting(struct dblock_connection *connection)
{
    connection->receives = PGSQL_RECEIVES_AFTER_POLL;
    if (!set_blocking(PQsocket(connection->pg), 0)) /* cannot be: it worked the other way */
        connection->is_broken = 1;
}
