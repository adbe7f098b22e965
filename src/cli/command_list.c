/* SPDX-License-Identifier: MIT */
/* command_list.c - dblock list: the locks in force. */
#include "commands.h"

#include "database.h"
#include "exit_code.h"
#include "grant_list.h"
#include "grant_text.h"
#include "json_output.h"
#include "message.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* More than anybody reads; a file or a pipe gets all. */
#define TERMINAL_LIMIT 1000

static int print_json(const struct grant_list *list)
{
    json_t *document = json_document("list");
    json_t *locks = json_array();
    int64_t now_us = list->n_grants > 0 ? list->grants[list->n_grants - 1].now_us : 0;
    size_t i;

    for (i = 0; i < list->n_grants; i++)
        (void)json_array_append_new(locks, json_grant(&list->grants[i]));
    json_set_time(document, "now", now_us);
    (void)json_object_set_new(document, "locks", locks);
    (void)json_object_set_new(document, "truncated", json_boolean(list->is_cut));
    return json_print(document, stdout);
}

static void print_name(const char *name, bool is_null_separated)
{
    char escaped[ESCAPED_SIZE(DBLOCK_NAME_MAX)];

    /* With -0 a program reads, and gets the very bytes. */
    if (is_null_separated)
        (void)fwrite(name, 1, strlen(name) + 1, stdout);
    else
        (void)printf("%s\n", text_escape(name, escaped, sizeof escaped));
}

static int print_text(const struct arguments *arguments, const struct grant_list *list)
{
    size_t i;

    for (i = 0; i < list->n_grants; i++)
        if (arguments->is_null_separated || arguments->is_quiet)
            print_name(list->grants[i].name, arguments->is_null_separated);
        else
            grant_print_line(&list->grants[i], stdout);
    if (ferror(stdout) || fflush(stdout) != 0) {
        message_failure("cannot write: %s", strerror(errno));
        return EXIT_CODE_MACHINE;
    }
    if (list->is_cut)
        message_warning("there are more than %zu; -l N shows more", list->n_grants);
    return EXIT_CODE_DONE;
}

int command_list(const struct arguments *arguments)
{
    struct dblock_filter filter = DBLOCK_FILTER_INIT;
    struct grant_list list = {.host = arguments->host};
    struct database database;
    int result = database_open(arguments, NULL, &database);

    if (result == -1) {
        filter.prefix = arguments->operand;
        filter.strategy = arguments->strategy;
        filter.is_idle = arguments->is_all ? 1 : 0;
        list.limit = (size_t)arguments->limit;
        if (list.limit == 0 && isatty(STDOUT_FILENO) && !arguments->is_json)
            list.limit = TERMINAL_LIMIT;
        result = grant_list_read(&list, database.client, &filter);
    }
    if (result == -1)
        result = arguments->is_json ? print_json(&list) : print_text(arguments, &list);
    grant_list_clear(&list);
    database_close(&database);
    return result;
}
