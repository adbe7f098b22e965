/* SPDX-License-Identifier: MIT */
/* place_sqlite.c - SQLite: what is compared there. Nobody serves; statements are counted
 * in the processes themselves. */
#include <dblock/sqlite.h>

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "place.h"
#include "raw_sqlite.h"

static struct stage *counting;

static int count_statement(unsigned int kind, void *context, void *statement, void *text)
{
    (void)kind;
    (void)context;
    (void)statement;
    /* a trigger's statements begin with a comment's mark: parts of one that was counted */
    if (strncmp(text, "--", 2) != 0)
        atomic_fetch_add(&counting->n_statements, 1);
    return 0;
}

static int watch_handle(
    sqlite3 *handle, char **ret_message, const struct sqlite3_api_routines *routines)
{
    (void)ret_message;
    (void)routines;
    return sqlite3_trace_v2(handle, SQLITE_TRACE_STMT, count_statement, NULL);
}

static void begin_child(struct stage *stage)
{
    counting = stage;
    (void)sqlite3_auto_extension((void (*)(void))watch_handle);
}

static int begin(const char *url, const char *folder)
{
    (void)url;
    return raw_sqlite_begin(folder);
}

static void end(const char *url, const char *folder)
{
    (void)url;
    (void)folder; /* which is removed */
}

/* The pair that is compared waits for the disk, whatever the others do. */
static int is_durable(const char *url)
{
    (void)url;
    return 1;
}

struct watch {
    const struct stage *stage;
};

static void *watch_open(const char *url, const struct stage *stage)
{
    struct watch *watch = malloc(sizeof *watch);

    (void)url;
    if (watch != NULL)
        watch->stage = stage;
    return watch;
}

static int watch_read(void *context, struct reading *ret_reading)
{
    struct watch *watch = context;

    ret_reading->statements = (double)atomic_load(&watch->stage->n_statements);
    ret_reading->cpu_ms = ret_reading->log_lines = ret_reading->snapshot_ms = -1;
    return 0;
}

static void watch_close(void *watch)
{
    free(watch);
}

#define RAW(text, kind)                                                                            \
    { text, 0, kind, raw_sqlite_open, NULL, raw_sqlite_acquire, raw_sqlite_release,                \
        raw_sqlite_close }

/* What is compared stands near what it is compared with, as turns are in this order. */
enum { FLOCK, AGAIN, OUR_ADVISORY, OUR_ROW, GATE };

const struct place waiting_sqlite = {
    .name = "SQLite",
    .driver = dblock_sqlite_driver,
    .contenders = {
        [FLOCK] = { .mechanism = RAW("flock", RAW_FLOCK), .against = -1, .melee_against = -1 },
        [AGAIN] = { .mechanism = RAW("flock again", RAW_FLOCK), .against = FLOCK,
            .melee_against = FLOCK },
        [OUR_ADVISORY] = { .mechanism = THROUGH_LIBRARY("advisory", DBLOCK_ADVISORY),
            .against = FLOCK, .melee_against = FLOCK, .goal_us = 60 },
        [OUR_ROW] = { .mechanism = THROUGH_LIBRARY("row", DBLOCK_ROW), .against = FLOCK,
            .melee_against = FLOCK, .goal_us = 60 },
        [GATE] = { .mechanism = RAW("raw flock + row", RAW_GATE), .against = -1,
            .melee_against = -1, .is_lasting = 1 },
        { .mechanism = THROUGH_LIBRARY("lease", DBLOCK_LEASE), .against = GATE,
            .melee_against = GATE, .goal_us = 100, .is_lasting = 1 },
        { .mechanism = THROUGH_LIBRARY("insert", DBLOCK_INSERT), .against = GATE,
            .melee_against = GATE, .goal_us = 100, .is_lasting = 1 },
    },
    .durable_pair = RAW("raw durable pair", RAW_PAIR),
    .settle_ms = 1000,
    .begin = begin,
    .end = end,
    .begin_child = begin_child,
    .is_durable = is_durable,
    .watch_open = watch_open,
    .watch_read = watch_read,
    .watch_close = watch_close,
};
