/* SPDX-License-Identifier: MIT */
/* sqlite_helper.c - see sqlite_helper.h. */
#include "sqlite_helper.h"

#include <dblock/sys/driver.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define STACK_SIZE ((size_t)64 * 1024)
#define SETTLE_US 1000

enum { NOT_BLOCKED, BLOCKED, THROUGH };

struct sqlite_helper {
    /* the thread that blocks */
    pthread_t blocker;
    int has_blocker;
    sem_t begun;
    sqlite_block_fn fn;
    void *context;
    struct sqlite_bell bell, ringing;
    int result;            /* valid once it is THROUGH */
    _Atomic int state;     /* of the above */
    _Atomic uint32_t ends; /* counts */
    /* the thread that watches */
    pthread_t watcher;
    int has_watcher;
    int epoll_fd;
    struct epoll_event event;
    uint64_t watch;                         /* counts */
    _Atomic uint64_t cancelled;             /* the watch whose descriptor has become readable */
    _Atomic(_Atomic uint32_t *) watch_word; /* to ring then */
};

/* What a thread works with is not on its stack (see struct side_wait). */
static void *block(void *argument)
{
    struct sqlite_helper *helper = argument;

    for (;;) {
        while (sem_wait(&helper->begun) != 0)
            ; /* interrupted */
        helper->ringing = helper->bell;
        helper->result = helper->fn(helper->context);
        atomic_store(&helper->state, THROUGH); /* the next may begin: not its bell is rung */
        sqlite_bell_ring((struct sqlite_bell){&helper->ends, SQLITE_BELL_ALL});
        sqlite_bell_ring(helper->ringing);
    }
    return NULL;
}

static void *watch(void *argument)
{
    struct sqlite_helper *helper = argument;

    for (;;) {
        if (epoll_wait(helper->epoll_fd, &helper->event, 1, -1) != 1)
            continue;
        /* one that was ended meanwhile: its number is not asked for any more */
        atomic_store(&helper->cancelled, helper->event.data.u64);
        sqlite_bell_ring((struct sqlite_bell){atomic_load(&helper->watch_word), SQLITE_BELL_ALL});
    }
    return NULL;
}

static int start_thread(
    struct sqlite_helper *helper, pthread_t *ret_thread, int *is_there, void *(*run)(void *))
{
    pthread_attr_t attributes;
    sigset_t all, before;
    int number;

    if (*is_there)
        return 0;
    number = pthread_attr_init(&attributes);
    if (number != 0)
        return number;
    (void)pthread_attr_setstacksize(&attributes, STACK_SIZE); /* else the default will do */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    number = pthread_create(ret_thread, &attributes, run, helper);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    *is_there = number == 0;
    return number;
}

static void end_thread(pthread_t thread, int *is_there)
{
    if (!*is_there)
        return;
    (void)pthread_cancel(thread);
    (void)pthread_join(thread, NULL);
    *is_there = 0;
}

static int make(struct sqlite_helper **ret_helper)
{
    struct sqlite_helper *helper;
    int number = 0;

    if (*ret_helper != NULL)
        return 0;
    helper = calloc(1, sizeof *helper);
    if (helper == NULL)
        return ENOMEM;
    helper->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (helper->epoll_fd < 0 || sem_init(&helper->begun, 0, 0) != 0) {
        number = errno;
        if (helper->epoll_fd >= 0)
            (void)close(helper->epoll_fd);
        free(helper);
        return number;
    }
    *ret_helper = helper;
    return 0;
}

/* ------------------------------------------------------------------- blocking */

int sqlite_helper_block(
    struct sqlite_helper **helper, sqlite_block_fn fn, void *context, struct sqlite_bell bell)
{
    int number = make(helper);

    if (number == 0)
        number = start_thread(*helper, &(*helper)->blocker, &(*helper)->has_blocker, block);
    if (number != 0)
        return number;
    (*helper)->fn = fn;
    (*helper)->context = context;
    (*helper)->bell = bell;
    atomic_store(&(*helper)->state, BLOCKED);
    (void)sem_post(&(*helper)->begun);
    return 0;
}

int sqlite_helper_is_through(const struct sqlite_helper *helper, int *ret_result)
{
    if (atomic_load(&helper->state) != THROUGH)
        return 0;
    *ret_result = helper->result;
    return 1;
}

int sqlite_helper_is_blocked(const struct sqlite_helper *helper)
{
    return atomic_load(&helper->state) == BLOCKED;
}

void sqlite_helper_settle(struct sqlite_helper *helper)
{
    struct sqlite_bell ends;
    uint64_t until_us, now_us;
    uint32_t heard;

    if (helper == NULL || atomic_load(&helper->state) != BLOCKED)
        return;
    ends = (struct sqlite_bell){&helper->ends, SQLITE_BELL_ALL};
    now_us = dblock_clock_us();
    until_us = now_us + SETTLE_US;
    heard = atomic_load(&helper->ends);
    while (atomic_load(&helper->state) == BLOCKED && now_us < until_us) {
        sqlite_bell_sleep(ends, heard, until_us - now_us);
        heard = atomic_load(&helper->ends);
        now_us = dblock_clock_us();
    }
    sqlite_helper_give_up(helper);
}

void sqlite_helper_give_up(struct sqlite_helper *helper)
{
    if (helper == NULL || atomic_load(&helper->state) != BLOCKED)
        return;
    end_thread(helper->blocker, &helper->has_blocker);
    (void)sem_trywait(&helper->begun); /* it had not even begun */
    atomic_store(&helper->state, NOT_BLOCKED);
}

/* ------------------------------------------------------------------- watching */

/* A descriptor of an earlier watch stays where it is: most likely it is the same again. It goes
 * when it is closed; what it still says is said for a number that nobody asks for, and once. */
int sqlite_helper_watch(struct sqlite_helper **helper, int cancel_fd, struct sqlite_bell bell)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT};
    int number = make(helper);
    int fd;

    if (number != 0)
        return number;
    fd = (*helper)->epoll_fd;
    atomic_store(&(*helper)->watch_word, bell.word);
    event.data.u64 = ++(*helper)->watch;
    if (epoll_ctl(fd, EPOLL_CTL_MOD, cancel_fd, &event) != 0 &&
        epoll_ctl(fd, EPOLL_CTL_ADD, cancel_fd, &event) != 0)
        return errno == EPERM ? 0 : errno; /* a plain file: it never becomes a cancel */
    return start_thread(*helper, &(*helper)->watcher, &(*helper)->has_watcher, watch);
}

int sqlite_helper_is_cancelled(const struct sqlite_helper *helper)
{
    return atomic_load(&helper->cancelled) == helper->watch;
}

void sqlite_helper_unwatch(struct sqlite_helper *helper)
{
    ++helper->watch;
}

void sqlite_helper_free(struct sqlite_helper *helper)
{
    if (helper == NULL)
        return;
    end_thread(helper->blocker, &helper->has_blocker);
    end_thread(helper->watcher, &helper->has_watcher);
    (void)sem_destroy(&helper->begun);
    (void)close(helper->epoll_fd);
    free(helper);
}
