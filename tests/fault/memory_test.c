/* SPDX-License-Identifier: MIT */
/* memory_test.c - the N-th allocation of a client's life fails, or all from the N-th on: those of
 * the library, of the driver and of the client library (but MariaDB's) alike. What fails says so,
 * and nothing is left behind: no lock, no descriptor.
 *
 * A client's life is up to some thousand allocations. A sample is visited, another one each time,
 * and all of them with DBLOCK_TEST_ALLOCATIONS=all. Under a sanitizer, which has the allocator to
 * itself, only those of the core.
 * Runs beside others. Time limit: 900 s */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dblock/dblock.h>
#include <dblock/many.h>
#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/environment.h"
#include "test_wait.h"
#ifdef DBLOCK_TEST_HAS_SQLITE
#include <dblock/sqlite.h>
#endif
#ifdef DBLOCK_TEST_HAS_PGSQL
#include <dblock/pgsql.h>
#endif
#ifdef DBLOCK_TEST_HAS_MYSQL
#include <dblock/mysql.h>
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_ALLOCATOR 0
#else
#define HAS_ALLOCATOR 1
#endif

enum { N_SAMPLE_FILE = 300, N_SAMPLE_SERVER = 60 };

static atomic_int is_armed;
static atomic_ulong n_asked; /* since it was armed */
static atomic_ulong fails_at;
static atomic_int goes_on; /* all from there on fail */
static atomic_int only_ours; /* MariaDB's connector follows NULL in many places */

/* What is linked into this program statically, which is all of ours. */
extern char __executable_start, etext;

static int is_ours(const void *caller)
{
    return (uintptr_t)caller >= (uintptr_t)&__executable_start &&
        (uintptr_t)caller < (uintptr_t)&etext;
}

static int must_fail(const void *caller)
{
    unsigned long n;

    if (!atomic_load(&is_armed) || (atomic_load(&only_ours) && !is_ours(caller)))
        return 0;
    n = atomic_fetch_add(&n_asked, 1) + 1;
    return n == atomic_load(&fails_at) || (n > atomic_load(&fails_at) && atomic_load(&goes_on));
}

#if HAS_ALLOCATOR
/* The C library's own, which these stand before, also for the libraries that this is linked with. */
#define EXPORTED __attribute__((visibility("default")))
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *memory, size_t size);

EXPORTED void *malloc(size_t size)
{
    if (must_fail(__builtin_return_address(0))) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_malloc(size);
}

EXPORTED void *calloc(size_t n, size_t size)
{
    if (must_fail(__builtin_return_address(0))) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_calloc(n, size);
}

EXPORTED void *realloc(void *memory, size_t size)
{
    if (must_fail(__builtin_return_address(0))) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_realloc(memory, size);
}

static void set_allocator(void)
{
}
#else
static void *allocate(size_t size)
{
    return must_fail(__builtin_return_address(0)) ? NULL : dblk_real_environment.allocate(size);
}

static void set_allocator(void)
{
    static struct dblk_environment environment;

    environment = dblk_real_environment;
    environment.allocate = allocate;
    dblk_environment_set(&environment);
}
#endif

struct place {
    const char *label;
    const dblock_driver *driver;
    char url[400];
    char prefix[40];
    unsigned long n_sample;
    int only_ours;
};

struct life {
    const struct place *place;
    unsigned long n; /* what failed, for the message */
    int n_wrong;
};

/* A failure has a status that fits and a text. A lock that lives in a connection may be lost, as
 * the client library drops a connection for which it has no memory. */
static void judge(struct life *life, const char *step, dblock_status status,
    const struct dblock_error *error)
{
    if (status == DBLOCK_OK || status == DBLOCK_LOST)
        return;
    if ((status == DBLOCK_E_MEMORY || status == DBLOCK_E_SYSTEM || status == DBLOCK_E_CONNECTION ||
            status == DBLOCK_E_UNCERTAIN || status == DBLOCK_E_DATABASE) &&
        error->message[0] != 0)
        return;
    ++life->n_wrong;
    (void)fprintf(stderr, "# allocation %lu, %s: %s: %s\n", life->n, step,
        dblock_status_text(status), status < 0 ? error->message : "");
}

