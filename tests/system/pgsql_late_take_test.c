/* SPDX-License-Identifier: MIT */
/* pgsql_late_take_test.c - a take of a lease that gets the gate just after another's commit, having
 * seen the name free, or held by a grant that has ended: its later statements neither take, nor
 * clear away, nor lock the row of the new grant, so the owner's release finds nobody on it. By the
 * statements alone, as no timing stages this. A break that comes upon the next token. And a
 * heartbeat that waits for its row until its time is over.
 * Runs beside others. Also on pgsql18. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "pgsql_fixture.h"
#include "pgsql_sql.h"
#include "test_wait.h"

#define YES DBLOCK_ANSWER_YES

enum { N_ROUNDS = 10, SHORT_US = 150000, LONG_US = 20000000 };
enum { BYTEA = 17, BYTEAS = 1001, TIMESTAMPTZ = 1184 }; /* type numbers, the same on every server */

static struct pgsql_fixture f;
static struct dblock_connection *holder, *rival;

/* With the schema of the test in the place of the one that the driver replaces. */
static PGresult *run_late(
    const char *template, int n_parameters, const Oid *types, const char *const *values)
{
    static const char mark[] = "dblock_schema.";
    char sql[8000] = "";
    const char *next;
    PGresult *result;

    for (; (next = strstr(template, mark)) != NULL; template = next + sizeof mark - 1)
        (void)snprintf(sql + strlen(sql), sizeof sql - strlen(sql), "%.*s%s.",
            (int)(next - template), template, f.schema);
    (void)snprintf(sql + strlen(sql), sizeof sql - strlen(sql), "%s", template);
    result = PQexecParams(f.plain, sql, n_parameters, types, values, NULL, NULL, 0);
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        fail_msg("%s", PQerrorMessage(f.plain));
    return result;
}

/* Holder takes, the late one runs `take`, the holder gives back while that is not committed. */
static void expect_left_alone(
    const char *take, int n_parameters, const Oid *types, const char *const *values)
{
    PGresult *taken;

    assert_int_equal(YES, pgsql_take(&f, holder, DBLOCK_LEASE, "late", "holder", NULL, 60000000));
    pgsql_run(f.plain, "BEGIN; SELECT set_config('dblock.gate', 'mine', true)");
    taken = run_late(take, n_parameters, types, values);
    assert_int_equal(0, PQntuples(taken));
    PQclear(taken);
    assert_int_equal(YES, pgsql_drop(&f, holder, DBLOCK_LEASE, "late", "holder", 0));
    pgsql_run(f.plain, "COMMIT");
    assert_int_equal(0,
        pgsql_number(f.plain, "SELECT count(*) FROM dblock_lease WHERE owner IS NOT NULL"));
}

static void late_take__leaves_the_new_grant_alone(void **state)
{
    static const Oid types[8] = { 0, BYTEA };
    static const char *const values[] = { "late", NULL, "infinity", "somebody else...", "1 minute",
        "", "here", "1" };

    (void)state;
    expect_left_alone(pgsql_sql_lease_take, 8, types, values);
}

static void late_take_of_many__leaves_the_new_grant_alone(void **state)
{
    static const Oid types[7] = { BYTEAS, BYTEA, 0, BYTEAS };
    static const char *const values[] = { "{late}", NULL, "1 minute", "{somebody else...}", "",
        "here", "1" };

    (void)state;
    expect_left_alone(pgsql_sql_lease_many_take, 7, types, values);
}

/* The grant that was to be cleared away as it had ended is another one meanwhile, and in force. */
static void late_clear__leaves_the_new_grant_alone(void **state)
{
    static const struct {
        int strategy;
        const char *clear;
    } both[] = { { DBLOCK_LEASE, pgsql_sql_lease_clear },
        { DBLOCK_INSERT, pgsql_sql_insert_clear } };
    static const Oid types[1] = { BYTEA };
    static const char *const values[] = { "late" };
    PGresult *answer;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof both / sizeof both[0]; ++i) {
        assert_int_equal(
            YES, pgsql_take(&f, holder, both[i].strategy, "late", "holder", NULL, 60000000));
        pgsql_run(f.plain, "BEGIN; SELECT set_config('dblock.gate', 'mine', true)");
        answer = run_late(both[i].clear, 1, types, values);
        assert_string_equal("t", PQgetvalue(answer, 0, 0)); /* nobody stands on one to clear */
        assert_string_equal("f", PQgetvalue(answer, 0, 1));
        assert_string_equal("no", PQgetvalue(answer, 0, 2));
        PQclear(answer);
        assert_int_equal(YES, pgsql_drop(&f, holder, both[i].strategy, "late", "holder", 0));
        pgsql_run(f.plain, "COMMIT");
    }
}

