/* SPDX-License-Identifier: MIT */
/* soak.c - see soak.h: everything at once, for --seconds N (default 60).
 *
 *   soak [--seconds N] [--only DATABASE]
 *
 * Needs servers (ci/services), and kills and restarts them; what is not there is said. Prints
 * what was done, and exits 1 if anything was lost or left: two holders, a token that went back,
 * an error that nobody's harm explains, a name that stays held, a connection that stays open,
 * memory, descriptors or tables that grow. How long calls took beyond their limits is told and
 * judged by nobody, as the machine is as busy as can be. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "soak.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "cut_database.h"
#include "test_wait.h"

enum {
    LOOK_EVERY_S = 5,
    TELL_EVERY_S = 60,
    MEMORY_GROWTH_KIB = 3072,
    DESCRIPTOR_GROWTH = 8,
    TABLE_GROWTH = 1 << 20,
    LEAVE_MS = 60000
};

struct soak_shared *soak_shared;
const int soak_strategies[N_STRATEGIES] = { DBLOCK_LEASE, DBLOCK_INSERT, DBLOCK_ROW,
    DBLOCK_ADVISORY };
struct soak_database soak_databases[N_DATABASES] = {
    { .contract = &contract_sqlite },
    { .contract = &contract_pgsql, .service = "pgsql" },
    { .contract = &contract_mysql, .service = "mariadb" },
};

static struct test_process processes[N_WORKERS];
static volatile sig_atomic_t is_ended;

/* The most that was seen in the second and in the last quarter of the time. */
static struct size {
    long long early, late;
} memory[N_WORKERS], descriptors[N_WORKERS], tables[N_DATABASES];

uint64_t soak_now_us(void)
{
    struct timespec now = { 0, 0 };

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

unsigned soak_draw(unsigned below)
{
    uint32_t number = 0;

    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number || below == 0)
        return 0;
    return number % below;
}

void soak_name(size_t database, int strategy, int number, char *name, size_t size)
{
    (void)snprintf(name, size, "%s-soak-%zu-%d-%d", contract_word(), database, strategy, number);
}

static void end_now(int signal_number)
{
    (void)signal_number;
    is_ended = 1;
}

/* ---------------------------------------------------------------------- begin */

static dblock_client *open_directly(size_t d)
{
    const struct contract_database *contract = soak_databases[d].contract;
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct dblock_error error = { 0 };
    dblock_client *client = NULL;

    config.schema = contract->schema != NULL ? contract->schema() : NULL;
    if (dblock_open(contract->driver(), contract->url(CONTRACT_URL), &config, &client, &error) !=
        DBLOCK_OK)
        (void)fprintf(stderr, "soak: %s: %s\n", contract->name, error.message);
    return client;
}

static void add_ways(struct soak_database *database, const struct cut_database *cut)
{
    database->port = cut->port;
    database->proxied_url = cut->proxied_url;
    database->n_sessions = cut->n_sessions;
    if (database->why_not == NULL)
        database->proxy = tcp_proxy_start(cut->wire, cut->port());
    if (database->proxy == NULL && database->why_not == NULL)
        database->why_not = "no proxy can be started";
}

static void begin_database(size_t d, const char *only)
{
    struct soak_database *database = &soak_databases[d];
    struct dblock_error error = { 0 };
    dblock_client *client;

    database->why_not = only != NULL && strcmp(only, database->contract->name) != 0
        ? "it was not asked for"
        : database->contract->start();
    if (database->why_not == NULL) {
        client = open_directly(d);
        if (client == NULL || dblock_schema_install(client, &error) != DBLOCK_OK)
            database->why_not = "its tables cannot be made";
        dblock_close(client);
    }
#ifdef DBLOCK_TEST_HAS_PGSQL
    if (database->contract == &contract_pgsql)
        add_ways(database, &cut_pgsql);
#endif
#ifdef DBLOCK_TEST_HAS_MYSQL
    if (database->contract == &contract_mysql)
        add_ways(database, &cut_mysql);
#endif
    if (database->why_not != NULL)
        (void)printf("skip: %s: %s\n", database->contract->name, database->why_not);
}

static int begin_workers(void)
{
    size_t i;

    for (i = 0; i < N_WORKERS; ++i) {
        struct soak_worker *worker = &soak_shared->workers[i];
        size_t number = i % N_TELLERS;

        worker->strategy = (int)(i / N_TELLERS % N_STRATEGIES);
        worker->database = i / N_TELLERS / N_STRATEGIES;
        worker->is_proxied = number % 2 == 1 && soak_databases[worker->database].proxy != NULL;
        worker->is_steady = number < 2;
        worker->is_twin = number >= N_PROCESSES;
        if (worker->is_twin)
            worker[N_PROCESSES - N_TELLERS].twin = worker;
        atomic_store(&worker->held, -1);
    }
    for (i = 0; i < N_WORKERS; ++i)
        if (soak_databases[soak_shared->workers[i].database].why_not == NULL &&
            !soak_shared->workers[i].is_twin &&
            process_start(&processes[i], soak_work, &soak_shared->workers[i]) != 0)
            return -1;
    return 0;
}

