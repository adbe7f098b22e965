/* SPDX-License-Identifier: MIT */
/* argument_test.c - what is missing in a call or in a driver is named, and harms nobody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dblock/check.h>
#include <dblock/many.h>
#include <dblock/sys/driver.h>
#include <string.h>

#include "sim_driver.h"
#include "test_wait.h"

#define WORLD "argument_test"

static dblock_client *client;
static struct dblock_error error;

static int begin(void **state)
{
    (void)state;
    return sim_open(sim_driver(), "sim:" WORLD, NULL, &client, &error);
}

static int end(void **state)
{
    (void)state;
    dblock_close(client);
    sim_forget(WORLD);
    return 0;
}

/* A step that a driver lacks would be a crash later; which one it is is said. */
static void driver__with_a_hole_is_refused(void **state)
{
    static const size_t optional[] = { offsetof(dblock_driver, lease.draw),
        offsetof(dblock_driver, lease.take_many), offsetof(dblock_driver, lease.drop_many),
        offsetof(dblock_driver, insert.draw), offsetof(dblock_driver, insert.take_many),
        offsetof(dblock_driver, insert.drop_many), offsetof(dblock_driver, line.stand),
        offsetof(dblock_driver, line.rest), offsetof(dblock_driver, line.leave),
        offsetof(dblock_driver, line.drops_where_taken), offsetof(dblock_driver, advisory.seed),
        offsetof(dblock_driver, observe.end_token), offsetof(dblock_driver, observe.check) };
    size_t place, i;

    (void)state;
    for (place = offsetof(dblock_driver, scheme); place < sizeof(dblock_driver);
         place += sizeof(void *)) {
        dblock_driver holed = *sim_driver();
        dblock_client *none = NULL;
        int is_optional = 0;

        for (i = 0; i < sizeof optional / sizeof optional[0]; ++i)
            is_optional |= optional[i] == place;
        if (is_optional)
            continue;
        memset((char *)&holed + place, 0, sizeof(void *));
        assert_int_equal(
            DBLOCK_E_DRIVER, dblock_open(&holed, "sim:" WORLD, NULL, &none, &error));
        assert_null(none);
        assert_non_null(strstr(error.message, "has no "));
    }
}

static void null__is_no_object(void **state)
{
    int number;
    int64_t token;
    dblock_canceller *canceller = NULL;
    struct dblock_event event = DBLOCK_EVENT_INIT;
    struct dblock_stats stats = DBLOCK_STATS_INIT;

    (void)state;
    dblock_close(NULL);
    dblock_lock_free(NULL);
    dblock_cancel(NULL);
    dblock_canceller_reset(NULL);
    dblock_canceller_free(NULL);
    dblock_watch_end(NULL);
    assert_int_equal(0, dblock_canceller_is_raised(NULL));
    assert_int_equal(-1, dblock_canceller_fd(NULL));
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_canceller_new(NULL, &error));
    assert_int_equal(DBLOCK_OK, dblock_canceller_new(&canceller, &error));
    dblock_canceller_free(canceller);
    assert_int_equal(0, dblock_lock_is_held(NULL));
    assert_int_equal(0, dblock_lock_ttl_ms(NULL));
    assert_int_equal(0, dblock_lock_remaining_ms(NULL));
    assert_int_equal(DBLOCK_STRATEGY_DEFAULT, dblock_lock_strategy(NULL));
    assert_string_equal("", dblock_lock_name(NULL));
    assert_string_equal("", dblock_lock_owner(NULL));
    assert_int_equal(DBLOCK_CAUSE_NONE, dblock_lock_cause(NULL));
    assert_null(dblock_lock_context(NULL));
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_lock_token(NULL, &token, &error));
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_lock_fd(NULL, &number, &error));
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_client_fd(client, NULL, &error));
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_client_fd(NULL, &number, &error));
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_client_next_event(NULL, &event));
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_client_next_event(client, NULL));
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_client_stats(NULL, &stats));
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_client_stats(client, NULL));
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_ping(NULL, &error));
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_schema_install(NULL, &error));
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_check(NULL, NULL, NULL, &error));
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_check(client, NULL, NULL, &error));
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_break(NULL, "x", DBLOCK_LEASE, 0, &error));
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_break(client, "x", DBLOCK_LEASE, -1, &error));
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_release_many(NULL, 1, &error));
}

static int stop(const struct dblock_grant *grant, void *context)
{
    (void)grant;
    (void)context;
    return 1;
}

static void filter__is_checked(void **state)
{
    struct dblock_filter filter = DBLOCK_FILTER_INIT;
    char prefix[DBLOCK_NAME_MAX + 2];

    (void)state;
    filter.strategy = 9;
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_list(client, &filter, stop, NULL, &error));
    filter.strategy = 0;
    filter.name = "";
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_list(client, &filter, stop, NULL, &error));
    filter.name = NULL;
    memset(prefix, 'x', sizeof prefix - 1);
    prefix[sizeof prefix - 1] = 0;
    filter.prefix = prefix;
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_list(client, &filter, stop, NULL, &error));
}

