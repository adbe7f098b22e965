/* SPDX-License-Identifier: MIT */
/* raw_sqlite.c - pairs directly on sqlite3, with the statements of the driver.
 *
 * Row and advisory locks of SQLite are no statements but locks of bytes of a file
 * beside it; the direct side is then one fcntl() each way. */
#include "pairs.h"

#include <dblock/sqlite.h>

#include <fcntl.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sqlite_sql.h"

struct raw {
    sqlite3 *handle;
    sqlite3_stmt *take;
    sqlite3_stmt *drop;
    sqlite3_int64 clock_us; /* of the running statement, as the driver has it: 0 not read yet */
    sqlite3_int64 notes[2];
    unsigned char session[ID_SIZE];
    unsigned char owner[ID_SIZE];
    char name[64];
    char host[64];
    int strategy;
    int fd;
};

static void say_now(sqlite3_context *context, int n_arguments, sqlite3_value **arguments)
{
    struct raw *raw = sqlite3_user_data(context);
    struct timespec now;

    (void)n_arguments;
    (void)arguments;
    if (raw->clock_us == 0) {
        (void)clock_gettime(CLOCK_REALTIME, &now);
        raw->clock_us = (sqlite3_int64)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    }
    sqlite3_result_int64(context, raw->clock_us);
}

static void take_note(sqlite3_context *context, int n_arguments, sqlite3_value **arguments)
{
    struct raw *raw = sqlite3_user_data(context);

    (void)n_arguments;
    raw->notes[sqlite3_value_int(arguments[0]) & 1] = sqlite3_value_int64(arguments[1]);
    sqlite3_result_value(context, arguments[1]);
}

static int complain(const struct raw *raw, const char *what)
{
    (void)fprintf(stderr, "pairs: sqlite3: %s: %s\n", what,
        raw->handle != NULL ? sqlite3_errmsg(raw->handle) : "no handle");
    return -1;
}

static int prepare(struct raw *raw, const char *text, sqlite3_stmt **ret_statement)
{
    if (sqlite3_prepare_v3(raw->handle, text, -1, SQLITE_PREPARE_PERSISTENT, ret_statement,
            NULL) != SQLITE_OK)
        return complain(raw, "prepare");
    return 0;
}

/* Runs it; `n_changed` rows must come of it. */
static int run(struct raw *raw, sqlite3_stmt *statement, int n_changed)
{
    raw->clock_us = 0;
    if (sqlite3_step(statement) != SQLITE_DONE)
        return complain(raw, "step");
    (void)sqlite3_reset(statement);
    if (sqlite3_changes(raw->handle) != n_changed) {
        (void)fprintf(stderr, "pairs: sqlite3: nothing was changed\n");
        return -1;
    }
    return 0;
}

