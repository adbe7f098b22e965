/* SPDX-License-Identifier: MIT */
/* sqlite_hammer_test.c - many processes that fight for few names through the SQLite
 * driver, and are killed and stopped at random while they do.
 *
 * Oracle. Each grant is written to memory that all share: when its holder first
 * believed in it (after the take was answered) and until when (the last renewal's
 * sending plus 7/8 of the ttl, or the moment before the release was sent), by a clock
 * that all processes have in common. Sorted by their beginning the grants of a name
 * must not overlap, and their tokens must rise. A killed holder's belief ends no later
 * than was written. Beside that the free rows are deleted all the time, so that tokens
 * have to survive the rows. It lasts 24 s, or with DBLOCK_TEST_HAMMER_SECONDS 2.4 times that.
 * Time limit: 300 s. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */

#include "sqlite_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "processes.h"
#include "test_wait.h"

#define TTL_US 60000u
#define BELIEF_US (TTL_US - TTL_US / 8)
#define N_NAMES 3
#define N_WORKERS 14
#define N_CROWD 32
#define N_GRANTS_MAX 2000000
#define N_GRANTS_LEAST 11 /* of each hammering */
#define PATIENCE_US 60000000u

struct grant_log {
    volatile uint64_t begin_us, end_us; /* volatile: written in the order that the code says, as */
    volatile int64_t token;             /* the writer may be killed between any two */
    volatile int32_t name;
    volatile int32_t worker;
};

static struct shared {
    atomic_uint n_grants;
    atomic_uint n_busy, n_again, n_lost, n_late, n_session;
    atomic_int n_errors;
    char error[600];
    _Atomic uint64_t stop_us;
    struct grant_log grants[N_GRANTS_MAX];
} * shared;

struct worker {
    int number;
    int strategy;
    int with_pauses; /* hold for a while, nap past the ttl now and then */
    int n_names;
};

static struct sqlite_fixture fixture;
static uint64_t seed;

static unsigned draw(unsigned below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(seed >> 33) % below;
}

static int is_recorded(int strategy)
{
    return strategy == DBLOCK_LEASE || strategy == DBLOCK_INSERT;
}

static void complain(const char *step)
{
    if (atomic_fetch_add(&shared->n_errors, 1) == 0)
        (void)snprintf(shared->error, sizeof shared->error, "%s: %d %.450s", step, fixture.status,
            fixture.error.message);
}

static void pause_us(unsigned duration_us)
{
    struct dblock_call call = {dblock_clock_us() + duration_us, -1};
    static int ends[2] = {-1, -1};

    if (ends[0] < 0 && pipe(ends) != 0)
        return;
    (void)dblock_fd_wait(ends[0], POLLIN, &call, 0);
}

/* ---------------------------------------------------------- one client's life */

struct client {
    const struct worker *worker;
    struct dblock_connection *connection, *control;
    char session[DBLOCK_ID_SIZE + 1];
    uint64_t renewed_us; /* when the last heartbeat that got through was sent; 0: no session */
    struct grant_log *grant;
    char owner[DBLOCK_ID_SIZE + 1];
};

static void make_id(char id[DBLOCK_ID_SIZE + 1])
{
    (void)snprintf(id, DBLOCK_ID_SIZE + 1, "%08x%08x", draw(1u << 31), draw(1u << 31));
}

static int renew(struct client *client)
{
    uint64_t sent_us = dblock_clock_us();
    int outcome;

    if (client->renewed_us != 0 && sent_us - client->renewed_us < TTL_US / 3)
        return 1;
    if (client->renewed_us == 0) {
        make_id(client->session);
        outcome = sqlite_begin_session(&fixture, client->connection, client->session, TTL_US);
    } else {
        outcome = sqlite_renew_session(&fixture, client->connection, client->session, TTL_US);
    }
    if (outcome < 0)
        complain("renew");
    if (outcome == DBLOCK_ANSWER_YES) {
        client->renewed_us = sent_us;
        if (client->grant != NULL)
            client->grant->end_us = sent_us + BELIEF_US;
    }
    if (outcome == DBLOCK_ANSWER_NO)
        client->renewed_us = 0;
    return outcome == DBLOCK_ANSWER_YES || outcome == DBLOCK_ANSWER_AGAIN;
}

static int take_byte(struct client *client, const char *name)
{
    struct dblock_take take = sqlite_take_of(name, sqlite_id(client->owner), NULL, 0);

    take.wait_us = draw(2) * 20000;
    memset(&fixture.answer, 0, sizeof fixture.answer);
    fixture.status = (client->worker->strategy == DBLOCK_ROW ? fixture.driver->row.take
                                                             : fixture.driver->advisory.take)(
        client->connection, &fixture.call, &take, NULL, &fixture.answer, &fixture.error);
    return fixture.status == DBLOCK_OK ? fixture.answer.outcome : -1;
}

