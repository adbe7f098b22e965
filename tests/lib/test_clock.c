/* SPDX-License-Identifier: MIT */
/* test_clock.c - see test_clock.h. */
#include "test_clock.h"

#include "core/environment.h"

static _Atomic uint64_t offset_us;

static uint64_t now_us(void)
{
    return dblk_real_environment.now_us() + offset_us;
}

static uint64_t real(uint64_t until_us)
{
    return until_us > offset_us && until_us != DBLK_NEVER ? until_us - offset_us : until_us;
}

static int wait_real(struct pollfd *descriptors, nfds_t n_descriptors, uint64_t until_us)
{
    return dblk_real_environment.wait(descriptors, n_descriptors, real(until_us));
}

static void wait_condition(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t until_us)
{
    dblk_real_environment.wait_condition(condition, mutex, real(until_us));
}

void test_clock_begin(void)
{
    static struct dblk_environment environment;

    environment = dblk_real_environment;
    environment.now_us = now_us;
    environment.wait = wait_real;
    environment.wait_condition = wait_condition;
    dblk_environment_set(&environment);
}

void test_clock_end(void)
{
    dblk_environment_set(NULL);
}

void test_clock_forward(uint64_t by_us)
{
    offset_us += by_us;
}
