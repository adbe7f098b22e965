/* SPDX-License-Identifier: MIT */
/* pgsql_driver_test.c - the PostgreSQL driver, step by step: sessions, lease, insert,
 * listing, purge. Row and advisory: pgsql_lock_test.c; failures and round trips:
 * pgsql_connection_test.c. Alone on its server. Also on pgsql18. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

#include "pgsql_fixture.h"
#include "test_wait.h"

#define YES DBLOCK_ANSWER_YES
#define NO DBLOCK_ANSWER_NO
#define BUSY DBLOCK_ANSWER_BUSY
#define PINNED DBLOCK_ANSWER_PINNED

enum { SECOND = 1000000 };

static struct pgsql_fixture f;
static struct dblock_connection *a, *b;
static const int both[] = { DBLOCK_LEASE, DBLOCK_INSERT };
static const char *const tables[] = { "", "dblock_lease", "dblock_insert" };

#define FOR_BOTH(strategy) for (i = 0, strategy = both[0]; i < 2; strategy = both[++i % 2])

static const char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));

static const char *text(const char *format, ...)
{
    static char texts[4][1200];
    static unsigned next;
    char *place = texts[next++ % 4];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(place, sizeof texts[0], format, arguments);
    va_end(arguments);
    return place;
}

/* Makes the session look expired, as if its client had been silent. */
static void expire(const char *session)
{
    pgsql_run(f.plain,
        text("UPDATE dblock_session SET expires_at = clock_timestamp() - interval '1 ms'"
             " WHERE substr(id, 1, %d) = '%s'",
            (int)strlen(session), session));
}

static void take__is_granted_and_tells_all(void **state)
{
    int64_t last = 0;
    int strategy, i;

    (void)state;
    assert_int_equal(YES, pgsql_begin(&f, a, "s-all", 10 * SECOND));
    assert_true(f.answer.now_us > INT64_C(1700000000000000));
    FOR_BOTH (strategy) {
        assert_int_equal(YES, pgsql_take(&f, a, strategy, "all", "o-all", "s-all", 0));
        assert_true(f.answer.token > last && f.answer.token < INT64_C(1) << 53);
        assert_true(f.answer.token > f.answer.now_us - SECOND);
        last = f.answer.token;
        assert_true(f.answer.remaining_us > 5 * SECOND && f.answer.remaining_us <= 10 * SECOND);
        assert_true(f.answer.session_remaining_us == f.answer.remaining_us);
        assert_int_equal(BUSY, pgsql_take(&f, b, strategy, "all", "o-2", NULL, SECOND));
        assert_string_equal("all", f.grant.name);
        assert_string_equal("6f2d616c6c0000000000000000000000", f.grant.owner);
        assert_string_equal("label of the grant", f.grant.label);
        assert_string_equal("host with blank", f.grant.host);
        assert_int_equal(1, f.grant.is_heartbeat);
        assert_int_equal(strategy, f.grant.strategy);
        assert_true(f.grant.token == last);
        assert_true(f.grant.remaining_ms > 5000 && f.grant.remaining_ms <= 10000);
        assert_true(f.answer.remaining_us > 5 * SECOND);
        assert_int_equal(YES, pgsql_look(&f, b, strategy, "all"));
        assert_true(f.grant.token == last);
        assert_int_equal(YES, pgsql_drop(&f, a, strategy, "all", "o-all", 0));
        assert_int_equal(NO, pgsql_drop(&f, a, strategy, "all", "o-all", 0));
        assert_int_equal(NO, pgsql_look(&f, b, strategy, "all"));
    }
    assert_int_equal(0, pgsql_number(f.plain, "SELECT count(*) FROM dblock_insert"));
}

static void busy__writes_nothing(void **state)
{
    int64_t before;
    int strategy, i, n;

    (void)state;
    FOR_BOTH (strategy) {
        assert_int_equal(YES, pgsql_take(&f, a, strategy, "quiet", "o1", NULL, 60 * SECOND));
        before = pgsql_number(f.plain, "SELECT txid_current()");
        for (n = 0; n < 50; ++n)
            assert_int_equal(BUSY, pgsql_take(&f, b, strategy, "quiet", "o2", NULL, SECOND));
        /* no transaction of them got a number */
        assert_true(pgsql_number(f.plain, "SELECT txid_current()") < before + 25);
        assert_int_equal(YES, pgsql_drop(&f, a, strategy, "quiet", "o1", 0));
    }
}

