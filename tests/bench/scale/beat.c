/* SPDX-License-Identifier: MIT */
/* beat.c - what a heartbeat for 10,000 leases takes beside the update of one row: both one
 * statement and one commit, on a connection of their own. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/lib/sampling.h"
#include "scale.h"

static const double goal = 1.2;

static int take_all(struct steps *steps, long n)
{
    char name[64];
    long i;

    if (steps_begin_session(steps) != 0)
        return -1;
    for (i = 0; i < n; ++i) {
        (void)snprintf(name, sizeof name, "bench-beat-%ld-%ld", (long)getpid(), i);
        if (steps_take_lease(steps, name) != 0)
            return -1;
    }
    return 0;
}

int beat_run(const struct store *store, const char *url, struct settings *settings)
{
    struct steps steps;
    struct comparison comparison;
    struct side raw = { store->update, store->open(url) };
    struct side ours = { steps_renew, &steps };
    int failed = raw.context == NULL || steps_open(&steps, store->driver(), url) != 0 ||
        take_all(&steps, settings->n_leases) != 0;

    if (!failed)
        failed = sampling_compare(
            &raw, &ours, settings->n_rounds, settings->seconds, &comparison) != 0;
    if (!failed) {
        (void)printf("%-11s heartbeat for %ld leases %.1f us, one row updated %.1f us: ratio %.2f"
                     " (%.2f-%.2f, goal %.2f)%s\n",
            store->name, settings->n_leases, comparison.ours.p50_us, comparison.raw.p50_us,
            comparison.ratio, comparison.best, comparison.worst, goal,
            report_goal(&settings->report, comparison.ratio, goal));
        report_json(&settings->report, store->name, "beat", "leases", (double)settings->n_leases,
            "raw_us", comparison.raw.p50_us, "dblock_us", comparison.ours.p50_us, "ratio",
            comparison.ratio, "goal", goal, NULL);
        sampling_free(&comparison);
        (void)steps_end_session(&steps);
    }
    if (raw.context != NULL) {
        store->close(raw.context);
        steps_close(&steps);
    }
    return failed ? -1 : 0;
}