/* The word for a name has every kind of character that needs no escape, and some that do. */
static void grant__is_one_word(void **state)
{
    static const char name[] = "azAZ09-_. %\303\244";
    static const char *const bad[] = { "", "dblock1", "dblock1:", "dblock1:row:", "dblock1:lease:",
        "dblock1:lease:00112233445566778899aabbccddeeff",
        "dblock1:lease:00112233445566778899aabbccddeeff:x:n",
        "dblock1:lease:00112233445566778899aabbccddeeff::n",
        "dblock1:lease:00112233445566778899aabbccddeeff:12345678901234567:n",
        "dblock1:lease:00112233445566778899aabbccddeeff:1:",
        "dblock1:lease:00112233445566778899aabbccddeeff:1:a b",
        "dblock1:lease:00112233445566778899aabbccddeeff:1:%",
        "dblock1:lease:00112233445566778899aabbccddeeff:1:%4",
        "dblock1:lease:00112233445566778899aabbccddeeff:1:%4g",
        "dblock1:lease:00112233445566778899aabbccddeeff:1:%g4",
        "dblock1:lease:00112233445566778899aabbccddeeff:1:%00",
        "dblock1:lease:00112233445566778899aabbccddeeff:1:%ff",
        "dblock1:lease:0011223344556677889 aabbccddeeff:1:n",
        "dblock1:lease:00112233445566778899aabbccddee{f:1:n",
        "dblock1:leasehold:00112233445566778899aabbccddeeff:1:n" };
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    char text[DBLOCK_GRANT_TEXT_SIZE + 3 * sizeof name];
    char longer[sizeof text + DBLOCK_NAME_MAX];
    dblock_lock *lock = NULL, *copy = NULL;
    size_t i;

    (void)state;
    options.ttl_ms = 5000;
    assert_int_equal(DBLOCK_OK, dblock_acquire(client, name, &options, &lock, &error));
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_lock_export(lock, NULL, sizeof text, &error));
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_lock_export(lock, text, 10, &error));
    assert_int_equal(DBLOCK_OK, dblock_lock_export(lock, text, sizeof text, &error));
    assert_null(strchr(text, ' '));
    assert_int_equal(DBLOCK_OK, dblock_lock_import(client, text, &copy, &error));
    assert_string_equal(name, dblock_lock_name(copy));
    dblock_lock_free(copy);
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_lock_import(client, NULL, &copy, &error));
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_lock_import(client, text, NULL, &error));
    for (i = 0; i < sizeof bad / sizeof bad[0]; ++i)
        assert_int_equal(DBLOCK_E_ARGUMENT, dblock_lock_import(client, bad[i], &copy, &error));
    memcpy(longer, text, strlen(text) + 1);
    memset(longer + strlen(text), 'x', DBLOCK_NAME_MAX);
    longer[strlen(text) + DBLOCK_NAME_MAX - 1] = 0;
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_lock_import(client, longer, &copy, &error));
    dblock_lock_free(lock);
}

static void options__that_are_not_of_this_release(void **state)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    dblock_lock *lock = NULL;
    dblock_client *none = NULL;

    (void)state;
    options.reentrant_owner = "me";
    assert_int_equal(
        DBLOCK_E_UNSUPPORTED, dblock_acquire(client, "x", &options, &lock, &error));
    options.reentrant_owner = NULL;
    options.mode = -1;
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_acquire(client, "x", &options, &lock, &error));
    options.mode = 2;
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_acquire(client, "x", &options, &lock, &error));
    config.schema = "";
    assert_int_equal(
        DBLOCK_E_ARGUMENT, dblock_open(sim_driver(), "sim:" WORLD, &config, &none, &error));
    config.schema = "locks";
    assert_int_equal(DBLOCK_OK, dblock_open(sim_driver(), "sim:" WORLD, &config, &none, &error));
    dblock_close(none);
}

static void some__of_too_many_or_with_a_wait(void **state)
{
    static const char *const names[] = { "a", "b" };
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *locks[2] = { NULL, NULL };

    (void)state;
    assert_int_equal(
        DBLOCK_OK, dblock_acquire_some(client, names, 2, NULL, locks, NULL, &error));
    dblock_lock_free(locks[0]);
    dblock_lock_free(locks[1]);
    options.wait_ms = 1;
    assert_int_equal(DBLOCK_E_ARGUMENT,
        dblock_acquire_some(client, names, 2, &options, locks, NULL, &error));
    options.struct_size = 3;
    assert_int_equal(DBLOCK_E_ARGUMENT,
        dblock_acquire_some(client, names, 2, &options, locks, NULL, &error));
    assert_int_equal(DBLOCK_E_ARGUMENT,
        dblock_acquire_some(client, names, DBLOCK_MANY_MAX + 1, NULL, locks, NULL, &error));
    assert_int_equal(
        DBLOCK_E_ARGUMENT, dblock_acquire_some(client, names, 2, NULL, NULL, NULL, &error));
}

