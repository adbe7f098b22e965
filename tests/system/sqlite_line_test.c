/* SPDX-License-Identifier: MIT */
/* sqlite_line_test.c - waiting for locks of the SQLite driver with real processes:
 * the order of arrival, and what becomes of it when some are killed, stopped or fork.
 * A forked child may not open a file that is open in its parent, so the children are
 * started first, and begin when they are told. Runs beside others. Time limit: 120 s. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */

#include "sqlite_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "processes.h"
#include "test_wait.h"

#define SECOND 1000000u
#define TTL_US (60u * SECOND)
#define N_MAX 16
#define HOLDER (N_MAX - 1) /* this one does not release */

static const int all[] = {DBLOCK_LEASE, DBLOCK_INSERT, DBLOCK_ROW, DBLOCK_ADVISORY};
#define FOR_ALL(index, strategy)                                                                   \
    for ((index) = 0; (index) < 4 && ((strategy) = all[index], 1); ++(index))
#define FOR_RECORDED(index, strategy)                                                              \
    for ((index) = 0; (index) < 2 && ((strategy) = all[index], 1); ++(index))

static struct shared {
    atomic_int n_served;
    int order[N_MAX]; /* in which they were served */
    _Atomic uint64_t served_us[N_MAX];
    atomic_int may_begin[N_MAX];
    atomic_int stop;
    _Atomic uint64_t n_grants[N_MAX];
} * shared;

static struct sqlite_fixture fixture;
static struct dblock_connection *looker; /* of the test itself */

static int set_up(void **state)
{
    (void)state;
    return sqlite_fixture_open(&fixture, 1);
}

static int tear_down(void **state)
{
    (void)state;
    sqlite_fixture_close(&fixture);
    return 0;
}

/* -------------------------------------------------- one that acquires and releases */

static int is_recorded(int strategy)
{
    return strategy == DBLOCK_LEASE || strategy == DBLOCK_INSERT;
}

struct party {
    struct dblock_connection *connection; /* short, row or advisory */
    struct dblock_connection *line;       /* NULL for row and advisory */
    int strategy;
};

static struct party join(int strategy)
{
    struct party party = {NULL, NULL, strategy};

    if (is_recorded(strategy)) {
        party.connection = sqlite_fixture_connect(&fixture, DBLOCK_ROLE_SHORT);
        party.line = sqlite_fixture_connect(&fixture, DBLOCK_ROLE_LINE);
    } else {
        party.connection = sqlite_live_connect(&fixture, strategy);
    }
    return party;
}

static int take(struct party *party, const char *owner, int heeds_line)
{
    struct dblock_take take = sqlite_take_of("n", sqlite_id(owner), NULL, TTL_US);

    take.heeds_line = heeds_line;
    memset(&fixture.answer, 0, sizeof fixture.answer);
    fixture.status = (party->strategy == DBLOCK_LEASE ? fixture.driver->lease.take
                                                      : fixture.driver->insert.take)(
        party->connection, &fixture.call, &take, &fixture.grant, &fixture.answer, &fixture.error);
    return fixture.status == DBLOCK_OK ? fixture.answer.outcome : -1;
}

static int stand(struct party *party, uint64_t wait_us)
{
    struct dblock_subject subject = sqlite_subject("n");

    memset(&fixture.answer, 0, sizeof fixture.answer);
    fixture.status = fixture.driver->line.stand(party->line, &fixture.call, party->strategy,
        &subject, wait_us, 1, &fixture.answer, &fixture.error);
    return fixture.status == DBLOCK_OK ? fixture.answer.outcome : -1;
}

static int rest(struct party *party, uint64_t limit_us)
{
    struct dblock_call call = {dblock_clock_us() + limit_us, fixture.call.cancel_fd};

    memset(&fixture.answer, 0, sizeof fixture.answer);
    fixture.status =
        fixture.driver->line.rest(party->line, &call, "", &fixture.answer, &fixture.error);
    return fixture.status == DBLOCK_OK ? fixture.answer.outcome : -1;
}

static void leave(struct party *party)
{
    fixture.driver->line.leave(party->line);
}

