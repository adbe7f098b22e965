/* SPDX-License-Identifier: MIT */
/* bench_work.c - see bench_work.h. Each works until the time is over; a wait for the lock
 * is bounded by what is left of it, so that nobody has to be told to end. */
#include "bench_work.h"

#include "bench_heartbeat.h"
#include "signals.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define NS_PER_MS UINT64_C(1000000)

/* How long a holder lets the others come to wait before it hands over: longer than it takes to
 * get from the call to the database. */
#define SETTLE_MS 2

/* How long waiters wait beyond the end for a lock that somebody has let go. */
#define PATIENCE_MS 1000

/* The first grant, which connects, waits for those of the others. */
#define PREPARE_MS 10000

uint64_t bench_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 * NS_PER_MS + (uint64_t)now.tv_nsec;
}

static void pause_us(long us)
{
    struct timespec pause = {.tv_sec = 0, .tv_nsec = us * 1000};

    (void)nanosleep(&pause, NULL);
}

static bool is_stopped(const struct bench_seat *seat)
{
    return atomic_load_explicit(&seat->shared->is_over, memory_order_relaxed) ||
           dblock_canceller_is_raised(signals_canceller());
}

static bool is_over(const struct bench_seat *seat)
{
    return is_stopped(seat) || bench_now_ns() >= seat->shared->end_ns;
}

static uint64_t left_ms(const struct bench_seat *seat)
{
    uint64_t now_ns = bench_now_ns();

    return now_ns < seat->shared->end_ns ? (seat->shared->end_ns - now_ns) / NS_PER_MS : 0;
}

/* True with a lock; false if there was none to be had in time, or something went wrong. */
static bool take(struct bench_seat *seat, uint64_t wait_ms, dblock_lock **ret_lock)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error error;
    char name[BENCH_PREFIX_SIZE + 8];
    dblock_status status;

    options.strategy = seat->strategy;
    options.flags = seat->plan->arguments->is_fair ? DBLOCK_FAIR : 0;
    options.wait_ms = wait_ms;
    options.canceller = signals_canceller();
    (void)snprintf(name, sizeof name, "%slock", seat->plan->prefix);
    status = dblock_acquire(seat->client, name, &options, ret_lock, &error);
    if (status < 0)
        seat->member->error = error;
    return status == DBLOCK_OK;
}

static bool give_back(struct bench_seat *seat, dblock_lock *lock)
{
    struct dblock_error error;
    dblock_status status = dblock_release(lock, &error);

    dblock_lock_free(lock);
    if (status < 0)
        seat->member->error = error;
    else if (status == DBLOCK_LOST)
        seat->member->n_lost++;
    return status >= 0;
}

static void count_violation(struct bench_seat *seat)
{
    (void)atomic_fetch_add(&seat->shared->n_violations, 1);
}

/* The lock is ours by its word; here is where a second one with the same word would be met. Tokens
 * of row and advisory locks are drawn on demand, which costs, and are left alone. Returns who had
 * it before, 0 nobody. */
static unsigned enter(struct bench_seat *seat, dblock_lock *lock)
{
    struct bench_shared *shared = seat->shared;
    unsigned self = seat->number + 1;
    unsigned nobody = 0;
    unsigned last;
    int64_t token;

    if (!atomic_compare_exchange_strong(&shared->holder, &nobody, self))
        count_violation(seat);
    if ((seat->strategy == DBLOCK_LEASE || seat->strategy == DBLOCK_INSERT) &&
        dblock_lock_token(lock, &token, NULL) == DBLOCK_OK &&
        atomic_exchange(&shared->last_token, (unsigned long long)token) >=
            (unsigned long long)token)
        count_violation(seat);
    last = atomic_exchange(&shared->last_holder, self);
    if (last != self)
        (void)atomic_fetch_add(&shared->n_changes, 1);
    (void)atomic_fetch_add(&shared->n_grants, 1);
    return last;
}

/* Before the release is called: from then on it may be another's. */
static void leave(struct bench_seat *seat)
{
    unsigned self = seat->number + 1;

    (void)atomic_compare_exchange_strong(&seat->shared->holder, &self, 0);
}

