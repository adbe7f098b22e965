/* SPDX-License-Identifier: MIT */
/* sqlite_error_test.c - the table of SQLite's result codes. */
#include "driver/sqlite/sqlite_error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "driver/sqlite/sqlite_statement.h"

/* PITFALL(D13), PITFALL(C7): what certainly had no effect, what may have, what is only in use. */
static void status_of__tells_causes_apart(void **state)
{
    static const struct {
        int code;
        const char *text;
        dblock_status status;
    } cases[] = {
        {SQLITE_BUSY, "database is locked", SQLITE_STEP_AGAIN},
        {SQLITE_BUSY_SNAPSHOT, "database is locked", SQLITE_STEP_AGAIN},
        {SQLITE_BUSY_RECOVERY, "database is locked", SQLITE_STEP_AGAIN},
        {SQLITE_LOCKED_SHAREDCACHE, "database table is locked", SQLITE_STEP_AGAIN},
        {SQLITE_PROTOCOL, "locking protocol", SQLITE_STEP_AGAIN},
        {SQLITE_READONLY, "attempt to write a readonly database", DBLOCK_E_READ_ONLY},
        {SQLITE_READONLY_DIRECTORY, "attempt to write", DBLOCK_E_READ_ONLY},
        {SQLITE_READONLY_DBMOVED, "attempt to write", DBLOCK_E_CONNECTION},
        {SQLITE_PERM, "access permission denied", DBLOCK_E_PERMISSION},
        {SQLITE_CANTOPEN, "unable to open database file", DBLOCK_E_PERMISSION},
        {SQLITE_NOTADB, "file is not a database", DBLOCK_E_SCHEMA},
        {SQLITE_CORRUPT_INDEX, "malformed", DBLOCK_E_DATABASE},
        {SQLITE_FULL, "database or disk is full", DBLOCK_E_DATABASE},
        {SQLITE_NOMEM, "out of memory", DBLOCK_E_MEMORY},
        {SQLITE_IOERR_NOMEM, "out of memory", DBLOCK_E_MEMORY},
        {SQLITE_IOERR_READ, "disk I/O error", DBLOCK_E_DATABASE},
        {SQLITE_IOERR_WRITE, "disk I/O error", DBLOCK_E_UNCERTAIN},
        {SQLITE_IOERR_FSYNC, "disk I/O error", DBLOCK_E_UNCERTAIN},
        {SQLITE_ERROR, "no such table: dblock_lease", DBLOCK_E_SCHEMA},
        {SQLITE_ERROR, "no such column: token", DBLOCK_E_SCHEMA},
        {SQLITE_ERROR, "table dblock_lease has no column named guards", DBLOCK_E_SCHEMA},
        {SQLITE_ERROR, "near \"x\": syntax error", DBLOCK_E_DATABASE},
        {SQLITE_CONSTRAINT_PRIMARYKEY, "UNIQUE constraint failed", DBLOCK_E_DATABASE},
        {SQLITE_MISUSE, "bad parameter", DBLOCK_E_DATABASE},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        assert_int_equal(sqlite_status_of(cases[i].code, cases[i].text), cases[i].status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_of__tells_causes_apart),
    };

    return cmocka_run_group_tests_name("sqlite_error", tests, NULL, NULL);
}
