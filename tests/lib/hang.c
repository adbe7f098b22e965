/* SPDX-License-Identifier: MIT */
/* hang.c - see hang.h. */
#include "hang.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server_process.h"
#include "silent_tls.h"
#include "test_wait.h"

enum { IO_MS = 800, CONNECT_MS = 500, TLS_MS = 1500, TOLERANCE_MS = 350, ACTORS_MAX = 80 };

static const struct call {
    const char *name; /* of a case of cut.h */
    uint64_t limit_ms;
    unsigned int kinds; /* in an ordinary run: those that go different ways */
} calls[] = {
    { "ping", IO_MS, CUT_LEASE },
    { "try", IO_MS, CUT_ALL },
    { "try again", IO_MS, CUT_ALL },
    { "wait in vain", CUT_WAIT_MS + IO_MS, CUT_ALL },
    { "release", IO_MS, CUT_ALL },
    { "free", 0, CUT_LEASE | CUT_ROW },
    { "close", IO_MS, CUT_LEASE | CUT_ROW },
    { "confirm", IO_MS, CUT_INSERT | CUT_LIVE },
    { "extend", IO_MS, CUT_INSERT },
    { "token", IO_MS, CUT_LIVE },
    { "inspect", IO_MS, CUT_LEASE },
    { "break", IO_MS, CUT_INSERT },
};

/* What costs more than an ordinary run may take. */
static int is_thorough(void)
{
    const char *cuts = getenv("DBLOCK_TEST_CUTS");

    return cuts != NULL && strcmp(cuts, "all") == 0;
}

enum hurt {
    SWALLOWS_REQUESTS,
    SWALLOWS_ANSWERS,
    SWALLOWS_BOTH,
    HALF_CLOSES_TO_SERVER,
    HALF_CLOSES_TO_CLIENT,
    DELAYS_A_LITTLE,
    DELAYS_SOMEWHAT,
    DELAYS_LONG,
    STOPS_THE_SERVER
};

/* A call with all that it needs, on a thread of its own. */
struct actor {
    struct scene *scene;
    const struct cut_case *test;
    uint64_t limit_ms;
    struct cut_run run;
    int has_other; /* `run.other` is its own */
    int64_t excess_ms;
    pthread_t thread;
};

struct scene {
    const struct cut_database *database;
    enum hurt hurt;
    struct tcp_proxy *proxy;
    dblock_client *other;
    pthread_barrier_t step;
    struct actor actors[ACTORS_MAX];
    size_t n_actors;
};

static const struct cut_database *database;
/* Connecting, which many at once would do for longer than a connect may take. */
static pthread_mutex_t preparing = PTHREAD_MUTEX_INITIALIZER;

/* Nothing is heard, and nothing has ended. */
static int is_silent(enum hurt hurt)
{
    return hurt == SWALLOWS_REQUESTS || hurt == SWALLOWS_ANSWERS || hurt == SWALLOWS_BOTH ||
        hurt == STOPS_THE_SERVER;
}

static void *act(void *context)
{
    struct actor *actor = context;
    struct cut_run *run = &actor->run;
    uint64_t begun_ms;

    (void)pthread_mutex_lock(&preparing);
    cut_run_begin(run, actor->test);
    (void)pthread_mutex_unlock(&preparing);
    (void)pthread_barrier_wait(&actor->scene->step); /* all are prepared */
    (void)pthread_barrier_wait(&actor->scene->step); /* the network is hurt */
    begun_ms = test_now_ms();
    if (run->failure[0] == 0)
        actor->test->act(run);
    actor->excess_ms = (int64_t)(test_now_ms() - begun_ms) - (int64_t)actor->limit_ms;
    (void)pthread_barrier_wait(&actor->scene->step); /* all have ended */
    (void)pthread_barrier_wait(&actor->scene->step); /* the network is whole */
    (void)pthread_mutex_lock(&preparing);
    if (run->failure[0] == 0)
        actor->test->judge(run);
    (void)pthread_mutex_unlock(&preparing);
    if (run->failure[0] == 0 && actor->excess_ms > TOLERANCE_MS)
        cut_fail(run, "%ld ms beyond its limit of %ld; it answered %s: %s",
            (long)actor->excess_ms, (long)actor->limit_ms, dblock_status_name(run->status),
            run->status < 0 ? run->error.message : "");
    if (run->failure[0] == 0 && run->status == DBLOCK_LOST && is_silent(actor->scene->hurt) &&
        strcmp(actor->test->name, "release") == 0)
        cut_fail(run, "the server had it all the time: %s", run->error.message);
    dblock_lock_free(run->theirs);
    dblock_close(run->client);
    dblock_lock_free(run->mine);
    if (actor->has_other)
        dblock_close(run->other);
    return NULL;
}

