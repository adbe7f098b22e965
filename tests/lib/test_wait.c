/* SPDX-License-Identifier: MIT */
/* test_wait.c - see test_wait.h. The only place of the tests with pauses. */
#include "test_wait.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

uint64_t test_now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int poll_until(int fd, uint64_t until_ms)
{
    struct pollfd descriptor = { fd, POLLIN, 0 };
    int n_ready;

    do {
        uint64_t now_ms = test_now_ms();

        n_ready = poll(&descriptor, 1, now_ms < until_ms ? (int)(until_ms - now_ms) : 0);
    } while (n_ready < 0 && errno == EINTR);
    return n_ready > 0;
}

int test_readable(int fd, uint64_t within_ms)
{
    return poll_until(fd, test_now_ms() + within_ms);
}

void test_pass_ms(uint64_t duration_ms)
{
    (void)poll_until(-1, test_now_ms() + duration_ms);
}

int test_until(int (*condition)(void *context), void *context, uint64_t within_ms)
{
    uint64_t end_ms = test_now_ms() + within_ms;
    int answer;

    for (;;) {
        int is_last = test_now_ms() >= end_ms;

        answer = condition(context);
        if (answer != 0 || is_last)
            return answer;
        test_pass_ms(2);
    }
}

int test_is_set(void *number)
{
    return atomic_load((atomic_int *)number) != 0;
}

int test_is_zero(void *number)
{
    return atomic_load((atomic_int *)number) == 0;
}
