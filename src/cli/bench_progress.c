/* SPDX-License-Identifier: MIT */
/* bench_progress.c - see bench_progress.h. */
#include "bench_progress.h"

#include "clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WORTH_MS 4000
#define EVERY_MS 200

static int n_shown; /* characters; 0: nothing is there */
static uint64_t shown_ms;

static void show(const char *line, int length)
{
    /* Blanks over what is left of a longer one. */
    (void)fprintf(stderr, "\r%-*s", n_shown > length ? n_shown : length, line);
    (void)fflush(stderr);
    n_shown = length;
}

void bench_progress(const struct bench_plan *plan, int strategy, const char *title)
{
    uint64_t now_ms = clock_ms();
    char line[80];
    int length;

    if (plan->arguments->is_quiet || plan->about_ms < WORTH_MS || now_ms < shown_ms + EVERY_MS ||
        !isatty(STDERR_FILENO))
        return;
    shown_ms = now_ms;
    length = snprintf(line, sizeof line, "%s: %s; %" PRIu64 " of about %" PRIu64 " s",
        dblock_strategy_name(strategy), title, (now_ms - plan->begun_ms) / 1000,
        plan->about_ms / 1000);
    show(line, length < (int)sizeof line ? length : (int)sizeof line - 1);
}

void bench_progress_clear(void)
{
    if (n_shown == 0)
        return;
    show("", 0);
    (void)fputc('\r', stderr);
    (void)fflush(stderr);
    shown_ms = 0;
}
