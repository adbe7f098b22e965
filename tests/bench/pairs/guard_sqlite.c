/* SPDX-License-Identifier: MIT */
/* guard_sqlite.c - a guard, beside the very SELECT that it runs in a transaction that writes,
 * prepared for each as the guard does; see guard_pgsql.c. There is one writer, so they take turns
 * on one connection. */
#include "pairs.h"

#include <dblock/sqlite.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

static const double goal = 1.10;

struct guarding {
    sqlite3 *handle;
    dblock_lock *lock;
    const char *text;
    int64_t token;
    unsigned char owner[ID_SIZE];
};

static int guard_raw(void *context)
{
    const struct guarding *guarding = context;
    const char *name = dblock_lock_name(guarding->lock);
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(guarding->handle, guarding->text, -1, &statement, NULL);

    if (code == SQLITE_OK) {
        (void)sqlite3_bind_blob(statement, 1, name, (int)strlen(name), SQLITE_STATIC);
        (void)sqlite3_bind_blob(statement, 2, guarding->owner, ID_SIZE, SQLITE_STATIC);
        (void)sqlite3_bind_int64(statement, 3, guarding->token);
        (void)sqlite3_bind_int64(statement, 4, 1);
        code = sqlite3_step(statement);
    }
    if (code != SQLITE_ROW)
        (void)fprintf(stderr, "pairs: sqlite: not held: %s\n", sqlite3_errmsg(guarding->handle));
    (void)sqlite3_finalize(statement);
    return code == SQLITE_ROW ? 0 : -1;
}

static int guard_ours(void *context)
{
    const struct guarding *guarding = context;
    struct dblock_error error;
    dblock_status status =
        dblock_sqlite_guard(guarding->lock, guarding->handle, sqlite3_sourceid(), &error);

    if (status != DBLOCK_OK)
        (void)fprintf(stderr, "pairs: %s\n",
            status < 0 ? error.message : dblock_status_text(status));
    return status == DBLOCK_OK ? 0 : -1;
}

static int compare(struct guarding *guarding, struct settings *settings)
{
    const struct side raw = { guard_raw, guarding };
    const struct side ours = { guard_ours, guarding };
    const char *owner = dblock_lock_owner(guarding->lock);
    struct comparison comparison;
    struct dblock_error error;
    size_t i;

    guarding->text = "SELECT 1 FROM main.dblock_lease WHERE name = ?1 AND owner = ?2 AND token = ?3"
                     " AND CASE WHEN session IS NULL THEN expires_at > ?4 ELSE (SELECT"
                     " s.expires_at > ?4 FROM dblock_session AS s WHERE s.id = session) END";
    for (i = 0; i < ID_SIZE; ++i) {
        const char digits[3] = { owner[2 * i], owner[2 * i + 1], 0 };

        guarding->owner[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    if (dblock_lock_token(guarding->lock, &guarding->token, &error) != DBLOCK_OK ||
        sqlite3_exec(guarding->handle, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK ||
        sampling_compare(&raw, &ours, settings->n_rounds, settings->seconds, &comparison) != 0)
        return -1;
    (void)printf("%-11s lease: guard %.1f us, its SELECT %.1f us: ratio %.2f (%.2f-%.2f)%s\n",
        bench_sqlite.name, comparison.ours.p50_us, comparison.raw.p50_us, comparison.ratio,
        comparison.best, comparison.worst,
        report_goal(&settings->report, comparison.ratio, goal));
    report_json(&settings->report, bench_sqlite.name, "lease", "raw_us", comparison.raw.p50_us,
        "dblock_us", comparison.ours.p50_us, "ratio", comparison.ratio, NULL);
    sampling_free(&comparison);
    return sqlite3_exec(guarding->handle, "COMMIT", NULL, NULL, NULL) == SQLITE_OK ? 0 : -1;
}

int guard_sqlite_run(const char *url, struct settings *settings)
{
    struct library *library = library_open(&bench_sqlite, url, DBLOCK_LEASE, 0);
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct guarding guarding = { NULL, NULL, NULL, 0, { 0 } };
    struct dblock_error error;
    int result = -1;

    options.heartbeat = DBLOCK_HEARTBEAT_OFF; /* it would wait for the writer */
    options.ttl_ms = 600000;
    if (library != NULL &&
        sqlite3_open(url + strlen("sqlite:"), &guarding.handle) == SQLITE_OK &&
        dblock_acquire(library_client(library), "bench-guard", &options, &guarding.lock, &error) ==
            DBLOCK_OK)
        result = compare(&guarding, settings);
    (void)sqlite3_close(guarding.handle);
    dblock_lock_free(guarding.lock);
    library_close(library);
    return result;
}
