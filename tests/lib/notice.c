/* SPDX-License-Identifier: MIT */
/* notice.c - see notice.h. */
#include "notice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cut.h"
#include "dead_route.h"
#include "test_wait.h"

/* Servers count whole seconds: the idle limit of MySQL is looked at when they are over, and the
 * first probe of PostgreSQL comes a second late. SLACK_MS is for a busy machine. */
enum { TTL_MS = 2000, IO_MS = 1500, COARSE_MS = 1500, SLACK_MS = 1000 };

enum { N_LOCKS = 2 };
static const int strategies[N_LOCKS] = { DBLOCK_ROW, DBLOCK_ADVISORY };

static const struct cut_database *database;
static int sees_silence;

struct scene {
    struct tcp_proxy *proxy;
    dblock_client *holder;
    dblock_client *other;
    dblock_lock *locks[N_LOCKS];
    char names[N_LOCKS][32];
    uint64_t begun_ms;
    uint64_t told_ms[N_LOCKS]; /* after the silence began; 0 not yet */
    uint64_t freed_ms[N_LOCKS];
    int is_freed_only; /* the holder is not looked at */
};

static dblock_client *open_holder(const struct tcp_proxy *proxy)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct dblock_error error;
    dblock_client *client = NULL;

    config.schema =
        database->contract->schema != NULL ? database->contract->schema() : NULL;
    config.ttl_ms = TTL_MS;
    config.io_timeout_ms = IO_MS;
    assert_int_equal(dblock_open(database->contract->driver(),
                         database->proxied_url(tcp_proxy_port(proxy)), &config, &client, &error),
        DBLOCK_OK);
    return client;
}

static void begin(struct scene *scene, const char *source, const char *what)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error error;
    size_t i;

    memset(scene, 0, sizeof *scene);
    scene->proxy = tcp_proxy_start_from(database->wire, database->port(), source);
    assert_non_null(scene->proxy);
    scene->other = cut_open_other(database);
    scene->holder = open_holder(scene->proxy);
    for (i = 0; i < N_LOCKS; ++i) {
        dblock_status status;

        (void)snprintf(scene->names[i], sizeof scene->names[i], "%s-%zu", what, i);
        options.strategy = strategies[i];
        status = dblock_acquire(
            scene->holder, scene->names[i], &options, &scene->locks[i], &error);
        if (status != DBLOCK_OK)
            print_error("%s\n", error.message);
        assert_int_equal(status, DBLOCK_OK);
    }
}

static void end(struct scene *scene)
{
    size_t i;

    tcp_proxy_swallow(scene->proxy, 0);
    tcp_proxy_cut_all(scene->proxy);
    dblock_close(scene->holder);
    for (i = 0; i < N_LOCKS; ++i)
        dblock_lock_free(scene->locks[i]);
    dblock_close(scene->other);
    tcp_proxy_stop(scene->proxy);
}

static void look_at_holder(struct scene *scene, size_t i)
{
    int fd = -1;

    if (scene->told_ms[i] != 0 || dblock_lock_is_held(scene->locks[i]))
        return;
    /* whoever waits for the descriptor is told as well */
    if (dblock_lock_fd(scene->locks[i], &fd, NULL) == DBLOCK_OK && test_readable(fd, 100))
        scene->told_ms[i] = test_now_ms() - scene->begun_ms;
}

static void look_at_server(struct scene *scene, size_t i)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error error;
    dblock_lock *lock = NULL;

    if (scene->freed_ms[i] != 0)
        return;
    options.strategy = strategies[i];
    if (dblock_acquire(scene->other, scene->names[i], &options, &lock, &error) == DBLOCK_OK)
        scene->freed_ms[i] = test_now_ms() - scene->begun_ms;
    dblock_lock_free(lock);
}

static int has_been_noticed(void *context)
{
    struct scene *scene = context;
    int is_all = 1;
    size_t i;

    for (i = 0; i < N_LOCKS; ++i) {
        look_at_holder(scene, i);
        look_at_server(scene, i);
        is_all = is_all && scene->told_ms[i] != 0 &&
            (scene->freed_ms[i] != 0 || (strategies[i] == DBLOCK_ADVISORY && scene->is_freed_only));
    }
    return is_all;
}