static void hold_one(struct life *life, dblock_client *client, int strategy)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error error;
    char name[80], text[2 * DBLOCK_GRANT_TEXT_SIZE];
    dblock_lock *lock = NULL;
    int64_t token;
    dblock_status status;

    memset(&error, 0, sizeof error);
    (void)snprintf(name, sizeof name, "%s-%d", life->place->prefix, strategy);
    options.strategy = strategy;
    options.ttl_ms = strategy == DBLOCK_LEASE || strategy == DBLOCK_INSERT ? 2000 : 0;
    options.wait_ms = atomic_load(&goes_on) ? 0 : 300;
    status = dblock_acquire(client, name, &options, &lock, &error);
    judge(life, "acquire", status, &error);
    if (status != DBLOCK_OK)
        return;
    judge(life, "token", dblock_lock_token(lock, &token, &error), &error);
    judge(life, "confirm", dblock_confirm(lock, &error), &error);
    if (strategy == DBLOCK_LEASE || strategy == DBLOCK_INSERT)
        judge(life, "export", dblock_lock_export(lock, text, sizeof text, &error), &error);
    if (strategy != DBLOCK_ADVISORY)
        judge(life, "release", dblock_release(lock, &error), &error);
    dblock_lock_free(lock);
}

static void hold_two(struct life *life, dblock_client *client)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error error;
    dblock_lock *locks[2] = { NULL, NULL };
    char first[80], second[80];
    const char *names[2] = { first, second };
    dblock_status status;

    memset(&error, 0, sizeof error);
    (void)snprintf(first, sizeof first, "%s-a", life->place->prefix);
    (void)snprintf(second, sizeof second, "%s-b", life->place->prefix);
    options.ttl_ms = 2000;
    options.wait_ms = atomic_load(&goes_on) ? 0 : 300;
    status = dblock_acquire_many(client, names, 2, &options, locks, &error);
    judge(life, "acquire_many", status, &error);
    if (status != DBLOCK_OK)
        return;
    judge(life, "release_many", dblock_release_many(locks, 2, &error), &error);
    dblock_lock_free(locks[0]);
    dblock_lock_free(locks[1]);
    options.wait_ms = 0;
    status = dblock_acquire_some(client, names, 2, &options, locks, NULL, &error);
    judge(life, "acquire_some", status, &error);
    dblock_lock_free(locks[0]);
    dblock_lock_free(locks[1]);
}

static int count_grant(const struct dblock_grant *grant, void *context)
{
    (void)grant;
    ++*(int *)context;
    return 0;
}

static void live(struct life *life)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    dblock_client *client = NULL;
    struct dblock_error error;
    int n_listed = 0;
    int strategy;
    dblock_status status;

    memset(&error, 0, sizeof error);
    config.io_timeout_ms = 300; /* an answer for which there is no room never comes */
    status = dblock_open(life->place->driver, life->place->url, &config, &client, &error);
    judge(life, "open", status, &error);
    if (status != DBLOCK_OK)
        return;
    for (strategy = DBLOCK_LEASE; strategy <= DBLOCK_ADVISORY; ++strategy)
        hold_one(life, client, strategy);
    hold_two(life, client);
    judge(life, "list", dblock_list(client, NULL, count_grant, &n_listed, &error), &error);
    dblock_close(client);
}

static int count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int n = 0;

    assert_non_null(folder);
    while (readdir(folder) != NULL)
        ++n;
    (void)closedir(folder);
    return n;
}

/* All names can be had by somebody else, soon. */
static int is_free(const struct place *place, dblock_client *witness, unsigned long n)
{
    static const char *const names[] = { "1", "2", "3", "4", "a", "b" };
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_error error;
    dblock_lock *lock;
    char name[80];
    size_t i;
    int is_good = 1;

    options.wait_ms = 5000;
    for (i = 0; i < sizeof names / sizeof names[0]; ++i) {
        dblock_status status;

        (void)snprintf(name, sizeof name, "%s-%s", place->prefix, names[i]);
        options.strategy = i < 4 ? (int32_t)i + 1 : DBLOCK_LEASE;
        options.ttl_ms = options.strategy == DBLOCK_ROW || options.strategy == DBLOCK_ADVISORY
            ? 0 : 2000;
        status = dblock_acquire(witness, name, &options, &lock, &error);
        if (status != DBLOCK_OK) {
            (void)fprintf(stderr, "# allocation %lu: %s stays taken: %s\n", n, name,
                dblock_status_text(status));
            is_good = 0;
            continue;
        }
        (void)dblock_release(lock, NULL);
        dblock_lock_free(lock);
    }
    return is_good;
}

static unsigned long count_allocations(const struct place *place)
{
    struct life life = { place, 0, 0 };

    atomic_store(&n_asked, 0);
    atomic_store(&fails_at, 0);
    atomic_store(&goes_on, 0);
    atomic_store(&is_armed, 1);
    live(&life);
    atomic_store(&is_armed, 0);
    assert_int_equal(life.n_wrong, 0);
    return atomic_load(&n_asked);
}

