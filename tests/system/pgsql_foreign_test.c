/* SPDX-License-Identifier: MIT */
/* pgsql_foreign_test.c - advisory locks on PostgreSQL beside those of other programs, and behind
 * something that changes the server's session between two statements. Runs beside others. Also on
 * pgsql18. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pgsql_fixture.h"
#include "session_proxy.h"

#define YES DBLOCK_ANSWER_YES
#define NO DBLOCK_ANSWER_NO
#define BUSY DBLOCK_ANSWER_BUSY
/* The published number of a name. */
#define ID_OF(name) "('x' || encode(substr(sha256('" name "'), 1, 8), 'hex'))::bit(64)::bigint"

enum { SECOND = 1000000 };

static struct pgsql_fixture f;
static struct dblock_connection *short_one, *mine, *other;

static int lock(struct dblock_connection *connection, const char *name, uint64_t wait_us)
{
    pgsql_fixture_limit(&f, 20 * SECOND, -1);
    return pgsql_lock(&f, connection, DBLOCK_ADVISORY, name, wait_us);
}

static int unlock(struct dblock_connection *connection, const char *name)
{
    return pgsql_unlock(&f, connection, DBLOCK_ADVISORY, name);
}

static int prove(struct dblock_connection *connection, const char *name)
{
    return pgsql_prove(&f, connection, DBLOCK_ADVISORY, name);
}

static int note(const struct dblock_grant *grant, void *context)
{
    char *seen = context;

    (void)snprintf(seen + strlen(seen), 300 - strlen(seen), "%s ", grant->name);
    return 0;
}

/* Of one name, whoever holds it; NULL: all that are dblock's. */
static const char *list(const char *name)
{
    static char seen[300];
    struct dblock_page page = { .strategy = DBLOCK_ADVISORY, .limit = 100, .name = name };

    seen[0] = 0;
    assert_int_equal(DBLOCK_OK,
        f.driver->observe.list(short_one, &f.call, &page, note, seen, &f.answer, &f.error));
    return seen;
}

/* It can be had at once and after a wait, and is known as held by its holder alone. */
static void expect_free(const char *name)
{
    assert_string_equal("", list(name));
    assert_int_equal(YES, lock(mine, name, 0));
    assert_int_equal(BUSY, lock(other, name, 0));
    assert_int_equal(YES, prove(mine, name));
    assert_int_equal(NO, prove(other, name));
    assert_int_equal(YES, unlock(mine, name));
    assert_int_equal(YES, lock(other, name, SECOND));
    assert_int_equal(YES, unlock(other, name));
}

/* PITFALL(A9): keys that others use for the whole of a program, or for rows of a table. */
static void keys_of_other_programs__block_nobody(void **state)
{
    static const char *const names[] = { "1", "-1", "3", "12345", "3,12345", "x" };
    size_t i;

    (void)state;
    pgsql_run(f.plain, "SELECT pg_advisory_lock(-1), pg_advisory_lock(1), pg_advisory_lock(0),"
                       " pg_advisory_lock(3, 12345), pg_advisory_lock(0, 1)");
    for (i = 0; i < sizeof names / sizeof names[0]; ++i)
        expect_free(names[i]);
    assert_null(strstr(list(NULL), "#-1 "));
    assert_null(strstr(list(NULL), "#1 "));
    assert_string_equal("#-1 ", list("#-1"));
    assert_string_equal("#1 ", list("#1"));
    assert_string_equal("", list("#12345"));
    pgsql_run(f.plain, "SELECT pg_advisory_unlock_all()");
}

/* Two numbers that are the halves of ours are another key, and the same number in another database
 * is one; both stand in the server's table with the same digits. */
