/* SPDX-License-Identifier: MIT */
/* environment.h - everything that the core takes from outside the process: the
 * clock, pausing, randomness, memory, host names. One table, so that a test can put another
 * in its place (a clock that jumps, an allocation that fails, a seeded source). */
#ifndef DBLK_ENVIRONMENT_H
#define DBLK_ENVIRONMENT_H

#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct dblk_environment {
    /* CLOCK_BOOTTIME in microseconds: it runs on through suspend, so a lease that ended while the
     * machine slept is seen as ended at once (CLOCK_MONOTONIC stands still then). */
    uint64_t (*now_us)(void);
    /* poll(2) until `until_us`; goes on after EINTR. Above 0: descriptors are ready. */
    int (*wait)(struct pollfd *descriptors, nfds_t n_descriptors, uint64_t until_us);
    /* A condition of the kind of dblk_condition_init(), until `until_us` at the latest. */
    void (*wait_condition)(
        pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t until_us);
    /* Unpredictable bytes; 0, or an errno. */
    int (*random)(void *bytes, size_t size);
    void *(*allocate)(size_t size); /* NULL when there is none */
    void (*release)(void *memory);  /* takes NULL */
    /* getaddrinfo() for a stream, of any family; *ret_found is freed by freeaddrinfo(). It may
     * take minutes. */
    int (*look_up)(const char *host, struct addrinfo **ret_found);
};

/* Before the first client is opened, and by tests only. NULL: the real one. */
void dblk_environment_set(const struct dblk_environment *environment);
const struct dblk_environment *dblk_environment(void);

/* For an environment of a test that replaces only some of it. */
extern const struct dblk_environment dblk_real_environment;

uint64_t dblk_now_us(void);
/* What this machine's clock shows to people, in microseconds since 1970. Somebody sets it:
 * nothing but its difference to the database's may be said of it. */
int64_t dblk_calendar_us(void);
int dblk_wait(struct pollfd *descriptors, nfds_t n_descriptors, uint64_t until_us);
int dblk_condition_init(pthread_cond_t *condition); /* 0 or an errno */
void dblk_wait_condition(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t until_us);
void *dblk_allocate(size_t size); /* zeroed; NULL when there is none */
void dblk_release(void *memory);
int dblk_look_up(const char *host, struct addrinfo **ret_found);
uint64_t dblk_random_u64(void); /* for jitter; falls back to the clock */

/* Times saturate: DBLK_NEVER plus anything is DBLK_NEVER. */
#define DBLK_NEVER UINT64_MAX

static inline uint64_t dblk_later(uint64_t time_us, uint64_t duration_us)
{
    return duration_us > DBLK_NEVER - time_us ? DBLK_NEVER : time_us + duration_us;
}

static inline uint64_t dblk_until(uint64_t now_us, uint64_t time_us)
{
    return time_us > now_us ? time_us - now_us : 0;
}

static inline uint64_t dblk_sooner(uint64_t left, uint64_t right)
{
    return left < right ? left : right;
}

/* Milliseconds as callers give them; DBLOCK_FOREVER stays for ever. */
static inline uint64_t dblk_ms(uint64_t milliseconds)
{
    return milliseconds > DBLK_NEVER / 1000 ? DBLK_NEVER : milliseconds * 1000;
}

#endif
