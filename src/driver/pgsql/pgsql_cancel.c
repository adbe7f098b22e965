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

#include <dblock/sys/driver.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

/* 1: somebody answers there. */
static int ask(int fd, const struct sockaddr *address, socklen_t size, uint64_t limit_us)
{
    static const unsigned char question[8] = { 0, 0, 0, 8, 4, 210, 22, 47 }; /* SSLRequest */
    const struct dblock_call call = { dblock_clock_us() + limit_us, -1 };
    char reply;

    if (connect(fd, address, size) != 0 && errno != EINPROGRESS)
        return 0;
    if (dblock_fd_wait(fd, POLLOUT, &call, 0) != 1 ||
        send(fd, question, sizeof question, MSG_NOSIGNAL) != (ssize_t)sizeof question)
        return 0;
    return dblock_fd_wait(fd, POLLIN, &call, 0) == 1 && recv(fd, &reply, 1, 0) == 1;
}

static int is_answering(PGconn *pg, uint64_t limit_us)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    int fd, flags;
    int answers = 0;

    if (getpeername(PQsocket(pg), (struct sockaddr *)&address, &size) != 0)
        return 0;
    fd = socket(address.ss_family, SOCK_STREAM, 0);
    if (fd < 0)
        return 0;
    flags = fcntl(fd, F_GETFL);
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && flags >= 0 &&
        fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0)
        answers = ask(fd, (const struct sockaddr *)&address, size, limit_us);
    (void)close(fd);
    return answers;
}

int pgsql_cancel(PGconn *pg, uint64_t limit_us)
{
    char reason[256];
    PGcancel *cancel;
    int is_sent = 0;

    if (!is_answering(pg, limit_us))
        return 0;
    cancel = PQgetCancel(pg);
    if (cancel != NULL)
        is_sent = PQcancel(cancel, reason, sizeof reason);
    PQfreeCancel(cancel);
    return is_sent;
}
