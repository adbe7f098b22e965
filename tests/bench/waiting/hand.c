/* SPDX-License-Identifier: MIT */
/* hand.c - through the public interface: one client a process, also for its threads. */
#include "mechanism.h"

#include <dblock/dblock.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "place.h"

struct hand {
    dblock_client *client;
    dblock_lock *lock;
    struct dblock_options options;
    char name[96];
    int is_shared; /* the client is another one's */
    int has_token; /* one comes with each grant */
};

static _Thread_local char complaint_text[700];
static dblock_canceller *ender;

int complain(const char *what, const char *why)
{
    (void)snprintf(complaint_text, sizeof complaint_text, "%s: %s", what, why);
    return -1;
}

const char *complaint(void)
{
    return complaint_text;
}

static int complain_of(const char *what, dblock_status status, const struct dblock_error *error)
{
    char why[600];

    (void)snprintf(why, sizeof why, "%s: %s", dblock_status_name(status),
        status < 0 ? error->message : dblock_status_text(status));
    return complain(what, why);
}

static void end_waits(int number)
{
    (void)number;
    dblock_cancel(ender);
}

int hand_end_by_signal(void)
{
    struct sigaction action = { .sa_handler = end_waits };

    if (dblock_canceller_new(&ender, NULL) != DBLOCK_OK)
        return -1;
    return sigaction(SIGTERM, &action, NULL);
}

void *hand_open(const struct mechanism *mechanism, const struct opening *opening)
{
    const struct dblock_options defaults = DBLOCK_OPTIONS_INIT;
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct hand *hand = calloc(1, sizeof *hand);
    struct dblock_error error;
    dblock_status status;

    if (hand == NULL)
        return NULL;
    hand->options = defaults;
    hand->options.strategy = mechanism->strategy;
    hand->options.wait_ms = opening->wait_ms;
    hand->options.canceller = opening->has_no_canceller ? NULL : ender;
    hand->has_token = mechanism->strategy == DBLOCK_LEASE || mechanism->strategy == DBLOCK_INSERT;
    (void)snprintf(hand->name, sizeof hand->name, "%s", opening->name);
    config.ttl_ms = opening->ttl_ms;
    status = dblock_open(opening->place->driver(), opening->url, &config, &hand->client, &error);
    if (status == DBLOCK_OK)
        status = dblock_ping(hand->client, &error);
    if (status == DBLOCK_OK)
        return hand;
    (void)complain_of("cannot open a client", status, &error);
    dblock_close(hand->client);
    free(hand);
    return NULL;
}

void *hand_share(void *context, const char *name)
{
    struct hand *first = context;
    struct hand *hand = malloc(sizeof *hand);

    if (hand == NULL)
        return NULL;
    *hand = *first;
    hand->lock = NULL;
    hand->is_shared = 1;
    /* what another thread hands over has no token until somebody asks the database for one */
    hand->has_token = first->has_token = 0;
    (void)snprintf(hand->name, sizeof hand->name, "%s", name);
    return hand;
}

int hand_acquire(void *context, int64_t *ret_token)
{
    struct hand *hand = context;
    struct dblock_error error;
    dblock_status status;

    status = dblock_acquire(hand->client, hand->name, &hand->options, &hand->lock, &error);
    if (status == DBLOCK_CANCELLED)
        return ENDED;
    if (status != DBLOCK_OK)
        return complain_of("acquire", status, &error);
    if (hand->has_token && dblock_lock_token(hand->lock, ret_token, &error) != DBLOCK_OK)
        return complain("acquire", "a grant without a token");
    return ACQUIRED;
}

int hand_release(void *context)
{
    struct hand *hand = context;
    struct dblock_error error;
    dblock_status status = dblock_release(hand->lock, &error);

    dblock_lock_free(hand->lock);
    hand->lock = NULL;
    return status == DBLOCK_OK ? 0 : complain_of("release", status, &error);
}

void hand_close(void *context)
{
    struct hand *hand = context;

    if (!hand->is_shared)
        dblock_close(hand->client);
    free(hand);
}
