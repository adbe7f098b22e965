/* SPDX-License-Identifier: MIT */
/* mysql_wire.c - see mysql_wire.h. */
#include "mysql_wire.h"

#if MYSQL_IS_MARIADB_CLIENT

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#define SLICE_US 1000000u /* of a read that is bounded by the socket itself */

static struct mysql_wire *find_wire(MARIADB_PVIO *pvio)
{
    return (struct mysql_wire *)(void *)pvio->methods;
}

static int is_passing(int fault)
{
    return fault == EAGAIN || fault == EWOULDBLOCK || fault == EINTR;
}

/* 1, or 0 with errno as the library has it after a time-out. */
static int await(int fd, short events, const struct dblock_call *limit)
{
    if (dblock_fd_wait(fd, events, limit, 0) > 0)
        return 1;
    errno = ETIMEDOUT;
    return 0;
}

/* Waits first: what is asked for is the answer to what was sent just now. TCP waits in the
 * read, by the socket's own time-out, unless the limit is nearer. A local socket must not: there
 * the server's reading wakes the reader too, to no purpose. What is left then is waited for
 * exactly. */
static ssize_t read_until(MARIADB_PVIO *pvio, uchar *buffer, size_t size)
{
    struct mysql_wire *wire = find_wire(pvio);
    int is_watched = wire->limit.cancel_fd == DBLOCK_CALL_IS_WATCHED;
    int fd = mysql_get_socket(pvio->mysql);
    struct pollfd descriptor = { fd, POLLIN, 0 };
    int is_ready = wire->is_here;
    ssize_t n;

    wire->is_here = 0;
    if (!is_ready && is_watched && pvio->type == PVIO_TYPE_UNIXSOCKET)
        is_ready = poll(&descriptor, 1, -1) > 0;
    else if (!is_ready && pvio->type == PVIO_TYPE_SOCKET && !wire->is_lent &&
        wire->limit.deadline_us >= dblock_clock_us() + SLICE_US) {
        n = recv(fd, buffer, size, 0);
        if (n >= 0 || !is_passing(errno))
            return n;
    }
    do {
        if (!is_ready && !await(fd, POLLIN, &wire->limit))
            return -1;
        is_ready = 0;
        n = recv(fd, buffer, size, MSG_DONTWAIT);
    } while (n < 0 && is_passing(errno));
    return n;
}

static ssize_t write_until(MARIADB_PVIO *pvio, const uchar *buffer, size_t size)
{
    int fd = mysql_get_socket(pvio->mysql);
    ssize_t n;

    for (;;) {
        n = send(fd, buffer, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n >= 0 || !is_passing(errno))
            return n;
        if (errno != EINTR && !await(fd, POLLOUT, &find_wire(pvio)->limit))
            return -1;
    }
}

void mysql_wire_take(struct mysql_wire *wire, MYSQL *mysql)
{
    static const struct timeval slice = { SLICE_US / 1000000, SLICE_US % 1000000 };
    MARIADB_PVIO *pvio = mysql->net.pvio;

    if (mysql_get_ssl_cipher(mysql) != NULL || pvio == NULL || pvio->mysql != mysql ||
        (pvio->type != PVIO_TYPE_SOCKET && pvio->type != PVIO_TYPE_UNIXSOCKET))
        return;
    wire->methods = *pvio->methods;
    wire->methods.read = read_until;
    wire->methods.write = write_until;
    pvio->methods = &wire->methods;
    if (pvio->type == PVIO_TYPE_SOCKET)
        (void)setsockopt(
            mysql_get_socket(mysql), SOL_SOCKET, SO_RCVTIMEO, &slice, sizeof slice);
}

PVIO_METHODS *mysql_wire_lend(struct mysql_wire *wire, MYSQL *mysql)
{
    MARIADB_PVIO *pvio = mysql->net.pvio;
    PVIO_METHODS *before;

    if (pvio == NULL || pvio->mysql != mysql)
        return NULL;
    before = pvio->methods;
    wire->methods = *before;
    wire->methods.read = read_until;
    wire->methods.write = write_until;
    wire->is_lent = 1;
    pvio->methods = &wire->methods;
    return before;
}

int mysql_wire_limit(MYSQL *mysql, const struct dblock_call *call)
{
    MARIADB_PVIO *pvio = mysql->net.pvio;

    if (pvio == NULL || pvio->methods->read != read_until)
        return 0;
    find_wire(pvio)->limit = *call;
    return 1;
}

void mysql_wire_is_here(MYSQL *mysql)
{
    MARIADB_PVIO *pvio = mysql->net.pvio;

    if (pvio != NULL && pvio->methods->read == read_until)
        find_wire(pvio)->is_here = 1;
}

#else

void mysql_wire_take(struct mysql_wire *wire, MYSQL *mysql)
{
    (void)wire;
    (void)mysql;
}

#endif