static void key_that_looks_like_ours__blocks_nobody(void **state)
{
    PGconn *elsewhere = PQsetdbLogin(PQhost(f.plain), PQport(f.plain), NULL, NULL, "postgres",
        PQuser(f.plain), PQpass(f.plain));

    (void)state;
    assert_int_equal(CONNECTION_OK, PQstatus(elsewhere));
    pgsql_run(f.plain, "SELECT pg_advisory_lock((i >> 32)::int, ((i << 32) >> 32)::int) FROM"
                       " (SELECT " ID_OF("halves") " AS i) AS s");
    expect_free("halves");
    pgsql_run(elsewhere, "SELECT pg_advisory_lock(" ID_OF("halves") ")");
    expect_free("halves");
    PQfinish(elsewhere);
    /* a shared one of our own number does exclude, and whoever has it does not hold ours */
    pgsql_run(f.plain, "SELECT pg_advisory_unlock_all()");
    pgsql_run(f.plain, "SELECT pg_advisory_lock_shared(" ID_OF("halves") ")");
    assert_int_equal(BUSY, lock(mine, "halves", 0));
    assert_true(f.grant.server_pid == PQbackendPID(f.plain));
    assert_int_equal(BUSY, lock(mine, "halves", SECOND / 10));
    pgsql_run(f.plain, "SELECT pg_advisory_unlock_all()");
    expect_free("halves");
}

/* ---------------------------------------------------- a session that is changed */

static struct session_proxy *proxy;
static struct dblock_target *target;
static int n_clients;

static struct dblock_connection *come(void)
{
    struct dblock_connection *connection;

    session_proxy_route(proxy, -1);
    connection = pgsql_fixture_connect_to(&f, target, DBLOCK_ROLE_ADVISORY);
    if (connection == NULL)
        fail_msg("%s", f.error.message);
    ++n_clients;
    return connection;
}

static void begin(const char *schema)
{
    char url[300];

    proxy = session_proxy_start(
        (unsigned int)strtoul(getenv("DBLOCK_TEST_PGSQL_PORT"), NULL, 10), NULL);
    assert_non_null(proxy);
    (void)snprintf(url, sizeof url,
        "postgresql://%s:%s@127.0.0.1:%u/%s?sslmode=disable&gssencmode=disable",
        PQuser(f.plain), PQpass(f.plain), session_proxy_port(proxy), PQdb(f.plain));
    target = pgsql_fixture_target(&f, url, schema, 5 * SECOND);
    assert_non_null(target);
    n_clients = 0;
}

static void end(struct dblock_connection **clients)
{
    int i;

    session_proxy_route(proxy, -1);
    for (i = 0; i < n_clients; ++i)
        pgsql_fixture_disconnect(&f, clients[i], DBLOCK_CLOSE_ABORT);
    f.driver->target_close(target);
    session_proxy_stop(proxy);
}

static void expect_refused(struct dblock_connection *connection, const char *name, uint64_t wait_us)
{
    assert_int_equal(-1, lock(connection, name, wait_us));
    assert_int_equal(DBLOCK_E_UNSUPPORTED, f.status);
    assert_non_null(strstr(f.error.message, "pooler"));
    assert_non_null(strstr(f.error.hint, "directly"));
    assert_false(f.driver->connection.is_alive(connection));
}

/* Each statement is used once, so that the server knows it by its name on each session. */
static void get_used(struct dblock_connection *connection, const char *name)
{
    assert_int_equal(YES, lock(connection, name, SECOND));
    assert_int_equal(YES, unlock(connection, name));
    assert_int_equal(YES, lock(connection, name, 0));
    assert_int_equal(YES, prove(connection, name));
    assert_int_equal(
        DBLOCK_OK, f.driver->connection.ping(connection, &f.call, &f.answer, &f.error));
    assert_int_equal(YES, f.answer.outcome);
    assert_int_equal(YES, unlock(connection, name));
}

/* All statements go to the session of the first: to the server it has what the others ask for. Nor
 * are they given what nobody has, as it would be that session's. */
