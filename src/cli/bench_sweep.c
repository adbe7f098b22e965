/* SPDX-License-Identifier: MIT */
/* bench_sweep.c - see bench_sweep.h. Members give back what they hold, also after a signal
 * or an error; this is for one that was killed. */
#include "bench_sweep.h"

#include "clock.h"
#include "grant_list.h"
#include "message.h"


/* Connecting and each answer, and all of it. */
#define ANSWER_MS 2000
#define SWEEP_MS 4000

/* A session of the server that has just lost its client may take a moment to notice. */
static bool end_all(dblock_client *client, const struct grant_list *list, uint64_t until_ms)
{
    struct dblock_error error;
    bool is_done = true;
    size_t i;

    for (i = 0; i < list->n_grants && clock_ms() < until_ms; i++) {
        const struct dblock_grant *grant = &list->grants[i];

        if (dblock_break(client, grant->name, grant->strategy, grant->token, &error) < 0)
            is_done = false;
    }
    return is_done && i == list->n_grants;
}

void bench_sweep(const struct bench_plan *plan)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct dblock_filter filter = DBLOCK_FILTER_INIT;
    struct grant_list list = {.host = NULL};
    uint64_t until_ms = clock_ms() + SWEEP_MS;
    dblock_client *client = NULL;
    struct dblock_error error;

    config.connect_timeout_ms = ANSWER_MS;
    config.io_timeout_ms = ANSWER_MS;
    filter.prefix = plan->prefix;
    if (dblock_open(plan->database->driver, plan->database->url, &config, &client, &error) !=
            DBLOCK_OK ||
        dblock_list(client, &filter, grant_list_add, &list, &error) != DBLOCK_OK)
        message_warning("whether all locks were given back is not known; what was not ends by "
                        "itself");
    else if (list.n_grants > 0 && !end_all(client, &list, until_ms))
        message_warning("some of %zu locks under %s could not be given back; they end by "
                        "themselves",
            list.n_grants, plan->prefix);
    else if (list.n_grants > 0)
        message_detail("%zu locks of a process that was ended were given back", list.n_grants);
    grant_list_clear(&list);
    dblock_close(client);
}