static void timed_grant__ends_by_the_clock(void **state)
{
    int64_t first;
    int strategy, i;

    (void)state;
    FOR_BOTH (strategy) {
        assert_int_equal(YES, pgsql_take(&f, a, strategy, "timed", "o1", NULL, 300000));
        first = f.answer.token;
        assert_true(f.answer.remaining_us <= 300000 && f.answer.remaining_us > 0);
        assert_int_equal(BUSY, pgsql_take(&f, b, strategy, "timed", "o2", NULL, SECOND));
        assert_int_equal(0, f.grant.is_heartbeat);
        test_pass_ms(310);
        assert_int_equal(NO, pgsql_look(&f, b, strategy, "timed"));
        assert_int_equal(NO, pgsql_drop(&f, a, strategy, "timed", "o1", 0));
        assert_int_equal(NO, pgsql_extend(&f, a, strategy, "timed", "o1", SECOND));
        assert_int_equal(YES, pgsql_take(&f, b, strategy, "timed", "o2", NULL, 60 * SECOND));
        assert_true(f.answer.token > first);
        assert_int_equal(NO, pgsql_drop(&f, a, strategy, "timed", "o1", 0));
        assert_int_equal(YES, pgsql_extend(&f, a, strategy, "timed", "o2", 200000));
        assert_int_equal(YES, pgsql_look(&f, b, strategy, "timed"));
        assert_true(f.answer.remaining_us <= 200000);
        assert_int_equal(YES, pgsql_drop(&f, a, strategy, "timed", "o2", 0));
    }
}

static void drop__can_keep_the_name_a_while(void **state)
{
    int strategy, i;

    (void)state;
    assert_int_equal(YES, pgsql_begin(&f, a, "s-keep", 10 * SECOND));
    FOR_BOTH (strategy) {
        assert_int_equal(YES, pgsql_take(&f, a, strategy, "keep", "o1", "s-keep", 0));
        assert_int_equal(YES, pgsql_drop(&f, a, strategy, "keep", "o1", 300000));
        assert_int_equal(BUSY, pgsql_take(&f, b, strategy, "keep", "o2", NULL, SECOND));
        assert_int_equal(0, f.grant.is_heartbeat);
        test_pass_ms(310);
        assert_int_equal(YES, pgsql_take(&f, b, strategy, "keep", "o2", NULL, SECOND));
        assert_int_equal(YES, pgsql_drop(&f, b, strategy, "keep", "o2", 0));
    }
}

static void expired_session__is_ended_by_who_wants_the_name(void **state)
{
    int64_t first;
    int strategy, i;

    (void)state;
    FOR_BOTH (strategy) {
        const char *session = strategy == DBLOCK_LEASE ? "s-exp1" : "s-exp2";

        assert_int_equal(YES, pgsql_begin(&f, a, session, 10 * SECOND));
        assert_int_equal(YES, pgsql_take(&f, a, strategy, "exp-1", "o1", session, 0));
        first = f.answer.token;
        assert_int_equal(YES, pgsql_take(&f, a, strategy, "exp-2", "o2", session, 0));
        expire(session);
        assert_int_equal(NO, pgsql_renew(&f, a, session, 10 * SECOND));
        assert_int_equal(YES, pgsql_take(&f, b, strategy, "exp-1", "o3", NULL, 60 * SECOND));
        assert_true(f.answer.token > first);
        /* the session is gone for all its names */
        assert_int_equal(0,
            pgsql_number(f.plain,
                text("SELECT count(*) FROM dblock_session WHERE substr(id, 1, 6) = '%s'",
                    session)));
        assert_int_equal(NO, pgsql_renew(&f, a, session, 10 * SECOND));
        assert_int_equal(NO, pgsql_look(&f, a, strategy, "exp-2"));
        assert_int_equal(NO, pgsql_drop(&f, a, strategy, "exp-1", "o1", 0));
        assert_int_equal(YES, pgsql_take(&f, b, strategy, "exp-2", "o4", NULL, 60 * SECOND));
        assert_int_equal(YES, pgsql_drop(&f, b, strategy, "exp-1", "o3", 0));
        assert_int_equal(YES, pgsql_drop(&f, b, strategy, "exp-2", "o4", 0));
        assert_int_equal(NO, pgsql_end(&f, a, session));
    }
}

