/* SPDX-License-Identifier: MIT */
/* name_lookup.c - see name_lookup.h.
 *
 * A lookup is freed by whoever is last, its thread or one who waits. The table is made anew in a forked
 * child, where the threads of the old one do not exist and its mutex may be held for ever: what it
 * has of memory and descriptors, a few at most, stays. */
#define _GNU_SOURCE /* eventfd() */
#include "core/name_lookup.h"

#include <dblock/sys/driver.h>

#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/environment.h"
#include "core/fork.h"

enum { HOST_SIZE = 256 };
#define TURN_US 20000u /* so often is looked whether one of too many lookups has ended */

struct table;

struct lookup {
    struct table *table;
    struct lookup *next;
    unsigned n_users; /* the thread among them */
    int done_fd;      /* readable for all, once it is done */
    int is_done;
    int fault; /* as of getaddrinfo() */
    struct dblock_addresses addresses;
    char host[HOST_SIZE];
};

struct table {
    pthread_mutex_t mutex; /* after every other; never held during a wait */
    uint64_t generation;   /* of the process that made it */
    struct table *before;  /* of the parent */
    struct lookup *first;  /* those that run */
    unsigned n_running;
};

static _Atomic(struct table *) current;

static struct table *find_table(void)
{
    uint64_t generation = dblk_fork_generation();
    struct table *before = atomic_load(&current);
    struct table *table;

    if (before != NULL && before->generation == generation)
        return before;
    table = dblk_allocate(sizeof *table);
    if (table == NULL)
        return NULL;
    (void)pthread_mutex_init(&table->mutex, NULL);
    table->generation = generation;
    table->before = before;
    if (atomic_compare_exchange_strong(&current, &before, table))
        return table;
    (void)pthread_mutex_destroy(&table->mutex);
    dblk_release(table);
    return before; /* of another thread, which came first */
}

/* `mutex` held. */
static void leave(struct lookup *lookup)
{
    if (--lookup->n_users > 0)
        return;
    (void)close(lookup->done_fd);
    dblk_release(lookup);
}

static void note_addresses(struct dblock_addresses *addresses, const struct addrinfo *found)
{
    for (; found != NULL && addresses->n < DBLOCK_ADDRESSES_MAX; found = found->ai_next)
        if (getnameinfo(found->ai_addr, found->ai_addrlen, addresses->texts[addresses->n],
                DBLOCK_ADDRESS_SIZE, NULL, 0, NI_NUMERICHOST) == 0)
            ++addresses->n;
}

static void *run(void *context)
{
    struct lookup *lookup = context;
    struct table *table = lookup->table;
    struct dblock_addresses addresses = { 0 };
    struct addrinfo *found = NULL;
    struct lookup **place;
    uint64_t one = 1;
    int fault = dblk_look_up(lookup->host, &found);

    if (fault == 0) {
        note_addresses(&addresses, found);
        freeaddrinfo(found);
        if (addresses.n == 0)
            fault = EAI_NONAME;
    }
    (void)pthread_mutex_lock(&table->mutex);
    lookup->addresses = addresses;
    lookup->fault = fault;
    lookup->is_done = 1;
    for (place = &table->first; *place != lookup; place = &(*place)->next)
        ;
    *place = lookup->next;
    --table->n_running;
    (void)!write(lookup->done_fd, &one, sizeof one);
    leave(lookup);
    (void)pthread_mutex_unlock(&table->mutex);
    return NULL;
}

/* Nobody waits for its end, and no signal of the application's arrives there. */
static int start_thread(struct lookup *lookup)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_t thread;
    int fault = pthread_attr_init(&attributes);

    if (fault != 0)
        return fault;
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    fault = pthread_create(&thread, &attributes, run, lookup);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return fault;
}

/* `mutex` held. NULL: it cannot be had. */
static struct lookup *start(struct table *table, const char *host)
{
    struct lookup *lookup = dblk_allocate(sizeof *lookup);

    if (lookup == NULL)
        return NULL;
    lookup->table = table;
    lookup->n_users = 2;
    lookup->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    dblock_text_copy(lookup->host, sizeof lookup->host, host);
    if (lookup->done_fd < 0 || start_thread(lookup) != 0) {
        if (lookup->done_fd >= 0)
            (void)close(lookup->done_fd);
        dblk_release(lookup);
        return NULL;
    }
    lookup->next = table->first;
    table->first = lookup;
    ++table->n_running;
    return lookup;
}