static void refuse_all_but_the_first(struct dblock_connection **clients)
{
    static const char *const names[] = { "switched", "switched too" };
    int i;

    for (i = 0; i < 5; ++i) {
        clients[i] = come();
        get_used(clients[i], "switched");
    }
    session_proxy_route(proxy, 0);
    assert_int_equal(YES, lock(clients[0], "switched", 0));
    for (i = 0; i < 2; ++i) {
        expect_refused(clients[1 + 2 * i], names[i], 0);
        expect_refused(clients[2 + 2 * i], names[i], SECOND / 2);
    }
    assert_int_equal(YES, prove(clients[0], "switched"));
    assert_int_equal(YES, unlock(clients[0], "switched"));
    for (i = 0; i < 2; ++i) {
        assert_int_equal(YES, lock(mine, names[i], 0));
        assert_int_equal(YES, unlock(mine, names[i]));
    }
}

/* The same before a session has seen any statement. */
static void refuse_who_asks_first(struct dblock_connection **clients)
{
    int i;

    for (i = 0; i < 3; ++i)
        clients[i] = come();
    session_proxy_route(proxy, 0);
    expect_refused(clients[1], "unseen", 0);
    expect_refused(clients[2], "unseen", SECOND / 2);
    assert_int_equal(YES, lock(mine, "unseen", 0));
    assert_int_equal(YES, unlock(mine, "unseen"));
}

/* PITFALL(D3) */
static void changed_session__grants_nothing(void **state)
{
    struct dblock_connection *clients[8];

    (void)state;
    begin(f.schema);
    refuse_all_but_the_first(clients);
    end(clients);
    begin(f.schema);
    refuse_who_asks_first(clients);
    end(clients);
}

/* Without tables there is no procedure that waits, and another statement does. */
static void changed_session__grants_nothing_without_tables(void **state)
{
    struct dblock_connection *clients[8];

    (void)state;
    begin("no_such_schema");
    refuse_all_but_the_first(clients);
    end(clients);
    begin("no_such_schema");
    refuse_who_asks_first(clients);
    end(clients);
}

/* What is held on one is not believed by the word of another, which holds as many. */
static void changed_session__proves_nothing(void **state)
{
    struct dblock_connection *clients[8];
    int i;

    (void)state;
    begin(f.schema);
    for (i = 0; i < 3; ++i) {
        clients[i] = come();
        get_used(clients[i], "proved");
    }
    assert_int_equal(YES, lock(clients[0], "held 0", 0));
    assert_int_equal(YES, lock(clients[1], "held 1", 0));
    assert_int_equal(YES, lock(clients[2], "held 2", 0));
    session_proxy_route(proxy, 0);
    assert_int_equal(NO, prove(clients[1], "held 0"));
    assert_int_equal(NO, prove(clients[1], "held 1"));
    assert_int_equal(
        DBLOCK_OK, f.driver->connection.ping(clients[2], &f.call, &f.answer, &f.error));
    assert_int_equal(NO, f.answer.outcome);
    assert_int_equal(YES, prove(clients[0], "held 0"));
    end(clients);
}

static int open_all(void **state)
{
    (void)state;
    if (pgsql_fixture_open(&f) != 0)
        return -1;
    short_one = pgsql_fixture_connect(&f, DBLOCK_ROLE_SHORT);
    mine = pgsql_fixture_connect(&f, DBLOCK_ROLE_ADVISORY);
    other = pgsql_fixture_connect(&f, DBLOCK_ROLE_ADVISORY);
    return short_one != NULL && mine != NULL && other != NULL ? 0 : -1;
}

static int close_all(void **state)
{
    (void)state;
    pgsql_fixture_close(&f);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_of_other_programs__block_nobody),
        cmocka_unit_test(key_that_looks_like_ours__blocks_nobody),
        cmocka_unit_test(changed_session__grants_nothing),
        cmocka_unit_test(changed_session__grants_nothing_without_tables),
        cmocka_unit_test(changed_session__proves_nothing),
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
