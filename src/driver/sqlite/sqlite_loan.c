/* SPDX-License-Identifier: MIT */
/* sqlite_loan.c - see sqlite_loan.h.
 *
 * The functions cannot be taken away again: SQLite refuses that while any statement of the
 * application is in the middle of its rows, and has every prepared one made anew. So they stay,
 * under names that begin with "dblock_", only for SQL that is no trigger or view, and answer NULL
 * to anybody but us.
 *
 * Of the settings there are three that a step depends on. The busy handler: a time-out of the
 * application would go on beyond our deadline, and its time can be asked for; a handler of its
 * own cannot, and stays. `synchronous`: with OFF a power cut takes back a grant that was given.
 * Triggers: ours keep the tokens rising, so without them nothing is done. */
#include "sqlite_loan.h"

#include <dblock/sqlite.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "sqlite_application.h"

struct sqlite_loan {
    struct dblock_connection *user; /* first: whose step runs, and what the functions answer to */
    sqlite3 *handle;                /* NULL: closed by the application */
    unsigned n_refs;
    struct sqlite_loan *next;
    /* of the step that runs, as it was before */
    int busy_ms;
    int synchronous;
    int64_t rowid;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of the list, `n_refs` and `user` */
static struct sqlite_loan *loans;

static void give_up(struct sqlite_loan *loan)
{
    struct sqlite_loan **place;

    (void)pthread_mutex_lock(&mutex);
    if (--loan->n_refs > 0)
        loan = NULL;
    for (place = &loans; loan != NULL && *place != NULL; place = &(*place)->next)
        if (*place == loan) {
            *place = loan->next;
            break;
        }
    (void)pthread_mutex_unlock(&mutex);
    free(loan);
}

/* The application closes the handle: the functions go. */
static void handle_is_closed(void *user)
{
    struct sqlite_loan *loan = user;

    loan->handle = NULL;
    give_up(loan);
}

dblock_status sqlite_loan_open(
    sqlite3 *handle, struct sqlite_loan **ret_loan, struct dblock_error *reterr)
{
    struct sqlite_loan *loan;
    int code;

    (void)pthread_mutex_lock(&mutex);
    for (loan = loans; loan != NULL && loan->handle != handle;)
        loan = loan->next;
    if (loan != NULL)
        ++loan->n_refs;
    (void)pthread_mutex_unlock(&mutex);
    *ret_loan = loan;
    if (loan != NULL)
        return DBLOCK_OK;
    loan = calloc(1, sizeof *loan);
    if (loan == NULL)
        return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "out of memory");
    loan->handle = handle;
    loan->n_refs = 2; /* the handle's, and the caller's */
    (void)pthread_mutex_lock(&mutex);
    loan->next = loans;
    loans = loan;
    (void)pthread_mutex_unlock(&mutex);
    /* if that fails it calls handle_is_closed() */
    code = sqlite_functions_add(handle, &loan->user, handle_is_closed);
    if (code == SQLITE_OK) {
        *ret_loan = loan;
        return DBLOCK_OK;
    }
    give_up(loan);
    (void)dblock_error_set(reterr, DBLOCK_E_DATABASE, NULL,
        "cannot add functions to the connection: %s", sqlite3_errstr(code));
    dblock_error_native(reterr, code, NULL, 0);
    return DBLOCK_E_DATABASE;
}

void sqlite_loan_close(struct sqlite_loan *loan)
{
    if (loan != NULL)
        give_up(loan);
}

static dblock_status refuse(const char *action, const char *name, const char *hint,
    const char *reason, struct dblock_error *reterr)
{
    if (*name == 0)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, hint, "cannot %s the connection: %s",
            action, reason);
    return dblock_error_set(
        reterr, DBLOCK_E_ARGUMENT, hint, "cannot %s \"%s\": %s", action, name, reason);
}

dblock_status sqlite_loan_check(const struct sqlite_loan *loan, const char *action,
    const char *name, struct dblock_error *reterr)
{
    if (loan->handle == NULL)
        return refuse(action, name, "close the client before its connection",
            "the connection has been closed", reterr);
    if (!sqlite3_get_autocommit(loan->handle))
        return refuse(action, name,
            "COMMIT or ROLLBACK before; in a transaction: dblock_sqlite_acquire_in(), _guard(),"
            " _release_in()",
            "the connection is in a transaction, and this would be a part of it", reterr);
    /* what it reads is as old as its first row, and so would be what we read */
    if (sqlite3_txn_state(loan->handle, NULL) != SQLITE_TXN_NONE)
        return refuse(action, name, "sqlite3_reset() or finalize it before",
            "a statement on the connection is in the middle of its rows", reterr);
    return DBLOCK_OK;
}

/* Tables that our statements would mean instead, and triggers that would not run. */
static dblock_status check_names(
    const struct sqlite_loan *loan, const char *action, const char *name, struct dblock_error *reterr)
{
    int has_triggers = 1;

    (void)sqlite3_db_config(loan->handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, -1, &has_triggers);
    if (!has_triggers)
        return refuse(action, name, "SQLITE_DBCONFIG_ENABLE_TRIGGER",
            "the connection runs no triggers, and dblock's keep its tokens rising", reterr);
    if (sqlite_application_setting(loan->handle,
            "SELECT 1 FROM sqlite_temp_master WHERE name LIKE 'dblock\\_%' ESCAPE '\\' LIMIT 1") == 1)
        return refuse(action, name, "name them otherwise",
            "the connection has temporary tables with dblock's names", reterr);
    return DBLOCK_OK;
}