static void hurt(struct scene *scene)
{
    switch (scene->hurt) {
    case SWALLOWS_REQUESTS:
        tcp_proxy_swallow(scene->proxy, PROXY_TO_SERVER);
        break;
    case SWALLOWS_ANSWERS:
        tcp_proxy_swallow(scene->proxy, PROXY_TO_CLIENT);
        break;
    case SWALLOWS_BOTH:
        tcp_proxy_swallow(scene->proxy, PROXY_BOTH);
        break;
    case HALF_CLOSES_TO_SERVER:
        tcp_proxy_half_close(scene->proxy, PROXY_TO_SERVER);
        break;
    case HALF_CLOSES_TO_CLIENT:
        tcp_proxy_half_close(scene->proxy, PROXY_TO_CLIENT);
        break;
    case DELAYS_A_LITTLE:
        tcp_proxy_delay(scene->proxy, 15);
        break;
    case DELAYS_SOMEWHAT: /* a round trip is in time, but not two */
        tcp_proxy_delay(scene->proxy, 3 * IO_MS / 10);
        break;
    case DELAYS_LONG:
        tcp_proxy_delay(scene->proxy, 5 * IO_MS);
        break;
    default:
        server_stop(database->pidfile);
        break;
    }
}

/* A new client gets through: what piled up before a server that stood still is done with. */
static int is_at_work(void *context)
{
    dblock_client *client = cut_open_other(database);
    struct dblock_error error;
    dblock_status status = dblock_ping(client, &error);

    (void)context;
    dblock_close(client);
    return status == DBLOCK_OK;
}

/* What was kept back comes late, and then the connections end. */
static void heal(struct scene *scene)
{
    if (scene->hurt == STOPS_THE_SERVER)
        server_continue(database->pidfile);
    tcp_proxy_swallow(scene->proxy, 0);
    tcp_proxy_delay(scene->proxy, 0);
    cut_settle(&scene->actors[0].run);
    tcp_proxy_cut_all(scene->proxy);
    (void)test_until(is_at_work, NULL, 10000);
}

static void add_actor(struct scene *scene, const struct cut_case *test, unsigned int kind,
    uint64_t limit_ms)
{
    struct actor *actor = &scene->actors[scene->n_actors++];

    assert_true(scene->n_actors <= ACTORS_MAX);
    actor->scene = scene;
    actor->test = test;
    actor->limit_ms = limit_ms;
    actor->run.database = database;
    actor->run.kind = kind;
    actor->run.proxy = scene->proxy;
    /* a break may end a session with all that it holds */
    actor->has_other = strcmp(test->name, "break") == 0;
    actor->run.other = actor->has_other ? cut_open_other(database) : scene->other;
    actor->run.io_ms = IO_MS;
    actor->run.connect_ms = CONNECT_MS;
    actor->run.is_cut = 1;
    actor->run.is_hung = 1;
}

/* Always where the server tells each of them something in the place of its answer: what that is,
 * MySQL chooses. */
static void add_actors(struct scene *scene)
{
    int is_all = is_thorough() || scene->hurt == HALF_CLOSES_TO_SERVER;
    static const struct cut_case *const tables[] = { cut_acquire_cases, cut_held_cases,
        cut_look_cases };
    const struct cut_case *test;
    unsigned int kind;
    size_t i, j;

    for (j = 0; j < sizeof calls / sizeof calls[0]; ++j)
        for (i = 0; i < 3; ++i)
            for (test = tables[i]; test->name != NULL; ++test)
                for (kind = CUT_LEASE; kind <= CUT_ADVISORY; kind <<= 1)
                    if (strcmp(test->name, calls[j].name) == 0 && (test->kinds & kind) != 0 &&
                        (is_all || (calls[j].kinds & kind) != 0))
                        add_actor(scene, test, kind, calls[j].limit_ms);
}

