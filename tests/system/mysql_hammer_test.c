/* SPDX-License-Identifier: MIT */
/* mysql_hammer_test.c - fourteen processes fight for a few names with a ttl of 60 ms, and
 * are killed and stopped at random, for ten seconds (DBLOCK_TEST_HAMMER_SECONDS).
 *
 * Two oracles, neither of which asks the driver.
 * The database's own history: triggers log each grant, each end of a grant and each end of
 * a session, in the transaction that makes it. Changes of one row are ordered by its lock,
 * so a name's grants are logged in their order. A grant that follows one which was neither
 * given back nor timed out must come after its session's end was logged: who takes over
 * reads that deletion committed.
 * The holders' beliefs: each notes from when (after the answer) until when (its request's
 * time plus ttl less an eighth, or its release) it believes to hold. All run on one clock,
 * so no two of one name may overlap, and tokens rise with them.
 *
 * The tokens of insert run a day ahead of the clock, as after a clock that was set back,
 * while rows are aged and purged all the time: there the floor alone makes them rise.
 * Alone on its server. Also on oracle. */
#include "mysql_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <mysql.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test_wait.h"

#define N_WORKERS 14
#define N_NAMES 3
#define TTL_US 60000u
#define N_BELIEFS 400000
#define PATIENCE_MS 60000u

struct belief {
    int strategy;
    int name;
    int64_t token;
    uint64_t from_us;
    atomic_ullong until_us;
};

struct shared {
    atomic_uint n_beliefs;
    atomic_uint n_takes, n_busy, n_again, n_sessions, n_crashes, n_pauses, n_failures, n_purged;
    atomic_uint n_session, n_late, n_pinned, n_dropped;
    struct belief beliefs[N_BELIEFS];
};

static struct shared *shared;
static struct mysql_fixture fixture;
static unsigned int seed;

static unsigned int draw(unsigned int below)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

static void note_failure(const char *step)
{
    atomic_fetch_add(&shared->n_failures, 1);
    (void)fprintf(stderr, "%s: outcome %d, status %d: %s\n", step, fixture.answer.outcome,
        fixture.status, fixture.error.message);
}

/* A worker may be killed or stopped here. */
static void have_accident(void)
{
    unsigned int dice = draw(100);

    if (dice < 1) {
        atomic_fetch_add(&shared->n_crashes, 1);
        (void)raise(SIGKILL);
    } else if (dice < 3) {
        atomic_fetch_add(&shared->n_pauses, 1);
        (void)raise(SIGSTOP);
    }
}

struct worker {
    struct dblock_connection *connection;
    char session[20];
    uint64_t session_until_us; /* belief; 0: none */
};

static uint64_t end_of_belief(uint64_t sent_us)
{
    return sent_us + TTL_US - TTL_US / 8;
}

static int begin_session(struct worker *worker)
{
    static unsigned int count;
    uint64_t sent_us;

    (void)snprintf(worker->session, sizeof worker->session, "%d-%u", (int)getpid(), ++count);
    sent_us = dblock_clock_us();
    if (mysql_begin(&fixture, worker->connection, worker->session, TTL_US) !=
        DBLOCK_ANSWER_YES) {
        note_failure("begin");
        return -1;
    }
    atomic_fetch_add(&shared->n_sessions, 1);
    worker->session_until_us = end_of_belief(sent_us);
    return 0;
}

/* Heartbeats for a while, and moves the belief on with each. */
static void hold(struct worker *worker, struct belief *belief, int is_timed)
{
    unsigned int beats = draw(4);

    while (beats-- > 0) {
        uint64_t sent_us;

        test_pass_ms(draw(25));
        have_accident();
        if (is_timed)
            continue;
        sent_us = dblock_clock_us();
        if (sent_us >= worker->session_until_us)
            return; /* never renewed again */
        switch (mysql_renew(&fixture, worker->connection, worker->session, TTL_US)) {
        case DBLOCK_ANSWER_YES:
            worker->session_until_us = end_of_belief(sent_us);
            atomic_store(&belief->until_us, worker->session_until_us);
            break;
        case DBLOCK_ANSWER_NO:
            worker->session_until_us = 0;
            return;
        case DBLOCK_ANSWER_AGAIN:
            break;
        default:
            note_failure("renew");
            return;
        }
    }
}

