/* SPDX-License-Identifier: MIT */
/* compare.c - the table: each strategy of one database, direct and through the library. */
#include "pairs.h"

enum { N_COUNTED = 200 };

/* Messages a pair, of the side that `open` makes from the proxy's URL. Below 0: not known. */
static double count_round_trips(const struct database *database, const char *url, int strategy)
{
    char through[512];
    struct proxy *proxy = NULL;
    struct library *library = NULL;
    double result = -1;
    uint64_t before;
    int i;

    if (database->variable == NULL)
        return -1; /* a file: there are none */
    proxy = proxy_open(url, through, sizeof through);
    if (proxy == NULL)
        return -1;
    library = library_open(database, through, strategy, 0);
    /* the first few prepare the statements */
    for (i = 0; library != NULL && i < 10; ++i)
        if (library_pair(library) != 0)
            goto done;
    before = proxy_count(proxy);
    for (i = 0; library != NULL && i < N_COUNTED; ++i)
        if (library_pair(library) != 0)
            goto done;
    if (library != NULL)
        result = (double)(proxy_count(proxy) - before) / N_COUNTED;
done:
    library_close(library);
    proxy_close(proxy);
    return result;
}

static void print_line(const struct database *database, int strategy,
    const struct comparison *comparison, double round_trips, struct settings *settings)
{
    const char *name = dblock_strategy_name(strategy);
    double goal = database->goals[strategy];
    char trips[16] = "-";
    char goal_text[16] = "-";

    if (round_trips >= 0)
        (void)snprintf(trips, sizeof trips, "%.2f", round_trips);
    if (goal > 0)
        (void)snprintf(goal_text, sizeof goal_text, "%.2f", goal);
    (void)printf("%-11s %-9s %9.1f %9.1f %6.3f  %.2f-%.2f %8.1f %8.1f %6.2f %6s %6s%s\n",
        database->name, name, comparison->raw.p50_us, comparison->ours.p50_us, comparison->ratio,
        comparison->best, comparison->worst, comparison->raw.cpu_us, comparison->ours.cpu_us,
        comparison->cpu_ratio, trips, goal_text, report_goal(&settings->report, comparison->ratio, goal));
    (void)fflush(stdout);
    report_json(&settings->report, database->name, name, "raw_us", comparison->raw.p50_us, "dblock_us",
        comparison->ours.p50_us, "ratio", comparison->ratio, "cpu_ratio", comparison->cpu_ratio,
        "round_trips", round_trips, "goal", goal, NULL);
}

static int run_strategy(const struct database *database, const char *url, int strategy,
    struct settings *settings)
{
    struct comparison comparison;
    struct side raw = { database->pair, NULL };
    struct side ours = { library_pair, NULL };
    double round_trips;
    int result = -1;

    /* the library first: it makes the tables */
    ours.context = library_open(database, url, strategy, 0);
    if (ours.context == NULL)
        return -1;
    raw.context = database->open(url, strategy);
    if (raw.context != NULL &&
        sampling_compare(&raw, &ours, settings->n_rounds, settings->seconds, &comparison) == 0) {
        round_trips = count_round_trips(database, url, strategy);
        print_line(database, strategy, &comparison, round_trips, settings);
        sampling_free(&comparison);
        result = 0;
    }
    if (raw.context != NULL)
        database->close(raw.context);
    library_close(ours.context);
    return result;
}

int pairs_run(const struct database *database, const char *url, struct settings *settings)
{
    int result = 0;
    int strategy;

    for (strategy = DBLOCK_LEASE; strategy <= DBLOCK_ADVISORY; ++strategy) {
        if (run_strategy(database, url, strategy, settings) == 0)
            continue;
        (void)printf("%-11s %-9s could not be measured\n", database->name,
            dblock_strategy_name(strategy));
        result = -1;
    }
    return result;
}
