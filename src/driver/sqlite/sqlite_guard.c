/* SPDX-License-Identifier: MIT */
/* sqlite_guard.c - a transaction of the application that is bound to a grant.
 *
 * A file has one writer, so whoever writes pins everything: no take, drop or break of
 * another connection can be committed before this transaction ends. What is read here is
 * then the newest. A transaction that has only read so far is made a writing one by a
 * change of the grant's row; if somebody has written since it began to read, SQLite refuses
 * that (SQLITE_BUSY_SNAPSHOT). Heartbeats wait for the writer, as for every other one: it
 * must be shorter than two thirds of the ttl. */
#include <dblock/sqlite.h>
#include <dblock/sys/driver.h>

#include "sqlite_application.h"
#include "sqlite_byte.h"
#include "sqlite_clock.h"
#include "sqlite_steps.h"
#include "sqlite_target.h"

#include <sqlite3.h>

struct question {
    const struct dblock_guarded *guarded;
    sqlite3 *handle;
    struct dblock_error *reterr;
};

static struct sqlite_application application_of(const struct question *question)
{
    struct sqlite_application application = {
        question->handle, "guard", question->guarded->subject.name, question->reterr };

    return application;
}

static dblock_status check(const struct question *question, const char *source_id)
{
    const struct sqlite_application application = application_of(question);
    dblock_status status = sqlite_application_check(&application, source_id);

    return status == DBLOCK_OK
        ? sqlite_application_check_file(&application, question->guarded->target->path)
        : status;
}

static dblock_status fail(const struct question *question, int code)
{
    const struct sqlite_application application = application_of(question);

    return sqlite_application_fail(&application, code);
}

static void bind_grant(sqlite3_stmt *statement, const struct dblock_guarded *guarded)
{
    char number[32];
    struct dblock_subject name = guarded->subject;

    if (guarded->strategy == DBLOCK_ROW || guarded->strategy == DBLOCK_ADVISORY) {
        sqlite_byte_token_name(guarded->strategy, number, sizeof number, &name);
        (void)sqlite3_bind_int(statement, 2, guarded->strategy);
    } else {
        (void)sqlite3_bind_blob(statement, 2, guarded->owner, DBLOCK_ID_SIZE, SQLITE_STATIC);
        (void)sqlite3_bind_int64(statement, 4, sqlite_clock_us());
    }
    (void)sqlite3_bind_blob(statement, 1, name.name, (int)name.name_size, SQLITE_TRANSIENT);
    (void)sqlite3_bind_int64(statement, 3, guarded->token);
    if (sqlite3_bind_parameter_count(statement) == 6) {
        (void)sqlite3_bind_blob(statement, 5, guarded->kept_owner, DBLOCK_ID_SIZE, SQLITE_STATIC);
        (void)sqlite3_bind_int64(statement, 6, (int64_t)guarded->keep_us);
    }
}

/* SQLITE_ROW, SQLITE_DONE, or an extended error code. ?1 name, ?2 owner or strategy, ?3 token,
 * ?4 clock, ?5 and ?6 who keeps the name and how long. */
static int run(const struct question *question, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(question->handle, sql, -1, &statement, NULL);

    if (code == SQLITE_OK) {
        bind_grant(statement, question->guarded);
        code = sqlite3_step(statement);
    }
    while (code == SQLITE_ROW && !sqlite3_stmt_readonly(statement)) /* PRAGMA count_changes */
        code = sqlite3_step(statement);
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        code = sqlite3_extended_errcode(question->handle);
    (void)sqlite3_finalize(statement);
    return code;
}

#define IS_THIS_GRANT                                                                              \
    " WHERE name = ?1 AND owner = ?2 AND token = ?3 AND CASE WHEN session IS NULL"                 \
    " THEN expires_at > ?4 ELSE (SELECT s.expires_at > ?4 FROM dblock_session AS s"                \
    " WHERE s.id = session) END"

/* Row and advisory have no row with their owner: what is changed or read is that of the token which
 * was drawn before anybody was told of the grant. Whoever is told of a later one has drawn after
 * that; until this transaction ends he cannot. */
