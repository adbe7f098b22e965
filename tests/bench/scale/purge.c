/* SPDX-License-Identifier: MIT */
/* purge.c - a million names were left behind. What do leases cost while they are purged: at
 * the pace of a client's keeper, a batch and a pause, and without a pause? And do tokens
 * rise all the while, also those of names whose rows are gone? */
#include <dblock/dblock.h>

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/lib/numbers.h"
#include "scale.h"

enum { N_LOADERS = 4, N_MODES = 3, N_ROUNDS_MAX = 50, N_BATCHES_MAX = 1 << 16, PACE_MS = 100 };
enum { NONE = 0, PACED, FULL };

static const double goal = 0.9; /* beside a paced purge; of what is without */

struct loader {
    dblock_client *client;
    char name[64];
    int64_t token; /* the last one */
    const _Atomic int *is_over;
    _Atomic long n_pairs, n_not_rising, n_errors;
};

struct scene {
    const struct store *store;
    void *raw;
    struct steps purger;
    struct loader loaders[N_LOADERS];
    int n_loaders; /* that are open */
    int64_t left_token;
    _Atomic int mode;
    _Atomic int is_over;
    double batch_us[N_BATCHES_MAX];
    long n_batches, n_rows, n_failures;
    double pairs_s[N_MODES][N_ROUNDS_MAX];
    double rows_s[N_MODES][N_ROUNDS_MAX];
};

static int open_client(const struct store *store, const char *url, dblock_client **ret_client)
{
    struct dblock_error error;
    dblock_status status = dblock_open(store->driver(), url, NULL, ret_client, &error);

    if (status == DBLOCK_OK)
        status = dblock_schema_install(*ret_client, &error);
    if (status == DBLOCK_OK)
        return 0;
    (void)fprintf(stderr, "scale: cannot open a client: %s\n",
        status < 0 ? error.message : dblock_status_text(status));
    dblock_close(*ret_client);
    return -1;
}

/* The token; 0: failed, and said why. */
static int64_t make_pair(dblock_client *client, const char *name)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error error;
    dblock_lock *lock = NULL;
    int64_t token = 0;
    dblock_status status;

    options.wait_ms = 10000;
    status = dblock_acquire(client, name, &options, &lock, &error);
    if (status == DBLOCK_OK)
        status = dblock_lock_token(lock, &token, &error);
    if (status == DBLOCK_OK)
        status = dblock_release(lock, &error);
    dblock_lock_free(lock);
    if (status == DBLOCK_OK)
        return token;
    (void)fprintf(stderr, "scale: %s: %s\n", dblock_status_name(status),
        status < 0 ? error.message : "not to be had");
    return 0;
}

static void *load(void *context)
{
    struct loader *loader = context;

    while (!atomic_load(loader->is_over) && atomic_load(&loader->n_errors) == 0) {
        int64_t token = make_pair(loader->client, loader->name);

        if (token == 0)
            atomic_fetch_add(&loader->n_errors, 1);
        else if (token <= loader->token)
            atomic_fetch_add(&loader->n_not_rising, 1);
        else
            atomic_fetch_add(&loader->n_pairs, 1);
        loader->token = token;
    }
    return NULL;
}

static void *purge(void *context)
{
    struct scene *scene = context;

    while (!atomic_load(&scene->is_over)) {
        int mode = atomic_load(&scene->mode);
        uint64_t before_ns = bench_now_ns();
        long n_rows;

        if (mode == NONE) {
            (void)poll(NULL, 0, 1);
            continue;
        }
        n_rows = steps_purge(&scene->purger);
        if (n_rows < 0) {
            ++scene->n_failures;
            break;
        }
        if (n_rows > 0 && scene->n_batches < N_BATCHES_MAX)
            scene->batch_us[scene->n_batches++] = (double)(bench_now_ns() - before_ns) / 1e3;
        scene->n_rows += n_rows;
        /* it waits for nobody: with nothing gone somebody was in its way */
        if (mode == PACED || n_rows == 0)
            (void)poll(NULL, 0, mode == PACED ? PACE_MS : 1);
    }
    return NULL;
}

static long count_pairs(const struct scene *scene)
{
    long n = 0;
    int i;

    for (i = 0; i < N_LOADERS; ++i)
        n += atomic_load(&scene->loaders[i].n_pairs);
    return n;
}

static void run_turn(struct scene *scene, int mode, double seconds, int round)
{
    long n_pairs, n_rows;
    uint64_t before_ns;
    double passed_s;

    atomic_store(&scene->mode, mode);
    (void)poll(NULL, 0, 50); /* the end of the turn before */
    n_pairs = count_pairs(scene);
    n_rows = scene->n_rows;
    before_ns = bench_now_ns();
    (void)poll(NULL, 0, (int)(seconds * 1e3));
    passed_s = (double)(bench_now_ns() - before_ns) / 1e9;
    scene->pairs_s[mode][round] = (double)(count_pairs(scene) - n_pairs) / passed_s;
    scene->rows_s[mode][round] = (double)(scene->n_rows - n_rows) / passed_s;
}