static int fight_once(struct worker *worker)
{
    int strategy = draw(2) == 0 ? DBLOCK_LEASE : DBLOCK_INSERT;
    int is_timed = draw(4) == 0;
    int index = (int)draw(N_NAMES);
    struct dblock_take take;
    struct belief *belief;
    char name[20], owner[20];
    static unsigned int count;
    uint64_t sent_us, until_us, now_us;

    if (!is_timed && dblock_clock_us() >= worker->session_until_us) {
        if (begin_session(worker) != 0)
            return -1;
    }
    (void)snprintf(name, sizeof name, "hammer%d", index);
    (void)snprintf(owner, sizeof owner, "%d.%u", (int)getpid(), ++count);
    take = mysql_take_of(name, owner, is_timed ? NULL : worker->session, TTL_US);
    sent_us = dblock_clock_us();
    switch (mysql_take_as(&fixture, worker->connection, strategy, &take)) {
    case DBLOCK_ANSWER_YES:
        break;
    case DBLOCK_ANSWER_BUSY:
        atomic_fetch_add(&shared->n_busy, 1);
        test_pass_ms(draw(20));
        return 0;
    case DBLOCK_ANSWER_AGAIN:
        atomic_fetch_add(&shared->n_again, 1);
        return 0;
    case DBLOCK_ANSWER_SESSION:
        atomic_fetch_add(&shared->n_session, 1);
        worker->session_until_us = 0;
        return 0;
    case DBLOCK_ANSWER_PINNED:
        atomic_fetch_add(&shared->n_pinned, 1);
        return 0;
    default:
        note_failure("take");
        return -1;
    }
    until_us = is_timed ? end_of_belief(sent_us) : worker->session_until_us;
    now_us = dblock_clock_us();
    if (atomic_load(&shared->n_beliefs) >= N_BELIEFS)
        return -1;
    belief = &shared->beliefs[atomic_fetch_add(&shared->n_beliefs, 1)];
    belief->strategy = strategy;
    belief->name = index;
    belief->token = fixture.answer.token;
    belief->from_us = now_us;
    atomic_store(&belief->until_us, until_us);
    atomic_fetch_add(&shared->n_takes, 1);
    hold(worker, belief, is_timed);
    if (draw(5) == 0)
        return 0; /* forgets to release */
    now_us = dblock_clock_us();
    if (now_us < atomic_load(&belief->until_us))
        atomic_store(&belief->until_us, now_us);
    switch (mysql_drop(&fixture, worker->connection, strategy, name, owner, 0)) {
    case DBLOCK_ANSWER_YES:
        atomic_fetch_add(&shared->n_dropped, 1);
        return 0;
    case DBLOCK_ANSWER_NO:
        return 0;
    case DBLOCK_ANSWER_PINNED:
        atomic_fetch_add(&shared->n_pinned, 1);
        return 0;
    case DBLOCK_ANSWER_AGAIN:
        return 0;
    default:
        note_failure("drop");
        return -1;
    }
}

static int run_worker(unsigned int number)
{
    struct worker worker;

    seed = number * 2654435761u + (unsigned int)getpid();
    memset(&worker, 0, sizeof worker);
    worker.connection = mysql_fixture_connect(&fixture, DBLOCK_ROLE_SHORT);
    if (worker.connection == NULL) {
        note_failure("connect");
        return 1;
    }
    for (;;) {
        if (fight_once(&worker) != 0)
            return 1;
        have_accident();
    }
}