/* As the library does it. */
static int acquire(struct party *party, const char *owner)
{
    int outcome;

    sqlite_fixture_limit(&fixture, 60 * SECOND, -1);
    if (!is_recorded(party->strategy))
        return sqlite_live_take(&fixture, party->connection, party->strategy, "n", 60 * SECOND);
    outcome = take(party, owner, 1);
    if (outcome == DBLOCK_ANSWER_YES)
        return outcome;
    outcome = stand(party, 60 * SECOND);
    if (outcome != DBLOCK_ANSWER_YES)
        return outcome;
    while (
        (outcome = take(party, owner, 0)) == DBLOCK_ANSWER_BUSY || outcome == DBLOCK_ANSWER_AGAIN)
        if (outcome == DBLOCK_ANSWER_BUSY && rest(party, 5 * SECOND) < 0)
            return -1;
    leave(party);
    return outcome;
}

static int release(struct party *party, const char *owner)
{
    if (is_recorded(party->strategy))
        return sqlite_drop(&fixture, party->connection, party->strategy, "n", owner, 0);
    return sqlite_live_run(
        &fixture, sqlite_live_steps(&fixture, party->strategy)->drop, party->connection, "n");
}

/* ------------------------------------------------------------ processes that wait */

struct waiter {
    struct test_process process;
    int strategy;
    int index;
};

static int may_begin(void *context)
{
    return atomic_load((atomic_int *)context);
}

static int wait_once(void *context, int ready_fd)
{
    struct waiter *waiter = context;
    struct party party;
    char owner[8];

    if (!test_until(may_begin, &shared->may_begin[waiter->index], 60000))
        return 3;
    party = join(waiter->strategy);
    (void)snprintf(owner, sizeof owner, "w%d", waiter->index);
    if (acquire(&party, owner) != DBLOCK_ANSWER_YES)
        return 1;
    atomic_store(&shared->served_us[waiter->index], dblock_clock_us());
    shared->order[atomic_fetch_add(&shared->n_served, 1)] = waiter->index;
    process_ready(ready_fd, 1);
    if (waiter->index == HOLDER)
        process_stay();
    return release(&party, owner) == DBLOCK_ANSWER_YES ? 0 : 2;
}

static int note_waiters(const struct dblock_grant *grant, void *context)
{
    *(uint32_t *)context = grant->n_waiters;
    return 1;
}

static uint32_t count_waiters(int strategy)
{
    struct dblock_page page = {.strategy = strategy, .name = "n", .limit = 1, .is_idle = 1};
    uint32_t n_waiters = 0;

    sqlite_fixture_limit(&fixture, 20 * SECOND, -1);
    assert_int_equal(fixture.driver->observe.list(looker, &fixture.call, &page, note_waiters,
                         &n_waiters, &fixture.answer, &fixture.error),
        DBLOCK_OK);
    return n_waiters;
}

struct expectation {
    int strategy;
    uint32_t n_waiters;
};

static int has_waiters(void *context)
{
    const struct expectation *expected = context;

    return count_waiters(expected->strategy) == expected->n_waiters;
}

static void await_waiters(int strategy, uint32_t n_waiters)
{
    struct expectation expected = {strategy, n_waiters};

    assert_true(test_until(has_waiters, &expected, 10000));
}

static void start_children(struct waiter *waiters, int n, int strategy, test_process_fn fn)
{
    int i;

    memset(shared, 0, sizeof *shared);
    for (i = 0; i < n; ++i) {
        waiters[i] = (struct waiter){.strategy = strategy, .index = i};
        assert_int_equal(process_start(&waiters[i].process, fn, &waiters[i]), 0);
    }
    looker = sqlite_fixture_connect(&fixture, DBLOCK_ROLE_SHORT);
    assert_non_null(looker);
}

/* `holder` holds the name, and they wait: one after the other, so that their order is known. */
static void begin_round(struct party *holder, struct waiter *waiters, int n, int strategy)
{
    int i;

    start_children(waiters, n, strategy, wait_once);
    *holder = join(strategy);
    assert_int_equal(acquire(holder, "h"), DBLOCK_ANSWER_YES);
    for (i = 0; i < n; ++i) {
        atomic_store(&shared->may_begin[i], 1);
        await_waiters(strategy, (uint32_t)i + 1);
    }
}

static void end_round(void)
{
    size_t i;

    for (i = 0; i < fixture.n_connections; ++i)
        fixture.driver->connection.close(fixture.connections[i], DBLOCK_CLOSE_POLITE);
    fixture.n_connections = 0;
}

static void kill_waiter(struct waiter *waiter)
{
    process_kill(&waiter->process);
}

/* All its threads: one that is still running could be given the lock. */
static void stop_waiter(struct waiter *waiter)
{
    siginfo_t info;

    assert_int_equal(kill(waiter->process.pid, SIGSTOP), 0);
    assert_int_equal(waitid(P_PID, (id_t)waiter->process.pid, &info, WSTOPPED), 0);
}

