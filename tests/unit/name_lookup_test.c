/* SPDX-License-Identifier: MIT */
/* name_lookup_test.c - a name server that does not answer keeps nobody for longer than he wants.
 * In place of getaddrinfo() stands one that answers when the test lets it. */
#include "child_exit.h"
#include "core/environment.h"
#include "core/name_lookup.h"
#include "test_wait.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dblock/sys/driver.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS 1000u
#define LONG_MS 20000u /* never reached, but on a machine that stands still */

static atomic_int n_lookups;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int is_open; /* names that begin with "slow" are answered */

static int look_up(const char *host, struct addrinfo **ret_found)
{
    struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };

    (void)atomic_fetch_add(&n_lookups, 1);
    if (strncmp(host, "slow", 4) == 0) {
        (void)pthread_mutex_lock(&mutex);
        while (!is_open)
            (void)pthread_cond_wait(&changed, &mutex);
        (void)pthread_mutex_unlock(&mutex);
    }
    if (strcmp(host, "nobody") == 0)
        return EAI_NONAME;
    if (strcmp(host, "heavy") == 0)
        return EAI_MEMORY;
    return getaddrinfo(
        strcmp(host, "six") == 0 ? "2001:db8::7" : "192.0.2.7", NULL, &hints, ret_found);
}

static void answer(int is_answering)
{
    (void)pthread_mutex_lock(&mutex);
    is_open = is_answering;
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&mutex);
}

static int are_over(void *context)
{
    (void)context;
    return dblk_lookups_running() == 0;
}

static int set_up(void **state)
{
    static struct dblk_environment environment;

    (void)state;
    environment = dblk_real_environment;
    environment.look_up = look_up;
    dblk_environment_set(&environment);
    atomic_store(&n_lookups, 0);
    answer(0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    answer(1);
    return test_until(are_over, NULL, LONG_MS) ? 0 : -1;
}

static struct dblock_error error;
static struct dblock_addresses addresses;

static dblock_status ask_within(const char *host, uint64_t ms, int cancel_fd)
{
    struct dblock_call call = { dblock_clock_us() + ms * MS, cancel_fd };

    memset(&error, 0, sizeof error);
    memset(&addresses, 0xFF, sizeof addresses);
    return dblock_host_look_up(host, &call, &addresses, &error);
}

static void what_is_no_name__is_not_looked_up(void **state)
{
    static const char *const hosts[] = { "", "/var/run/postgresql", "@abstract", "localhost",
        "LocalHost", "127.0.0.1", "::1", "fe80::1%1" };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof hosts / sizeof *hosts; ++i) {
        assert_int_equal(ask_within(hosts[i], LONG_MS, -1), DBLOCK_OK);
        assert_int_equal(addresses.n, 0);
    }
    assert_int_equal(atomic_load(&n_lookups), 0);
}

static void name__has_addresses(void **state)
{
    (void)state;
    assert_int_equal(ask_within("four", LONG_MS, -1), DBLOCK_OK);
    assert_int_equal(addresses.n, 1);
    assert_string_equal(addresses.texts[0], "192.0.2.7");
    assert_int_equal(ask_within("six", LONG_MS, -1), DBLOCK_OK);
    assert_int_equal(addresses.n, 1);
    assert_string_equal(addresses.texts[0], "2001:db8::7");
}

static void name_without_addresses__is_said(void **state)
{
    (void)state;
    assert_int_equal(ask_within("nobody", LONG_MS, -1), DBLOCK_E_CONNECTION);
    assert_non_null(strstr(error.message, "\"nobody\" is not found: "));
    assert_int_equal(ask_within("heavy", LONG_MS, -1), DBLOCK_E_MEMORY);
}

static void *ask_in_a_thread(void *context)
{
    struct dblock_call call = { dblock_clock_us() + LONG_MS * MS, -1 };
    struct dblock_addresses found;
    struct dblock_error fault;

    *(int *)context = dblock_host_look_up("slow", &call, &found, &fault) == DBLOCK_OK && found.n == 1;
    return NULL;
}

static void silent_name_server__keeps_nobody(void **state)
{
    uint64_t start_ms = test_now_ms();
    int has_found = 0;
    pthread_t thread;
    int i;

    (void)state;
    for (i = 0; i < 3; ++i) {
        assert_int_equal(ask_within("slow", 100, -1), DBLOCK_E_CONNECTION);
        assert_non_null(strstr(error.message, "the name server does not answer"));
    }
    assert_true(test_now_ms() - start_ms < LONG_MS);
    assert_int_equal(pthread_create(&thread, NULL, ask_in_a_thread, &has_found), 0);
    assert_int_equal(dblk_lookups_running(), 1);
    answer(1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(has_found, 1);
    assert_int_equal(ask_within("slow", LONG_MS, -1), DBLOCK_OK);
    /* all who asked while it was under way share it */
    assert_in_range(atomic_load(&n_lookups), 2, 3);
}

static void canceller__ends_the_wait(void **state)
{
    int fd = eventfd(1, EFD_CLOEXEC);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(ask_within("slow", LONG_MS, fd), DBLOCK_CANCELLED);
    (void)close(fd);
}

static void lookups__are_few_at_a_time(void **state)
{
    int fd = eventfd(1, EFD_CLOEXEC);
    char host[16];
    int i;

    (void)state;
    for (i = 0; i < DBLK_LOOKUPS_MAX + 3; ++i) {
        (void)snprintf(host, sizeof host, "slow%d", i);
        assert_int_equal(ask_within(host, 60, -1), DBLOCK_E_CONNECTION);
    }
    assert_int_equal(ask_within("slow-more", LONG_MS, fd), DBLOCK_CANCELLED);
    assert_int_equal(atomic_load(&n_lookups), DBLK_LOOKUPS_MAX);
    assert_int_equal(dblk_lookups_running(), DBLK_LOOKUPS_MAX);
    answer(1);
    assert_int_equal(ask_within("four", LONG_MS, -1), DBLOCK_OK);
    (void)close(fd);
}

/* The thread sanitizer allows no threads in such a child. */
#if !defined(__SANITIZE_THREAD__)
static void forked_child__looks_up_by_itself(void **state)
{
    int status = -1;
    pid_t child;

    (void)state;
    assert_int_equal(ask_within("slow", 60, -1), DBLOCK_E_CONNECTION);
    child = fork();
    if (child == 0)
        child_exit(dblk_lookups_running() != 0 ||
            ask_within("four", LONG_MS, -1) != DBLOCK_OK || addresses.n != 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(dblk_lookups_running(), 1);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_no_name__is_not_looked_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(name__has_addresses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(name_without_addresses__is_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(silent_name_server__keeps_nobody, set_up, tear_down),
        cmocka_unit_test_setup_teardown(canceller__ends_the_wait, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lookups__are_few_at_a_time, set_up, tear_down),
#if !defined(__SANITIZE_THREAD__)
        cmocka_unit_test_setup_teardown(forked_child__looks_up_by_itself, set_up, tear_down),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