/* Ages what is free and purges it, all the time. */
static int run_purger(void)
{
    struct dblock_connection *connection = mysql_fixture_connect(&fixture, DBLOCK_ROLE_SHORT);
    MYSQL *plain = mysql_fixture_plain(&fixture);

    (void)mysql_fixture_run(plain, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    seed = 77;
    for (;;) {
        const char *table = draw(2) == 0 ? "dblock_lease" : "dblock_insert";

        (void)mysql_fixture_run(plain,
            "UPDATE %s SET since = since - 7200000000 WHERE name = 'hammer%u' AND owner IS NULL",
            table, draw(N_NAMES));
        mysql_fixture_limit(&fixture, 20000000, -1);
        fixture.status = fixture.driver->observe.purge(
            connection, &fixture.call, &fixture.answer, &fixture.error);
        if (fixture.status != DBLOCK_OK) {
            note_failure("purge");
            return 1;
        }
        atomic_fetch_add(&shared->n_purged, (unsigned int)fixture.answer.n_rows);
        test_pass_ms(3);
    }
}

static pid_t start_worker(unsigned int number)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(number == 0 ? run_purger() : run_worker(number));
    return pid;
}

static void make_triggers(MYSQL *admin)
{
    static const char *const tables[] = { "dblock_lease", "dblock_insert" };
    size_t i;

    assert_int_equal(mysql_fixture_run(admin,
                         "DROP TABLE IF EXISTS dblock_test_history;"
                         "CREATE TABLE dblock_test_history (id BIGINT AUTO_INCREMENT PRIMARY KEY,"
                         "kind CHAR(8), place INT, name VARBINARY(255), token BIGINT, "
                         "session BINARY(16), expires_at BIGINT, clock BIGINT) ENGINE = InnoDB"),
        0);
    (void)mysql_fixture_run(admin, "SET GLOBAL log_bin_trust_function_creators = 1");
    for (i = 0; i < 2; ++i) {
        assert_int_equal(mysql_fixture_run(admin,
                             "CREATE TRIGGER dblock_test_insert_%zu AFTER INSERT ON %s FOR EACH ROW "
                             "INSERT INTO dblock_test_history(kind, place, name, token, session, "
                             "expires_at, clock) VALUES('grant', %zu, NEW.name, NEW.token, "
                             "NEW.session, NEW.expires_at, "
                             "TIMESTAMPDIFF(MICROSECOND,'1970-01-01',UTC_TIMESTAMP(6)))",
                             i, tables[i], i),
            0);
        assert_int_equal(mysql_fixture_run(admin,
                             "CREATE TRIGGER dblock_test_update_%zu AFTER UPDATE ON %s FOR EACH ROW "
                             "BEGIN IF NEW.token <> OLD.token THEN "
                             "INSERT INTO dblock_test_history(kind, place, name, token, session, "
                             "expires_at, clock) VALUES('grant', %zu, NEW.name, NEW.token, "
                             "NEW.session, NEW.expires_at, "
                             "TIMESTAMPDIFF(MICROSECOND,'1970-01-01',UTC_TIMESTAMP(6)));"
                             "ELSEIF NEW.owner IS NULL AND OLD.owner IS NOT NULL THEN "
                             "INSERT INTO dblock_test_history(kind, place, name, token, clock) "
                             "VALUES('free', %zu, NEW.name, NEW.token, "
                             "TIMESTAMPDIFF(MICROSECOND,'1970-01-01',UTC_TIMESTAMP(6)));"
                             "END IF; END",
                             i, tables[i], i, i),
            0);
    }
    assert_int_equal(mysql_fixture_run(admin,
                         "CREATE TRIGGER dblock_test_session AFTER DELETE ON dblock_session FOR "
                         "EACH ROW INSERT INTO dblock_test_history(kind, session) "
                         "VALUES('end', OLD.id)"),
        0);
}

static void drop_triggers(MYSQL *admin)
{
    (void)mysql_fixture_run(admin, "DROP TRIGGER IF EXISTS dblock_test_insert_0;"
                                   "DROP TRIGGER IF EXISTS dblock_test_insert_1;"
                                   "DROP TRIGGER IF EXISTS dblock_test_update_0;"
                                   "DROP TRIGGER IF EXISTS dblock_test_update_1;"
                                   "DROP TRIGGER IF EXISTS dblock_test_session;"
                                   "DROP TABLE IF EXISTS dblock_test_history");
}