static void session__is_checked_and_renewed_and_ended(void **state)
{
    int strategy, i;

    (void)state;
    assert_int_equal(YES, pgsql_begin(&f, a, "s-mine", 10 * SECOND));
    assert_int_equal(YES, pgsql_renew(&f, a, "s-mine", 20 * SECOND));
    assert_true(f.answer.server_start_us > 0 && f.answer.server_start_us < f.answer.now_us);
    assert_int_equal(0, f.answer.changed);
    FOR_BOTH (strategy) {
        assert_int_equal(YES, pgsql_take(&f, a, strategy, "mine", "o1", "s-mine", 0));
        assert_true(f.answer.session_remaining_us > 15 * SECOND);
        assert_int_equal(
            DBLOCK_ANSWER_SESSION, pgsql_take(&f, a, strategy, "m-2", "o2", "nobody", 0));
        assert_int_equal(NO, pgsql_look(&f, a, strategy, "m-2"));
    }
    expire("s-mine");
    FOR_BOTH (strategy)
        assert_int_equal(
            DBLOCK_ANSWER_SESSION, pgsql_take(&f, a, strategy, "m-2", "o2", "s-mine", 0));
    assert_int_equal(YES, pgsql_end(&f, a, "s-mine"));
    assert_int_equal(NO, pgsql_end(&f, a, "s-mine"));
    FOR_BOTH (strategy)
        assert_int_equal(NO, pgsql_look(&f, a, strategy, "mine"));
}

static void late_take__is_not_made(void **state)
{
    struct dblock_take take;
    int strategy, i;

    (void)state;
    FOR_BOTH (strategy) {
        take = pgsql_take_of("late", "o1", NULL, SECOND);
        take.not_after_us = f.answer.now_us > 0 ? f.answer.now_us - 1 : 1;
        assert_int_equal(DBLOCK_ANSWER_LATE, pgsql_take_as(&f, a, strategy, &take));
        take.not_after_us = f.answer.now_us - 1;
        assert_int_equal(DBLOCK_ANSWER_LATE, pgsql_take_as(&f, a, strategy, &take));
        assert_int_equal(NO, pgsql_look(&f, a, strategy, "late"));
        take.not_after_us = f.answer.now_us + 10 * SECOND;
        assert_int_equal(YES, pgsql_take_as(&f, a, strategy, &take));
    }
}

/* A guarded transaction: S7, nobody hangs on it. */
static void guarded_row__is_answered_at_once(void **state)
{
    PGconn *guard = pgsql_plain(&f, NULL);
    uint64_t begun_ms;
    int strategy, i;

    (void)state;
    assert_int_equal(YES, pgsql_begin(&f, a, "s-guard", 60 * SECOND));
    FOR_BOTH (strategy) {
        assert_int_equal(YES, pgsql_take(&f, a, strategy, "guard", "o1", "s-guard", 0));
        pgsql_run(guard, "BEGIN");
        pgsql_run(guard,
            text("SELECT token FROM %s WHERE name = 'guard' FOR SHARE", tables[strategy]));
        begun_ms = test_now_ms();
        assert_int_equal(BUSY, pgsql_take(&f, b, strategy, "guard", "o2", NULL, SECOND));
        assert_int_equal(PINNED, pgsql_drop(&f, a, strategy, "guard", "o1", 0));
        assert_int_equal(PINNED, pgsql_extend(&f, a, strategy, "guard", "o1", SECOND));
        assert_int_equal(PINNED, pgsql_drop(&f, a, strategy, "guard", "o1", SECOND));
        assert_int_equal(PINNED, pgsql_break(&f, b, strategy, "guard", 0));
        assert_int_equal(NO, pgsql_drop(&f, b, strategy, "guard", "other", 0));
        assert_int_equal(YES, pgsql_renew(&f, a, "s-guard", 60 * SECOND));
        assert_int_equal(YES, pgsql_purge(&f, b));
        assert_true(test_now_ms() - begun_ms < 4000); /* a wait would last for the I/O limit, 5 s */
        pgsql_run(guard, "COMMIT");
        assert_int_equal(YES, pgsql_drop(&f, a, strategy, "guard", "o1", 0));

        /* the grant ends while the guard stands */
        assert_int_equal(YES, pgsql_take(&f, a, strategy, "guard", "o3", NULL, 200000));
        pgsql_run(guard, "BEGIN");
        pgsql_run(guard,
            text("SELECT token FROM %s WHERE name = 'guard' FOR SHARE", tables[strategy]));
        test_pass_ms(210);
        begun_ms = test_now_ms();
        assert_int_equal(PINNED, pgsql_take(&f, b, strategy, "guard", "o4", NULL, SECOND));
        assert_int_equal(1, f.grant.is_pinned);
        assert_true(test_now_ms() - begun_ms < 4000); /* a wait would last for the I/O limit, 5 s */
        pgsql_run(guard, "COMMIT");
        assert_int_equal(YES, pgsql_take(&f, b, strategy, "guard", "o5", NULL, SECOND));
        assert_int_equal(YES, pgsql_drop(&f, b, strategy, "guard", "o5", 0));
    }
    PQfinish(guard);
}

