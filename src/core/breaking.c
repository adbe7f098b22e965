/* SPDX-License-Identifier: MIT */
/* breaking.c - see breaking.h. The token names the grant, so a repetition can
 * never end a later one. */
#include "core/breaking.h"

#include <string.h>

#include "core/keeper.h"
#include "strategy/backoff.h"

int dblk_breaking_add(dblock_client *client, const struct dblock_subject *subject,
    int32_t strategy, int64_t token, int is_token_left)
{
    struct dblk_breaking *breaking =
        dblk_allocate(sizeof *breaking + subject->name_size + 1);
    int fault;

    if (breaking == NULL)
        return -1;
    memcpy(breaking + 1, subject->name, subject->name_size);
    breaking->subject = *subject;
    breaking->subject.name = (const char *)(breaking + 1);
    breaking->strategy = strategy;
    breaking->token = token;
    breaking->is_token_left = is_token_left;
    dblk_lock_client(client);
    fault = dblk_keeper_start(client);
    if (fault == 0) {
        breaking->next = client->breakings;
        client->breakings = breaking;
        dblk_keeper_due(client, 0);
    }
    dblk_unlock_client(client);
    if (fault != 0)
        dblk_release(breaking);
    return fault == 0 ? 0 : -1;
}

uint64_t dblk_breaking_next(const dblock_client *client)
{
    const struct dblk_breaking *breaking;
    uint64_t next_us = DBLK_NEVER;

    for (breaking = client->breakings; breaking != NULL; breaking = breaking->next)
        next_us = dblk_sooner(next_us, breaking->retry_us);
    return next_us;
}

static void remove_breaking(dblock_client *client, struct dblk_breaking *breaking)
{
    struct dblk_breaking **place = &client->breakings;

    while (*place != breaking)
        place = &(*place)->next;
    *place = breaking->next;
    dblk_release(breaking);
}

int dblk_breaking_try(
    dblock_client *client, struct dblk_link *link, uint64_t now_us, uint64_t limit_us)
{
    struct dblk_breaking *breaking = client->breakings;
    struct dblock_call call = { limit_us, -1 };
    struct dblock_answer answer;
    struct dblock_error error;
    dblock_status status;

    while (breaking != NULL && now_us < breaking->retry_us)
        breaking = breaking->next;
    if (breaking == NULL)
        return 0;
    dblk_unlock_client(client);
    memset(&answer, 0, sizeof answer);
    status = (breaking->is_token_left ? client->driver->observe.end_token
                                      : client->driver->observe.end)(link->connection, &call,
        breaking->strategy, &breaking->subject, breaking->token, &answer, &error);
    dblk_lock_client(client);
    if (status == DBLOCK_OK &&
        (answer.outcome == DBLOCK_ANSWER_YES || answer.outcome == DBLOCK_ANSWER_NO))
        remove_breaking(client, breaking);
    else
        breaking->retry_us = dblk_now_us() +
            dblk_backoff(++breaking->n_retries, dblk_random_u64(), 5000, 100000);
    return 1;
}

void dblk_breaking_forget(dblock_client *client)
{
    while (client->breakings != NULL)
        remove_breaking(client, client->breakings);
}