static int begin_session(struct raw *raw)
{
    const sqlite3_int64 day_us = (sqlite3_int64)86400 * 1000000;
    sqlite3_stmt *statement = NULL;
    int failed = prepare(raw, sqlite_sql_session_begin, &statement);

    if (failed)
        return failed;
    (void)sqlite3_bind_blob(statement, 1, raw->session, ID_SIZE, SQLITE_STATIC);
    (void)sqlite3_bind_int64(statement, 2, day_us);
    (void)sqlite3_bind_text(statement, 3, raw->host, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(statement, 4, getpid());
    (void)sqlite3_bind_text(statement, 5, "", -1, SQLITE_STATIC);
    failed = run(raw, statement, 1);
    (void)sqlite3_finalize(statement);
    return failed;
}

static int open_handle(struct raw *raw, const char *path)
{
    const int flags = SQLITE_UTF8 | SQLITE_DIRECTONLY;

    if (sqlite3_open_v2(path, &raw->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK)
        return complain(raw, "open");
    (void)sqlite3_busy_timeout(raw->handle, 5000);
    if (sqlite3_create_function_v2(
            raw->handle, "dblock_now_us", 0, flags, raw, say_now, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_create_function_v2(
            raw->handle, "dblock_note", 2, flags, raw, take_note, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(raw->handle, "PRAGMA synchronous = NORMAL", NULL, NULL, NULL) != SQLITE_OK)
        return complain(raw, "set up");
    if (raw->strategy == DBLOCK_LEASE)
        return begin_session(raw) != 0 || prepare(raw, sqlite_sql_lease_take, &raw->take) != 0 ||
            prepare(raw, sqlite_sql_lease_drop, &raw->drop) != 0;
    return prepare(raw, sqlite_sql_insert_take, &raw->take) != 0 ||
        prepare(raw, sqlite_sql_insert_drop, &raw->drop) != 0;
}

static void raw_close(void *context)
{
    struct raw *raw = context;

    (void)sqlite3_finalize(raw->take);
    (void)sqlite3_finalize(raw->drop);
    (void)sqlite3_close(raw->handle);
    if (raw->fd >= 0)
        (void)close(raw->fd);
    free(raw);
}

static void *raw_open(const char *url, int strategy)
{
    const char *path = strchr(url, ':') + 1;
    struct raw *raw = calloc(1, sizeof *raw);
    char side[512];
    int failed;

    if (raw == NULL)
        return NULL;
    raw->strategy = strategy;
    raw->fd = -1;
    memset(raw->session, 's', sizeof raw->session);
    raw->session[0] = (unsigned char)getpid();
    raw->session[1] = (unsigned char)(getpid() >> 8);
    memset(raw->owner, 'o', sizeof raw->owner);
    (void)gethostname(raw->host, sizeof raw->host - 1);
    (void)snprintf(raw->name, sizeof raw->name, "bench-raw--%ld-%s", (long)getpid(),
        dblock_strategy_name(strategy));
    if (strategy == DBLOCK_ROW || strategy == DBLOCK_ADVISORY) {
        (void)snprintf(side, sizeof side, "%s-raw", path);
        raw->fd = open(side, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        failed = raw->fd < 0;
    } else {
        failed = open_handle(raw, path);
    }
    if (!failed)
        return raw;
    raw_close(raw);
    return NULL;
}

static int lock_byte(int fd, short type)
{
    struct flock lock;

    memset(&lock, 0, sizeof lock);
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = 4711;
    lock.l_len = 1;
    return fcntl(fd, F_SETLK, &lock);
}

static int raw_pair(void *context)
{
    const sqlite3_int64 ttl_us = (sqlite3_int64)30 * 1000000;
    struct raw *raw = context;

    if (raw->fd >= 0)
        return lock_byte(raw->fd, F_WRLCK) != 0 || lock_byte(raw->fd, F_UNLCK) != 0 ? -1 : 0;
    ++raw->owner[0];
    (void)sqlite3_bind_blob(raw->take, 1, raw->name, (int)strlen(raw->name), SQLITE_STATIC);
    if (raw->strategy == DBLOCK_LEASE)
        (void)sqlite3_bind_blob(raw->take, 2, raw->session, ID_SIZE, SQLITE_STATIC);
    (void)sqlite3_bind_blob(raw->take, 3, raw->owner, ID_SIZE, SQLITE_STATIC);
    (void)sqlite3_bind_int64(raw->take, 4, ttl_us);
    (void)sqlite3_bind_int64(raw->take, 5, INT64_MAX);
    (void)sqlite3_bind_text(raw->take, 6, "", -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(raw->take, 7, raw->host, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(raw->take, 8, getpid());
    if (run(raw, raw->take, 1) != 0)
        return -1;
    (void)sqlite3_bind_blob(raw->drop, 1, raw->name, (int)strlen(raw->name), SQLITE_STATIC);
    (void)sqlite3_bind_blob(raw->drop, 2, raw->owner, ID_SIZE, SQLITE_STATIC);
    return run(raw, raw->drop, 1);
}

/* Only sessions are updated while leases are held; each counts its heartbeats. */
static double count_updates(const char *url)
{
    sqlite3 *handle = NULL;
    sqlite3_stmt *statement = NULL;
    double result = 0;

    if (sqlite3_open_v2(strchr(url, ':') + 1, &handle, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(handle, "SELECT sum(beat) FROM dblock_session", -1, &statement, NULL) ==
            SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        result = sqlite3_column_double(statement, 0);
    (void)sqlite3_finalize(statement);
    (void)sqlite3_close(handle);
    return result;
}

static _Atomic uint64_t n_statements;

static int count_statement(unsigned int kind, void *context, void *statement, void *text)
{
    (void)kind;
    (void)context;
    (void)statement;
    /* a trigger's statements begin with a comment's mark: parts of one that was counted */
    if (strncmp(text, "--", 2) != 0)
        atomic_fetch_add(&n_statements, 1);
    return 0;
}

static int watch(sqlite3 *handle, char **ret_message, const struct sqlite3_api_routines *routines)
{
    (void)ret_message;
    (void)routines;
    return sqlite3_trace_v2(handle, SQLITE_TRACE_STMT, count_statement, NULL);
}

void sqlite_count_statements(void)
{
    (void)sqlite3_auto_extension((void (*)(void))watch);
}

uint64_t sqlite_statement_count(void)
{
    return atomic_load(&n_statements);
}

const struct database bench_sqlite = {
    .name = "SQLite",
    .driver = dblock_sqlite_driver,
    .open = raw_open,
    .pair = raw_pair,
    .close = raw_close,
    .count_updates = count_updates,
    .goals = { 0, 1.10, 1.10, 0, 0 },
};