/* A driver of one name at a time. */
static void many__of_a_driver_that_cannot(void **state)
{
    static const char *const names[] = { "a", "b" };
    dblock_driver single = *sim_driver();
    dblock_client *other = NULL;
    dblock_lock *locks[2] = { NULL, NULL };

    (void)state;
    single.lease.take_many = NULL;
    assert_int_equal(DBLOCK_OK, dblock_open(&single, "sim:" WORLD, NULL, &other, &error));
    assert_int_equal(
        DBLOCK_E_UNSUPPORTED, dblock_acquire_many(other, names, 2, NULL, locks, &error));
    dblock_close(other);
}

/* An announcement that is due before the grant begins comes at once. */
static void expiring__is_longer_than_the_grant(void **state)
{
    static const char *const names[] = { "a", "b" };
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *locks[2] = { NULL, NULL };
    dblock_lock *lock = NULL;

    (void)state;
    options.expiring_ms = UINT64_C(300000000000);
    assert_int_equal(DBLOCK_OK, dblock_acquire(client, "x", &options, &lock, &error));
    assert_int_equal(DBLOCK_OK, dblock_acquire_many(client, names, 2, &options, locks, &error));
    assert_int_equal(DBLOCK_OK, dblock_release_many(locks, 2, &error));
    dblock_lock_free(locks[0]);
    dblock_lock_free(locks[1]);
    dblock_lock_free(lock);
}

static void call_back(const struct dblock_trace *trace, void *context)
{
    dblock_client *none = NULL;
    struct dblock_error refusal;
    int *n_refused = context;

    if (trace->kind != DBLOCK_TRACE_GRANT || *n_refused > 0)
        return;
    dblock_close(client); /* does nothing here */
    *n_refused += dblock_open(sim_driver(), "sim:" WORLD, NULL, &none, &refusal) ==
        DBLOCK_E_CALLBACK;
    *n_refused += dblock_ping(client, &refusal) == DBLOCK_E_CALLBACK;
}

static void callback__may_not_call_back(void **state)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    dblock_lock *lock = NULL;
    int n_refused = 0;

    (void)state;
    dblock_close(client);
    config.on_trace = call_back;
    config.trace_context = &n_refused;
    assert_int_equal(DBLOCK_OK, dblock_open(sim_driver(), "sim:" WORLD, &config, &client, &error));
    assert_int_equal(DBLOCK_OK, dblock_acquire(client, "x", NULL, &lock, &error));
    assert_int_equal(2, n_refused);
    assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
    dblock_lock_free(lock);
}

/* Asked for when there are events already, and again. */
static void client_fd__is_one(void **state)
{
    dblock_client *rival = NULL;
    dblock_lock *lock = NULL;
    int fd = -1, again = -1;

    (void)state;
    assert_int_equal(DBLOCK_OK, dblock_open(sim_driver(), "sim:" WORLD, NULL, &rival, &error));
    assert_int_equal(DBLOCK_OK, dblock_acquire(client, "x", NULL, &lock, &error));
    assert_int_equal(DBLOCK_OK, dblock_break(rival, "x", DBLOCK_LEASE, 0, &error));
    assert_int_equal(DBLOCK_LOST, dblock_confirm(lock, &error));
    assert_int_equal(DBLOCK_OK, dblock_client_fd(client, &fd, &error));
    assert_int_equal(1, test_readable(fd, 1000));
    assert_int_equal(DBLOCK_OK, dblock_client_fd(client, &again, &error));
    assert_int_equal(fd, again);
    dblock_lock_free(lock);
    dblock_close(rival);
}

static void ttl__of_an_extend_has_limits(void **state)
{
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    dblock_lock *lock = NULL;

    (void)state;
    options.strategy = DBLOCK_INSERT;
    assert_int_equal(DBLOCK_OK, dblock_acquire(client, "ttl", &options, &lock, &error));
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_extend(lock, 1, &error));
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_extend(lock, UINT64_C(999999999999), &error));
    assert_int_equal(DBLOCK_E_ARGUMENT, dblock_lock_detach(lock, 1, &error));
    assert_int_equal(1, dblock_lock_is_held(lock));
    assert_int_equal(DBLOCK_OK, dblock_extend(lock, 0, &error));
    assert_int_equal(DBLOCK_OK, dblock_release(lock, &error));
    dblock_lock_free(lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(driver__with_a_hole_is_refused),
        cmocka_unit_test_setup_teardown(null__is_no_object, begin, end),
        cmocka_unit_test_setup_teardown(filter__is_checked, begin, end),
        cmocka_unit_test_setup_teardown(grant__is_one_word, begin, end),
        cmocka_unit_test_setup_teardown(options__that_are_not_of_this_release, begin, end),
        cmocka_unit_test_setup_teardown(some__of_too_many_or_with_a_wait, begin, end),
        cmocka_unit_test_setup_teardown(many__of_a_driver_that_cannot, begin, end),
        cmocka_unit_test_setup_teardown(expiring__is_longer_than_the_grant, begin, end),
        cmocka_unit_test_setup_teardown(callback__may_not_call_back, begin, end),
        cmocka_unit_test_setup_teardown(client_fd__is_one, begin, end),
        cmocka_unit_test_setup_teardown(ttl__of_an_extend_has_limits, begin, end),
    };

    return cmocka_run_group_tests_name("argument", tests, NULL, NULL);
}
