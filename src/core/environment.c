/* SPDX-License-Identifier: MIT */
/* environment.c - the one file of the core that asks the operating system for
 * time, pauses, randomness and memory. */
#define _GNU_SOURCE /* CLOCK_BOOTTIME, ppoll */

#include "core/environment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

static uint64_t read_clock(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_BOOTTIME, &time);
    return (uint64_t)time.tv_sec * 1000000u + (uint64_t)time.tv_nsec / 1000u;
}

static int wait_for_descriptors(struct pollfd *descriptors, nfds_t n_descriptors, uint64_t until_us)
{
    static const struct timespec nothing = { 0, 0 };

    if (until_us == 0) { /* a look, on the way of every release: without reading the clock */
        int n_there = ppoll(descriptors, n_descriptors, &nothing, NULL);

        return n_there > 0 ? n_there : 0;
    }
    for (;;) {
        uint64_t now_us = read_clock();
        uint64_t left_us = dblk_sooner(dblk_until(now_us, until_us), 3600u * 1000000u);
        struct timespec left = { (time_t)(left_us / 1000000u), (long)(left_us % 1000000u) * 1000 };
        int n_ready = ppoll(descriptors, n_descriptors, &left, NULL);

        if (n_ready > 0)
            return n_ready;
        if (n_ready < 0 && errno != EINTR)
            return -1;
        /* poll's own clock stops during suspend; ours decides whether the time is over */
        if (n_ready == 0 && read_clock() >= until_us)
            return 0;
    }
}

int dblk_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    int fault = pthread_condattr_init(&attributes);

    if (fault != 0)
        return fault;
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    fault = pthread_cond_init(condition, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    return fault;
}

static void wait_for_condition(
    pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t until_us)
{
    /* A minute at most: the condition's clock stands still during suspend, ours does not. */
    uint64_t left_us = dblk_sooner(dblk_until(read_clock(), until_us), 60u * 1000000u);
    struct timespec end;

    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += (time_t)(left_us / 1000000u);
    end.tv_nsec += (long)(left_us % 1000000u) * 1000;
    if (end.tv_nsec >= 1000000000) {
        end.tv_nsec -= 1000000000;
        ++end.tv_sec;
    }
    (void)pthread_cond_timedwait(condition, mutex, &end);
}

static int read_random(void *bytes, size_t size)
{
    unsigned char *next = bytes;

    while (size > 0) {
        ssize_t n_read = getrandom(next, size, 0);

        if (n_read < 0 && errno != EINTR)
            return errno;
        if (n_read > 0) {
            next += n_read;
            size -= (size_t)n_read;
        }
    }
    return 0;
}

static void release_memory(void *memory)
{
    free(memory);
}

static int look_up(const char *host, struct addrinfo **ret_found)
{
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };

    return getaddrinfo(host, NULL, &hints, ret_found);
}

const struct dblk_environment dblk_real_environment = {
    .now_us = read_clock,
    .wait = wait_for_descriptors,
    .wait_condition = wait_for_condition,
    .random = read_random,
    .allocate = malloc,
    .release = release_memory,
    .look_up = look_up,
};

static const struct dblk_environment *current = &dblk_real_environment;

void dblk_environment_set(const struct dblk_environment *environment)
{
    current = environment != NULL ? environment : &dblk_real_environment;
}

const struct dblk_environment *dblk_environment(void)
{
    return current;
}

int64_t dblk_calendar_us(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_REALTIME, &time);
    return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

uint64_t dblk_now_us(void)
{
    return current->now_us();
}

int dblk_wait(struct pollfd *descriptors, nfds_t n_descriptors, uint64_t until_us)
{
    return current->wait(descriptors, n_descriptors, until_us);
}

void dblk_wait_condition(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t until_us)
{
    current->wait_condition(condition, mutex, until_us);
}

void *dblk_allocate(size_t size)
{
    void *memory = current->allocate(size);

    /* and not calloc(), which in glibc goes past the cache of the thread */
    return memory != NULL ? memset(memory, 0, size) : NULL;
}

void dblk_release(void *memory)
{
    current->release(memory);
}

int dblk_look_up(const char *host, struct addrinfo **ret_found)
{
    return current->look_up(host, ret_found);
}

uint64_t dblk_random_u64(void)
{
    uint64_t number = 0;

    if (current->random(&number, sizeof number) != 0)
        number = current->now_us() * UINT64_C(0x9E3779B97F4A7C15);
    return number;
}
