/* SPDX-License-Identifier: MIT */
/* pgsql_hammer_test.c - many processes that take, renew, release, break, stop and die, on
 * few names with a short ttl, through the PostgreSQL driver's table.
 *
 * Three judges, none of which believes the driver:
 *   grants     a trigger notes every grant, whoever believes in it: per name and table the
 *              tokens must rise in the order in which the grants were made
 *   intervals  from the database's clock in the take to its clock in the last step that
 *              proved the grant (look, drop): two of one name must not overlap
 *   guards     a holder writes its token in a transaction that stands on its row: the
 *              tokens so written must not fall
 * Alone on its server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pgsql_fixture.h"
#include "test_wait.h"

enum { N_PROCESSES = 14, N_NAMES = 3, TTL_US = 60000 };

static const char *const names[N_NAMES] = { "hammer-a", "hammer-b", "hammer-\xc3\xa7" };
static const char *const tables[] = { "", "dblock_lease", "dblock_insert" };

static struct pgsql_fixture f;
static char path[100];

struct record { /* one write() each, so it is whole or missing */
    int32_t strategy;
    int32_t name;
    int64_t token;
    int64_t begin_us; /* the database's clock */
    int64_t end_us;
};

struct child {
    struct dblock_connection *connection;
    PGconn *plain;
    int records;
    uint64_t random;
    unsigned char session[DBLOCK_ID_SIZE];
    uint64_t renew_us; /* 0: there is no session */
};

static uint64_t draw(struct child *child, uint64_t below)
{
    child->random ^= child->random << 13;
    child->random ^= child->random >> 7;
    child->random ^= child->random << 17;
    return child->random % below;
}

static void make_id(struct child *child, unsigned char *id)
{
    size_t i;

    for (i = 0; i < DBLOCK_ID_SIZE; ++i)
        id[i] = (unsigned char)draw(child, 256);
}

static void give_up(const char *what)
{
    (void)fprintf(stderr, "hammer: %s: status %d, outcome %d: %s\n", what, f.status,
        f.answer.outcome, f.error.message);
    _exit(9);
}

/* A session that is alive, as far as this side can know. */
static void keep_session(struct child *child)
{
    const struct dblock_driver_session *session = &f.driver->session;
    uint64_t now_us = dblock_clock_us();

    memset(&f.answer, 0, sizeof f.answer);
    if (child->renew_us == 0) {
        make_id(child, child->session);
        f.status = session->begin(
            child->connection, &f.call, child->session, TTL_US, &f.answer, &f.error);
        if (f.status != DBLOCK_OK)
            give_up("begin");
        child->renew_us = now_us + TTL_US / 3;
    } else if (now_us >= child->renew_us) {
        f.status = session->renew(
            child->connection, &f.call, child->session, TTL_US, &f.answer, &f.error);
        if (f.status != DBLOCK_OK)
            give_up("renew");
        child->renew_us =
            f.answer.outcome == DBLOCK_ANSWER_YES ? now_us + TTL_US / 3 : 0;
    }
}

static void pause_sometimes(struct child *child)
{
    switch (draw(child, 60)) {
    case 0:
        (void)raise(SIGKILL);
        break;
    case 1:
        (void)raise(SIGSTOP); /* the parent lets it go on */
        break;
    case 2:
        test_pass_ms(draw(child, 150));
        break;
    default:
        break;
    }
}

/* A guarded transaction of the holder: its token, if the grant is in force and stays so. */
static void write_guarded(
    struct child *child, int strategy, int name, const unsigned char *owner, int64_t token)
{
    char owner_text[40];
    char sql[600];

    dblock_id_text(owner, owner_text);
    (void)snprintf(sql, sizeof sql,
        "BEGIN; INSERT INTO guarded (strategy, name, token)"
        " SELECT %d, %d, g.token FROM (SELECT l.token FROM %s l WHERE l.name = '%s'::text::bytea"
        " AND l.owner = '\\x%s' AND l.token = %lld AND (l.session IS NULL OR EXISTS"
        " (SELECT 1 FROM dblock_session s WHERE s.id = l.session)) FOR SHARE OF l) g; COMMIT",
        strategy, name, tables[strategy], names[name], owner_text, (long long)token);
    pgsql_run(child->plain, sql);
}