static void work_alone(struct bench_seat *seat)
{
    uint64_t begun_ns = bench_now_ns();
    uint64_t before_ns = begun_ns;
    uint64_t after_ns = begun_ns;
    dblock_lock *lock;

    while (!is_over(seat) && take(seat, left_ms(seat), &lock)) {
        if (!give_back(seat, lock))
            break;
        after_ns = bench_now_ns();
        latency_add(&seat->member->latency, after_ns - before_ns);
        before_ns = bench_now_ns();
    }
    seat->member->elapsed_ns = after_ns - begun_ns;
}

static void work_contention(struct bench_seat *seat)
{
    dblock_lock *lock;

    while (!is_over(seat)) {
        uint64_t before_ns = bench_now_ns();
        uint64_t after_ns;

        if (!take(seat, left_ms(seat), &lock))
            break;
        after_ns = bench_now_ns();
        (void)enter(seat, lock);
        latency_add(&seat->member->latency, after_ns - before_ns);
        seat->member->n_grants++;
        leave(seat);
        if (!give_back(seat, lock))
            break;
    }
}

/* The holder's part of a hand-over: it lets go when all others wait, and comes back when one of
 * them has it. */
static bool hand_over(struct bench_seat *seat, dblock_lock *lock)
{
    struct bench_shared *shared = seat->shared;
    unsigned long long n_grants = atomic_load(&shared->n_grants);
    bool is_released;

    while (!is_over(seat) && atomic_load(&shared->n_waiting) + 1 < seat->n_members)
        pause_us(200);
    if (!is_over(seat))
        pause_us(SETTLE_MS * 1000);
    leave(seat);
    atomic_store(&shared->released_ns, bench_now_ns());
    is_released = give_back(seat, lock);
    while (is_released && !is_over(seat) && atomic_load(&shared->n_grants) == n_grants)
        pause_us(200);
    return is_released;
}

static void work_hand_over(struct bench_seat *seat)
{
    struct bench_shared *shared = seat->shared;
    dblock_lock *lock;

    while (!is_over(seat)) {
        uint64_t before_ns = bench_now_ns();
        uint64_t after_ns;
        uint64_t released_ns;
        bool is_granted;
        unsigned last;

        (void)atomic_fetch_add(&shared->n_waiting, 1);
        is_granted = take(seat, left_ms(seat) + PATIENCE_MS, &lock);
        after_ns = bench_now_ns();
        (void)atomic_fetch_sub(&shared->n_waiting, 1);
        released_ns = atomic_load(&shared->released_ns);
        if (!is_granted) {
            /* Nobody has it, and we were not told of it. */
            if (!is_stopped(seat) && seat->member->error.status == DBLOCK_OK &&
                atomic_load(&shared->holder) == 0)
                seat->member->n_missed++;
            break;
        }
        last = enter(seat, lock);
        if (released_ns != 0 && before_ns < released_ns && last != seat->number + 1)
            latency_add(&seat->member->latency, after_ns - released_ns);
        if (!hand_over(seat, lock))
            break;
    }
}

void bench_work_configure(struct bench_seat *seat, struct dblock_config *config)
{
    config->label = "dblock bench";
    if (seat->part == BENCH_HEARTBEAT)
        bench_heartbeat_configure(seat, config);
}

bool bench_work_prepare(struct bench_seat *seat)
{
    dblock_lock *lock;

    if (seat->part == BENCH_HEARTBEAT)
        return bench_heartbeat_prepare(seat);
    if (take(seat, PREPARE_MS, &lock))
        return give_back(seat, lock);
    if (seat->member->error.status == DBLOCK_OK && !is_stopped(seat)) {
        seat->member->error.status = DBLOCK_E_DATABASE;
        (void)snprintf(seat->member->error.message, sizeof seat->member->error.message,
            "%u clients did not all get the lock once within %d s", seat->n_members,
            PREPARE_MS / 1000);
    }
    return false;
}

void bench_work_perform(struct bench_seat *seat)
{
    switch (seat->part) {
    case BENCH_ALONE:
        work_alone(seat);
        break;
    case BENCH_CONTENTION:
        work_contention(seat);
        break;
    case BENCH_HAND_OVER:
        work_hand_over(seat);
        break;
    case BENCH_HEARTBEAT:
        bench_heartbeat_perform(seat);
        break;
    }
}

void bench_work_clear(struct bench_seat *seat)
{
    if (seat->part == BENCH_HEARTBEAT)
        bench_heartbeat_clear(seat);
}