static void assert_served(struct waiter *waiters, const int *expected, int n)
{
    int i;

    for (i = 0; i < n; ++i)
        assert_int_equal(process_wait(&waiters[expected[i]].process, 20000), 0);
    assert_int_equal(atomic_load(&shared->n_served), n);
    for (i = 0; i < n; ++i)
        assert_int_equal(shared->order[i], expected[i]);
}

static void waiters__are_served_in_order_of_arrival(void **state)
{
    static const int expected[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
    struct waiter waiters[N_MAX];
    struct party holder;
    int i, strategy;

    (void)state;
    FOR_ALL(i, strategy)
    {
        begin_round(&holder, waiters, HOLDER, strategy);
        assert_int_equal(release(&holder, "h"), DBLOCK_ANSWER_YES);
        assert_served(waiters, expected, HOLDER);
        end_round();
    }
}

static void killed_waiters__leave_the_line(void **state)
{
    static const int expected[] = {1, 3, 4, 5};
    struct waiter waiters[8];
    struct party holder;
    uint64_t begun_us;
    int i, strategy;

    (void)state;
    FOR_ALL(i, strategy)
    {
        begin_round(&holder, waiters, 8, strategy);
        kill_waiter(&waiters[0]);
        kill_waiter(&waiters[2]);
        kill_waiter(&waiters[6]);
        kill_waiter(&waiters[7]);
        assert_int_equal(count_waiters(strategy), 4);
        begun_us = dblock_clock_us();
        assert_int_equal(release(&holder, "h"), DBLOCK_ANSWER_YES);
        assert_served(waiters, expected, 4);
        assert_true(atomic_load(&shared->served_us[5]) - begun_us < SECOND);
        /* and those who died do not stand in the way of who comes */
        assert_int_equal(acquire(&holder, "h"), DBLOCK_ANSWER_YES);
        assert_int_equal(release(&holder, "h"), DBLOCK_ANSWER_YES);
        end_round();
    }
}

/* The holder's death frees row and advisory; whoever is next has it at once. */
static void a_killed_holder__is_followed_at_once(void **state)
{
    struct waiter waiters[N_MAX];
    uint64_t killed_us;
    int i, k, strategy;

    (void)state;
    for (i = 2; i < 4; ++i) {
        strategy = all[i];
        start_children(waiters, N_MAX, strategy, wait_once);
        atomic_store(&shared->may_begin[HOLDER], 1);
        assert_int_equal(process_await(&waiters[HOLDER].process, 10000), 1);
        atomic_store(&shared->may_begin[0], 1);
        await_waiters(strategy, 1);
        test_pass_ms(20); /* sleeps because a wait of some length is meant */
        killed_us = dblock_clock_us();
        kill_waiter(&waiters[HOLDER]);
        assert_int_equal(process_wait(&waiters[0].process, 10000), 0);
        print_message("strategy %d: %llu us from the kill to the next grant\n", strategy,
            (unsigned long long)(atomic_load(&shared->served_us[0]) - killed_us));
        assert_true(atomic_load(&shared->served_us[0]) - killed_us < SECOND / 2);
        for (k = 1; k < HOLDER; ++k)
            kill_waiter(&waiters[k]);
        end_round();
    }
}

static void a_stopped_first__is_passed_by(void **state)
{
    static const int expected[] = {1, 2};
    struct waiter waiters[3];
    struct party holder;
    uint64_t begun_us;
    int i, strategy;

    (void)state;
    FOR_ALL(i, strategy)
    {
        begin_round(&holder, waiters, 3, strategy);
        test_pass_ms(20); /* sleeps because the first shall rest, not just have come */
        stop_waiter(&waiters[0]);
        begun_us = dblock_clock_us();
        assert_int_equal(release(&holder, "h"), DBLOCK_ANSWER_YES);
        assert_served(waiters, expected, 2);
        assert_true(dblock_clock_us() - begun_us < 4 * SECOND);
        assert_int_equal(kill(waiters[0].process.pid, SIGCONT), 0);
        assert_int_equal(process_wait(&waiters[0].process, 10000), 0);
        end_round();
    }
}

/* Alone in line and stopped: the next one who comes need not wait for it longer than that either. */
static void a_stopped_waiter__does_not_keep_a_free_name(void **state)
{
    struct waiter waiter;
    struct party holder;
    uint64_t begun_us;
    int i, strategy;

    (void)state;
    FOR_ALL(i, strategy)
    {
        begin_round(&holder, &waiter, 1, strategy);
        stop_waiter(&waiter);
        assert_int_equal(release(&holder, "h"), DBLOCK_ANSWER_YES);
        begun_us = dblock_clock_us();
        assert_int_equal(acquire(&holder, "h"), DBLOCK_ANSWER_YES);
        assert_true(dblock_clock_us() - begun_us < 4 * SECOND);
        assert_int_equal(release(&holder, "h"), DBLOCK_ANSWER_YES);
        kill_waiter(&waiter);
        end_round();
    }
}

struct forker {
    int strategy;
    int ends[2]; /* the grandchild stays until the test closes its end */
};

static int wait_and_fork(void *context, int ready_fd)
{
    const struct forker *forker = context;
    struct party party = join(forker->strategy);
    char byte;

    sqlite_fixture_limit(&fixture, 60 * SECOND, -1);
    if (stand(&party, 60 * SECOND) != DBLOCK_ANSWER_YES)
        return 1;
    (void)close(forker->ends[1]);
    if (fork() == 0) { /* it has let go of the place by the time it runs */
        process_ready(ready_fd, 1);
        _exit(read(forker->ends[0], &byte, 1) != 0);
    }
    process_stay();
    return 0;
}

/* PITFALL(H7): a forked child shares the open file, and must not keep a dead process's place. */
static void a_forked_child__keeps_no_place(void **state)
{
    struct test_process process;
    struct forker forker;
    struct party mine;
    int i;

    (void)state;
    FOR_RECORDED(i, forker.strategy)
    {
        assert_int_equal(pipe(forker.ends), 0);
        assert_int_equal(process_start(&process, wait_and_fork, &forker), 0);
        assert_int_equal(process_await(&process, 10000), 1);
        mine = join(forker.strategy);
        sqlite_fixture_limit(&fixture, 60 * SECOND, -1);
        assert_int_equal(take(&mine, "a", 1), DBLOCK_ANSWER_BUSY);
        process_kill(&process);
        assert_int_equal(take(&mine, "a", 1), DBLOCK_ANSWER_YES);
        assert_int_equal(release(&mine, "a"), DBLOCK_ANSWER_YES);
        end_round();
        (void)close(forker.ends[0]);
        (void)close(forker.ends[1]);
    }
}

/* ------------------------------------------------------------------------- fairness */

static int fight(void *context, int ready_fd)
{
    struct waiter *waiter = context;
    struct party party = join(waiter->strategy);
    char owner[8];

    (void)snprintf(owner, sizeof owner, "w%d", waiter->index);
    process_ready(ready_fd, 1);
    while (!atomic_load(&shared->stop)) {
        if (acquire(&party, owner) != DBLOCK_ANSWER_YES ||
            release(&party, owner) != DBLOCK_ANSWER_YES)
            return 1;
        atomic_fetch_add(&shared->n_grants[waiter->index], 1);
    }
    return 0;
}

static void a_crowd__is_served_alike(void **state)
{
    struct waiter waiters[N_MAX];
    int i, k, strategy;

    (void)state;
    FOR_ALL(i, strategy)
    {
        uint64_t least = UINT64_MAX, most = 0;

        start_children(waiters, N_MAX, strategy, fight);
        for (k = 0; k < N_MAX; ++k)
            assert_int_equal(process_await(&waiters[k].process, 10000), 1);
        test_pass_ms(1500);
        atomic_store(&shared->stop, 1);
        for (k = 0; k < N_MAX; ++k) {
            uint64_t n_grants;

            assert_int_equal(process_wait(&waiters[k].process, 20000), 0);
            n_grants = atomic_load(&shared->n_grants[k]);
            least = n_grants < least ? n_grants : least;
            most = n_grants > most ? n_grants : most;
        }
        print_message("strategy %d: each served %llu to %llu times\n", strategy,
            (unsigned long long)least, (unsigned long long)most);
        /* beside other tests; how alike it is on a machine of its own, tests/bench/waiting tells */
        assert_true(least * 4 > most);
        end_round();
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(waiters__are_served_in_order_of_arrival),
        TEST(killed_waiters__leave_the_line),
        TEST(a_killed_holder__is_followed_at_once),
        TEST(a_stopped_first__is_passed_by),
        TEST(a_stopped_waiter__does_not_keep_a_free_name),
        TEST(a_forked_child__keeps_no_place),
        TEST(a_crowd__is_served_alike),
    };

    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    return cmocka_run_group_tests_name("sqlite_line", tests, NULL, NULL);
}