/* A row that is a grant: its holder draws another token and gives it back, in one transaction here
 * so that it is still going when the late one comes. That one had drawn its own token before, and
 * would get the row with it, a smaller one, once the holder's is gone. */
static void late_insert__does_not_wait_for_the_end_of_another(void **state)
{
    static const Oid one[8] = { BYTEA, BYTEA, TIMESTAMPTZ }, many[7] = { BYTEAS, BYTEA, 0, BYTEAS };
    static const char *const one_values[] = { "late", NULL, "infinity", "somebody else...",
        "1 minute", "", "here", "1" };
    static const char *const many_values[] = { "{late}", NULL, "1 minute", "{somebody else...}",
        "", "here", "1" };
    PGconn *ending = pgsql_plain(&f, f.url);
    PGresult *taken;
    int i;

    (void)state;
    for (i = 0; i < 2; ++i) {
        assert_int_equal(
            YES, pgsql_take(&f, holder, DBLOCK_INSERT, "late", "holder", NULL, 60000000));
        pgsql_run(ending, "BEGIN; UPDATE dblock_insert SET token ="
                          " token + 1; DELETE FROM dblock_insert");
        pgsql_run(f.plain, "BEGIN; SET LOCAL lock_timeout = 1000;"
                           " SELECT set_config('dblock.gate', 'mine', true)");
        taken = i == 0 ? run_late(pgsql_sql_insert_take, 8, one, one_values)
                       : run_late(pgsql_sql_insert_many_take, 7, many, many_values);
        assert_int_equal(0, PQntuples(taken));
        PQclear(taken);
        pgsql_run(f.plain, "COMMIT");
        pgsql_run(ending, "COMMIT");
    }
    PQfinish(ending);
}

static int is_waiting(void *context)
{
    (void)context;
    return pgsql_number(f.plain, "SELECT count(*) FROM pg_locks AS l JOIN pg_stat_activity AS a"
                                 " ON a.pid = l.pid WHERE NOT l.granted AND a.pid IN (SELECT"
                                 " w.pid FROM pg_stat_activity AS w WHERE pg_backend_pid() ="
                                 " ANY (pg_blocking_pids(w.pid)))") > 0;
}

/* ----------------------------------------------------------------- a late break */

struct breaking {
    struct pgsql_fixture fixture;
    int strategy;
    int64_t token;
    int outcome;
};

static void *break_one(void *context)
{
    struct breaking *breaking = context;

    breaking->outcome =
        pgsql_break(&breaking->fixture, rival, breaking->strategy, "late", breaking->token);
    return NULL;
}

/* Whoever reads a session stops, with his snapshot, while `plain` has the lock. */
static void make_stop(void)
{
    pgsql_run(f.plain,
        "CREATE FUNCTION stop() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN"
        " PERFORM pg_catalog.pg_advisory_xact_lock_shared(72, 1); RETURN true; END $$");
    pgsql_run(f.plain, "CREATE POLICY stop ON dblock_session USING (stop());"
                       " ALTER TABLE dblock_session ENABLE ROW LEVEL SECURITY,"
                       " FORCE ROW LEVEL SECURITY");
}

static void end_stop(void)
{
    pgsql_run(f.plain, "DROP POLICY stop ON dblock_session; DROP FUNCTION stop();"
                       " ALTER TABLE dblock_session DISABLE ROW LEVEL SECURITY,"
                       " NO FORCE ROW LEVEL SECURITY; DELETE FROM dblock_session");
}

/* The grant goes to another thread of its client, with a new token (lease_draw), while the break
 * of the old token is between its snapshot and its lock. */
static void late_break__leaves_the_next_token_alone(void **state)
{
    static const int both[] = { DBLOCK_LEASE, DBLOCK_INSERT };
    struct breaking breaking;
    pthread_t thread;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof both / sizeof both[0]; ++i) {
        breaking.strategy = both[i];
        assert_int_equal(YES, pgsql_begin(&f, holder, "s-break", 60000000));
        assert_int_equal(
            YES, pgsql_take(&f, holder, breaking.strategy, "late", "holder", "s-break", 0));
        breaking.token = f.answer.token;
        make_stop();
        pgsql_run(f.plain, "SELECT pg_advisory_lock(72, 1)");
        breaking.fixture = f;
        assert_int_equal(0, pthread_create(&thread, NULL, break_one, &breaking));
        assert_true(test_until(is_waiting, NULL, 5000));
        pgsql_run(f.plain, "UPDATE dblock_lease SET token = token + 1;"
                           " UPDATE dblock_insert SET token = token + 1");
        pgsql_run(f.plain, "SELECT pg_advisory_unlock(72, 1)");
        assert_int_equal(0, pthread_join(thread, NULL));
        assert_int_not_equal(YES, breaking.outcome);
        end_stop();
        assert_int_equal(YES, pgsql_begin(&f, holder, "s-break", 60000000));
        assert_int_equal(YES, pgsql_drop(&f, holder, breaking.strategy, "late", "holder", 0));
        assert_int_equal(YES, pgsql_end(&f, holder, "s-break"));
    }
}

