/* SPDX-License-Identifier: MIT */
/* take.c - taking a lock and explaining why not. */
#include "take.h"

#include "clock.h"
#include "exit_code.h"
#include "grant_text.h"
#include "message.h"
#include "text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* How long a wait without a limit of its own outlives a database that cannot be
 * reached: long enough for a restart or a fail-over, too short for a wrong host
 * name to hang a crontab for ever. */
#define OUTAGE_MS UINT64_C(60000)

int take_check(const struct arguments *arguments)
{
    if (arguments->is_nonblock && arguments->has_wait)
        return message_usage(
            arguments->command->name, "-n and -w exclude each other: do not wait, or wait so long");
    if (arguments->is_nonblock && arguments->is_fair)
        return message_usage(
            arguments->command->name, "-n and -f exclude each other: who does not wait has no turn");
    return -1;
}

void take_init(struct take *take, const struct arguments *arguments)
{
    memset(take, 0, sizeof *take);
    take->arguments = arguments;
    take->options.struct_size = sizeof take->options;
    take->holder.struct_size = sizeof take->holder;
    take->options.strategy = arguments->strategy;
    take->options.label = arguments->label;
    take->options.ttl_ms = arguments->ttl_ms;
    take->options.min_hold_ms = arguments->at_least_ms;
    take->options.has_advisory_id = arguments->has_id ? 1 : 0;
    take->options.advisory_id = arguments->id;
    if (arguments->is_fair)
        take->options.flags |= DBLOCK_FAIR;
}

void take_configure(const struct arguments *arguments, struct dblock_config *config)
{
    config->outage_ms =
        arguments->has_wait || arguments->is_nonblock ? arguments->wait_ms : OUTAGE_MS;
}

/* A command that runs under this very name, and asks for it again, would wait for
 * its own end. The owner of the outer grant; NULL if there is none. */
static const char *outer_owner(const struct arguments *arguments)
{
    const char *name = getenv("DBLOCK_NAME");

    return name != NULL && strcmp(name, arguments->operand) == 0 ? getenv("DBLOCK_OWNER") : NULL;
}

static bool is_own_parent(const struct take *take)
{
    const char *owner = outer_owner(take->arguments);

    return owner != NULL && owner[0] != '\0' && strcmp(take->holder.owner, owner) == 0;
}

/* After the first look: what the waiting is for. */
static void note_waiting(const struct take *take, dblock_status status)
{
    char name[ESCAPED_SIZE(DBLOCK_NAME_MAX)];
    char holder[GRANT_SENTENCE_SIZE];

    if (status == DBLOCK_BUSY)
        message_note("\"%s\" is held by %s; waiting",
            text_escape(take->arguments->operand, name, sizeof name),
            grant_sentence(&take->holder, holder));
    else
        message_note("%s; trying again", take->error.message);
}

/* The library rounds a ttl that is renewed down to one of its classes. */
static void note_rounding(const struct take *take)
{
    uint64_t ttl_ms = dblock_lock_ttl_ms(take->lock);

    if (take->arguments->has_ttl && ttl_ms < take->arguments->ttl_ms)
        message_note("-t is rounded down to %" PRIu64 " s", ttl_ms / 1000);
}

dblock_status take_lock(struct take *take)
{
    const struct arguments *arguments = take->arguments;
    uint64_t began_ms = clock_ms();
    uint64_t wait_ms = arguments->wait_ms;
    dblock_status status = DBLOCK_BUSY;

    take->options.busy = &take->holder;
    take->options.wait_ms = 0;
    if (wait_ms > 0 && (outer_owner(arguments) != NULL || message_is_chatty())) {
        status = dblock_acquire(
            take->client, arguments->operand, &take->options, &take->lock, &take->error);
        take->is_held_by_parent = status == DBLOCK_BUSY && is_own_parent(take);
        /* A look outlives no outage; the wait does. */
        if ((status != DBLOCK_BUSY && status != DBLOCK_E_CONNECTION) || take->is_held_by_parent)
            goto done;
        note_waiting(take, status);
        if (wait_ms != DBLOCK_FOREVER) {
            uint64_t spent_ms = clock_ms() - began_ms;

            wait_ms = spent_ms < wait_ms ? wait_ms - spent_ms : 0;
        }
    }
    take->options.wait_ms = wait_ms;
    status =
        dblock_acquire(take->client, arguments->operand, &take->options, &take->lock, &take->error);
    take->is_held_by_parent = status == DBLOCK_BUSY && is_own_parent(take);
done:
    if (status == DBLOCK_OK)
        note_rounding(take);
    take->waited_ms = clock_ms() - began_ms;
    return status;
}

int take_explain(const struct take *take, dblock_status status, const char *consequence)
{
    char name[ESCAPED_SIZE(DBLOCK_NAME_MAX)];
    char holder[GRANT_SENTENCE_SIZE];

    (void)text_escape(take->arguments->operand, name, sizeof name);
    if (status == DBLOCK_BUSY) {
        if (take->is_held_by_parent)
            message_warning("\"%s\" is held by this command's own parent; %s", name, consequence);
        else
            message_note("\"%s\" is held by %s; %s", name, grant_sentence(&take->holder, holder),
                consequence);
        return take->arguments->busy_exit;
    }
    if (status > 0)
        message_failure("\"%s\": %s; %s", name, dblock_status_text(status), consequence);
    else
        message_error(&take->error, consequence);
    return exit_code_of(status);
}
