/* SPDX-License-Identifier: MIT */
/* command_break.c - dblock break: end somebody else's lock. It says whose, asks,
 * and then ends the very grant that was shown and not a newcomer's. */
#include "commands.h"

#include "database.h"
#include "exit_code.h"
#include "grant_list.h"
#include "grant_text.h"
#include "message.h"
#include "result_output.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* yes, y, or nothing of the kind */
static bool ask(const char *name, const char *holder)
{
    char answer[16] = "";

    (void)fprintf(stderr,
        "\"%s\" is held by %s.\nIt may go on working after this. End the lock? [y/N] ", name,
        holder);
    (void)fflush(stderr);
    if (fgets(answer, sizeof answer, stdin) == NULL)
        return false;
    answer[strcspn(answer, "\r\n")] = '\0';
    return strcmp(answer, "y") == 0 || strcmp(answer, "Y") == 0 || strcmp(answer, "yes") == 0;
}

/* The one grant that is meant; without a token there must be no choice. Returns -1
 * with *ret_grant, NULL if nobody holds it, or the exit status after a message. */
static int choose(const struct arguments *arguments, const struct grant_list *list,
    const struct dblock_grant **ret_grant)
{
    size_t i;

    *ret_grant = NULL;
    for (i = 0; i < list->n_grants; i++) {
        const struct dblock_grant *grant = &list->grants[i];

        if (arguments->token != 0 && grant->token != arguments->token)
            continue;
        if (*ret_grant != NULL && (*ret_grant)->strategy != grant->strategy)
            return message_usage(arguments->command->name,
                "the name is held under %s and %s; say which with -S",
                dblock_strategy_name((*ret_grant)->strategy),
                dblock_strategy_name(grant->strategy));
        *ret_grant = grant;
    }
    return -1;
}

static int break_grant(
    const struct arguments *arguments, dblock_client *client, const struct dblock_grant *grant)
{
    char name[ESCAPED_SIZE(DBLOCK_NAME_MAX)];
    char holder[GRANT_SENTENCE_SIZE];
    struct result result;

    memset(&result, 0, sizeof result);
    result.name = arguments->operand;
    result.lock = grant;
    result.status = DBLOCK_NOT_HELD;
    if (grant != NULL) {
        (void)text_escape(arguments->operand, name, sizeof name);
        (void)grant_sentence(grant, holder);
        if (!arguments->is_yes) {
            if (!isatty(STDIN_FILENO))
                return message_usage(
                    arguments->command->name, "without a terminal to ask on, -y is needed");
            if (!ask(name, holder))
                return EXIT_CODE_NO;
        }
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
