/* SPDX-License-Identifier: MIT */
/* pgsql_cancel.c - see pgsql_cancel.h.
 *
 * A cancel request goes over a connection of its own, and libpq waits for its end without
 * a limit. So the same address is tried first, within the limit: a server that answers the
 * question whether it speaks TLS answers a cancel request as well. It says nothing of either
 * in its log.
 *
 * The server closes that connection after it has signalled the session. What is sent on the
 * session's own connection after that arrives behind the signal, so it is not hit by it. */
#include "pgsql_cancel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

/* 1: somebody answers there. */
static int ask(
    int fd, const struct sockaddr *address, socklen_t size, const struct dblock_call *call)
{
    static const unsigned char question[8] = { 0, 0, 0, 8, 4, 210, 22, 47 }; /* SSLRequest */
    char reply;

    if (connect(fd, address, size) != 0 && errno != EINPROGRESS)
        return 0;
    if (dblock_fd_wait(fd, POLLOUT, call, 1) != 1 ||
        send(fd, question, sizeof question, MSG_NOSIGNAL) != (ssize_t)sizeof question)
        return 0;
    return dblock_fd_wait(fd, POLLIN, call, 1) == 1 && recv(fd, &reply, 1, 0) == 1;
}

static int is_answering(const struct pgsql_cancel *way, const struct dblock_call *call)
{
    int fd = socket(way->address.ss_family, SOCK_STREAM, 0);
    int answers = 0;
    int flags;

    if (fd < 0)
        return 0;
    flags = fcntl(fd, F_GETFL);
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && flags >= 0 &&
        fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0)
        answers = ask(fd, (const struct sockaddr *)&way->address, way->size, call);
    (void)close(fd);
    return answers;
}

int pgsql_cancel_init(struct pgsql_cancel *way, PGconn *pg)
{
    way->size = sizeof way->address;
    if (getpeername(PQsocket(pg), (struct sockaddr *)&way->address, &way->size) != 0)
        return 0;
    way->key = PQgetCancel(pg);
    return way->key != NULL;
}

int pgsql_cancel_send(const struct pgsql_cancel *way, const struct dblock_call *call)
{
    char reason[256];

    return is_answering(way, call) && PQcancel(way->key, reason, sizeof reason);
}

void pgsql_cancel_fini(struct pgsql_cancel *way)
{
    PQfreeCancel(way->key);
}

int pgsql_cancel(PGconn *pg, uint64_t limit_us)
{
    const struct dblock_call call = { dblock_clock_us() + limit_us, -1 };
    struct pgsql_cancel way;
    int is_sent;

    if (!pgsql_cancel_init(&way, pg))
        return 0;
    is_sent = pgsql_cancel_send(&way, &call);
    pgsql_cancel_fini(&way);
    return is_sent;
}