#define IS_THIS_TOKEN " WHERE strategy = ?2 AND name = ?1 AND token = ?3"

#define KEEP "session = NULL, owner = ?5, expires_at = ?4 + ?6"

static const struct statements {
    const char *look, *pin, *leave, *keep; /* keep: what is left of min_hold_ms */
} statements[] = {
    [DBLOCK_LEASE] = { "SELECT 1 FROM main.dblock_lease" IS_THIS_GRANT,
        "UPDATE main.dblock_lease SET guards = guards + 1" IS_THIS_GRANT,
        "UPDATE main.dblock_lease SET session = NULL, owner = NULL, expires_at = 0,"
        " since = ?4" IS_THIS_GRANT,
        "UPDATE main.dblock_lease SET " KEEP IS_THIS_GRANT },
    [DBLOCK_INSERT] = { "SELECT 1 FROM main.dblock_insert" IS_THIS_GRANT,
        "UPDATE main.dblock_insert SET guards = guards + 1" IS_THIS_GRANT,
        "DELETE FROM main.dblock_insert" IS_THIS_GRANT,
        "UPDATE main.dblock_insert SET " KEEP IS_THIS_GRANT },
    [DBLOCK_ROW] = { "SELECT 1 FROM main.dblock_token" IS_THIS_TOKEN,
        "UPDATE main.dblock_token SET token = token" IS_THIS_TOKEN, NULL, NULL },
    [DBLOCK_ADVISORY] = { "SELECT 1 FROM main.dblock_token" IS_THIS_TOKEN,
        "UPDATE main.dblock_token SET token = token" IS_THIS_TOKEN, NULL, NULL },
};

static dblock_status pin(const struct question *question)
{
    const struct statements *texts = &statements[question->guarded->strategy];
    int code;

    if (sqlite3_txn_state(question->handle, "main") == SQLITE_TXN_WRITE) {
        code = run(question, texts->look);
        return code == SQLITE_ROW ? DBLOCK_OK
            : code == SQLITE_DONE ? DBLOCK_LOST
                                  : fail(question, code);
    }
    code = run(question, texts->pin);
    if (code != SQLITE_DONE)
        return fail(question, code);
    return sqlite3_changes(question->handle) == 1 ? DBLOCK_OK : DBLOCK_LOST;
}

/* What is pinned is given back by this transaction. The file has one writer, and that is this one. */
static dblock_status leave(const struct question *question)
{
    const struct statements *texts = &statements[question->guarded->strategy];
    int code = run(question, question->guarded->keep_us == 0 ? texts->leave : texts->keep);

    if (code != SQLITE_DONE)
        return fail(question, code);
    return sqlite3_changes(question->handle) == 1 ? DBLOCK_OK : DBLOCK_NOT_HELD;
}

static dblock_status bind(dblock_lock *lock, struct sqlite3 *database, const char *source_id,
    int gives_back, struct dblock_error *reterr)
{
    struct dblock_guarded guarded;
    struct question question = { &guarded, database, reterr };
    dblock_status status = gives_back ? dblock_guard_check_release(lock, reterr) : DBLOCK_OK;

    if (status == DBLOCK_OK)
        status = dblock_guard_begin(lock, dblock_sqlite_driver(), &guarded, reterr);
    if (status != DBLOCK_OK)
        return status;
    status = check(&question, source_id);
    if (status == DBLOCK_OK)
        status = pin(&question);
    if (status == DBLOCK_OK && gives_back) {
        status = leave(&question);
        if (status == DBLOCK_OK)
            dblock_guard_gives_back(lock);
    }
    return dblock_guard_end(lock, status, reterr);
}

dblock_status dblock_sqlite_guard(dblock_lock *lock, struct sqlite3 *database,
    const char *source_id, struct dblock_error *reterr)
{
    return bind(lock, database, source_id, 0, reterr);
}

dblock_status dblock_sqlite_release_in(dblock_lock *lock, struct sqlite3 *database,
    const char *source_id, struct dblock_error *reterr)
{
    return bind(lock, database, source_id, 1, reterr);
}
