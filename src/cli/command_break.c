/* SPDX-License-Identifier: MIT */
/* command_break.c - dblock break: end somebody else's lock. It says whose, asks,
 * and then ends the very grant that was shown and not a newcomer's. */
#include "commands.h"

#include "database.h"
#include "exit_code.h"
#include "grant_list.h"
#include "grant_text.h"
#include "message.h"
#include "question.h"
#include "result_output.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int ask(const struct arguments *arguments, const char *name, const char *holder)
{
    char text[ESCAPED_SIZE(DBLOCK_NAME_MAX) + GRANT_SENTENCE_SIZE + 80];

    (void)snprintf(text, sizeof text,
        "\"%s\" is held by %s.\nIt may go on working after this. End the lock?", name, holder);
    return question_ask(arguments, -1, text);
}

/* "lease, row and advisory" */
static const char *name_strategies(unsigned strategies, char *buffer, size_t size)
{
    size_t used = 0;
    int strategy;

    for (strategy = DBLOCK_LEASE; strategy <= DBLOCK_ADVISORY; strategy++) {
        bool is_last = strategies >> strategy == 1;

        if ((strategies & 1u << strategy) != 0)
            used += (size_t)snprintf(buffer + used, size - used, "%s%s",
                used == 0 ? "" : is_last ? " and " : ", ", dblock_strategy_name(strategy));
    }
    return buffer;
}

/* The one grant that is meant; without a token there must be no choice. Returns -1
 * with *ret_grant, NULL if nobody holds it, or the exit status after a message. */
static int choose(const struct arguments *arguments, const struct grant_list *list,
    const struct dblock_grant **ret_grant)
{
    unsigned strategies = 0;
    char names[80];
    size_t i;

    *ret_grant = NULL;
    for (i = 0; i < list->n_grants; i++) {
        const struct dblock_grant *grant = &list->grants[i];

        if (arguments->token != 0 && grant->token != arguments->token)
            continue;
        strategies |= 1u << grant->strategy;
        *ret_grant = grant;
    }
    if ((strategies & (strategies - 1)) == 0)
        return -1;
    return message_usage(arguments->command->name, "the name is held under %s; say which with -S",
        name_strategies(strategies, names, sizeof names));
}

static int break_grant(
    const struct arguments *arguments, dblock_client *client, const struct dblock_grant *grant)
{
    char name[ESCAPED_SIZE(DBLOCK_NAME_MAX)];
    char holder[GRANT_SENTENCE_SIZE];
    struct result result;
    int answer;

    memset(&result, 0, sizeof result);
    result.name = arguments->operand;
    result.lock = grant;
    result.status = DBLOCK_NOT_HELD;
    if (grant != NULL) {
        (void)text_escape(arguments->operand, name, sizeof name);
        (void)grant_sentence(grant, holder);
        answer = ask(arguments, name, holder);
        if (answer != -1)
            return answer;
        result.status =
            dblock_break(client, arguments->operand, grant->strategy, grant->token, &result.error);
        if (result.status == DBLOCK_OK && !arguments->is_json && !arguments->is_quiet)
            (void)printf("\"%s\" is ended; it was held by %s\n", name, holder);
    }
    return result_print(arguments, &result,
        arguments->token != 0 ? "nobody holds it with that token" : "nobody holds it", NULL);
}

int command_break(const struct arguments *arguments)
{
    const struct dblock_grant *grant;
    struct grant_list list = {.host = NULL};
    struct database database;
    int result;

    result = database_open(arguments, NULL, &database);
    if (result == -1)
        result = grant_list_read_holders(
            &list, database.client, arguments->operand, arguments->strategy);
    if (result == -1)
        result = choose(arguments, &list, &grant);
    if (result == -1)
        result = break_grant(arguments, database.client, grant);
    grant_list_clear(&list);
    database_close(&database);
    return result;
}