/* The deadline was set no later than the silence began. */
static void expect_told(const struct scene *scene)
{
    size_t i;

    for (i = 0; i < N_LOCKS; ++i) {
        print_message("# %s: the holder knew after %u ms, the name was free after %u ms, ttl %u\n",
            dblock_strategy_name(strategies[i]), (unsigned)scene->told_ms[i],
            (unsigned)scene->freed_ms[i], (unsigned)TTL_MS);
        assert_in_range(scene->told_ms[i], 1, TTL_MS - TTL_MS / 8 + SLACK_MS);
        if (scene->freed_ms[i] != 0)
            assert_in_range(scene->freed_ms[i], 1, TTL_MS + COARSE_MS + SLACK_MS);
        assert_int_equal(dblock_confirm(scene->locks[i], NULL), DBLOCK_LOST);
        assert_int_equal(dblock_lock_cause(scene->locks[i]), DBLOCK_CAUSE_CONNECTION);
    }
}

/* Something in between keeps its connections and passes nothing on. */
static void silence__is_noticed_on_both_sides(void **state)
{
    struct scene scene;

    (void)state;
    begin(&scene, CUT_SOURCE, "silence");
    scene.is_freed_only = !sees_silence;
    tcp_proxy_swallow(scene.proxy, PROXY_BOTH);
    scene.begun_ms = test_now_ms();
    (void)test_until(has_been_noticed, &scene, 4 * TTL_MS);
    expect_told(&scene);
    if (!sees_silence) {
        assert_int_equal(scene.freed_ms[1], 0);
        /* it ends with the connection of what is in between */
        tcp_proxy_cut_all(scene.proxy);
        scene.is_freed_only = 0;
        assert_true(test_until(has_been_noticed, &scene, 2000));
    }
    end(&scene);
}

static int has_no_sessions(void *context)
{
    (void)context;
    return database->n_sessions() == 0;
}

/* No packet comes through, not even one of the kernel's own. */
static void dead_network__is_noticed_on_both_sides(void **state)
{
    struct scene scene;

    (void)state;
    begin(&scene, dead_route_address(), "dead");
    if (dead_route_begin() != 0) {
        (void)fprintf(stderr, "skip: a dead network needs root, CAP_NET_ADMIN and ip(8)\n");
        end(&scene);
        skip();
        return;
    }
    tcp_proxy_swallow(scene.proxy, PROXY_BOTH);
    scene.begun_ms = test_now_ms();
    assert_true(test_until(has_been_noticed, &scene, 4 * TTL_MS));
    expect_told(&scene);
    if (!sees_silence) { /* nor does a session stay that holds nothing; MySQL has its default */
        assert_true(test_until(has_no_sessions, NULL, IO_MS + COARSE_MS + SLACK_MS));
        print_message("# no session was left after %u ms\n",
            (unsigned)(test_now_ms() - scene.begun_ms));
    }
    dead_route_end();
    end(&scene);
}

static int start(void **state)
{
    dblock_client *client;
    dblock_status status;

    (void)state;
    if (database->contract->start() != NULL)
        return -1;
    client = cut_open_other(database);
    status = dblock_schema_install(client, NULL);
    dblock_close(client);
    return status == DBLOCK_OK ? 0 : -1;
}

static int stop(void **state)
{
    (void)state;
    dead_route_end();
    database->contract->stop();
    return 0;
}

int notice_run(const struct cut_database *chosen, int chosen_sees_silence)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence__is_noticed_on_both_sides),
        cmocka_unit_test(dead_network__is_noticed_on_both_sides),
    };

    database = chosen;
    sees_silence = chosen_sees_silence;
    if (getenv(database->pidfile) == NULL) {
        (void)fprintf(stderr, "skipped: %s is not set (ci/services)\n", database->pidfile);
        return 77;
    }
    return cmocka_run_group_tests_name("notice", tests, start, stop);
}