static void leave(struct sqlite_loan *loan)
{
    (void)pthread_mutex_lock(&mutex);
    loan->user = NULL;
    (void)pthread_mutex_unlock(&mutex);
}

dblock_status sqlite_loan_take(struct dblock_connection *connection, struct dblock_error *reterr)
{
    struct sqlite_loan *loan = connection->target->loan;
    const char *action = connection->action;
    const char *name = connection->name != NULL ? connection->name : "";
    int is_used;
    dblock_status status;

    (void)pthread_mutex_lock(&mutex);
    is_used = loan->user != NULL;
    if (!is_used)
        loan->user = connection;
    (void)pthread_mutex_unlock(&mutex);
    if (is_used)
        return refuse(action, name, "one thread at a time",
            "another call is at work with the connection", reterr);
    status = sqlite_loan_check(loan, action, name, reterr);
    if (status == DBLOCK_OK)
        status = check_names(loan, action, name, reterr);
    if (status != DBLOCK_OK) {
        leave(loan);
        return status;
    }
    connection->handle = loan->handle;
    loan->rowid = sqlite3_last_insert_rowid(loan->handle);
    loan->busy_ms = sqlite_application_setting(loan->handle, "PRAGMA busy_timeout");
    if (loan->busy_ms > 0)
        (void)sqlite3_busy_handler(loan->handle, sqlite_wait_for_write_lock, connection);
    loan->synchronous = sqlite_application_setting(loan->handle, "PRAGMA main.synchronous");
    if (loan->synchronous == 0)
        (void)sqlite3_exec(loan->handle, "PRAGMA main.synchronous = NORMAL", NULL, NULL, NULL);
    return DBLOCK_OK;
}

int sqlite_loan_is_taken(const struct dblock_connection *connection)
{
    return connection->target->loan->user == connection;
}

void sqlite_loan_give_back(struct dblock_connection *connection)
{
    struct sqlite_loan *loan = connection->target->loan;
    int i;

    for (i = 0; i < N_STATEMENTS; ++i) {
        (void)sqlite3_finalize(connection->statements[i]);
        connection->statements[i] = NULL;
    }
    if (loan->synchronous == 0)
        (void)sqlite3_exec(loan->handle, "PRAGMA main.synchronous = OFF", NULL, NULL, NULL);
    if (loan->busy_ms > 0)
        (void)sqlite3_busy_timeout(loan->handle, loan->busy_ms);
    sqlite3_set_last_insert_rowid(loan->handle, loan->rowid);
    connection->handle = NULL;
    leave(loan);
}

int sqlite_loan_waits(struct dblock_connection *connection, int code)
{
    if (!connection->is_lent || (code & 0xFF) != SQLITE_BUSY ||
        connection->call == NULL || !connection->is_patient ||
        !sqlite_pause(connection, connection->call))
        return 0;
    if (sqlite3_get_autocommit(connection->handle))
        connection->clock_us = 0;
    return 1;
}

/* ------------------------------------------------------------------------ opening */

static dblock_status open_target(void *connection, const struct dblock_target_config *config,
    struct dblock_target **ret_target, struct dblock_error *reterr)
{
    sqlite3 *handle = connection;
    const char *path = sqlite3_db_filename(handle, "main");
    dblock_status status;

    if (path == NULL || *path == 0)
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED, "open a file",
            "a database in memory belongs to one connection, so nobody else would see its locks");
    if (sqlite3_db_readonly(handle, "main") == 1)
        return dblock_error_set(reterr, DBLOCK_E_READ_ONLY, "open it for writing",
            "the connection reads %s only", path);
    status = sqlite_target_open_path(config, path, ret_target, reterr);
    if (status != DBLOCK_OK)
        return status;
    status = sqlite_loan_open(handle, &(*ret_target)->loan, reterr);
    if (status != DBLOCK_OK) {
        sqlite_target_close(*ret_target);
        *ret_target = NULL;
    }
    return status;
}

static dblock_status check_target(struct dblock_target *target, const char *action,
    const char *name, struct dblock_error *reterr)
{
    return sqlite_loan_check(target->loan, action, name, reterr);
}

dblock_status dblock_sqlite_open_on(struct sqlite3 *database, const char *source_id,
    const struct dblock_config *config, dblock_client **ret_client, struct dblock_error *reterr)
{
    const struct dblock_borrowing borrowing = { database, open_target, check_target,
        1u << DBLOCK_ROLE_SHORT | 1u << DBLOCK_ROLE_KEEPER | 1u << DBLOCK_ROLE_CONTROL |
            1u << DBLOCK_ROLE_ROW | 1u << DBLOCK_ROLE_ADVISORY | 1u << DBLOCK_ROLE_LINE,
        1 };

    if (database == NULL || source_id == NULL)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL, "database: NULL");
    if (strcmp(source_id, sqlite3_sourceid()) != 0)
        return dblock_error_set(reterr, DBLOCK_E_DRIVER,
            "link the program and libdblock-sqlite with the same SQLite",
            "the connection belongs to another copy of SQLite");
    return dblock_open_borrowed(dblock_sqlite_driver(), &borrowing, config, ret_client, reterr);
}
