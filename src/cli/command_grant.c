/* SPDX-License-Identifier: MIT */
/* command_grant.c - dblock extend and dblock release: what is done with the line
 * that `acquire` printed or that COMMAND got in DBLOCK_GRANT. */
#include "commands.h"

#include "database.h"
#include "exit_code.h"
#include "message.h"
#include "result_output.h"

#include <stdlib.h>
#include <string.h>

static dblock_status extend(
    dblock_lock *lock, const struct arguments *arguments, struct dblock_error *reterr)
{
    return dblock_extend(lock, arguments->ttl_ms, reterr);
}

static dblock_status release(
    dblock_lock *lock, const struct arguments *arguments, struct dblock_error *reterr)
{
    (void)arguments;
    return dblock_release(lock, reterr);
}

/* Finds the grant, imports it, applies `act`, says how it went. */
static int act_on_grant(const struct arguments *arguments,
    dblock_status (*act)(dblock_lock *, const struct arguments *, struct dblock_error *),
    const char *lost_text)
{
    const char *text = arguments->operand != NULL ? arguments->operand : getenv("DBLOCK_GRANT");
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    struct result result;
    struct database database;
    dblock_lock *lock = NULL;
    int exit_code;

    if (text == NULL || text[0] == '\0')
        return message_usage(
            arguments->command->name, "GRANT is missing, and DBLOCK_GRANT is not set");
    memset(&result, 0, sizeof result);
    exit_code = database_open(arguments, NULL, &database);
    if (exit_code == -1) {
        result.status = dblock_lock_import(database.client, text, &lock, &result.error);
        if (result.status == DBLOCK_OK) {
            result.name = dblock_lock_name(lock);
            result.status = act(lock, arguments, &result.error);
        }
        /* What --json shows; another holder's grant is not this one. */
        if (arguments->is_json && result.status == DBLOCK_OK &&
            dblock_inspect(database.client, result.name, dblock_lock_strategy(lock), &grant,
                NULL) == DBLOCK_OK &&
            strcmp(grant.owner, dblock_lock_owner(lock)) == 0)
            result.lock = &grant;
        exit_code = result_print(arguments, &result, "it had been released before", lost_text);
    }
    dblock_lock_free(lock);
    database_close(&database);
    return exit_code;
}

int command_extend(const struct arguments *arguments)
{
    if (!arguments->has_ttl)
        return message_usage(arguments->command->name, "-t is missing: until when?");
    return act_on_grant(arguments, extend, "this grant is over; nothing was extended");
}

int command_release(const struct arguments *arguments)
{
    return act_on_grant(arguments, release,
        "this grant was over before; what was done since may not have been protected");
}
