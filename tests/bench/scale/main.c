/* SPDX-License-Identifier: MIT */
/* main.c - what very many names cost: kept, and left behind.
 *
 * Prints tables and marks what misses its goal. A benchmark and not a test: the exit
 * status is 0 all the same, and 1 only if something could not be measured. tests/bench/run
 * starts this with servers, all on one processor. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/lib/choice.h"
#include "bench/lib/folder.h"
#include "scale.h"

static const struct store *const stores[] = {
#ifdef DBLOCK_TEST_HAS_SQLITE
    &scale_sqlite,
#endif
#ifdef DBLOCK_TEST_HAS_PGSQL
    &scale_pgsql,
#endif
#ifdef DBLOCK_TEST_HAS_MYSQL
    &scale_mysql,
#endif
    NULL
};

static const struct part {
    const char *name, *title;
    int (*run)(const struct store *, const char *, struct settings *);
} parts[] = {
    { "beat", "a heartbeat, whatever is held, against the update of one row", beat_run },
    { "purge", "leases by four threads, beside the purge of a million names left behind",
        purge_run },
};
enum { N_PARTS = sizeof parts / sizeof parts[0], N_NAMES_MAX = 1000000 };

static const char usage[] =
    "usage: scale [--only WORD]... [--rounds N] [--seconds S] [--leases N] [--names N]\n"
    "             [--json FILE]\n"
    "WORD is beat or purge, or the begin of a database's name.\n"
    "Servers: DBLOCK_TEST_PGSQL and DBLOCK_TEST_MYSQL_SOCKET (ci/services env).\n";

static int install(const struct store *store, const char *url)
{
    dblock_client *client = NULL;
    struct dblock_error error;
    dblock_status status = dblock_open(store->driver(), url, NULL, &client, &error);

    if (status == DBLOCK_OK)
        status = dblock_schema_install(client, &error);
    if (status != DBLOCK_OK)
        (void)fprintf(stderr, "scale: %s\n",
            status < 0 ? error.message : dblock_status_text(status));
    dblock_close(client);
    return status == DBLOCK_OK ? 0 : -1;
}

static int run_part(struct settings *settings, const struct part *part, const struct choice *choice)
{
    static const char *const names[] = { "SQLite", "PostgreSQL", "MariaDB", NULL };
    int failed = 0;
    int i;

    (void)printf("%s\n", part->title);
    for (i = 0; stores[i] != NULL; ++i) {
        const struct store *store = stores[i];
        const char *url = store->variable != NULL ? getenv(store->variable) : NULL;
        char file[600];

        if (!choice_has(choice, store->name, names))
            continue;
        if (store->variable == NULL) {
            (void)snprintf(file, sizeof file, "sqlite:%s/scale.db", settings->folder);
            url = file;
        }
        if (url == NULL) {
            (void)printf("%-11s left out: %s is not set\n", store->name, store->variable);
            continue;
        }
        if (install(store, url) != 0 || part->run(store, url, settings) != 0) {
            (void)printf("%-11s could not be measured\n", store->name);
            failed = 1;
        }
        (void)fflush(stdout);
    }
    (void)printf("\n");
    return failed;
}

static int read_arguments(
    int argc, char **argv, struct choice *choice, struct settings *settings, const char **json)
{
    int i;

    for (i = 1; i + 1 < argc; i += 2) {
        const char *value = argv[i + 1];

        if (strcmp(argv[i], "--only") == 0 && choice->n_words < N_CHOICES)
            choice->words[choice->n_words++] = value;
        else if (strcmp(argv[i], "--rounds") == 0)
            settings->n_rounds = (int)strtol(value, NULL, 10);
        else if (strcmp(argv[i], "--seconds") == 0)
            settings->seconds = strtod(value, NULL);
        else if (strcmp(argv[i], "--leases") == 0)
            settings->n_leases = strtol(value, NULL, 10);
        else if (strcmp(argv[i], "--names") == 0)
            settings->n_names = strtol(value, NULL, 10);
        else if (strcmp(argv[i], "--json") == 0)
            *json = value;
        else
            return -1;
    }
    return i == argc && settings->n_rounds > 0 && settings->n_rounds <= 50 &&
            settings->seconds > 0 && settings->n_leases > 0 && settings->n_names > 0 &&
            settings->n_names <= N_NAMES_MAX
        ? 0
        : -1;
}

int main(int argc, char **argv)
{
    static const char *const names[] = { "beat", "purge", NULL };
    struct settings settings = { .n_rounds = 7,
        .seconds = 0.5,
        .n_leases = 10000,
        .n_names = N_NAMES_MAX };
    struct choice choice = { { NULL }, 0 };
    char folder[512];
    const char *json = NULL;
    int failed = 0;
    size_t i;

    if (read_arguments(argc, argv, &choice, &settings, &json) != 0) {
        (void)fputs(usage, stderr);
        return 64;
    }
    if (report_begin(&settings.report, json) != 0 || folder_make(folder, sizeof folder) != 0)
        return 73;
    settings.folder = folder;
    for (i = 0; i < N_PARTS; ++i)
        if (choice_has(&choice, parts[i].name, names))
            failed |= run_part(&settings, &parts[i], &choice);
    (void)printf("%d goals missed%s\n", settings.report.n_missed,
        failed ? "; some things could not be measured" : "");
    report_end(&settings.report);
    folder_remove(folder);
    return failed;
}