static int64_t draw_token(struct client *client, const char *name)
{
    struct dblock_subject subject = sqlite_subject(name);
    int is_row = client->worker->strategy == DBLOCK_ROW;

    do {
        memset(&fixture.answer, 0, sizeof fixture.answer);
        fixture.status = (is_row ? fixture.driver->row.draw : fixture.driver->advisory.draw)(
            is_row ? client->control : client->connection, &fixture.call, &subject, &fixture.answer,
            &fixture.error);
        if (fixture.status != DBLOCK_OK)
            complain("draw");
    } while (fixture.status == DBLOCK_OK && fixture.answer.outcome == DBLOCK_ANSWER_AGAIN);
    return fixture.answer.token;
}

static void drop_byte(struct client *client, const char *name)
{
    struct dblock_subject subject = sqlite_subject(name);

    memset(&fixture.answer, 0, sizeof fixture.answer);
    fixture.status = (client->worker->strategy == DBLOCK_ROW ? fixture.driver->row.drop
                                                             : fixture.driver->advisory.drop)(
        client->connection, &fixture.call, &subject, &fixture.answer, &fixture.error);
    if (fixture.status != DBLOCK_OK || fixture.answer.outcome != DBLOCK_ANSWER_YES)
        complain("drop");
}

static int take_name(struct client *client, const char *name, uint64_t *ret_end_us)
{
    const struct worker *worker = client->worker;
    uint64_t sent_us = dblock_clock_us();

    make_id(client->owner);
    *ret_end_us = UINT64_MAX;
    if (!is_recorded(worker->strategy))
        return take_byte(client, name);
    if (draw(4) == 0) { /* a timed one */
        *ret_end_us = sent_us + BELIEF_US;
        return sqlite_take(
            &fixture, client->connection, worker->strategy, name, client->owner, NULL, TTL_US);
    }
    if (!renew(client))
        return DBLOCK_ANSWER_SESSION;
    *ret_end_us = client->renewed_us + BELIEF_US;
    return sqlite_take(
        &fixture, client->connection, worker->strategy, name, client->owner, client->session, 0);
}

static void count(int outcome)
{
    switch (outcome) {
    case DBLOCK_ANSWER_BUSY:
        atomic_fetch_add(&shared->n_busy, 1);
        break;
    case DBLOCK_ANSWER_AGAIN:
        atomic_fetch_add(&shared->n_again, 1);
        break;
    case DBLOCK_ANSWER_SESSION:
        atomic_fetch_add(&shared->n_session, 1);
        break;
    case DBLOCK_ANSWER_LATE:
        atomic_fetch_add(&shared->n_late, 1);
        break;
    default:
        complain("take");
    }
}

static void work(struct client *client, int is_heartbeat)
{
    uint64_t until_us = dblock_clock_us() + draw(20000);

    while (dblock_clock_us() < until_us) {
        pause_us(1000);
        if (is_heartbeat && !renew(client)) {
            atomic_fetch_add(&shared->n_lost, 1);
            return;
        }
    }
    if (draw(20) == 0)
        pause_us(draw(150000));
}

static void let_go(struct client *client, const char *name)
{
    uint64_t now_us = dblock_clock_us();
    int outcome;

    if (client->grant->end_us > now_us)
        client->grant->end_us = now_us;
    client->grant = NULL;
    if (!is_recorded(client->worker->strategy)) {
        drop_byte(client, name);
        return;
    }
    outcome =
        sqlite_drop(&fixture, client->connection, client->worker->strategy, name, client->owner, 0);
    if (outcome < 0)
        complain("drop");
    if (outcome == DBLOCK_ANSWER_NO)
        atomic_fetch_add(&shared->n_lost, 1);
}

