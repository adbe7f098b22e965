/* SPDX-License-Identifier: MIT */
/* main.c - dblock beside others that lock: one acquire and release, by TCP, when nobody
 * else wants the name.
 *
 * Prints tables and marks what misses its goal. A benchmark and not a test: the exit
 * status is 0 all the same, and 1 only if nothing could be measured. tests/bench/run starts
 * this with servers, all on one processor, in the root of the tree. This process opens no
 * client of its own; each contender is a process (worker.h). */
#include <stdlib.h>
#include <string.h>

#include "bench/lib/choice.h"
#include "peers.h"
#include "table.h"

enum { TURNS_PER_ROUND = 5 };

static const char usage[] =
    "usage: peers [--only NAME]... [--rounds N] [--seconds S] [--markdown FILE] [--json FILE]\n"
    "NAME is the begin of a contender's, as in the table. Servers: DBLOCK_TEST_PGSQL_TCP,\n"
    "DBLOCK_TEST_MYSQL (ci/services env), BENCH_REDIS, BENCH_ETCD, BENCH_ZOOKEEPER\n"
    "(tests/bench/peers/services env); BENCH_DBLOCK is the command.\n";

struct options {
    struct choice choice;
    int n_rounds;
    double seconds; /* a round, for each */
    const char *markdown, *json;
};

static int is_chosen(const struct choice *choice, const char *name)
{
    const char *names[N_CONTENDERS_MAX + 1] = { NULL };
    int i;

    for (i = 0; peers_contenders[i].name != NULL; ++i)
        names[i] = peers_contenders[i].name;
    return choice_has(choice, name, names);
}

static void start(struct worker *worker, const struct contender *contender, const char *self)
{
    const char *own_words[] = { self, "--worker", contender->name, NULL };

    if (getenv(contender->needs) == NULL) {
        (void)snprintf(worker->about, sizeof worker->about, "%s is not set (not installed?)",
            contender->needs);
        return;
    }
    (void)worker_start(worker, contender->side != NULL ? own_words : contender->words);
}

static void run_round(struct worker *workers, int round, double seconds)
{
    int turn, i;

    for (i = 0; peers_contenders[i].name != NULL; ++i)
        workers[i].round_from[round] = workers[i].n;
    for (turn = 0; turn < TURNS_PER_ROUND; ++turn)
        for (i = 0; peers_contenders[i].name != NULL; ++i)
            (void)worker_turn(&workers[i], seconds / TURNS_PER_ROUND);
    for (i = 0; peers_contenders[i].name != NULL; ++i)
        workers[i].round_from[round + 1] = workers[i].n;
}

static double read_load(void)
{
    FILE *file = fopen("/proc/loadavg", "r");
    double load = 0;

    if (file == NULL)
        return 0;
    if (fscanf(file, "%lf", &load) != 1)
        load = 0;
    (void)fclose(file);
    return load;
}

static int run_all(struct worker *workers, struct options *options, const char *self)
{
    struct report report = { NULL, 0, 0 };
    double load_before = read_load();
    char load[40];
    int n_measured = 0;
    int failed = report_begin(&report, options->json) != 0;
    int i;

    for (i = 0; peers_contenders[i].name != NULL; ++i)
        if (is_chosen(&options->choice, peers_contenders[i].name))
            start(&workers[i], &peers_contenders[i], self);
        else
            (void)snprintf(workers[i].about, sizeof workers[i].about, "not chosen");
    for (i = 0; i < options->n_rounds; ++i)
        run_round(workers, i, options->seconds);
    (void)snprintf(load, sizeof load, "%.1f to %.1f", load_before, read_load());
    table_print(workers);
    table_judge(workers, options->n_rounds, &report);
    (void)printf("\nload average %s; %d goals missed\n", load, report.n_missed);
    if (options->markdown != NULL)
        failed |= table_write_markdown(workers, options->n_rounds, load, options->markdown) != 0;
    report_end(&report);
    for (i = 0; peers_contenders[i].name != NULL; ++i) {
        n_measured += workers[i].n > 0;
        worker_stop(&workers[i]);
        free(workers[i].durations_ns);
    }
    return failed || n_measured == 0;
}

static int read_arguments(int argc, char **argv, struct options *options)
{
    int i;

    for (i = 1; i + 1 < argc; i += 2) {
        const char *value = argv[i + 1];

        if (strcmp(argv[i], "--only") == 0 && options->choice.n_words < N_CHOICES)
            options->choice.words[options->choice.n_words++] = value;
        else if (strcmp(argv[i], "--rounds") == 0)
            options->n_rounds = (int)strtol(value, NULL, 10);
        else if (strcmp(argv[i], "--seconds") == 0)
            options->seconds = strtod(value, NULL);
        else if (strcmp(argv[i], "--markdown") == 0)
            options->markdown = value;
        else if (strcmp(argv[i], "--json") == 0)
            options->json = value;
        else
            return -1;
    }
    return i == argc && options->n_rounds > 0 && options->n_rounds <= N_ROUNDS_MAX &&
            options->seconds > 0
        ? 0
        : -1;
}

static int serve(const char *name)
{
    int i = peers_find(name);

    if (i < 0 || peers_contenders[i].side == NULL)
        return 64;
    return worker_serve(peers_contenders[i].side, peers_contenders[i].argument);
}

int main(int argc, char **argv)
{
    struct options options = { { { NULL }, 0 }, 7, 0.3, NULL, NULL };
    struct worker *workers;
    int failed;

    if (argc == 3 && strcmp(argv[1], "--worker") == 0)
        return serve(argv[2]);
    if (read_arguments(argc, argv, &options) != 0) {
        (void)fputs(usage, stderr);
        return 64;
    }
    workers = calloc(N_CONTENDERS_MAX, sizeof *workers);
    if (workers == NULL)
        return 71;
    failed = run_all(workers, &options, argv[0]);
    free(workers);
    return failed;
}