static int run_rounds(struct scene *scene, int n_rounds, double seconds)
{
    pthread_t loaders[N_LOADERS], purger;
    long n_errors = 0;
    int round, turn, i;

    if (pthread_create(&purger, NULL, purge, scene) != 0)
        return -1;
    for (i = 0; i < N_LOADERS; ++i)
        if (pthread_create(&loaders[i], NULL, load, &scene->loaders[i]) != 0)
            abort(); /* a benchmark: nothing is lost */
    for (round = 0; round < n_rounds; ++round)
        for (turn = 0; turn < N_MODES; ++turn)
            run_turn(scene, round % 2 == 0 ? turn : N_MODES - 1 - turn, seconds, round);
    atomic_store(&scene->is_over, 1);
    for (i = 0; i < N_LOADERS; ++i) {
        (void)pthread_join(loaders[i], NULL);
        n_errors += atomic_load(&scene->loaders[i].n_errors);
    }
    (void)pthread_join(purger, NULL);
    return n_errors > 0 || scene->n_failures > 0 ? -1 : 0;
}

/* Names that were purged are taken again: with a larger token than they had? */
static long count_not_rising(struct scene *scene)
{
    long n = 0;
    int i;

    for (i = 0; i < N_LOADERS; ++i)
        n += atomic_load(&scene->loaders[i].n_not_rising);
    for (i = 0; i < 100; ++i) {
        char name[64];

        (void)snprintf(name, sizeof name, "bench-left-%d", i);
        n += make_pair(scene->loaders[0].client, name) <= scene->left_token;
    }
    return n;
}

static void tell(struct scene *scene, long n_left, long n_not_rising, struct settings *settings)
{
    size_t n = (size_t)settings->n_rounds;
    double ratios[2][N_ROUNDS_MAX];
    double paced, full;
    size_t i;

    for (i = 0; i < n; ++i) {
        ratios[0][i] = scene->pairs_s[PACED][i] / scene->pairs_s[NONE][i];
        ratios[1][i] = scene->pairs_s[FULL][i] / scene->pairs_s[NONE][i];
    }
    paced = bench_median(ratios[0], n);
    full = bench_median(ratios[1], n);
    (void)printf("%-11s %.0f pairs/s; beside a purge at a keeper's pace (%.0f names/s) %.2f of"
                 " that (goal %.2f)%s, without pause (%.0f names/s) %.2f\n",
        scene->store->name, bench_median(scene->pairs_s[NONE], n),
        bench_median(scene->rows_s[PACED], n), paced, goal,
        report_goal_least(&settings->report, paced, goal), bench_median(scene->rows_s[FULL], n),
        full);
    n = (size_t)scene->n_batches;
    (void)printf("%-11s %zu batches, the middle one %.1f ms, the longest %.1f ms; %ld names are"
                 " left; %ld tokens did not rise (goal 0)%s\n",
        "", n, bench_median(scene->batch_us, n) / 1e3, n > 0 ? scene->batch_us[n - 1] / 1e3 : 0,
        n_left, n_not_rising, report_goal(&settings->report, (double)n_not_rising, 0.5));
    report_json(&settings->report, scene->store->name, "purge", "paced_ratio", paced, "full_ratio",
        full, "batch_us", bench_median(scene->batch_us, n), "left", (double)n_left,
        "tokens_not_rising", (double)n_not_rising, NULL);
}

static int open_loaders(struct scene *scene, const char *url)
{
    for (; scene->n_loaders < N_LOADERS; ++scene->n_loaders) {
        struct loader *loader = &scene->loaders[scene->n_loaders];

        loader->is_over = &scene->is_over;
        (void)snprintf(loader->name, sizeof loader->name, "bench-load-%ld-%d", (long)getpid(),
            scene->n_loaders);
        if (open_client(scene->store, url, &loader->client) != 0)
            return -1;
    }
    return 0;
}

int purge_run(const struct store *store, const char *url, struct settings *settings)
{
    struct scene *scene = calloc(1, sizeof *scene);
    int failed = scene == NULL;
    int i;

    if (failed)
        return -1;
    scene->store = store;
    failed = open_loaders(scene, url) != 0 || (scene->raw = store->open(url)) == NULL ||
        store->leave(scene->raw, settings->n_names, &scene->left_token) != 0 ||
        steps_open(&scene->purger, store->driver(), url) != 0 ||
        run_rounds(scene, settings->n_rounds, settings->seconds) != 0;
    if (!failed) {
        long n_left = store->count_left(scene->raw);

        tell(scene, n_left, count_not_rising(scene), settings);
    }
    steps_close(&scene->purger);
    for (i = 0; i < scene->n_loaders; ++i)
        dblock_close(scene->loaders[i].client);
    if (scene->raw != NULL) {
        (void)store->forget(scene->raw);
        store->close(scene->raw);
    }
    free(scene);
    return failed ? -1 : 0;
}