/* --------------------------------------------------------------------- middle */

static void see(struct size *size, long long value, double part)
{
    if (part >= 0.25 && part < 0.5 && value > size->early)
        size->early = value;
    if (part >= 0.75 && value > size->late)
        size->late = value;
}

static void look(double part)
{
    size_t i;

    for (i = 0; i < N_WORKERS; ++i)
        if (processes[i].pid != 0 && soak_shared->workers[i].is_steady) {
            see(&memory[i], soak_memory_of(processes[i].pid), part);
            see(&descriptors[i], soak_descriptors_of(processes[i].pid), part);
        }
    for (i = 0; i < N_DATABASES; ++i)
        if (soak_databases[i].why_not == NULL)
            see(&tables[i], soak_size_of_tables(i), part);
}

static unsigned long long sum(size_t d, int strategy, enum count what)
{
    unsigned long long number = 0;
    const struct soak_worker *worker;

    for (worker = soak_shared->workers; worker < soak_shared->workers + N_WORKERS; ++worker)
        if ((d == N_DATABASES || worker->database == d) &&
            (strategy < 0 || worker->strategy == strategy))
            number += atomic_load(&worker->counts[what]);
    return number;
}

static unsigned long n_harms(void)
{
    unsigned long number = 0;
    size_t i;

    for (i = 0; i < N_HARMS; ++i)
        number += soak_n_harms[i];
    return number;
}

static unsigned long long n_violations(void)
{
    unsigned long long number = 0;
    size_t i;

    for (i = 0; i < N_VIOLATIONS; ++i)
        number += atomic_load(&soak_shared->violations[i]);
    return number;
}

/* As they come. */
static void tell_words(void)
{
    static size_t n_told;

    for (; n_told < N_WORDS && soak_shared->words[n_told][0] != 0; ++n_told)
        (void)printf("FAIL: %s\n", soak_shared->words[n_told]);
}

/* 0: the time went by. */
static int conduct(uint64_t seconds)
{
    uint64_t begun_us = soak_now_us();
    uint64_t looked_s = 0;
    uint64_t told_s = 0;
    int result = 0;

    while (!is_ended && result == 0 && soak_now_us() < begun_us + seconds * 1000000) {
        uint64_t passed_s = (soak_now_us() - begun_us) / 1000000;

        result = soak_harm(processes);
        if (passed_s >= looked_s + LOOK_EVERY_S) {
            looked_s = passed_s;
            look((double)passed_s / (double)seconds);
            tell_words();
        }
        if (passed_s >= told_s + TELL_EVERY_S) {
            told_s = passed_s;
            (void)printf("%5llu s: %llu grants, %lu harms, %llu violations\n",
                (unsigned long long)passed_s, sum(N_DATABASES, -1, COUNT_GRANTS), n_harms(),
                n_violations());
            (void)fflush(stdout);
        }
        test_pass_ms(50);
    }
    soak_heal(processes);
    return is_ended ? -1 : result;
}

/* ------------------------------------------------------------------------ end */

static int complain(const char *where, const char *what, long long early, long long late)
{
    (void)printf("FAIL: %s: %s: %lld, and then %lld\n", where, what, early, late);
    return 1;
}

static int end_workers(void)
{
    int failed = 0;
    size_t i;

    for (i = 0; i < N_WORKERS; ++i) {
        const char *where = soak_databases[soak_shared->workers[i].database].contract->name;
        int status = processes[i].pid != 0 ? process_wait(&processes[i], LEAVE_MS) : 0;

        if (status != 0)
            failed |= complain(where, "the end of a process", 0, status);
        if (memory[i].late > memory[i].early + MEMORY_GROWTH_KIB)
            failed |= complain(where, "memory in KiB", memory[i].early, memory[i].late);
        if (descriptors[i].late > descriptors[i].early + DESCRIPTOR_GROWTH)
            failed |= complain(where, "descriptors", descriptors[i].early, descriptors[i].late);
    }
    return failed;
}

static int has_no_session(void *context)
{
    const struct soak_database *database = context;

    return database->n_sessions() == 0;
}

