/* SPDX-License-Identifier: MIT */
/* command_grant.c - dblock extend and dblock release: what is done with the line
 * that `acquire` printed or that COMMAND got in DBLOCK_GRANT. */
#include "commands.h"

#include "database.h"
#include "exit_code.h"
#include "grant_list.h"
#include "grant_name.h"
#include "message.h"
#include "result_output.h"
#include "text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef dblock_status (*act_fn)(
    dblock_lock *lock, const struct arguments *arguments, struct dblock_error *reterr);

/* The library speaks to those who call it. */
static void say(struct dblock_error *error, const char *message, const char *hint)
{
    (void)snprintf(error->message, sizeof error->message, "%s", message);
    (void)snprintf(error->hint, sizeof error->hint, "%s", hint);
}

static dblock_status import(
    dblock_client *client, const char *text, dblock_lock **ret_lock, struct dblock_error *reterr)
{
    dblock_status status = dblock_lock_import(client, text, ret_lock, reterr);

    if (status == DBLOCK_E_ARGUMENT)
        say(reterr, "GRANT is not what \"dblock acquire\" printed",
            "it begins with dblock1: and is one word; quote \"$grant\" in a shell");
    return status;
}

static dblock_status extend(
    dblock_lock *lock, const struct arguments *arguments, struct dblock_error *reterr)
{
    char message[sizeof reterr->message];
    char name[ESCAPED_SIZE(DBLOCK_NAME_MAX)];
    dblock_status status = dblock_extend(lock, arguments->ttl_ms, reterr);

    if (status == DBLOCK_E_UNSUPPORTED) {
        (void)snprintf(message, sizeof message,
            "\"%.300s\" has no end that -t could move: it is renewed for as long as its holder lives",
            text_escape(dblock_lock_name(lock), name, sizeof name));
        say(reterr, message, "for a lock to extend: dblock acquire without -P");
    }
    return status;
}

static dblock_status release(
    dblock_lock *lock, const struct arguments *arguments, struct dblock_error *reterr)
{
    (void)arguments;
    return dblock_release(lock, reterr);
}

/* Imports the grant, applies `act`, says how it went. */
static int act_on(const struct arguments *arguments, dblock_client *client, const char *text,
    act_fn act, const char *lost_text)
{
    struct dblock_grant grant;
    char name[DBLOCK_NAME_MAX + 1];
    struct result result;
    dblock_lock *lock = NULL;
    int exit_code;

    memset(&result, 0, sizeof result);
    result.name = grant_name(text, name) ? name : NULL;
    /* no database: whatever was granted is over */
    result.status = client != NULL ? import(client, text, &lock, &result.error) : DBLOCK_LOST;
    if (result.status == DBLOCK_OK) {
        result.name = dblock_lock_name(lock);
        result.status = act(lock, arguments, &result.error);
    }
    /* what --json shows of a lock that is still held */
    if (arguments->is_json && result.status == DBLOCK_OK && act == extend) {
        grant_of_lock(client, lock, &grant);
        result.lock = &grant;
    }
    exit_code = result_print(arguments, &result, "it had been released before", lost_text);
    dblock_lock_free(lock);
    return exit_code;
}

static int act_on_grant(const struct arguments *arguments, act_fn act, const char *lost_text)
{
    const char *text = arguments->operand != NULL ? arguments->operand : getenv("DBLOCK_GRANT");
    struct database database;
    int exit_code;

    if (text == NULL || text[0] == '\0')
        return message_usage(
            arguments->command->name, "GRANT is missing, and DBLOCK_GRANT is not set");
    exit_code = database_open(arguments, NULL, &database);
    if (exit_code == -1)
        exit_code = act_on(arguments, database.client, text, act, lost_text);
    database_close(&database);
    return exit_code;
}

int command_extend(const struct arguments *arguments)
{
    if (!arguments->has_ttl)
        return message_usage(arguments->command->name, "-t is missing: until when?");
    return act_on_grant(arguments, extend, "this grant is over; nothing was extended");
}

/* The grant of DBLOCK_GRANT is that of the `dblock run` around this, which would find it lost. */
static bool is_of_run(void)
{
    return getenv("DBLOCK_GRANT") != NULL && getenv("DBLOCK_OWNER") != NULL;
}

int command_release(const struct arguments *arguments)
{
    if (arguments->operand == NULL && is_of_run())
        return message_usage(arguments->command->name,
            "dblock run gives its lock back when COMMAND ends; to end COMMAND now and give it "
            "back, name GRANT");
    return act_on_grant(arguments, release,
        "this grant was over before; what was done since may not have been protected");
}