enum join_result { JOINED, FULL, IMPOSSIBLE };

static enum join_result join(struct table *table, const char *host, struct lookup **ret_lookup)
{
    enum join_result result = JOINED;
    struct lookup *lookup;

    (void)pthread_mutex_lock(&table->mutex);
    for (lookup = table->first; lookup != NULL; lookup = lookup->next)
        if (strcasecmp(lookup->host, host) == 0)
            break;
    if (lookup != NULL) {
        ++lookup->n_users;
    } else if (table->n_running >= DBLK_LOOKUPS_MAX) {
        result = FULL;
    } else {
        lookup = start(table, host);
        if (lookup == NULL)
            result = IMPOSSIBLE;
    }
    (void)pthread_mutex_unlock(&table->mutex);
    *ret_lookup = lookup;
    return result;
}

/* As dblock_fd_wait(). A place among the lookups comes free in a moment, if name servers answer. */
static int wait_for_turn(const struct dblock_call *call)
{
    struct dblock_call turn = *call;
    uint64_t now_us = dblk_now_us();

    if (now_us >= call->deadline_us)
        return 0;
    turn.deadline_us = dblk_sooner(call->deadline_us, now_us + TURN_US);
    return dblock_fd_wait(-1, POLLIN, &turn, 1) < 0 ? -1 : 1;
}

static int is_name(const char *host)
{
    struct addrinfo hints = { .ai_flags = AI_NUMERICHOST };
    struct addrinfo *found = NULL;

    if (*host == 0 || *host == '/' || *host == '@' || strcasecmp(host, "localhost") == 0 ||
        strlen(host) >= HOST_SIZE)
        return 0;
    if (getaddrinfo(host, NULL, &hints, &found) != 0)
        return 1;
    freeaddrinfo(found);
    return 0;
}

static dblock_status fail(int fault, const char *host, struct dblock_error *reterr)
{
    if (fault == EAI_MEMORY)
        return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "no memory to look a host up");
    return dblock_error_set(reterr, DBLOCK_E_CONNECTION, "check the host of the URL",
        "cannot connect: the host \"%s\" is not found: %s", host, gai_strerror(fault));
}

dblock_status dblock_host_look_up(const char *host, const struct dblock_call *call,
    struct dblock_addresses *ret_addresses, struct dblock_error *reterr)
{
    struct table *table;
    struct lookup *lookup = NULL;
    enum join_result joined;
    int is_done = 1;
    int fault;

    ret_addresses->n = 0;
    if (!is_name(host))
        return DBLOCK_OK;
    table = find_table();
    if (table == NULL)
        return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "no memory to look a host up");
    joined = join(table, host, &lookup);
    while (joined == FULL && (is_done = wait_for_turn(call)) > 0)
        joined = join(table, host, &lookup);
    if (joined == IMPOSSIBLE)
        return DBLOCK_OK;
    if (joined == JOINED) {
        is_done = dblock_fd_wait(lookup->done_fd, POLLIN, call, 1);
        (void)pthread_mutex_lock(&table->mutex);
        if (lookup->is_done)
            is_done = 1;
        *ret_addresses = lookup->addresses;
        fault = lookup->fault;
        leave(lookup);
        (void)pthread_mutex_unlock(&table->mutex);
        if (is_done > 0)
            return fault == 0 ? DBLOCK_OK : fail(fault, host, reterr);
    }
    if (is_done < 0)
        return DBLOCK_CANCELLED;
    return dblock_error_set(reterr, DBLOCK_E_CONNECTION,
        "see /etc/resolv.conf, or name the host by its address",
        "cannot connect: the name server does not answer (asked for \"%s\")", host);
}

unsigned dblk_lookups_running(void)
{
    struct table *table = find_table();
    unsigned n_running = 0;

    if (table != NULL) {
        (void)pthread_mutex_lock(&table->mutex);
        n_running = table->n_running;
        (void)pthread_mutex_unlock(&table->mutex);
    }
    return n_running;
}