static void break__ends_that_grant_and_tells_its_session(void **state)
{
    int64_t token;
    int strategy, i;

    (void)state;
    FOR_BOTH (strategy) {
        const char *session = strategy == DBLOCK_LEASE ? "s-brk1" : "s-brk2";

        assert_int_equal(NO, pgsql_break(&f, b, strategy, "brk", 0));
        assert_int_equal(YES, pgsql_begin(&f, a, session, 60 * SECOND));
        assert_int_equal(YES, pgsql_take(&f, a, strategy, "brk", "o1", session, 0));
        token = f.answer.token;
        assert_int_equal(NO, pgsql_break(&f, b, strategy, "brk", token + 1));
        assert_int_equal(YES, pgsql_renew(&f, a, session, 60 * SECOND));
        assert_int_equal(0, f.answer.changed);
        assert_int_equal(YES, pgsql_break(&f, b, strategy, "brk", token));
        assert_int_equal(YES, pgsql_renew(&f, a, session, 60 * SECOND));
        assert_int_equal(1, f.answer.changed);
        assert_int_equal(NO, pgsql_drop(&f, a, strategy, "brk", "o1", 0));
        assert_int_equal(YES, pgsql_take(&f, b, strategy, "brk", "o2", NULL, SECOND));
        assert_true(f.answer.token > token);
    }
}

/* A grant that goes from thread to thread within a client. */
static void draw__gives_the_grant_a_new_token(void **state)
{
    PGconn *guard = pgsql_plain(&f, NULL);
    int64_t token;
    int strategy, i;

    (void)state;
    assert_int_equal(YES, pgsql_begin(&f, a, "s-draw", 60 * SECOND));
    FOR_BOTH (strategy) {
        assert_int_equal(NO, pgsql_draw_for(&f, a, strategy, "drawn", "o1"));
        assert_int_equal(YES, pgsql_take(&f, a, strategy, "drawn", "o1", "s-draw", 0));
        token = f.answer.token;
        assert_int_equal(NO, pgsql_draw_for(&f, b, strategy, "drawn", "o2"));
        assert_int_equal(YES, pgsql_draw_for(&f, b, strategy, "drawn", "o1"));
        assert_true(f.answer.token > token && f.answer.now_us > 0);
        token = f.answer.token;
        assert_int_equal(YES, pgsql_look(&f, b, strategy, "drawn"));
        assert_true(f.grant.token == token && f.grant.is_heartbeat);
        pgsql_run(guard, "BEGIN");
        pgsql_run(guard,
            text("SELECT token FROM %s WHERE name = 'drawn' FOR SHARE", tables[strategy]));
        assert_int_equal(PINNED, pgsql_draw_for(&f, a, strategy, "drawn", "o1"));
        pgsql_run(guard, "COMMIT");
        assert_int_equal(YES, pgsql_drop(&f, a, strategy, "drawn", "o1", 0));
        assert_int_equal(NO, pgsql_draw_for(&f, a, strategy, "drawn", "o1"));
        assert_int_equal(YES, pgsql_take(&f, b, strategy, "drawn", "o3", NULL, 60000));
        assert_true(f.answer.token > token);
        test_pass_ms(70);
        assert_int_equal(NO, pgsql_draw_for(&f, b, strategy, "drawn", "o3"));
    }
    PQfinish(guard);
}

