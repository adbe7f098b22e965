/* SPDX-License-Identifier: MIT */
/* mysql_wire.c - see mysql_wire.h. */
#include "mysql_wire.h"

#if MYSQL_IS_MARIADB_CLIENT

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#define MS_MAX 3600000u

static struct mysql_wire *find_wire(MARIADB_PVIO *pvio)
{
    return (struct mysql_wire *)(void *)pvio->methods;
}

/* 1, or 0 with errno as the library has it after a time-out. Whole milliseconds by poll(), as
 * it costs less than ppoll(), which reports how long it slept; what is left then, exactly. */
static int await(int fd, short events, const struct dblock_call *limit)
{
    struct pollfd descriptor = { fd, events, 0 };
    uint64_t now_us = dblock_clock_us();
    uint64_t left_ms = limit->deadline_us > now_us ? (limit->deadline_us - now_us) / 1000 : 0;

    if (left_ms > 0 && poll(&descriptor, 1, (int)(left_ms < MS_MAX ? left_ms : MS_MAX)) > 0)
        return 1;
    if (dblock_fd_wait(fd, events, limit, 0) > 0)
        return 1;
    errno = ETIMEDOUT;
    return 0;
}

/* Waits first: what is asked for is the answer to what was sent just now. */
static ssize_t read_until(MARIADB_PVIO *pvio, uchar *buffer, size_t size)
{
    int fd = mysql_get_socket(pvio->mysql);
    ssize_t n;

    do {
        if (!await(fd, POLLIN, &find_wire(pvio)->limit))
            return -1;
        n = recv(fd, buffer, size, MSG_DONTWAIT);
    } while (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
    return n;
}

static ssize_t write_until(MARIADB_PVIO *pvio, const uchar *buffer, size_t size)
{
    int fd = mysql_get_socket(pvio->mysql);
    ssize_t n;

    for (;;) {
        n = send(fd, buffer, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
            return n;
        if (errno != EINTR && !await(fd, POLLOUT, &find_wire(pvio)->limit))
            return -1;
    }
}

void mysql_wire_take(struct mysql_wire *wire, MYSQL *mysql)
{
    MARIADB_PVIO *pvio = mysql->net.pvio;

    if (mysql_get_ssl_cipher(mysql) != NULL || pvio == NULL || pvio->mysql != mysql ||
        (pvio->type != PVIO_TYPE_SOCKET && pvio->type != PVIO_TYPE_UNIXSOCKET))
        return;
    wire->methods = *pvio->methods;
    wire->methods.read = read_until;
    wire->methods.write = write_until;
    pvio->methods = &wire->methods;
}

int mysql_wire_limit(MYSQL *mysql, const struct dblock_call *call)
{
    MARIADB_PVIO *pvio = mysql->net.pvio;

    if (pvio == NULL || pvio->methods->read != read_until)
        return 0;
    find_wire(pvio)->limit = *call;
    return 1;
}

#else

void mysql_wire_take(struct mysql_wire *wire, MYSQL *mysql)
{
    (void)wire;
    (void)mysql;
}

#endif