static void fight_once(struct client *client)
{
    static const char *const names[N_NAMES] = {"alpha", "Alpha", "alpha "};
    const struct worker *worker = client->worker;
    int which = (int)draw((unsigned)worker->n_names);
    struct grant_log *grant;
    uint64_t end_us, now_us;
    unsigned index;
    int outcome = take_name(client, names[which], &end_us);

    if (outcome != DBLOCK_ANSWER_YES) {
        count(outcome);
        pause_us(draw(worker->with_pauses ? 4000 : 500));
        return;
    }
    now_us = dblock_clock_us();
    if (end_us <= now_us) { /* granted, and the answer came too late to believe it */
        atomic_fetch_add(&shared->n_late, 1);
        (void)sqlite_drop(
            &fixture, client->connection, worker->strategy, names[which], client->owner, 0);
        return;
    }
    index = atomic_fetch_add(&shared->n_grants, 1);
    if (index >= N_GRANTS_MAX) {
        complain("too many grants");
        return;
    }
    grant = &shared->grants[index];
    grant->name = which;
    grant->worker = worker->number;
    grant->end_us = end_us < UINT64_MAX ? end_us : now_us; /* unknown if we are killed now */
    /* killed on the way: without a beginning it sorts first, without a token it is not compared */
    grant->begin_us = now_us;
    grant->token = fixture.answer.token;
    client->grant = grant;
    if (!is_recorded(worker->strategy))
        grant->token = draw_token(client, names[which]);
    if (worker->with_pauses)
        work(client, end_us != UINT64_MAX && client->renewed_us + BELIEF_US == end_us);
    if (!is_recorded(worker->strategy))
        grant->end_us = dblock_clock_us();
    let_go(client, names[which]);
}

/* On a busy machine it takes longer until there is enough to judge. */
static int is_time_left(void)
{
    uint64_t now_us = dblock_clock_us();
    uint64_t stop_us = atomic_load(&shared->stop_us);

    return now_us < stop_us ||
        (atomic_load(&shared->n_grants) < N_GRANTS_LEAST && now_us < stop_us + PATIENCE_US);
}

static int live(void *context, int ready_fd)
{
    struct client client = {.worker = context};
    int strategy = client.worker->strategy;

    (void)ready_fd;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        return 1;
    sqlite_fixture_limit(&fixture, 60000000, -1);
    client.connection =
        sqlite_fixture_connect(&fixture, strategy == DBLOCK_ROW        ? DBLOCK_ROLE_ROW
                                         : strategy == DBLOCK_ADVISORY ? DBLOCK_ROLE_ADVISORY
                                                                       : DBLOCK_ROLE_SHORT);
    client.control = sqlite_fixture_connect(&fixture, DBLOCK_ROLE_CONTROL);
    if (client.connection == NULL || client.control == NULL) {
        complain("connect");
        return 1;
    }
    while (is_time_left())
        fight_once(&client);
    sqlite_fixture_disconnect(&fixture, client.connection, DBLOCK_CLOSE_POLITE);
    sqlite_fixture_disconnect(&fixture, client.control, DBLOCK_CLOSE_POLITE);
    return 0;
}

/* ------------------------------------------------------------------- the oracle */

static int compare_begins(const void *left, const void *right)
{
    const struct grant_log *one = left, *two = right;

    if (one->name != two->name)
        return one->name < two->name ? -1 : 1;
    if (one->begin_us != two->begin_us)
        return one->begin_us < two->begin_us ? -1 : 1;
    return one->token < two->token ? -1 : one->token > two->token;
}

/* A grant whose token was not drawn, because its holder was killed before, has token 0. */
static void judge(const char *what)
{
    unsigned n_grants = atomic_load(&shared->n_grants);
    unsigned n_overlaps = 0, n_regressions = 0;
    uint64_t longest_us = 0;
    int64_t last_token = 0;
    unsigned i;

    qsort(shared->grants, n_grants, sizeof shared->grants[0], compare_begins);
    for (i = 0; i < n_grants; ++i) {
        const struct grant_log *grant = &shared->grants[i];

        if (i == 0 || grant->name != grant[-1].name) {
            last_token = 0;
        } else {
            n_overlaps += grant->begin_us < grant[-1].end_us;
            if (grant->begin_us - grant[-1].begin_us > longest_us)
                longest_us = grant->begin_us - grant[-1].begin_us;
        }
        n_regressions += grant->token != 0 && grant->token <= last_token;
        if (grant->token != 0)
            last_token = grant->token;
    }
    print_message("%s: %u grants, %u busy, %u again, %u lost, %u session, %u late, longest gap "
                  "%llu ms, %u overlaps, %u regressions, %d errors %s\n",
        what, n_grants, atomic_load(&shared->n_busy), atomic_load(&shared->n_again),
        atomic_load(&shared->n_lost), atomic_load(&shared->n_session), atomic_load(&shared->n_late),
        (unsigned long long)(longest_us / 1000), n_overlaps, n_regressions,
        atomic_load(&shared->n_errors), shared->error);
    assert_int_equal(n_overlaps, 0);
    assert_int_equal(n_regressions, 0);
    assert_int_equal(atomic_load(&shared->n_errors), 0);
    assert_true(n_grants >= N_GRANTS_LEAST);
}

