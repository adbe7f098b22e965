/* SPDX-License-Identifier: MIT */
/* sqlite_check.c - what of this file would hurt. That it is a plain file of one name, not
 * mounted by itself, on a local disk and writable, was judged when it was opened
 * (sqlite_connection.c). */
#include "sqlite_error.h"
#include "sqlite_statement.h"
#include "sqlite_steps.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    RECORDED = 1 << DBLOCK_LEASE | 1 << DBLOCK_INSERT,
    ALL = RECORDED | 1 << DBLOCK_ROW | 1 << DBLOCK_ADVISORY,

    GOOD = DBLOCK_FINDING_GOOD,
    WARNING = DBLOCK_FINDING_WARNING,

    MUCH = 64 << 20, /* bytes */
    TEXT_SIZE = 200
};

struct examination {
    struct dblock_connection *connection;
    dblock_finding_fn fn;
    void *context;
    int is_over; /* `fn` wants no more */
};

static void tell(struct examination *examination, int severity, uint32_t strategies,
    const char *id, const char *remedy, const char *format, ...) DBLOCK_PRINTF_(6, 7);

static void tell(struct examination *examination, int severity, uint32_t strategies,
    const char *id, const char *remedy, const char *format, ...)
{
    char text[512];
    const struct dblock_finding finding = { sizeof finding, severity, strategies, id, text,
        remedy };
    va_list values;

    va_start(values, format);
    (void)vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (!examination->is_over)
        examination->is_over = examination->fn(&finding, examination->context) != 0;
}

/* The first column of the first row, cut; "" if there is none. What SQLite cannot say now (the
 * file is locked) is left out. */
static void ask(struct examination *examination, const char *sql, char text[TEXT_SIZE])
{
    sqlite3_stmt *statement = NULL;

    text[0] = 0;
    if (sqlite3_prepare_v2(examination->connection->handle, sql, -1, &statement, NULL) ==
            SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_text(statement, 0) != NULL)
        dblock_text_copy(text, TEXT_SIZE, (const char *)sqlite3_column_text(statement, 0));
    (void)sqlite3_finalize(statement);
}

static long long ask_number(struct examination *examination, const char *sql)
{
    char text[TEXT_SIZE];

    ask(examination, sql, text);
    return strtoll(text, NULL, 10);
}

static void judge_journal(struct examination *examination)
{
    char mode[TEXT_SIZE];

    ask(examination, "PRAGMA journal_mode", mode);
    if (strcmp(mode, "wal") == 0)
        tell(examination, GOOD, ALL, "journal", "",
            "the file has a write-ahead log: readers and the writer do not wait for each other");
    else
        tell(examination, WARNING, RECORDED, "journal", "PRAGMA journal_mode = WAL",
            "journal_mode is %s: whoever reads the file for long makes each acquire and heartbeat"
            " wait, and each costs two flushes of the disk",
            mode);
    if (strcmp(mode, "off") == 0 || strcmp(mode, "memory") == 0)
        tell(examination, WARNING, RECORDED, "durability", "PRAGMA journal_mode = WAL",
            "journal_mode is %s: a crash in the middle of a change damages the file", mode);
}

static void judge_log(struct examination *examination)
{
    char path[4100];
    struct stat file;

    (void)snprintf(path, sizeof path, "%s-wal", examination->connection->path);
    if (stat(path, &file) != 0 || file.st_size <= MUCH)
        return;
    tell(examination, WARNING, RECORDED, "log-size", "PRAGMA wal_checkpoint(TRUNCATE)",
        "the write-ahead log is %lld MiB long: somebody reads without an end, so that it cannot be"
        " taken back",
        (long long)file.st_size >> 20);
}

static void judge_size(struct examination *examination)
{
    long long page_size = ask_number(examination, "PRAGMA page_size");
    long long n_pages = ask_number(examination, "PRAGMA page_count");
    long long n_free = ask_number(examination, "PRAGMA freelist_count");

    if (n_free * page_size > MUCH && n_free * 2 > n_pages)
        tell(examination, WARNING, RECORDED, "bloat", "VACUUM, while nobody locks",
            "%lld of the file's %lld MiB are free", n_free * page_size >> 20,
            n_pages * page_size >> 20);
    else
        tell(examination, GOOD, RECORDED, "bloat", "", "the file has %lld KiB, of which %lld are free",
            n_pages * page_size >> 10, n_free * page_size >> 10);
}

static void judge_tables(struct examination *examination)
{
    char text[TEXT_SIZE];

    ask(examination,
        "SELECT m.type || ' ' || m.name || ' on ' || m.tbl_name FROM sqlite_master AS m"
        " WHERE m.tbl_name IN ('dblock_session', 'dblock_lease', 'dblock_insert', 'dblock_token')"
        " AND m.type IN ('index', 'trigger') AND m.sql IS NOT NULL AND m.name NOT IN"
        " ('dblock_lease_gone', 'dblock_insert_gone', 'dblock_token_gone') LIMIT 1",
        text);
    if (text[0] != 0)
        tell(examination, WARNING, RECORDED, "index", "DROP it",
            "there is more on dblock's tables than its own: %s; it makes each grant slower, and an"
            " error in it fails the grant",
            text);
    ask(examination,
        "SELECT m.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c"
        " WHERE m.type = 'table' AND m.name IN ('dblock_lease', 'dblock_insert', 'dblock_token')"
        " AND (c.name IN ('name', 'owner', 'session') AND upper(c.type) <> 'BLOB'"
        " OR c.name IN ('token', 'expires_at') AND upper(c.type) <> 'INTEGER') LIMIT 1",
        text);
    if (text[0] != 0)
        tell(examination, DBLOCK_FINDING_UNUSABLE, RECORDED, "columns",
            "drop the dblock_ tables while nobody locks, and run: dblock init",
            "columns of %s were changed: names would not be compared byte by byte", text);
}

static void judge_rights(struct examination *examination)
{
    char remedy[4200];
    struct stat file;

    if (stat(examination->connection->path, &file) != 0 || (file.st_mode & S_IWOTH) == 0)
        return;
    (void)snprintf(remedy, sizeof remedy, "chmod o-w '%s'", examination->connection->path);
    tell(examination, WARNING, ALL, "rights", remedy, "everybody on this machine may write the file");
}

dblock_status sqlite_observe_check(struct dblock_connection *connection,
    const struct dblock_call *call, dblock_finding_fn fn, void *context,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct examination examination = { connection, fn, context, 0 };
    dblock_status status = sqlite_step_begin(connection, call, "look at", NULL, reterr);

    if (status == DBLOCK_OK) {
        tell(&examination, GOOD, ALL, "version", "", "SQLite %s, on a local disk",
            sqlite3_libversion());
        judge_journal(&examination);
        judge_log(&examination);
        judge_size(&examination);
        judge_tables(&examination);
        judge_rights(&examination);
        answer->outcome = DBLOCK_ANSWER_YES;
    }
    return sqlite_step_end(connection, status, answer);
}