/* Stops are continued after a while, the dead are replaced, until the time is over. */
static void conduct(unsigned int seconds)
{
    pid_t pids[N_WORKERS + 1];
    uint64_t end_ms = test_now_ms() + seconds * 1000;
    uint64_t continue_ms[N_WORKERS + 1] = { 0 };
    unsigned int i;

    seed = 4711;
    for (i = 0; i <= N_WORKERS; ++i)
        pids[i] = start_worker(i);
    /* on a busy machine it takes longer until there is enough to judge */
    while (test_now_ms() < end_ms ||
        (atomic_load(&shared->n_takes) <= 10 * seconds && test_now_ms() < end_ms + PATIENCE_MS)) {
        int status;
        pid_t pid = waitpid(-1, &status, WUNTRACED | WNOHANG);

        for (i = 0; i <= N_WORKERS; ++i) {
            if (pid > 0 && pids[i] == pid && WIFSTOPPED(status))
                continue_ms[i] = test_now_ms() + draw(150);
            else if (pid > 0 && pids[i] == pid)
                pids[i] = start_worker(i);
            if (continue_ms[i] != 0 && test_now_ms() >= continue_ms[i]) {
                continue_ms[i] = 0;
                (void)kill(pids[i], SIGCONT);
            }
        }
        if (pid <= 0)
            test_pass_ms(1);
    }
    for (i = 0; i <= N_WORKERS; ++i)
        (void)kill(pids[i], SIGKILL);
    for (i = 0; i <= N_WORKERS; ++i)
        (void)waitpid(pids[i], NULL, 0);
}

static int compare_beliefs(const void *left, const void *right)
{
    const struct belief *a = left;
    const struct belief *b = right;

    if (a->strategy != b->strategy)
        return a->strategy < b->strategy ? -1 : 1;
    if (a->name != b->name)
        return a->name < b->name ? -1 : 1;
    return a->token < b->token ? -1 : a->token > b->token;
}

static unsigned int count_bad_beliefs(void)
{
    unsigned int n = atomic_load(&shared->n_beliefs);
    unsigned int bad = 0;
    unsigned int i;

    qsort(shared->beliefs, n, sizeof *shared->beliefs, compare_beliefs);
    for (i = 1; i < n; ++i) {
        struct belief *a = &shared->beliefs[i - 1];
        struct belief *b = &shared->beliefs[i];

        if (a->strategy != b->strategy || a->name != b->name || b->token == 0)
            continue;
        if (a->token == b->token || (b->from_us < atomic_load(&a->until_us) &&
                                        a->from_us < atomic_load(&a->until_us) &&
                                        b->from_us < atomic_load(&b->until_us))) {
            ++bad;
            (void)fprintf(stderr, "overlap: strategy %d name %d tokens %lld %lld by %lld us\n",
                a->strategy, a->name, (long long)a->token, (long long)b->token,
                (long long)(atomic_load(&a->until_us) - b->from_us));
        }
    }
    return bad;
}

/* The history's grants that are not larger than the one before, and those that came before
 * the one before was over. */
static unsigned int count_bad_grants(MYSQL *admin)
{
    int64_t backwards = mysql_fixture_number(admin,
        "SELECT COUNT(*) FROM (SELECT token, LAG(token) OVER (PARTITION BY place, name ORDER BY id)"
        " AS before_ FROM dblock_test_history WHERE kind = 'grant') h WHERE token <= before_");
    int64_t overlaps = mysql_fixture_number(admin,
        "SELECT COUNT(*) FROM (SELECT id, kind, clock, LAG(kind) OVER w AS kind_, "
        "LAG(session) OVER w AS session_, LAG(expires_at) OVER w AS expires_ "
        "FROM dblock_test_history WHERE kind <> 'end' "
        "WINDOW w AS (PARTITION BY place, name ORDER BY id)) h "
        "WHERE kind = 'grant' AND kind_ = 'grant' AND IF(session_ IS NULL, expires_ > clock, "
        "NOT EXISTS (SELECT 1 FROM dblock_test_history e WHERE e.kind = 'end' "
        "AND e.session = h.session_ AND e.id < h.id))");

    if (backwards != 0 || overlaps != 0)
        (void)fprintf(stderr, "history: %lld tokens went back, %lld grants overlap\n",
            (long long)backwards, (long long)overlaps);
    return backwards == 0 && overlaps == 0 ? 0 : 1;
}