static void start(struct test_process *process, struct worker *worker)
{
    assert_int_equal(process_start(process, live, worker), 0);
}

static void harm(struct test_process *process, struct worker *worker)
{
    if (draw(2) == 0) {
        process_kill(process);
        (void)close(process->ready_fd);
        start(process, worker);
        return;
    }
    (void)kill(process->pid, SIGSTOP);
    pause_us(draw(120000));
    (void)kill(process->pid, SIGCONT);
}

/* For a share of DBLOCK_TEST_HAMMER_SECONDS, in tenths. */
static void hammer(const char *what, int strategy, int n_workers, int n_names, int with_pauses,
    unsigned tenths)
{
    const char *seconds = getenv("DBLOCK_TEST_HAMMER_SECONDS");
    uint64_t duration_us = (seconds != NULL ? strtoull(seconds, NULL, 10) : 10) * tenths * 100000;
    struct test_process processes[N_CROWD];
    struct worker workers[N_CROWD];
    int i;

    memset(shared->grants, 0, atomic_load(&shared->n_grants) * sizeof shared->grants[0]);
    memset(shared, 0, offsetof(struct shared, grants));
    atomic_store(&shared->stop_us, dblock_clock_us() + duration_us);
    for (i = 0; i < n_workers; ++i) {
        workers[i] = (struct worker){i, strategy, with_pauses, n_names};
        start(&processes[i], &workers[i]);
    }
    while (with_pauses && dblock_clock_us() < atomic_load(&shared->stop_us)) {
        i = (int)draw((unsigned)n_workers);
        harm(&processes[i], &workers[i]);
        (void)sqlite_fixture_run(&fixture,
            "DELETE FROM dblock_lease WHERE session IS NULL AND expires_at = 0; "
            "DELETE FROM dblock_token");
        pause_us(draw(20000));
    }
    for (i = 0; i < n_workers; ++i) {
        assert_int_equal(process_wait(&processes[i], PATIENCE_US / 1000 + 60000), 0);
        (void)close(processes[i].ready_fd);
    }
    judge(what);
}

static int set_up(void **state)
{
    (void)state;
    seed = dblock_clock_us();
    return sqlite_fixture_open(&fixture, 1);
}

static int set_up_journal(void **state)
{
    (void)state;
    seed = dblock_clock_us();
    if (sqlite_fixture_open(&fixture, 0) != 0 ||
        sqlite_fixture_run(&fixture, "CREATE TABLE app(x)") != 0)
        return -1;
    return fixture.driver->install(fixture.target, &fixture.call, &fixture.error);
}

static int tear_down(void **state)
{
    (void)state;
    sqlite_fixture_close(&fixture);
    return 0;
}

static void lease__survives_crashes_and_pauses(void **state)
{
    (void)state;
    hammer("lease", DBLOCK_LEASE, N_WORKERS, N_NAMES, 1, 5);
}

static void insert__survives_crashes_and_pauses(void **state)
{
    (void)state;
    hammer("insert", DBLOCK_INSERT, N_WORKERS, N_NAMES, 1, 5);
}

static void row__survives_crashes_and_pauses(void **state)
{
    (void)state;
    hammer("row", DBLOCK_ROW, N_WORKERS, N_NAMES, 1, 3);
}

static void advisory__survives_crashes_and_pauses(void **state)
{
    (void)state;
    hammer("advisory", DBLOCK_ADVISORY, N_WORKERS, N_NAMES, 1, 3);
}

/* PITFALL(G1), PITFALL(C10): 32 processes at full speed, no BUSY of SQLite reaches anybody. */
static void a_crowd__in_the_log(void **state)
{
    (void)state;
    hammer("crowd, lease", DBLOCK_LEASE, N_CROWD, 1, 0, 2);
    hammer("crowd, insert", DBLOCK_INSERT, N_CROWD, 1, 0, 2);
}

static void a_crowd__with_a_rollback_journal(void **state)
{
    (void)state;
    hammer("crowd, journal, lease", DBLOCK_LEASE, N_CROWD, 1, 0, 2);
    hammer("crowd, journal, insert", DBLOCK_INSERT, N_CROWD, 1, 0, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lease__survives_crashes_and_pauses),
        TEST(insert__survives_crashes_and_pauses),
        TEST(row__survives_crashes_and_pauses),
        TEST(advisory__survives_crashes_and_pauses),
        TEST(a_crowd__in_the_log),
        cmocka_unit_test_setup_teardown(
            a_crowd__with_a_rollback_journal, set_up_journal, tear_down),
    };

    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    return cmocka_run_group_tests_name("sqlite_hammer", tests, NULL, NULL);
}