static void calls__end_in_time(void **state)
{
    struct scene *scene = calloc(1, sizeof *scene);
    const struct actor *worst = NULL;
    size_t n_failures = 0;
    size_t i;

    assert_non_null(scene);
    scene->hurt = *(const enum hurt *)*state;
    scene->proxy = tcp_proxy_start_from(database->wire, database->port(), CUT_SOURCE);
    assert_non_null(scene->proxy);
    scene->other = cut_open_other(database);
    add_actors(scene);
    (void)pthread_barrier_init(&scene->step, NULL, (unsigned int)scene->n_actors + 1);
    for (i = 0; i < scene->n_actors; ++i)
        assert_int_equal(
            pthread_create(&scene->actors[i].thread, NULL, act, &scene->actors[i]), 0);
    (void)pthread_barrier_wait(&scene->step);
    hurt(scene);
    (void)pthread_barrier_wait(&scene->step);
    (void)pthread_barrier_wait(&scene->step);
    heal(scene);
    (void)pthread_barrier_wait(&scene->step);
    for (i = 0; i < scene->n_actors; ++i) {
        struct actor *actor = &scene->actors[i];

        (void)pthread_join(actor->thread, NULL);
        if (worst == NULL || actor->excess_ms > worst->excess_ms)
            worst = actor;
        if (actor->run.failure[0] == 0)
            continue;
        ++n_failures;
        print_error("%s %s: %s\n", dblock_strategy_name(cut_strategy(&actor->run)),
            actor->test->name, actor->run.failure);
    }
    print_message("# the longest call beyond its limit: %s %s, by %ld ms\n",
        dblock_strategy_name(cut_strategy(&worst->run)), worst->test->name,
        (long)worst->excess_ms);
    dblock_close(scene->other);
    tcp_proxy_stop(scene->proxy);
    (void)pthread_barrier_destroy(&scene->step);
    free(scene);
    assert_int_equal(n_failures, 0);
}

/* Agreed to, and never begun. */
static void tls__that_never_begins_ends_in_time(void **state)
{
    struct silent_tls *silent = silent_tls_start(database->wire, database->port());
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct dblock_error error;
    dblock_client *client = NULL;
    uint64_t begun_ms;
    uint64_t took_ms;
    dblock_status status;

    (void)state;
    assert_non_null(silent);
    config.connect_timeout_ms = TLS_MS; /* there are certificates to be read first */
    config.io_timeout_ms = 2 * TLS_MS;
    assert_int_equal(dblock_open(database->contract->driver(),
                         database->tls_url(silent_tls_port(silent)), &config, &client, &error),
        DBLOCK_OK);
    begun_ms = test_now_ms();
    status = dblock_ping(client, &error);
    took_ms = test_now_ms() - begun_ms;
    print_message("# a TLS handshake that hangs: given up after %u ms, of %u\n", (unsigned)took_ms,
        (unsigned)TLS_MS);
    assert_int_equal(status, DBLOCK_E_CONNECTION);
    assert_true(error.is_transient);
    /* reading the certificates of the machine takes its time, which nothing bounds */
    assert_in_range(took_ms, TLS_MS - 10, TLS_MS + 10000);
    dblock_close(client);
    silent_tls_stop(silent);
}

/* A wait that is given up while nothing comes any more. */
struct given_up {
    dblock_client *client;
    struct dblock_options options;
    dblock_status status;
    struct dblock_error error;
    uint64_t ended_ms;
};

static void *wait_for_it(void *context)
{
    struct given_up *wait = context;
    dblock_lock *lock = NULL;

    wait->status = dblock_acquire(wait->client, "given up", &wait->options, &lock, &wait->error);
    wait->ended_ms = test_now_ms();
    dblock_lock_free(lock);
    return NULL;
}

static int is_quiet(void *context)
{
    return tcp_proxy_quiet_ms(context) >= 300;
}

