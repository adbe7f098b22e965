/* SPDX-License-Identifier: MIT */
/* bench_table.c - the figures for people: a table for each part, a line for each strategy,
 * so that strategies are compared by looking down. */
#include "bench.h"

#include "bench_text.h"
#include "duration.h"
#include "exit_code.h"
#include "message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* One column for a duration, a rate or a number. */
#define WIDTH 11

static void print_text(const char *text)
{
    (void)printf("%*s", WIDTH, text);
}

static void print_heads(const char *const *heads)
{
    (void)printf("%-8s", "strategy");
    for (; *heads != NULL; heads++)
        print_text(*heads);
    (void)putchar('\n');
}

static void print_number(uint64_t number)
{
    (void)printf("%*" PRIu64, WIDTH, number);
}

static void print_rate(uint64_t n, uint64_t elapsed_ns)
{
    char text[BENCH_TEXT_SIZE];

    print_text(bench_text_rate(n, elapsed_ns, text));
}

static void print_latency(const struct latency *latency)
{
    char text[BENCH_TEXT_SIZE];

    print_text(bench_text_duration(latency_at(latency, 0.5), text));
    print_text(bench_text_duration(latency_at(latency, 0.99), text));
    print_text(bench_text_duration(latency->max_ns, text));
}

/* The next result of a strategy that this database has; NULL at the end. */
static const struct bench_result *next(const struct bench_report *report, unsigned *i)
{
    while (*i < report->n_results && report->results[*i].is_left_out)
        ++*i;
    return *i < report->n_results ? &report->results[(*i)++] : NULL;
}

static void begin_line(const struct bench_result *result)
{
    (void)printf("%-8s", dblock_strategy_name(result->strategy));
}

static void print_alone(const struct bench_report *report)
{
    static const char *const heads[] = {"pairs/s", "p50", "p99", "max", NULL};
    const struct bench_result *result;
    unsigned i = 0;

    (void)printf("acquire and release, one client\n");
    print_heads(heads);
    while ((result = next(report, &i)) != NULL) {
        begin_line(result);
        print_rate(result->alone.n, result->alone_ns);
        print_latency(&result->alone);
        (void)putchar('\n');
    }
}

static void print_contention(const struct bench_report *report)
{
    static const char *const heads[] = {"grants/s", "changes/s", "Jain", "least", "most",
        "wait p50", "wait p99", "wait max", NULL};
    uint64_t elapsed_ns = report->plan->part_ms * 1000000;
    const struct bench_result *result;
    unsigned i = 0;

    (void)printf("\none lock, %" PRIu64 " clients\n", report->plan->arguments->n_clients);
    print_heads(heads);
    while ((result = next(report, &i)) != NULL) {
        begin_line(result);
        print_rate(result->contention.n_grants, elapsed_ns);
        print_rate(result->contention.n_changes, elapsed_ns);
        (void)printf("%*.3f", WIDTH, result->contention.jain);
        print_number(result->contention.least);
        print_number(result->contention.most);
        print_latency(&result->contention.waits);
        (void)putchar('\n');
    }
}

static void print_hand_over(const struct bench_report *report)
{
    static const char *const heads[] = {"waiters", "p50", "p99", "max", "seen", "missed", NULL};
    const struct bench_result *result;
    unsigned i = 0;
    unsigned which;

    (void)printf("\nhand-over: from before the release to the next holder's grant\n");
    print_heads(heads);
    while ((result = next(report, &i)) != NULL)
        for (which = 0; which < report->plan->n_hand_overs; which++) {
            begin_line(result);
            print_number(report->plan->n_waiters[which]);
            print_latency(&result->hand_over[which].latency);
            print_number(result->hand_over[which].latency.n);
            print_number(result->hand_over[which].n_missed);
            (void)putchar('\n');
        }
}

static void print_heartbeat(const struct bench_report *report)
{
    static const char *const heads[] = {"leases", "heartbeats", "late", "p50", "p99", "max", NULL};
    char ttl[DURATION_TEXT_SIZE];
    const struct bench_result *result;
    bool is_begun = false;
    unsigned i = 0;

    while ((result = next(report, &i)) != NULL) {
        if (result->heartbeat.n_leases == 0)
            continue;
        if (!is_begun) {
            (void)printf("\nheartbeats of one client, ttl %s\n",
                duration_text(BENCH_HEARTBEAT_TTL_MS, ttl));
            print_heads(heads);
            is_begun = true;
        }
        begin_line(result);
        print_number(result->heartbeat.n_leases);
        print_number(result->heartbeat.latency.n);
        print_number(result->heartbeat.n_late);
        print_latency(&result->heartbeat.latency);
        (void)putchar('\n');
        if (result->heartbeat.latency.n == 0)
            (void)printf("none was due in that time, as one comes every %s; give more --seconds\n",
                duration_text(BENCH_HEARTBEAT_TTL_MS / 3, ttl));
    }
}

static void print_left_out(const struct bench_report *report)
{
    bool is_first = true;
    unsigned i;

    for (i = 0; i < report->n_results; i++)
        if (report->results[i].is_left_out) {
            (void)printf("%s%s is left out: %s\n", is_first ? "\n" : "",
                dblock_strategy_name(report->results[i].strategy),
                report->results[i].error.message);
            is_first = false;
        }
}

int bench_print_table(const struct bench_report *report)
{
    print_alone(report);
    print_contention(report);
    print_hand_over(report);
    print_heartbeat(report);
    print_left_out(report);
    (void)printf("\nviolations of exclusion: %" PRIu64 "\n", bench_violations(report));
    if (!ferror(stdout) && fflush(stdout) == 0)
        return EXIT_CODE_DONE;
    message_failure("cannot write: %s", strerror(errno));
    return EXIT_CODE_MACHINE;
}
