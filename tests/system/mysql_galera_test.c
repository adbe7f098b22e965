/* SPDX-License-Identifier: MIT */
/* mysql_galera_test.c - a cluster of three nodes to all of which clients write: nobody holds what
 * another one holds, tokens rise, and nothing of what the nodes settle between them reaches a caller
 * (P1, P3); also while one node is killed, cut off or frozen, and joins again. Who is inside is
 * counted in memory that the processes share, so no database judges. Alone on galera.
 * Time limit: 240 s */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dblock/check.h>
#include <dblock/mysql.h>
#include <inttypes.h>
#include <mysql.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "processes.h"
#include "server_process.h"
#include "test_wait.h"

extern char **environ;

enum { N_NODES = 3, N_WORKERS = 6, N_NAMES = 3, TTL_MS = 2000 };
/* The others put out a node that is not heard for 2 s (ci/servers/galera.sh) and agree on that; then
 * they write again. */
enum { AGREE_MS = 6000, JOIN_MS = 30000 };

static const int strategies[] = { DBLOCK_LEASE, DBLOCK_INSERT };

struct place { /* one name under one strategy */
    atomic_int n_inside;
    atomic_llong last_token;
};

static struct shared {
    struct place places[2][N_NAMES];
    struct place held; /* of the holder on the node that is hurt */
    atomic_uint n_grants[N_NODES], n_busy, n_meetings, n_backwards, n_unready, n_errors;
    atomic_int is_over;
    atomic_int hurt; /* the node whose clients may fail, -1: none */
} *shared;

static char urls[N_NODES][256];

struct worker {
    int node;
    unsigned int seed;
    struct test_process process;
};

static struct worker workers[N_WORKERS];

static dblock_client *open_client(int node)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct dblock_error error = { 0 };
    dblock_client *client = NULL;

    config.ttl_ms = TTL_MS;
    config.connect_timeout_ms = 4000;
    config.io_timeout_ms = 9000;
    if (dblock_open(dblock_mysql_driver(), urls[node], &config, &client, &error) != DBLOCK_OK)
        (void)fprintf(stderr, "node %d: %s\n", node + 1, error.message);
    return client;
}

static void enter(struct place *place, dblock_lock *lock)
{
    struct dblock_error error = { 0 };
    int64_t token = 0;

    if (atomic_fetch_add(&place->n_inside, 1) != 0)
        atomic_fetch_add(&shared->n_meetings, 1);
    if (dblock_lock_token(lock, &token, &error) != DBLOCK_OK ||
        token <= atomic_exchange(&place->last_token, token))
        atomic_fetch_add(&shared->n_backwards, 1);
}

/* A node that is not hurt says that it is not ready: the cluster was putting the hurt one out, and
 * on a busy machine another one with it, for as long as they take to agree. */
static int is_agreeing(const struct dblock_error *error)
{
    return atomic_load(&shared->hurt) >= 0 &&
        strstr(error->message, "WSREP has not yet prepared") != NULL;
}

static void note_error(int node, const char *what, dblock_status status, const struct dblock_error *error)
{
    if (atomic_load(&shared->hurt) == node) {
        test_pass_ms(20);
        return;
    }
    if (is_agreeing(error)) {
        atomic_fetch_add(&shared->n_unready, 1);
        test_pass_ms(20);
        return;
    }
    if (atomic_fetch_add(&shared->n_errors, 1) < 5)
        (void)fprintf(stderr, "node %d: %s: %s: %s\n", node + 1, what,
            dblock_status_name(status), status < 0 ? error->message : "");
}

static int work(void *context, int ready_fd)
{
    struct worker *worker = context;
    dblock_client *client = open_client(worker->node);

    process_ready(ready_fd, 1);
    while (client != NULL && !atomic_load(&shared->is_over)) {
        struct dblock_options options = DBLOCK_OPTIONS_INIT;
        struct dblock_error error = { 0 };
        unsigned int kind, number;
        dblock_lock *lock = NULL;
        dblock_status status;
        char name[16];

        worker->seed = worker->seed * 1103515245u + 12345u;
        kind = worker->seed >> 16 & 1;
        number = (worker->seed >> 17) % N_NAMES;
        (void)snprintf(name, sizeof name, "shared-%u", number);
        options.strategy = strategies[kind];
        options.wait_ms = worker->seed >> 24 & 1 ? 2000 : 0;
        options.ttl_ms = 10000; /* longer than the nodes need to agree: nothing is lost by that */
        options.flags = DBLOCK_FENCED;
        status = dblock_acquire(client, name, &options, &lock, &error);
        if (status == DBLOCK_OK) {
            struct place *place = &shared->places[kind][number];

            enter(place, lock);
            test_pass_ms(worker->seed >> 25 & 1);
            atomic_fetch_sub(&place->n_inside, 1);
            atomic_fetch_add(&shared->n_grants[worker->node], 1);
            status = dblock_release(lock, &error);
            if (status != DBLOCK_OK && status != DBLOCK_PENDING)
                note_error(worker->node, "release", status, &error);
        } else if (status == DBLOCK_BUSY) {
            atomic_fetch_add(&shared->n_busy, 1);
        } else {
            note_error(worker->node, "acquire", status, &error);
        }
        dblock_lock_free(lock);
    }
    dblock_close(client);
    return client == NULL;
}