static void names__are_byte_exact(void **state)
{
    static const char long_name[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
                                    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
                                    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
                                    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde";
    static const char *const names[] = { "Job", "job", "JOB", "job ", " job", "Jo\xcc\x88"
                                                                               "b",
        "J\xc3\xb6"
        "b",
        "'", "''", "\"", "\\", "\\'", "%s%n", "%", "_", ";--", "$1", "$$", "x\x01y", "\xf0\x9f\x98\x80",
        long_name };
    const size_t n_names = sizeof names / sizeof names[0];
    char owner[16];
    size_t n;
    int strategy, i;

    (void)state;
    assert_int_equal(255, strlen(long_name));
    FOR_BOTH (strategy) {
        for (n = 0; n < n_names; ++n) {
            (void)snprintf(owner, sizeof owner, "o%zu", n);
            assert_int_equal(
                YES, pgsql_take(&f, a, strategy, names[n], owner, NULL, 60 * SECOND));
        }
        for (n = 0; n < n_names; ++n) {
            (void)snprintf(owner, sizeof owner, "o%zu", n);
            assert_int_equal(BUSY, pgsql_take(&f, b, strategy, names[n], "x", NULL, SECOND));
            assert_string_equal(names[n], f.grant.name);
            assert_int_equal(YES, pgsql_drop(&f, a, strategy, names[n], owner, 0));
        }
    }
}

static int count_name(const struct dblock_grant *grant, void *context)
{
    char *seen = context;

    (void)snprintf(seen + strlen(seen), 200 - strlen(seen), "%d:%s%s ", (int)grant->strategy,
        grant->name, grant->owner[0] != 0 ? "" : "?");
    return 0;
}

static const char *list(const struct dblock_page *page)
{
    static char seen[200];

    seen[0] = 0;
    assert_int_equal(DBLOCK_OK,
        f.driver->observe.list(a, &f.call, page, count_name, seen, &f.answer, &f.error));
    return seen;
}

static void list__is_in_byte_order_and_in_pages(void **state)
{
    struct dblock_page page = { .strategy = DBLOCK_LEASE, .prefix = "l-", .limit = 100 };

    (void)state;
    assert_int_equal(YES, pgsql_take(&f, a, DBLOCK_LEASE, "l-b", "o1", NULL, 60 * SECOND));
    assert_int_equal(YES, pgsql_take(&f, a, DBLOCK_LEASE, "l-B", "o2", NULL, 60 * SECOND));
    assert_int_equal(YES, pgsql_take(&f, a, DBLOCK_LEASE, "l-a", "o3", NULL, 60 * SECOND));
    assert_int_equal(YES, pgsql_take(&f, a, DBLOCK_LEASE, "l_a", "o4", NULL, 60 * SECOND));
    assert_int_equal(YES, pgsql_drop(&f, a, DBLOCK_LEASE, "l-a", "o3", 0));
    assert_string_equal("1:l-B 1:l-b ", list(&page));
    page.is_idle = 1;
    assert_string_equal("1:l-B 1:l-a? 1:l-b ", list(&page));
    page.limit = 2;
    assert_string_equal("1:l-B 1:l-a? ", list(&page));
    page.after = "l-a";
    assert_string_equal("1:l-b ", list(&page));
    page.after = NULL;
    page.prefix = NULL;
    page.name = "l-b";
    assert_string_equal("1:l-b ", list(&page));
}

static void holds__tells_what_a_session_has(void **state)
{
    char seen[200] = "";

    (void)state;
    assert_int_equal(YES, pgsql_begin(&f, a, "s-holds", 60 * SECOND));
    assert_int_equal(DBLOCK_OK,
        f.driver->session.holds(
            a, &f.call, pgsql_id("s-holds"), count_name, seen, &f.answer, &f.error));
    assert_string_equal("", seen);
    assert_int_equal(YES, pgsql_take(&f, a, DBLOCK_LEASE, "h-1", "o1", "s-holds", 0));
    assert_int_equal(YES, pgsql_take(&f, a, DBLOCK_INSERT, "h-2", "o2", "s-holds", 0));
    assert_int_equal(YES, pgsql_take(&f, a, DBLOCK_LEASE, "h-3", "o3", NULL, SECOND));
    assert_int_equal(DBLOCK_OK,
        f.driver->session.holds(
            a, &f.call, pgsql_id("s-holds"), count_name, seen, &f.answer, &f.error));
    assert_non_null(strstr(seen, "1:h-1 "));
    assert_non_null(strstr(seen, "2:h-2 "));
    assert_int_equal(12, strlen(seen));
    assert_int_equal(YES, f.answer.outcome);
}

/* E13, E14: rows go, tokens rise; also if the clock was set back since, which is played by
 * sequences that are ahead of the clock by an hour. */
static void purge__removes_rows_and_tokens_still_rise(void **state)
{
    int64_t token[3];
    int strategy, i;

    (void)state;
    pgsql_run(f.plain,
        "SELECT setval('dblock_token_base', last_value + 3600000000) FROM dblock_token_base");
    FOR_BOTH (strategy) {
        assert_int_equal(YES, pgsql_take(&f, a, strategy, "old", "o1", NULL, SECOND));
        token[strategy] = f.answer.token;
        if (strategy == DBLOCK_LEASE)
            assert_int_equal(YES, pgsql_drop(&f, a, strategy, "old", "o1", 0));
    }
    assert_int_equal(YES, pgsql_begin(&f, a, "s-old", SECOND));
    assert_int_equal(YES, pgsql_begin(&f, a, "s-young", 60 * SECOND));
    assert_int_equal(YES, pgsql_take(&f, a, DBLOCK_LEASE, "young", "o2", "s-young", 0));
    assert_int_equal(YES, pgsql_purge(&f, a));
    assert_int_equal(1, pgsql_number(f.plain, "SELECT count(*) FROM dblock_lease WHERE name = 'old'"));
    pgsql_run(f.plain, "UPDATE dblock_lease SET since = since - interval '2 h'");
    pgsql_run(f.plain,
        "UPDATE dblock_insert SET since = since - interval '2 h',"
        " expires_at = expires_at - interval '2 h'");
    pgsql_run(f.plain,
        "UPDATE dblock_session SET expires_at = expires_at - interval '2 h'"
        " WHERE substr(id, 1, 5) = 's-old'");
    assert_int_equal(YES, pgsql_purge(&f, a));
    assert_true(f.answer.n_rows >= 3);
    assert_int_equal(
        0, pgsql_number(f.plain, "SELECT count(*) FROM dblock_lease WHERE name = 'old'"));
    assert_int_equal(
        0, pgsql_number(f.plain, "SELECT count(*) FROM dblock_insert WHERE name = 'old'"));
    assert_int_equal(YES, pgsql_look(&f, a, DBLOCK_LEASE, "young"));
    FOR_BOTH (strategy) {
        assert_int_equal(YES, pgsql_take(&f, a, strategy, "old", "o3", NULL, SECOND));
        assert_true(f.answer.token > token[strategy]);
    }
}

static void heartbeats_and_takes__are_hot(void **state)
{
    static const char counts[] =
        "SELECT sum(n_tup_upd - n_tup_hot_upd) * 1000 / greatest(sum(n_tup_upd), 1)"
        " FROM pg_stat_user_tables WHERE schemaname = '%s'"
        " AND relname IN ('dblock_session', 'dblock_lease')";
    int n;

    (void)state;
    assert_int_equal(YES, pgsql_begin(&f, b, "s-hot", 60 * SECOND));
    for (n = 0; n < 500; ++n) {
        assert_int_equal(YES, pgsql_renew(&f, b, "s-hot", 60 * SECOND));
        assert_int_equal(YES, pgsql_take(&f, b, DBLOCK_LEASE, "hot", "o1", "s-hot", 0));
        assert_int_equal(YES, pgsql_drop(&f, b, DBLOCK_LEASE, "hot", "o1", 0));
    }
    /* a session reports its counts when it ends, at the latest */
    pgsql_fixture_disconnect(&f, b, DBLOCK_CLOSE_POLITE);
    b = pgsql_fixture_connect(&f, DBLOCK_ROLE_SHORT);
    for (n = 0; n < 100 && pgsql_number(f.plain, text("SELECT sum(n_tup_upd) FROM"
             " pg_stat_user_tables WHERE schemaname = '%s'", f.schema)) < 1500; ++n)
        test_pass_ms(20);
    assert_true(pgsql_number(f.plain, text("SELECT sum(n_tup_upd) FROM pg_stat_user_tables"
        " WHERE schemaname = '%s'", f.schema)) >= 1500);
    assert_true(pgsql_number(f.plain, text(counts, f.schema)) <= 10);
    assert_int_equal(0,
        pgsql_number(f.plain, text("SELECT count(*) FROM pg_indexes WHERE schemaname = '%s'"
            " AND indexname NOT LIKE '%%_pkey'", f.schema)));
}

/* The base of tokens follows the clock, never goes back, and is not needed to be held. */
static void tokens__follow_the_clock_and_survive_a_lost_base(void **state)
{
    PGconn *other = pgsql_plain(&f, NULL);
    int64_t first, second;

    (void)state;
    pgsql_run(f.plain, "SELECT setval('dblock_token_base', 1000)"); /* a restore lost it */
    assert_int_equal(YES, pgsql_take(&f, a, DBLOCK_INSERT, "t-1", "o1", NULL, SECOND));
    first = f.answer.token;
    assert_true(first >= f.answer.now_us - 200000);
    pgsql_run(other, "BEGIN; SELECT pg_advisory_xact_lock(7234316452871503210)");
    test_pass_ms(150);
    assert_int_equal(YES, pgsql_take(&f, a, DBLOCK_INSERT, "t-2", "o2", NULL, SECOND));
    second = f.answer.token;
    assert_true(second > first);
    pgsql_run(other, "COMMIT");
    assert_int_equal(YES, pgsql_take(&f, a, DBLOCK_INSERT, "t-3", "o3", NULL, SECOND));
    assert_true(f.answer.token > second && f.answer.token >= f.answer.now_us - 200000);
    PQfinish(other);
}

static void gate__is_tried_and_never_waited_for(void **state)
{
    PGconn *other = pgsql_plain(&f, NULL);
    uint64_t begun_ms = test_now_ms();
    int strategy, i;

    (void)state;
    pgsql_run(other, "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended(encode('gated', 'hex')"
                     " COLLATE \"C\", 7201))");
    FOR_BOTH (strategy)
        assert_int_equal(
            DBLOCK_ANSWER_AGAIN, pgsql_take(&f, a, strategy, "gated", "o1", NULL, SECOND));
    assert_true(test_now_ms() - begun_ms < 4000); /* a wait would last for the I/O limit, 5 s */
    pgsql_run(other, "COMMIT");
    FOR_BOTH (strategy)
        assert_int_equal(YES, pgsql_take(&f, a, strategy, "gated", "o2", NULL, SECOND));
    PQfinish(other);
}

static int open_all(void **state)
{
    (void)state;
    if (pgsql_fixture_open(&f) != 0)
        return -1;
    a = pgsql_fixture_connect(&f, DBLOCK_ROLE_SHORT);
    b = pgsql_fixture_connect(&f, DBLOCK_ROLE_CONTROL);
    return a != NULL && b != NULL ? 0 : -1;
}

static int close_all(void **state)
{
    (void)state;
    pgsql_fixture_close(&f);
    return 0;
}

static int renew_limit(void **state)
{
    (void)state;
    pgsql_fixture_limit(&f, 20000000, -1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(take__is_granted_and_tells_all, renew_limit),
        cmocka_unit_test_setup(busy__writes_nothing, renew_limit),
        cmocka_unit_test_setup(timed_grant__ends_by_the_clock, renew_limit),
        cmocka_unit_test_setup(drop__can_keep_the_name_a_while, renew_limit),
        cmocka_unit_test_setup(expired_session__is_ended_by_who_wants_the_name, renew_limit),
        cmocka_unit_test_setup(session__is_checked_and_renewed_and_ended, renew_limit),
        cmocka_unit_test_setup(late_take__is_not_made, renew_limit),
        cmocka_unit_test_setup(guarded_row__is_answered_at_once, renew_limit),
        cmocka_unit_test_setup(break__ends_that_grant_and_tells_its_session, renew_limit),
        cmocka_unit_test_setup(draw__gives_the_grant_a_new_token, renew_limit),
        cmocka_unit_test_setup(names__are_byte_exact, renew_limit),
        cmocka_unit_test_setup(list__is_in_byte_order_and_in_pages, renew_limit),
        cmocka_unit_test_setup(holds__tells_what_a_session_has, renew_limit),
        cmocka_unit_test_setup(tokens__follow_the_clock_and_survive_a_lost_base, renew_limit),
        cmocka_unit_test_setup(gate__is_tried_and_never_waited_for, renew_limit),
        cmocka_unit_test_setup(heartbeats_and_takes__are_hot, renew_limit),
        cmocka_unit_test_setup(purge__removes_rows_and_tokens_still_rise, renew_limit),
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
