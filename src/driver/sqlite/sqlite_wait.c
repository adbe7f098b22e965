/* SPDX-License-Identifier: MIT */
/* sqlite_wait.c - waiting for a byte of the side file, with an end.
 *
 * The kernel's waiting lock (F_OFD_SETLKW) costs nothing while it waits and wakes
 * at once, but knows neither a deadline nor a cancel, and to interrupt it a signal
 * would need a handler. So a thread waits, and the caller waits for the thread, the
 * deadline and the cancel together. The thread is cancelled if it is not wanted any
 * more. Whether it got the lock in that very moment does not matter: the lock is
 * the descriptor's, so to ask for it once more answers that. */
#define _GNU_SOURCE /* F_OFD_SETLKW */
#define _FILE_OFFSET_BITS 64

#include "sqlite_side.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define STACK_SIZE ((size_t)64 * 1024)

struct waiter {
    int fd;
    int done_fd; /* eventfd: the thread is through */
    int64_t offset;
    int result; /* errno, or 0; valid once the thread is through */
};

/* Holds nothing that would have to be undone, and calls nothing but fcntl() while it can be
 * cancelled at any instruction. */
static void *wait_for_byte(void *context)
{
    struct waiter *waiter = context;
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = waiter->offset, .l_len = 1};
    const uint64_t one = 1;
    int result;
    int previous;

    (void)pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &previous);
    do
        result = fcntl(waiter->fd, F_OFD_SETLKW, &lock);
    while (result != 0 && errno == EINTR);
    waiter->result = result == 0 ? 0 : errno;
    (void)pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &previous);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &previous);
    (void)(write(waiter->done_fd, &one, sizeof one) < 0); /* an eventfd at 0 takes it */
    return NULL;
}

static int start_thread(struct waiter *waiter, pthread_t *ret_thread)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    int number = pthread_attr_init(&attributes);

    if (number != 0)
        return number;
    (void)pthread_attr_setstacksize(&attributes, STACK_SIZE); /* else the default will do */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    number = pthread_create(ret_thread, &attributes, wait_for_byte, waiter);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return number;
}

int sqlite_side_wait(struct sqlite_side *side, int64_t offset, uint64_t until_us, int cancel_fd)
{
    struct dblock_call call = {until_us, cancel_fd};
    struct waiter waiter = {side->fd, -1, offset, EAGAIN};
    pthread_t thread;
    int ready;
    int number;

    waiter.done_fd = eventfd(0, EFD_CLOEXEC);
    if (waiter.done_fd < 0)
        return errno;
    number = start_thread(&waiter, &thread);
    if (number != 0) {
        (void)close(waiter.done_fd);
        return number;
    }
    ready = dblock_fd_wait(waiter.done_fd, POLLIN, &call, 1);
    if (ready <= 0)
        (void)pthread_cancel(thread);
    (void)pthread_join(thread, NULL);
    (void)close(waiter.done_fd);
    if (ready > 0)
        return waiter.result;
    number = sqlite_side_lock(side, offset);
    if (ready < 0 && number == 0)
        sqlite_side_unlock(side, offset);
    return ready < 0 ? ECANCELED : number;
}