static void start_workers(void)
{
    int i;

    memset(shared, 0, sizeof *shared);
    atomic_store(&shared->hurt, -1);
    for (i = 0; i < N_WORKERS; ++i) {
        workers[i] = (struct worker){ i % N_NODES, (unsigned int)i * 7919u + 1, { 0, -1 } };
        assert_int_equal(0, process_start(&workers[i].process, work, &workers[i]));
    }
    for (i = 0; i < N_WORKERS; ++i)
        assert_int_equal(1, process_await(&workers[i].process, 10000));
}

static void end_workers(const char *title)
{
    int i;

    atomic_store(&shared->is_over, 1);
    for (i = 0; i < N_WORKERS; ++i)
        assert_int_equal(0, process_wait(&workers[i].process, 40000));
    print_message("# %s: %u + %u + %u grants on the nodes, %u busy, %u not ready, %u errors\n", title,
        atomic_load(&shared->n_grants[0]), atomic_load(&shared->n_grants[1]),
        atomic_load(&shared->n_grants[2]), atomic_load(&shared->n_busy),
        atomic_load(&shared->n_unready), atomic_load(&shared->n_errors));
    assert_int_equal(0, atomic_load(&shared->n_meetings));
    assert_int_equal(0, atomic_load(&shared->n_backwards));
    assert_int_equal(0, atomic_load(&shared->n_errors));
}

static int kill_workers(void **state)
{
    int i;

    (void)state;
    for (i = 0; i < N_WORKERS; ++i)
        process_kill(&workers[i].process);
    return 0;
}

/* PITFALL(F2), PITFALL(C3) */
static void three_nodes__have_one_holder_at_once(void **state)
{
    int i;

    (void)state;
    start_workers();
    test_pass_ms(5000);
    end_workers("all well");
    for (i = 0; i < N_NODES; ++i)
        assert_true(atomic_load(&shared->n_grants[i]) > 10);
}

/* -------------------------------------------------------------- hurt nodes */

static void ask_services(const char *command, const char *name)
{
    char *services = getenv("DBLOCK_TEST_SERVICES");
    char words[2][32];
    char *arguments[] = { services, words[0], words[1], NULL };
    pid_t pid;
    int status = -1;

    (void)snprintf(words[0], sizeof words[0], "%s", command);
    (void)snprintf(words[1], sizeof words[1], "%s", name);
    assert_int_equal(0, posix_spawn(&pid, services, NULL, NULL, arguments, environ));
    assert_int_equal(pid, waitpid(pid, &status, 0));
    assert_int_equal(0, status);
}

/* The first value that the statement answers, -1 if there is none. */
static long ask_node(int node, const char *statement)
{
    char variable[40];
    const char *port;
    MYSQL *admin = mysql_init(NULL);
    unsigned int seconds = 5;
    MYSQL_RES *result;
    MYSQL_ROW row;
    long number = -1;

    (void)snprintf(variable, sizeof variable, "DBLOCK_TEST_GALERA%d_PORT", node + 1);
    port = getenv(variable);
    (void)mysql_options(admin, MYSQL_OPT_CONNECT_TIMEOUT, &seconds);
    (void)mysql_options(admin, MYSQL_OPT_READ_TIMEOUT, &seconds);
    if (mysql_real_connect(admin, "127.0.0.1", "root", "never-print-me", NULL,
            (unsigned int)strtoul(port, NULL, 10), NULL, 0) != NULL &&
        mysql_query(admin, statement) == 0) {
        result = mysql_store_result(admin);
        if (result != NULL && (row = mysql_fetch_row(result)) != NULL)
            number = strtol(row[mysql_num_fields(result) - 1], NULL, 10);
        else if (result == NULL)
            number = 0;
        mysql_free_result(result);
    }
    mysql_close(admin);
    return number;
}

static int has_three_nodes(void *context)
{
    return ask_node(*(const int *)context, "SHOW STATUS LIKE 'wsrep_cluster_size'") == 3 &&
        ask_node(*(const int *)context, "SHOW STATUS LIKE 'wsrep_local_state'") == 4 &&
        ask_node(*(const int *)context,
            "SELECT variable_value = 'ON' FROM information_schema.global_status"
            " WHERE variable_name = 'wsrep_ready'") == 1;
}