static void hold(struct child *child, int strategy, struct dblock_take *take, int name)
{
    const struct dblock_driver_hold *driver =
        strategy == DBLOCK_LEASE ? &f.driver->lease : &f.driver->insert;
    struct record record = { strategy, name, f.answer.token, f.answer.now_us, f.answer.now_us };
    struct dblock_grant grant = DBLOCK_GRANT_INIT;
    char owner_text[40];
    int n_looks = (int)draw(child, 4);
    int64_t asked_us;

    dblock_id_text(take->owner, owner_text);
    if (draw(child, 3) == 0)
        write_guarded(child, strategy, name, take->owner, record.token);
    while (n_looks-- > 0) {
        pause_sometimes(child);
        if (take->session != NULL)
            keep_session(child);
        /* the clock first: what the look sees it saw at some moment after that */
        f.status =
            f.driver->connection.ping(child->connection, &f.call, &f.answer, &f.error);
        if (f.status != DBLOCK_OK)
            give_up("ping");
        asked_us = f.answer.now_us;
        f.status = driver->look(
            child->connection, &f.call, &take->subject, &grant, &f.answer, &f.error);
        if (f.status != DBLOCK_OK)
            give_up("look");
        if (f.answer.outcome == DBLOCK_ANSWER_YES && strcmp(grant.owner, owner_text) == 0)
            record.end_us = asked_us;
    }
    do {
        memset(&f.answer, 0, sizeof f.answer);
        f.status = driver->drop(child->connection, &f.call, &take->subject, take->owner,
            draw(child, 10) == 0 ? 10000 : 0, &f.answer, &f.error);
        if (f.status != DBLOCK_OK)
            give_up("drop");
    } while (f.answer.outcome == DBLOCK_ANSWER_PINNED || f.answer.outcome == DBLOCK_ANSWER_AGAIN);
    if (f.answer.outcome == DBLOCK_ANSWER_YES)
        record.end_us = f.answer.now_us;
    if (write(child->records, &record, sizeof record) != (ssize_t)sizeof record)
        _exit(8);
}

static void work(struct child *child)
{
    unsigned char owner[DBLOCK_ID_SIZE];
    int name = (int)draw(child, N_NAMES);
    int strategy = draw(child, 2) == 0 ? DBLOCK_LEASE : DBLOCK_INSERT;
    int is_heartbeat = draw(child, 4) != 0;
    const struct dblock_driver_hold *driver =
        strategy == DBLOCK_LEASE ? &f.driver->lease : &f.driver->insert;
    struct dblock_take take = { .subject = { names[name], strlen(names[name]), 0, 0 },
        .owner = owner,
        .ttl_us = TTL_US,
        .label = "" };

    pgsql_fixture_limit(&f, 20000000, -1);
    if (is_heartbeat) {
        keep_session(child);
        take.session = child->renew_us != 0 ? child->session : NULL;
    }
    make_id(child, owner);
    take.not_after_us = INT64_MAX;
    memset(&f.answer, 0, sizeof f.answer);
    f.status = driver->take(child->connection, &f.call, &take, NULL, &f.answer, &f.error);
    if (f.status != DBLOCK_OK)
        give_up("take");
    switch (f.answer.outcome) {
    case DBLOCK_ANSWER_YES:
        hold(child, strategy, &take, name);
        break;
    case DBLOCK_ANSWER_SESSION:
        child->renew_us = 0;
        break;
    case DBLOCK_ANSWER_LATE:
        give_up("late");
        break;
    default:
        test_pass_ms(draw(child, 3));
        break;
    }
    if (draw(child, 100) == 0) {
        memset(&f.answer, 0, sizeof f.answer);
        f.status = f.driver->observe.end(child->connection, &f.call, strategy, &take.subject, 0,
            &f.answer, &f.error);
        if (f.status != DBLOCK_OK)
            give_up("break");
    }
    if (draw(child, 100) == 0) /* something for the purge */
        pgsql_run(child->plain,
            "UPDATE dblock_lease SET since = since - interval '2 h',"
            " expires_at = expires_at - interval '2 h' WHERE name = (SELECT name FROM dblock_lease"
            " WHERE session IS NULL AND expires_at < clock_timestamp() LIMIT 1 FOR UPDATE SKIP"
            " LOCKED)");
    if (draw(child, 50) == 0 && pgsql_purge(&f, child->connection) != DBLOCK_ANSWER_YES)
        give_up("purge");
}

static void run_child(unsigned seed, uint64_t until_ms)
{
    struct child child;

    memset(&child, 0, sizeof child);
    child.random = (uint64_t)getpid() * 2654435761u + seed * 40503u + 1;
    child.records = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    child.plain = pgsql_plain(&f, NULL);
    pgsql_fixture_limit(&f, 20000000, -1);
    child.connection = pgsql_fixture_connect(&f, DBLOCK_ROLE_SHORT);
    if (child.connection == NULL)
        give_up("connect");
    while (test_now_ms() < until_ms)
        work(&child);
    _exit(0);
}

static pid_t start_child(unsigned seed, uint64_t until_ms)
{
    pid_t child = fork();

    if (child == 0)
        run_child(seed, until_ms);
    return child;
}

