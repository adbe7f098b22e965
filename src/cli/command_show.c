/* SPDX-License-Identifier: MIT */
/* command_show.c - dblock show: who holds a name; with -w, waiting until nobody
 * does. */
#include "commands.h"

#include "clock.h"
#include "database.h"
#include "exit_code.h"
#include "grant_list.h"
#include "grant_text.h"
#include "json_output.h"
#include "message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Pauses between two looks of -w: they grow, so that a long wait costs the database
 * little, and vary, so that many who wait do not look at once. */
#define FIRST_PAUSE_MS UINT64_C(50)
#define LAST_PAUSE_MS UINT64_C(2000)

/* SQL that shows the server's side of a row or advisory lock; false if the database
 * has no sessions. */
static bool look_at(
    const struct database *database, const struct dblock_grant *grant, char *buffer, size_t size)
{
    const char *scheme = dblock_driver_scheme(database->driver);
    const char *start = NULL;

    if (strcmp(scheme, "postgresql") == 0)
        start = "SELECT * FROM pg_stat_activity WHERE pid =";
    else if (strcmp(scheme, "mysql") == 0)
        start = "SELECT * FROM information_schema.processlist WHERE id =";
    if (start == NULL || grant->server_pid == 0)
        return false;
    return snprintf(buffer, size, "%s %" PRId64, start, grant->server_pid) > 0;
}

static int print_json(const struct arguments *arguments, const struct database *database,
    const struct grant_list *list)
{
    json_t *document = json_document("show");
    json_t *held = json_array();
    json_t *look = json_array();
    char statement[160];
    size_t i;

    for (i = 0; i < list->n_grants; i++) {
        (void)json_array_append_new(held, json_grant(&list->grants[i]));
        if (look_at(database, &list->grants[i], statement, sizeof statement))
            (void)json_array_append_new(look, json_string(statement));
    }
    json_set_text(document, "name", arguments->operand);
    json_set_time(document, "now", list->n_grants > 0 ? list->grants[0].now_us : 0);
    (void)json_object_set_new(document, "held", held);
    (void)json_object_set_new(document, "look", look);
    return json_print(document, stdout);
}

static int print_text(const struct arguments *arguments, const struct database *database,
    const struct grant_list *list)
{
    char name[QUOTED_SIZE(DBLOCK_NAME_MAX)];
    char statement[160];
    bool is_under_two = false;
    size_t i;

    for (i = 0; i < list->n_grants; i++) {
        is_under_two = is_under_two || list->grants[i].strategy != list->grants[0].strategy;
        grant_print_line(&list->grants[i], stdout);
        if (look_at(database, &list->grants[i], statement, sizeof statement))
            (void)printf("    %s;\n", statement);
    }
    (void)text_word(arguments->operand, name, sizeof name);
    if (list->n_grants == 0)
        (void)printf("%s  not held\n", name);
    if (is_under_two)
        (void)printf(
            "%s is held under more than one strategy; these do not exclude each other\n", name);
    if (ferror(stdout) || fflush(stdout) != 0) {
        message_failure("cannot write: %s", strerror(errno));
        return EXIT_CODE_MACHINE;
    }
    return EXIT_CODE_DONE;
}

static void pause_ms(uint64_t ms)
{
    struct timespec rest = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};

    while (nanosleep(&rest, &rest) != 0 && errno == EINTR)
        continue;
}

/* A number that differs between processes and calls; nothing secret rests on it. */
static uint64_t vary(uint64_t ms)
{
    static unsigned seed;

    if (seed == 0)
        seed = (unsigned)getpid() * 2654435761U ^ (unsigned)clock_ms();
    seed = seed * 1103515245U + 12345U;
    return ms / 2 + (seed >> 8) % (ms + 1);
}

/* Reads the holders; with -w again and again, until there are none or the time is
 * over. Returns -1, or the exit status after a message. */
static int read_holders(
    const struct arguments *arguments, dblock_client *client, struct grant_list *list)
{
    uint64_t began_ms = clock_ms();
    uint64_t next_ms = FIRST_PAUSE_MS;

    for (;;) {
        int result = grant_list_read_holders(list, client, arguments->operand, arguments->strategy);
        uint64_t spent_ms = clock_ms() - began_ms;
        uint64_t rest_ms = arguments->wait_ms - spent_ms;
        uint64_t ms = vary(next_ms);

        if (result != -1 || !arguments->has_wait || list->n_grants == 0 ||
            spent_ms >= arguments->wait_ms)
            return result;
        pause_ms(ms < rest_ms ? ms : rest_ms);
        next_ms = next_ms * 3 / 2 < LAST_PAUSE_MS ? next_ms * 3 / 2 : LAST_PAUSE_MS;
        grant_list_clear(list);
    }
}

int command_show(const struct arguments *arguments)
{
    struct grant_list list = {.host = NULL};
    struct database database;
    int result = database_open(arguments, NULL, &database);

    if (result == -1)
        result = read_holders(arguments, database.client, &list);
    if (result == -1) {
        result = EXIT_CODE_DONE;
        if (arguments->is_json)
            result = print_json(arguments, &database, &list);
        else if (!arguments->is_quiet)
            result = print_text(arguments, &database, &list);
        if (result == EXIT_CODE_DONE && arguments->has_wait)
            result = list.n_grants > 0 ? EXIT_CODE_BUSY : EXIT_CODE_DONE;
        else if (result == EXIT_CODE_DONE)
            result = list.n_grants > 0 ? EXIT_CODE_DONE : EXIT_CODE_NO;
    }
    grant_list_clear(&list);
    database_close(&database);
    return result;
}