static void cancel_in_silence(dblock_client *other, int strategy)
{
    struct tcp_proxy *proxy = tcp_proxy_start(database->wire, database->port());
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct given_up wait = { .options = DBLOCK_OPTIONS_INIT };
    struct dblock_error error;
    dblock_canceller *canceller = NULL;
    dblock_lock *lock = NULL;
    uint64_t raised_ms;
    pthread_t thread;

    assert_non_null(proxy);
    config.io_timeout_ms = 8000; /* for all else */
    if (database->contract->schema != NULL)
        config.schema = database->contract->schema();
    assert_int_equal(DBLOCK_OK, dblock_open(database->contract->driver(),
        database->proxied_url(tcp_proxy_port(proxy)), &config, &wait.client, &error));
    assert_int_equal(DBLOCK_OK, dblock_canceller_new(&canceller, &error));
    wait.options.strategy = strategy;
    wait.options.wait_ms = DBLOCK_FOREVER;
    assert_int_equal(
        DBLOCK_OK, dblock_acquire(other, "given up", &wait.options, &lock, &error));
    wait.options.canceller = canceller;
    assert_int_equal(0, pthread_create(&thread, NULL, wait_for_it, &wait));
    assert_true(test_until(is_quiet, proxy, 20000));
    tcp_proxy_swallow(proxy, PROXY_BOTH);
    raised_ms = test_now_ms();
    dblock_cancel(canceller);
    (void)pthread_join(thread, NULL);
    tcp_proxy_swallow(proxy, 0);
    dblock_close(wait.client);
    dblock_lock_free(lock);
    dblock_canceller_free(canceller);
    tcp_proxy_stop(proxy);
    print_message("# %s, in silence: cancelled within %u ms\n", dblock_strategy_name(strategy),
        (unsigned)(wait.ended_ms - raised_ms));
    assert_int_equal(DBLOCK_CANCELLED, wait.status);
    /* half a second, and what a busy machine needs */
    assert_in_range(wait.ended_ms - raised_ms, 0, 500 + 1000);
}

static void cancel__ends_a_wait_in_silence(void **state)
{
    dblock_client *other = cut_open_other(database);
    int strategy;

    (void)state;
    for (strategy = DBLOCK_LEASE; strategy <= DBLOCK_ADVISORY; ++strategy)
        cancel_in_silence(other, strategy);
    dblock_close(other);
}

static int start(void **state)
{
    dblock_client *client;
    struct dblock_error error;

    (void)state;
    if (database->contract->start() != NULL)
        return -1;
    client = cut_open_other(database);
    if (dblock_schema_install(client, &error) != DBLOCK_OK) {
        print_error("%s\n", error.message);
        return -1;
    }
    dblock_close(client);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    database->contract->stop();
    return 0;
}

static int go_on(void **state)
{
    (void)state;
    server_continue(database->pidfile);
    return 0;
}

int hang_run(const struct cut_database *chosen)
{
    static enum hurt hurts[] = { SWALLOWS_REQUESTS, SWALLOWS_ANSWERS, DELAYS_SOMEWHAT,
        STOPS_THE_SERVER, HALF_CLOSES_TO_SERVER, SWALLOWS_BOTH, HALF_CLOSES_TO_CLIENT,
        DELAYS_A_LITTLE, DELAYS_LONG };
    const struct CMUnitTest tests[] = {
        { "tls__that_never_begins_ends_in_time", tls__that_never_begins_ends_in_time, NULL, NULL,
            NULL },
        { "cancel__ends_a_wait_in_silence", cancel__ends_a_wait_in_silence, NULL, NULL, NULL },
        { "requests swallowed: calls__end_in_time", calls__end_in_time, NULL, NULL, &hurts[0] },
        { "answers swallowed: calls__end_in_time", calls__end_in_time, NULL, NULL, &hurts[1] },
        { "slow: calls__end_in_time", calls__end_in_time, NULL, NULL, &hurts[2] },
        { "server stopped: calls__end_in_time", calls__end_in_time, NULL, go_on, &hurts[3] },
    };
    const struct CMUnitTest more[] = {
        { "half-closed to the server: calls__end_in_time", calls__end_in_time, NULL, NULL,
            &hurts[4] },
        { "both swallowed: calls__end_in_time", calls__end_in_time, NULL, NULL, &hurts[5] },
        { "half-closed to the client: calls__end_in_time", calls__end_in_time, NULL, NULL,
            &hurts[6] },
        { "less slow: calls__end_in_time", calls__end_in_time, NULL, NULL, &hurts[7] },
        { "very slow: calls__end_in_time", calls__end_in_time, NULL, NULL, &hurts[8] },
    };
    int n_failures;

    database = chosen;
    if (getenv(database->pidfile) == NULL) {
        (void)fprintf(stderr, "skipped: %s is not set (ci/services)\n", database->pidfile);
        return 77;
    }
    n_failures = cmocka_run_group_tests_name("hang", tests, start, stop);
    if (is_thorough())
        n_failures += cmocka_run_group_tests_name("hang, more", more, start, stop);
    return n_failures;
}