static int64_t n_falls(const char *table)
{
    char sql[400];

    (void)snprintf(sql, sizeof sql,
        "SELECT count(*) FROM (SELECT token, lag(token) OVER (PARTITION BY strategy, name ORDER BY"
        " id) AS before FROM %s) AS t WHERE token %s before",
        table, strcmp(table, "granted") == 0 ? "<=" : "<");
    return pgsql_number(f.plain, sql);
}

static int compare(const void *left, const void *right)
{
    const struct record *a = left;
    const struct record *b = right;

    if (a->strategy != b->strategy)
        return a->strategy < b->strategy ? -1 : 1;
    if (a->name != b->name)
        return a->name < b->name ? -1 : 1;
    return a->token < b->token ? -1 : a->token > b->token;
}

/* In the order of tokens each ends before the next begins. */
static int count_overlaps(int *ret_n_records)
{
    static struct record records[200000];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = read(fd, records, sizeof records);
    int n_overlaps = 0;
    int n, i;

    (void)close(fd);
    n = (int)(size / (ssize_t)sizeof records[0]);
    qsort(records, (size_t)n, sizeof records[0], compare);
    for (i = 1; i < n; ++i)
        if (records[i].strategy == records[i - 1].strategy &&
            records[i].name == records[i - 1].name &&
            (records[i].token == records[i - 1].token ||
                records[i].begin_us < records[i - 1].end_us))
            ++n_overlaps;
    *ret_n_records = n;
    return n_overlaps;
}

/* Every grant leaves a line, in the order of grants as the take holds the name's gate. */
static void make_judges(void)
{
    pgsql_run(f.plain,
        "CREATE TABLE guarded (id bigserial, strategy int, name int, token bigint);"
        "CREATE TABLE granted (id bigserial, strategy text, name bytea, token bigint);"
        "CREATE FUNCTION note_grant() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT"
        " AS $$ BEGIN IF new.owner IS NOT NULL AND (tg_op = 'INSERT' OR new.owner IS DISTINCT FROM"
        " old.owner) THEN INSERT INTO granted (strategy, name, token)"
        " VALUES (tg_table_name, new.name, new.token); END IF; RETURN NULL; END $$;"
        "CREATE TRIGGER t AFTER INSERT OR UPDATE ON dblock_lease FOR EACH ROW"
        " EXECUTE FUNCTION note_grant();"
        "CREATE TRIGGER t AFTER INSERT OR UPDATE ON dblock_insert FOR EACH ROW"
        " EXECUTE FUNCTION note_grant()");
}

static void grants__never_overlap_and_tokens_rise(void **state)
{
    const char *seconds = getenv("DBLOCK_TEST_HAMMER_SECONDS");
    uint64_t until_ms = test_now_ms() + (seconds != NULL ? strtoull(seconds, NULL, 10) : 10) * 1000;
    pid_t children[N_PROCESSES];
    unsigned seed = 0;
    int n_killed = 0, n_stopped = 0, n_failed = 0, n_running = N_PROCESSES;
    int n_records, n_overlaps, i;

    (void)state;
    make_judges();
    for (i = 0; i < N_PROCESSES; ++i)
        children[i] = start_child(seed++, until_ms);
    while (n_running > 0) {
        int status;
        pid_t child = waitpid(-1, &status, WUNTRACED | WNOHANG);

        if (child <= 0) {
            test_pass_ms(3);
            continue;
        }
        if (WIFSTOPPED(status)) {
            ++n_stopped;
            test_pass_ms(50);
            (void)kill(child, SIGCONT);
            continue;
        }
        for (i = 0; i < N_PROCESSES && children[i] != child;)
            ++i;
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
            ++n_killed;
        else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            ++n_failed;
        if (WIFSIGNALED(status) && test_now_ms() < until_ms)
            children[i] = start_child(seed++, until_ms);
        else
            --n_running;
    }
    n_overlaps = count_overlaps(&n_records);
    print_message("%lld grants, %d of them proved, %lld guarded writes, %d killed, %d stopped\n",
        (long long)pgsql_number(f.plain, "SELECT count(*) FROM granted"), n_records,
        (long long)pgsql_number(f.plain, "SELECT count(*) FROM guarded"), n_killed, n_stopped);
    assert_int_equal(0, n_failed);
    assert_int_equal(0, n_overlaps);
    assert_int_equal(0, n_falls("granted"));
    assert_int_equal(0, n_falls("guarded"));
    assert_true(n_records > 100);
    assert_true(n_killed > 0 && n_stopped > 0);
}

static int open_all(void **state)
{
    int fd;

    (void)state;
    (void)snprintf(path, sizeof path, "/tmp/dblock-hammer.XXXXXX");
    fd = mkstemp(path);
    if (fd < 0)
        return -1;
    (void)close(fd);
    return pgsql_fixture_open(&f);
}

static int close_all(void **state)
{
    (void)state;
    (void)unlink(path);
    pgsql_fixture_close(&f);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grants__never_overlap_and_tokens_rise),
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