static void visit(const struct place *place, int and_all_after)
{
    int is_all = getenv("DBLOCK_TEST_ALLOCATIONS") != NULL &&
        strcmp(getenv("DBLOCK_TEST_ALLOCATIONS"), "all") == 0;
    struct dblock_error error;
    dblock_client *witness;
    unsigned long n_sample = and_all_after ? place->n_sample / 5 : place->n_sample;
    unsigned long n_all, step, n;
    /* without any client: SQLite closes a file's descriptors when the last that locks it is gone */
    int n_before = count_descriptors();
    int n_visited = 0, n_wrong = 0;

    atomic_store(&only_ours, place->only_ours);
    assert_int_equal(dblock_open(place->driver, place->url, NULL, &witness, &error), DBLOCK_OK);
    assert_int_equal(dblock_schema_install(witness, &error), DBLOCK_OK);
    assert_int_equal(is_free(place, witness, 0), 1); /* what the first use of a name makes is made */
    n_all = count_allocations(place);
    step = is_all && !and_all_after ? 1 : n_all / n_sample + 1;
    for (n = 1 + (step > 1 ? (unsigned long)getpid() % step : 0); n <= n_all; n += step) {
        struct life life = { place, n, 0 };

        atomic_store(&n_asked, 0);
        atomic_store(&fails_at, n);
        atomic_store(&goes_on, and_all_after);
        atomic_store(&is_armed, 1);
        live(&life);
        atomic_store(&is_armed, 0);
        n_wrong += life.n_wrong + !is_free(place, witness, n);
        ++n_visited;
    }
    (void)printf("# %s: %d of %lu allocations failed%s\n", place->label, n_visited, n_all,
        and_all_after ? ", and all after them" : "");
    dblock_close(witness);
    assert_int_equal(count_descriptors(), n_before);
    assert_int_equal(n_wrong, 0);
}

static void one_allocation_that_fails__leaves_nothing_behind(void **state)
{
    visit(*state, 0);
}

static void no_memory_any_more__leaves_nothing_behind(void **state)
{
    visit(*state, 1);
}

static int n_places;
static struct place places[3];

static void add_place(const char *label, const dblock_driver *driver, const char *url,
    unsigned long n_sample, int is_only_ours)
{
    struct place *place = &places[n_places];

    if (url == NULL)
        return;
    ++n_places;
    place->label = label;
    place->driver = driver;
    place->n_sample = n_sample;
    place->only_ours = is_only_ours;
    (void)snprintf(place->url, sizeof place->url, "%s", url);
    (void)snprintf(place->prefix, sizeof place->prefix, "memory-%d", (int)getpid());
}

#ifdef DBLOCK_TEST_HAS_SQLITE
static void remove_file(const char *folder)
{
    static const char *const ends[] = { "", "-dblock", "-wal", "-shm" };
    char path[64];
    size_t i;

    for (i = 0; i < sizeof ends / sizeof ends[0]; ++i) {
        (void)snprintf(path, sizeof path, "%s/lock.db%s", folder, ends[i]);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}
#endif

int main(void)
{
    char folder[] = "/tmp/dblock-memory.XXXXXX";
    char url[60];
    int status = 0;
    int i;

    set_allocator();
#ifdef DBLOCK_TEST_HAS_SQLITE
    if (mkdtemp(folder) == NULL)
        return 1;
    (void)snprintf(url, sizeof url, "sqlite:%s/lock.db", folder);
    add_place("sqlite", dblock_sqlite_driver(), url, N_SAMPLE_FILE, 0);
#endif
#ifdef DBLOCK_TEST_HAS_PGSQL
    add_place("pgsql", dblock_pgsql_driver(), getenv("DBLOCK_TEST_PGSQL"), N_SAMPLE_SERVER, 0);
#endif
#ifdef DBLOCK_TEST_HAS_MYSQL
    add_place("mysql", dblock_mysql_driver(), getenv("DBLOCK_TEST_MYSQL"), N_SAMPLE_SERVER, 1);
#endif
    for (i = 0; i < n_places; ++i) {
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_prestate(
                one_allocation_that_fails__leaves_nothing_behind, &places[i]),
            cmocka_unit_test_prestate(no_memory_any_more__leaves_nothing_behind, &places[i]),
        };

        status += cmocka_run_group_tests_name(places[i].label, tests, NULL, NULL);
    }
#ifdef DBLOCK_TEST_HAS_SQLITE
    remove_file(folder);
#endif
    return status;
}