/* ------------------------------------------------------------- a late heartbeat */

struct beat {
    struct pgsql_fixture fixture;
    char session[16];
    int outcome;
};

static void *renew(void *context)
{
    struct beat *beat = context;

    beat->outcome = pgsql_renew(&beat->fixture, holder, beat->session, LONG_US);
    return NULL;
}

static int is_over(void *context)
{
    (void)context;
    return pgsql_number(f.plain, "SELECT count(*) FROM dblock_session"
                                 " WHERE expires_at > clock_timestamp()") == 0;
}

/* PITFALL(S17): such an UPDATE does not look again after it has waited for a row that was locked
 * and not changed, and revives a session whose time is over. That harms nobody, as whoever takes
 * the name deletes the row, after a look: one of the two finds that the other was there.
 * The rest of S17 is shown elsewhere: a heartbeat that changes no time in mysql_driver_test.c,
 * classes of ttls in unit/options_test.c, guards of row and advisory in unit/guard_test.c and
 * contract/guard.c, dead sessions in pgsql_driver_test.c, search_path and the limit of a
 * transaction in pgsql_connection_test.c, joined rows in joined_test.c. */
static void late_heartbeat__or_a_take_and_never_both(void **state)
{
    struct beat beat;
    pthread_t thread;
    int n_revived = 0, i, taken;

    (void)state;
    for (i = 0; i < N_ROUNDS; ++i) {
        pgsql_fixture_limit(&f, LONG_US, -1);
        (void)snprintf(beat.session, sizeof beat.session, "s-%d", i);
        assert_int_equal(YES, pgsql_begin(&f, holder, beat.session, SHORT_US));
        assert_int_equal(YES, pgsql_take(&f, holder, DBLOCK_LEASE, "beat", "o1", beat.session, 0));
        pgsql_run(f.plain, "BEGIN; SELECT 1 FROM dblock_session FOR NO KEY UPDATE");
        beat.fixture = f;
        assert_int_equal(0, pthread_create(&thread, NULL, renew, &beat));
        assert_true(test_until(is_waiting, NULL, 5000));
        assert_true(test_until(is_over, NULL, 5000));
        pgsql_run(f.plain, "COMMIT");
        taken = pgsql_take(&f, rival, DBLOCK_LEASE, "beat", "o2", NULL, LONG_US);
        assert_int_equal(0, pthread_join(thread, NULL));
        assert_true(beat.outcome == YES || beat.outcome == DBLOCK_ANSWER_NO);
        assert_false(beat.outcome == YES && taken == YES);
        n_revived += beat.outcome == YES;
        if (beat.outcome == YES) {
            assert_int_equal(DBLOCK_ANSWER_BUSY,
                pgsql_take(&f, rival, DBLOCK_LEASE, "beat", "o3", NULL, LONG_US));
            assert_int_equal(YES, pgsql_end(&f, holder, beat.session));
        } else if (taken == YES) {
            assert_int_equal(YES, pgsql_drop(&f, rival, DBLOCK_LEASE, "beat", "o2", 0));
        }
        pgsql_run(f.plain, "DELETE FROM dblock_session");
    }
    print_message("# the heartbeat won %d of %d times\n", n_revived, N_ROUNDS);
}

static int open_all(void **state)
{
    (void)state;
    if (pgsql_fixture_open(&f) != 0)
        return -1;
    holder = pgsql_fixture_connect(&f, DBLOCK_ROLE_SHORT);
    rival = pgsql_fixture_connect(&f, DBLOCK_ROLE_SHORT);
    return holder != NULL && rival != NULL ? 0 : -1;
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
        cmocka_unit_test(late_take__leaves_the_new_grant_alone),
        cmocka_unit_test(late_take_of_many__leaves_the_new_grant_alone),
        cmocka_unit_test(late_clear__leaves_the_new_grant_alone),
        cmocka_unit_test(late_insert__does_not_wait_for_the_end_of_another),
        cmocka_unit_test(late_break__leaves_the_next_token_alone),
        cmocka_unit_test(late_heartbeat__or_a_take_and_never_both),
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