/* All names can be had, one after the other, and nobody is connected. */
static int end_database(size_t d)
{
    struct soak_database *database = &soak_databases[d];
    const char *where = database->contract->name;
    dblock_client *client = open_directly(d);
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error error = { 0 };
    char name[64];
    int failed = client == NULL;
    int i;

    options.wait_ms = 3 * TTL_MS;
    for (i = 0; client != NULL && i < N_STRATEGIES * N_NAMES; ++i) {
        dblock_lock *lock = NULL;
        dblock_status status;

        options.strategy = soak_strategies[i / N_NAMES];
        soak_name(d, i / N_NAMES, i % N_NAMES, name, sizeof name);
        status = dblock_acquire(client, name, &options, &lock, &error);
        if (status != DBLOCK_OK) {
            (void)printf("FAIL: %s: %s: %s: %s\n", where, name, dblock_status_name(status),
                status < 0 ? error.message : "it stays held");
            failed = 1;
        }
        dblock_lock_free(lock);
    }
    dblock_close(client);
    if (database->n_sessions != NULL && !test_until(has_no_session, database, LEAVE_MS))
        failed |= complain(where, "connections", 0, database->n_sessions());
    if (tables[d].late > 2 * tables[d].early + TABLE_GROWTH)
        failed |= complain(where, "bytes of tables", tables[d].early, tables[d].late);
    return failed;
}

static void tell_database(size_t d)
{
    const char *where = soak_databases[d].contract->name;
    unsigned long long latest_us = 0;
    size_t i;
    int s;

    for (s = 0; s < N_STRATEGIES; ++s)
        (void)printf("%-10s %-9s %9llu grants (%llu under harm, %llu handed over), %llu busy,"
                     " %llu lost, %llu uncertain, %llu unreached\n",
            where, dblock_strategy_name(soak_strategies[s]), sum(d, s, COUNT_GRANTS),
            sum(d, s, COUNT_GRANTS_UNDER_HARM), sum(d, s, COUNT_HANDED), sum(d, s, COUNT_BUSY), sum(d, s, COUNT_LOST),
            sum(d, s, COUNT_UNCERTAIN), sum(d, s, COUNT_UNREACHED));
    for (i = 0; i < N_WORKERS; ++i)
        if (soak_shared->workers[i].database == d &&
            atomic_load(&soak_shared->workers[i].latest_us) > latest_us)
            latest_us = atomic_load(&soak_shared->workers[i].latest_us);
    (void)printf("%-10s %llu clients; the latest call: %llu ms beyond its limit; tables: %lld KiB,"
                 " then %lld\n",
        where, sum(d, -1, COUNT_CLIENTS), latest_us / 1000, tables[d].early / 1024,
        tables[d].late / 1024);
}

static int tell(void)
{
    size_t d;

    for (d = 0; d < N_DATABASES; ++d)
        if (soak_databases[d].why_not == NULL)
            tell_database(d);
    (void)printf("harms: %lu stopped, %lu killed, %lu networks cut, %lu swallowed, %lu servers"
                 " killed\n",
        soak_n_harms[HARM_STOP], soak_n_harms[HARM_KILL], soak_n_harms[HARM_CUT],
        soak_n_harms[HARM_SWALLOW], soak_n_harms[HARM_SERVER]);
    (void)printf("violations: %llu two holders, %llu tokens back, %llu errors\n",
        (unsigned long long)atomic_load(&soak_shared->violations[VIOLATION_TWO_HOLDERS]),
        (unsigned long long)atomic_load(&soak_shared->violations[VIOLATION_TOKEN_BACK]),
        (unsigned long long)atomic_load(&soak_shared->violations[VIOLATION_ERROR]));
    tell_words();
    return n_violations() > 0;
}

static int run(uint64_t seconds, const char *only)
{
    int failed = 0;
    size_t d;

    for (d = 0; d < N_DATABASES; ++d)
        begin_database(d, only);
    atomic_store(&soak_shared->end_us, soak_now_us() + seconds * 1000000);
    if (begin_workers() != 0)
        failed |= complain("soak", "processes", 0, 0);
    else if (conduct(seconds) != 0)
        failed |= complain("soak", "it was ended, or a server does not start", 0, 0);
    atomic_store(&soak_shared->end_us, 0);
    failed |= end_workers();
    for (d = 0; d < N_DATABASES; ++d)
        if (soak_databases[d].why_not == NULL) {
            failed |= end_database(d);
            tcp_proxy_stop(soak_databases[d].proxy);
        }
    failed |= tell();
    for (d = 0; d < N_DATABASES; ++d)
        if (soak_databases[d].why_not == NULL)
            soak_databases[d].contract->stop();
    return failed;
}

int main(int argc, char **argv)
{
    struct sigaction action = { .sa_handler = end_now };
    uint64_t seconds = 60;
    const char *only = NULL;
    int i;

    for (i = 1; i + 1 < argc; i += 2)
        if (strcmp(argv[i], "--seconds") == 0)
            seconds = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--only") == 0)
            only = argv[i + 1];
        else
            break;
    if (i != argc || seconds == 0) {
        (void)fputs("usage: soak [--seconds N] [--only DATABASE]\n", stderr);
        return 64;
    }
    (void)contract_word(); /* the same in all processes */
    soak_shared = mmap(
        NULL, sizeof *soak_shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (soak_shared == MAP_FAILED)
        return 71;
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    return run(seconds, only);
}