/* PITFALL(C1): deadlocks of InnoDB are no errors of the caller. */
static void hammer__never_grants_twice(void **state)
{
    const char *text = getenv("DBLOCK_TEST_HAMMER_SECONDS");
    unsigned int seconds = text != NULL ? (unsigned int)strtoul(text, NULL, 10) : 10;
    MYSQL *admin = mysql_fixture_admin(&fixture);
    unsigned int i, n_bad, n_tries;

    (void)state;
    if (admin == NULL)
        admin = mysql_fixture_plain(&fixture);
    drop_triggers(admin);
    make_triggers(admin);
    for (i = 0; i < N_NAMES; ++i)
        assert_int_equal(
            mysql_fixture_run(admin,
                "INSERT INTO dblock_insert(name, token, since, expires_at, label, host, pid) "
                "VALUES('hammer%u', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + "
                "86400000000, 0, 0, '', '', 0)",
                i),
            0);
    conduct(seconds);
    (void)mysql_fixture_run(admin, "ALTER TABLE dblock_test_history ADD INDEX (session)");
    (void)printf("%u grants (%lld logged), %u given back, %u busy, %u again, %u pinned, "
                 "%u sessions (%u over), %u killed, %u stopped, %u rows purged\n",
        atomic_load(&shared->n_takes),
        (long long)mysql_fixture_number(
            admin, "SELECT COUNT(*) FROM dblock_test_history WHERE kind = 'grant'"),
        atomic_load(&shared->n_dropped), atomic_load(&shared->n_busy),
        atomic_load(&shared->n_again), atomic_load(&shared->n_pinned),
        atomic_load(&shared->n_sessions), atomic_load(&shared->n_session),
        atomic_load(&shared->n_crashes), atomic_load(&shared->n_pauses),
        atomic_load(&shared->n_purged));
    n_bad = count_bad_grants(admin);
    /* before anything can fail, or the next test would have them */
    drop_triggers(admin);
    (void)mysql_fixture_run(admin, "UPDATE dblock_floor SET token = 0 WHERE id = 2");
    assert_int_equal(atomic_load(&shared->n_failures), 0);
    assert_true(atomic_load(&shared->n_takes) > 10 * seconds);
    /* Nothing is guarded here: to meet others' brief locks is not to meet a guard. A commit takes
     * longer where the server writes a binary log as well, or the machine has other work; and who
     * is stopped or killed in a transaction may be met by somebody for sure. */
    n_tries = atomic_load(&shared->n_takes) + atomic_load(&shared->n_busy) +
        atomic_load(&shared->n_again) + atomic_load(&shared->n_pinned);
    assert_true(atomic_load(&shared->n_pinned) <= n_tries / 50 +
            atomic_load(&shared->n_crashes) + atomic_load(&shared->n_pauses));
    assert_int_equal(n_bad, 0);
    assert_int_equal(count_bad_beliefs(), 0);
    mysql_close(admin);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(hammer__never_grants_twice) };
    FILE *file = tmpfile();
    int status;

    if (file == NULL || ftruncate(fileno(file), (off_t)sizeof *shared) != 0)
        return 1;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    if (shared == MAP_FAILED || mysql_fixture_open(&fixture) != 0)
        return 1;
    status = cmocka_run_group_tests_name("mysql_hammer", tests, NULL, NULL);
    mysql_fixture_close(&fixture);
    return status;
}