/* Believes as long as it may. */
static int hold(void *context, int ready_fd)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error error = { 0 };
    dblock_client *client = open_client(*(const int *)context);
    dblock_lock *lock = NULL;

    options.flags = DBLOCK_FENCED;
    if (dblock_acquire(client, "held", &options, &lock, &error) != DBLOCK_OK) {
        (void)fprintf(stderr, "holder: %s\n", error.message);
        return 1;
    }
    enter(&shared->held, lock);
    process_ready(ready_fd, 1);
    while (dblock_lock_is_held(lock))
        test_pass_ms(1);
    atomic_fetch_sub(&shared->held.n_inside, 1);
    dblock_lock_free(lock);
    dblock_close(client);
    return 0;
}

static void kill_node(int node)
{
    char name[32];

    (void)snprintf(name, sizeof name, "galera%d", node + 1);
    ask_services("kill9", name);
}

static void start_node(int node)
{
    char name[32];

    (void)snprintf(name, sizeof name, "galera%d", node + 1);
    ask_services("restart", name);
}

/* Lost its cable: it is alive, and knows that it is alone. */
static void isolate(int node)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error error = { 0 };
    dblock_client *client = open_client(node);
    dblock_lock *lock = NULL;
    dblock_status status;
    uint64_t begun_ms = test_now_ms();

    assert_int_equal(0, ask_node(node, "SET GLOBAL wsrep_provider_options = 'gmcast.isolate=1'"));
    do
        status = dblock_acquire(client, "nobody's", &options, &lock, &error);
    while ((status == DBLOCK_OK ? dblock_lock_free(lock), 1 : strstr(error.hint, "no quorum") == NULL) &&
        test_now_ms() - begun_ms < AGREE_MS);
    if (status != DBLOCK_E_CONNECTION || strstr(error.hint, "no quorum") == NULL)
        (void)fprintf(stderr, "%s: %s (%s)\n", dblock_status_name(status), error.message, error.hint);
    assert_int_equal(DBLOCK_E_CONNECTION, status);
    assert_non_null(strstr(error.hint, "no quorum"));
    dblock_close(client);
}

static void connect_again(int node)
{
    assert_int_equal(0, ask_node(node, "SET GLOBAL wsrep_provider_options = 'gmcast.isolate=0'"));
}

static const char *pidfile_of(int node)
{
    static char variable[40];

    (void)snprintf(variable, sizeof variable, "DBLOCK_TEST_GALERA%d_PIDFILE", node + 1);
    return variable;
}

static void freeze(int node)
{
    server_stop(pidfile_of(node));
}

static void thaw(int node)
{
    server_continue(pidfile_of(node));
}

/* Its holder loses the grant, another node's client takes it after that and in time; and the node
 * comes back and works. */
static void take_over(int node, void (*hurt)(int node), void (*mend)(int node), const char *title)
{
    int elsewhere = (node + 1) % N_NODES;
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error error = { 0 };
    dblock_client *client = open_client(elsewhere);
    struct test_process holder = { 0, -1 };
    dblock_lock *lock = NULL;
    uint64_t begun_ms;
    dblock_status status;

    options.wait_ms = 30000;
    options.flags = DBLOCK_FENCED;
    start_workers();
    assert_int_equal(0, process_start(&holder, hold, &node));
    assert_int_equal(1, process_await(&holder, 10000));
    atomic_store(&shared->hurt, node);
    begun_ms = test_now_ms();
    hurt(node);
    status = dblock_acquire(client, "held", &options, &lock, &error);
    print_message("# %s: taken over after %" PRIu64 " ms, ttl %d\n", title,
        test_now_ms() - begun_ms, TTL_MS);
    assert_int_equal(DBLOCK_OK, status);
    enter(&shared->held, lock);
    assert_true(test_now_ms() - begun_ms < TTL_MS + AGREE_MS);
    assert_int_equal(0, process_wait(&holder, 10000));
    atomic_fetch_sub(&shared->held.n_inside, 1);
    dblock_lock_free(lock);
    dblock_close(client);
    mend(node);
    assert_true(test_until(has_three_nodes, &node, JOIN_MS));
    assert_true(test_until(has_three_nodes, &elsewhere, JOIN_MS));
    print_message("# %s: joined again after %" PRIu64 " ms\n", title, test_now_ms() - begun_ms);
    client = open_client(node);
    begun_ms = test_now_ms();
    do /* one that was frozen learns only now that it was put out */
        status = dblock_acquire(client, "held", &options, &lock, &error);
    while (status < 0 && test_now_ms() - begun_ms < JOIN_MS);
    assert_int_equal(DBLOCK_OK, status);
    enter(&shared->held, lock);
    atomic_fetch_sub(&shared->held.n_inside, 1);
    dblock_lock_free(lock);
    dblock_close(client);
    end_workers(title);
}

