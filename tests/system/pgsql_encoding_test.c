/* SPDX-License-Identifier: MIT */
/* pgsql_encoding_test.c - a database that is not UTF-8: names are bytes, and a label that cannot be
 * written there is no reason to have no lock. Makes databases of its own. Runs beside others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dblock/many.h>

#include "pgsql_fixture.h"

#define NAME "caf\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x94\x92"

static struct pgsql_fixture f;
static struct dblock_error error;
static const char *const encodings[] = { "LATIN1", "EUC_JP", "WIN1252" };

/* The database of that encoding, for the user of the tests. */
static void make_database(PGconn *admin, const char *encoding, char *name, size_t size)
{
    char sql[300];

    (void)snprintf(name, size, "%s_%s", f.schema, encoding);
    (void)snprintf(sql, sizeof sql,
        "CREATE DATABASE \"%s\" OWNER %s ENCODING '%s' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'",
        name, PQuser(f.plain), encoding);
    pgsql_run(admin, sql);
}

static dblock_client *open_client(const char *database, const char *label)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    dblock_client *client = NULL;
    char url[400];

    config.label = label;
    (void)snprintf(url, sizeof url, "postgresql:///%s?host=%s&port=%s&user=%s&password=%s", database,
        PQhost(f.plain), PQport(f.plain), PQuser(f.plain), PQpass(f.plain));
    assert_int_equal(
        DBLOCK_OK, dblock_open(dblock_pgsql_driver(), url, &config, &client, &error));
    return client;
}

static void acquire_all(dblock_client *client, const char *label, int heartbeat)
{
    static const int strategies[] = { DBLOCK_LEASE, DBLOCK_INSERT, DBLOCK_ROW, DBLOCK_ADVISORY };
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    dblock_lock *lock = NULL;
    size_t i;

    for (i = 0; i < sizeof strategies / sizeof *strategies; ++i) {
        options.strategy = strategies[i];
        options.heartbeat = i < 2 ? heartbeat : 0;
        if (dblock_acquire(client, NAME, &options, &lock, &error) != DBLOCK_OK)
            fail_msg("%s: %s", dblock_strategy_name(strategies[i]), error.message);
        if (i < 2) {
            assert_int_equal(
                DBLOCK_OK, dblock_inspect(client, NAME, strategies[i], &grant, &error));
            assert_string_equal(NAME, grant.name);
            assert_string_equal(label, grant.label);
        }
        assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
        dblock_lock_free(lock);
    }
}

static void acquire_many(dblock_client *client)
{
    static const char *const names[] = { "one", NAME };
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *locks[2] = { NULL, NULL };

    if (dblock_acquire_many(client, names, 2, &options, locks, &error) != DBLOCK_OK)
        fail_msg("many: %s", error.message);
    assert_int_equal(DBLOCK_OK, dblock_release_many(locks, 2, &error));
    dblock_lock_free(locks[0]);
    dblock_lock_free(locks[1]);
}

static void label_that_cannot_be_written__has_marks(void **state)
{
    PGconn *admin = PQconnectdb(getenv("DBLOCK_TEST_PGSQL_ADMIN"));
    char database[80], sql[200];
    dblock_client *client;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof encodings / sizeof *encodings; ++i) {
        make_database(admin, encodings[i], database, sizeof database);
        client = open_client(database, "lock \xf0\x9f\x94\x92");
        assert_int_equal(DBLOCK_OK, dblock_schema_install(client, &error));
        acquire_all(client, "lock ?", DBLOCK_HEARTBEAT_OFF);
        dblock_close(client);
        client = open_client(database, "lock \xf0\x9f\x94\x92");
        acquire_all(client, "lock ?", 0);
        dblock_close(client);
        client = open_client(database, "\xf0\x9f\x94\x92");
        acquire_many(client);
        dblock_close(client);
        (void)snprintf(sql, sizeof sql, "DROP DATABASE \"%s\"", database);
        pgsql_run(admin, sql);
    }
    PQfinish(admin);
}

static void label_that_can__is_kept(void **state)
{
    PGconn *admin = PQconnectdb(getenv("DBLOCK_TEST_PGSQL_ADMIN"));
    char database[80], sql[200];
    dblock_client *client;

    (void)state;
    make_database(admin, "LATIN1", database, sizeof database);
    client = open_client(database, "caf\xc3\xa9");
    assert_int_equal(DBLOCK_OK, dblock_schema_install(client, &error));
    acquire_all(client, "caf\xc3\xa9", 0);
    dblock_close(client);
    (void)snprintf(sql, sizeof sql, "DROP DATABASE \"%s\"", database);
    pgsql_run(admin, sql);
    PQfinish(admin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(label_that_cannot_be_written__has_marks),
        cmocka_unit_test(label_that_can__is_kept),
    };
    int n_failed;

    if (getenv("DBLOCK_TEST_PGSQL_ADMIN") == NULL) {
        (void)printf("SKIP: DBLOCK_TEST_PGSQL_ADMIN is not set\n");
        return 77;
    }
    if (pgsql_fixture_open(&f) != 0)
        return 77;
    n_failed = cmocka_run_group_tests_name("pgsql_encoding", tests, NULL, NULL);
    pgsql_fixture_close(&f);
    return n_failed != 0;
}