static void killed_node__is_followed(void **state)
{
    (void)state;
    take_over(1, kill_node, start_node, "killed");
}

static void node_cut_off__is_followed(void **state)
{
    (void)state;
    take_over(2, isolate, connect_again, "cut off");
}

static void frozen_node__is_followed(void **state)
{
    (void)state;
    take_over(0, freeze, thaw, "frozen");
}

/* ------------------------------------------------------------- what is said */

/* PITFALL(F1) */
static void row_and_advisory__are_refused(void **state)
{
    static const int refused[] = { DBLOCK_ROW, DBLOCK_ADVISORY };
    dblock_client *client = open_client(0);
    int i, with_wait;

    (void)state;
    for (i = 0; i < 2; ++i)
        for (with_wait = 0; with_wait < 2; ++with_wait) {
            struct dblock_options options = DBLOCK_OPTIONS_INIT;
            struct dblock_error error = { 0 };
            dblock_lock *lock = NULL;

            options.strategy = refused[i];
            options.wait_ms = with_wait ? 1000 : 0;
            assert_int_equal(
                DBLOCK_E_UNSUPPORTED, dblock_acquire(client, "refused", &options, &lock, &error));
            assert_null(lock);
            assert_non_null(strstr(error.message, "Galera"));
            assert_non_null(strstr(error.hint, "lease"));
        }
    dblock_close(client);
}

struct findings {
    int n_cluster, n_clocks, n_not_ready;
};

static int note_finding(const struct dblock_finding *finding, void *context)
{
    struct findings *findings = context;
    uint32_t live = 1u << DBLOCK_ROW | 1u << DBLOCK_ADVISORY;

    if (strcmp(finding->id, "cluster") == 0)
        findings->n_cluster += finding->strategies == live && finding->severity > 0 &&
            strstr(finding->text, "Galera") != NULL;
    findings->n_clocks += strcmp(finding->id, "cluster-clocks") == 0;
    findings->n_not_ready += strcmp(finding->id, "cluster-ready") == 0 &&
        finding->severity == DBLOCK_FINDING_UNUSABLE;
    return 0;
}

static int is_cut_off(void *context)
{
    dblock_client *client = open_client(*(const int *)context);
    struct findings findings = { 0, 0, 0 };
    struct dblock_error error = { 0 };
    dblock_status status = dblock_check(client, note_finding, &findings, &error);

    dblock_close(client);
    return status == DBLOCK_OK && findings.n_not_ready == 1;
}

static void check__tells_of_the_cluster(void **state)
{
    dblock_client *client = open_client(1);
    struct findings findings = { 0, 0, 0 };
    struct dblock_error error = { 0 };
    int node = 1;

    (void)state;
    assert_int_equal(DBLOCK_OK, dblock_check(client, note_finding, &findings, &error));
    dblock_close(client);
    assert_int_equal(1, findings.n_cluster);
    assert_int_equal(1, findings.n_clocks);
    assert_int_equal(0, findings.n_not_ready);
    assert_int_equal(0, ask_node(node, "SET GLOBAL wsrep_provider_options = 'gmcast.isolate=1'"));
    assert_true(test_until(is_cut_off, &node, AGREE_MS));
    connect_again(node);
    assert_true(test_until(has_three_nodes, &node, JOIN_MS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(three_nodes__have_one_holder_at_once, kill_workers),
        cmocka_unit_test(row_and_advisory__are_refused),
        cmocka_unit_test(check__tells_of_the_cluster),
        cmocka_unit_test_teardown(node_cut_off__is_followed, kill_workers),
        cmocka_unit_test_teardown(frozen_node__is_followed, kill_workers),
        /* the last, as nodes that run on take what they missed from one that did not restart */
        cmocka_unit_test_teardown(killed_node__is_followed, kill_workers),
    };
    const char *text = getenv("DBLOCK_TEST_GALERA");
    struct dblock_error error = { 0 };
    dblock_client *client;

    if (text == NULL || sscanf(text, "%255s %255s %255s", urls[0], urls[1], urls[2]) != N_NODES) {
        (void)fprintf(stderr, "skip: DBLOCK_TEST_GALERA names no three nodes (ci/services)\n");
        return 77;
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    client = open_client(0);
    if (dblock_schema_install(client, &error) != DBLOCK_OK) {
        (void)fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    dblock_close(client);
    return cmocka_run_group_tests_name("galera", tests, NULL, NULL);
}
