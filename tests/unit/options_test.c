/* SPDX-License-Identifier: MIT */
/* options_test.c - defaults, limits, the growth rule of the public structs, and
 * the classes of heartbeat ttls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <dblock/sys/driver.h>

#include "core/environment.h"
#include "core/options.h"

static struct dblk_settings default_settings(void)
{
    struct dblk_settings settings;
    struct dblock_error error;

    assert_int_equal(dblk_settings_resolve(NULL, &settings, &error), DBLOCK_OK);
    return settings;
}

static void settings__have_defaults(void **state)
{
    struct dblk_settings settings = default_settings();

    (void)state;
    assert_string_equal(settings.label, "");
    assert_int_equal(settings.connect_us, 5000000);
    assert_int_equal(settings.io_us, 10000000);
    assert_int_equal(settings.outage_us, 0);
    assert_int_equal(settings.ttl_us, 30000000);
    assert_int_equal(settings.strategy, DBLOCK_LEASE);
    assert_int_equal(settings.connections_max, 8);
    assert_true(settings.on_trace == NULL);
}

static void settings__are_checked(void **state)
{
    static const uint64_t ten_years_ms = DBLK_TEN_YEARS_MS;
    static const struct {
        struct dblock_config config;
        const char *word; /* in the message; NULL: good */
    } cases[] = {
        { { .struct_size = sizeof(struct dblock_config), .io_timeout_ms = 1 }, NULL },
        { { .struct_size = sizeof(struct dblock_config), .outage_ms = DBLOCK_FOREVER }, NULL },
        { { .struct_size = sizeof(struct dblock_config), .ttl_ms = DBLK_TTL_MIN_MS }, NULL },
        { { .struct_size = sizeof(struct dblock_config), .strategy = DBLOCK_ADVISORY }, NULL },
        { { .struct_size = sizeof(struct dblock_config), .label = "" }, NULL },
        { { .struct_size = sizeof(struct dblock_config), .io_timeout_ms = UINT64_MAX },
            "config.io_timeout_ms" },
        { { .struct_size = sizeof(struct dblock_config),
              .connect_timeout_ms = DBLK_TEN_YEARS_MS + 1 }, "config.connect_timeout_ms" },
        { { .struct_size = sizeof(struct dblock_config), .outage_ms = UINT64_MAX - 1 },
            "config.outage_ms" },
        { { .struct_size = sizeof(struct dblock_config), .ttl_ms = DBLK_TTL_MIN_MS - 1 },
            "config.ttl_ms" },
        { { .struct_size = sizeof(struct dblock_config), .strategy = 77 }, "config.strategy" },
        /* it would end in the middle of a pointer */
        { { .struct_size = 2 * sizeof(size_t) + 4, .label = "x" }, "struct_size is" },
        { { .struct_size = sizeof(struct dblock_config), .label = "\xFF" }, "config.label" },
        { { .struct_size = 0 }, "struct_size" },
    };
    size_t i;

    (void)state;
    assert_true(ten_years_ms < UINT64_MAX / 1000);
    for (i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        struct dblk_settings settings;
        struct dblock_error error;
        dblock_status status;

        memset(&error, 0, sizeof error);
        status = dblk_settings_resolve(&cases[i].config, &settings, &error);
        if (status != (cases[i].word == NULL ? DBLOCK_OK : DBLOCK_E_ARGUMENT))
            fail_msg("case %zu: %d %s", i, status, error.message);
        if (cases[i].word != NULL)
            assert_non_null(strstr(error.message, cases[i].word));
    }
}

static void wish__follows_the_strategy(void **state)
{
    static const struct {
        int32_t strategy, heartbeat;
        int is_heartbeat;
        dblock_status status;
    } cases[] = {
        { 0, 0, 1, DBLOCK_OK },
        { DBLOCK_LEASE, DBLOCK_HEARTBEAT_DEFAULT, 1, DBLOCK_OK },
        { DBLOCK_LEASE, DBLOCK_HEARTBEAT_OFF, 0, DBLOCK_OK },
        { DBLOCK_INSERT, DBLOCK_HEARTBEAT_DEFAULT, 0, DBLOCK_OK },
        { DBLOCK_INSERT, DBLOCK_HEARTBEAT_ON, 1, DBLOCK_OK },
        { DBLOCK_ROW, DBLOCK_HEARTBEAT_DEFAULT, 0, DBLOCK_OK },
        { DBLOCK_ROW, DBLOCK_HEARTBEAT_ON, 0, DBLOCK_OK },
        { DBLOCK_ROW, DBLOCK_HEARTBEAT_OFF, 0, DBLOCK_E_UNSUPPORTED },
        { DBLOCK_ADVISORY, DBLOCK_HEARTBEAT_OFF, 0, DBLOCK_E_UNSUPPORTED },
        { DBLOCK_LEASE, -1, 0, DBLOCK_E_ARGUMENT },
        { DBLOCK_LEASE, 99, 0, DBLOCK_E_ARGUMENT },
        { 99, 0, 0, DBLOCK_E_ARGUMENT },
    };
    struct dblk_settings settings = default_settings();
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        struct dblock_options options = DBLOCK_OPTIONS_INIT;
        struct dblk_wish wish;
        struct dblock_error error;
        dblock_status status;

        options.strategy = cases[i].strategy;
        options.heartbeat = cases[i].heartbeat;
        status = dblk_wish_resolve(&settings, &options, &wish, &error);
        if (status != cases[i].status)
            fail_msg("case %zu: %d", i, status);
        if (status == DBLOCK_OK)
            assert_int_equal(wish.is_heartbeat, cases[i].is_heartbeat);
    }
}

static void wish__takes_what_is_not_said_from_the_client(void **state)
{
    struct dblk_settings settings = default_settings();
    struct dblock_options options = DBLOCK_OPTIONS_INIT;
    struct dblk_wish wish;
    struct dblock_error error;

    (void)state;
    settings.ttl_us = 17000000;
    dblock_text_copy(settings.label, sizeof settings.label, "of the client");
    assert_int_equal(dblk_wish_resolve(&settings, NULL, &wish, &error), DBLOCK_OK);
    assert_int_equal(wish.strategy, DBLOCK_LEASE);
    assert_int_equal(wish.wait_us, 0);
    assert_int_equal(wish.ttl_us, 15000000); /* the class below */
    assert_string_equal(wish.label, "of the client");
    options.heartbeat = DBLOCK_HEARTBEAT_OFF;
    options.wait_ms = DBLOCK_FOREVER;
    options.label = "of the call";
    assert_int_equal(dblk_wish_resolve(&settings, &options, &wish, &error), DBLOCK_OK);
    assert_int_equal(wish.ttl_us, 17000000); /* a timed grant has the ttl that was asked for */
    assert_int_equal(wish.wait_us, DBLK_NEVER);
    assert_string_equal(wish.label, "of the call");
}

static void wish__refuses_what_this_release_cannot(void **state)
{
    static const struct {
        struct dblock_options options;
        dblock_status status;
        const char *word;
    } cases[] = {
        { { .struct_size = sizeof(struct dblock_options), .mode = DBLOCK_SHARED },
            DBLOCK_E_UNSUPPORTED, "options.mode" },
        { { .struct_size = sizeof(struct dblock_options), .mode = 9 }, DBLOCK_E_ARGUMENT,
            "options.mode" },
        { { .struct_size = sizeof(struct dblock_options), .permits = 3 }, DBLOCK_E_UNSUPPORTED,
            "options.permits" },
        { { .struct_size = sizeof(struct dblock_options), .flags = DBLOCK_REENTRANT },
            DBLOCK_E_UNSUPPORTED, "reentrant locks (DBLOCK_REENTRANT) are not in" },
        { { .struct_size = sizeof(struct dblock_options), .flags = 1u << 30 }, DBLOCK_E_ARGUMENT,
            "options.flags" },
        { { .struct_size = sizeof(struct dblock_options), .wait_ms = UINT64_MAX - 1 },
            DBLOCK_E_ARGUMENT, "options.wait_ms" },
        { { .struct_size = sizeof(struct dblock_options), .ttl_ms = 1 }, DBLOCK_E_ARGUMENT,
            "options.ttl_ms" },
        { { .struct_size = sizeof(struct dblock_options), .min_hold_ms = DBLOCK_FOREVER },
            DBLOCK_E_ARGUMENT, "options.min_hold_ms" },
        { { .struct_size = sizeof(struct dblock_options), .strategy = DBLOCK_INSERT,
              .ttl_ms = 1000, .min_hold_ms = 1001 }, DBLOCK_E_ARGUMENT, "options.min_hold_ms" },
        { { .struct_size = sizeof(struct dblock_options), .heartbeat = DBLOCK_HEARTBEAT_OFF,
              .ttl_ms = 1000, .min_hold_ms = 1001 }, DBLOCK_E_ARGUMENT, "options.min_hold_ms" },
        { { .struct_size = sizeof(struct dblock_options), .strategy = DBLOCK_ROW,
              .min_hold_ms = 5 }, DBLOCK_E_UNSUPPORTED, "options.min_hold_ms" },
        { { .struct_size = sizeof(struct dblock_options), .has_advisory_id = 1 },
            DBLOCK_E_ARGUMENT, "options.advisory_id" },
        { { .struct_size = sizeof(struct dblock_options), .advisory_id = 5 },
            DBLOCK_E_ARGUMENT, "options.advisory_id" },
        { { .struct_size = sizeof(struct dblock_options), .label = "\xC0" }, DBLOCK_E_ARGUMENT,
            "options.label" },
    };
    struct dblk_settings settings = default_settings();
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        struct dblk_wish wish;
        struct dblock_error error;
        dblock_status status = dblk_wish_resolve(&settings, &cases[i].options, &wish, &error);

        if (status != cases[i].status || strstr(error.message, cases[i].word) == NULL)
            fail_msg("case %zu: %d %s", i, status, error.message);
    }
}

/* ----------------------------------------------------------- the growth rule */

struct sample_v1 {
    size_t struct_size;
    uint32_t left, right;
};

struct sample_v2 {
    size_t struct_size;
    uint32_t left, right;
    uint64_t added;
};

static void struct__of_an_older_caller_is_filled_up_with_zero(void **state)
{
    struct sample_v1 given = { sizeof given, 3, 4 };
    struct sample_v2 seen;
    struct dblock_error error;

    (void)state;
    memset(&seen, 0xFF, sizeof seen);
    assert_int_equal(
        dblk_struct_read(&given, &seen, sizeof seen, "sample", &error), DBLOCK_OK);
    assert_int_equal(seen.left, 3);
    assert_int_equal(seen.right, 4);
    assert_int_equal(seen.added, 0);
}

static void struct__of_a_newer_caller_is_taken_if_its_tail_is_zero(void **state)
{
    struct sample_v2 given = { sizeof given, 3, 4, 0 };
    struct sample_v1 seen;
    struct dblock_error error;

    (void)state;
    assert_int_equal(
        dblk_struct_read(&given, &seen, sizeof seen, "sample", &error), DBLOCK_OK);
    assert_int_equal(seen.right, 4);
    given.added = UINT64_C(1) << 63;
    assert_int_equal(
        dblk_struct_read(&given, &seen, sizeof seen, "sample", &error), DBLOCK_E_ARGUMENT);
    assert_non_null(strstr(error.message, "sample"));
    given.added = 0;
    given.struct_size = sizeof(size_t) - 1;
    assert_int_equal(
        dblk_struct_read(&given, &seen, sizeof seen, "sample", &error), DBLOCK_E_ARGUMENT);
}

static void struct__is_written_as_far_as_it_reaches(void **state)
{
    struct sample_v2 known = { sizeof known, 5, 6, 7 };
    struct sample_v1 older = { sizeof older, 0, 0 };
    struct { struct sample_v2 sample; uint64_t beyond; } newer;
    struct dblock_error error;

    (void)state;
    assert_int_equal(
        dblk_struct_write(&older, &known, sizeof known, "sample", &error), DBLOCK_OK);
    assert_int_equal(older.struct_size, sizeof older); /* the caller's, and stays */
    assert_int_equal(older.right, 6);
    memset(&newer, 0, sizeof newer);
    newer.sample.struct_size = sizeof newer;
    newer.beyond = 9;
    assert_int_equal(
        dblk_struct_write(&newer, &known, sizeof known, "sample", &error), DBLOCK_OK);
    assert_int_equal(newer.sample.added, 7);
    assert_int_equal(newer.beyond, 9);
    older.struct_size = 0;
    assert_int_equal(
        dblk_struct_write(&older, &known, sizeof known, "sample", &error), DBLOCK_E_ARGUMENT);
}

static void ttl_class__is_never_above_what_was_asked_for(void **state)
{
    static const struct {
        uint64_t ttl_ms, class_ms;
    } cases[] = { { 20, 20 }, { 999, 999 }, { 1000, 1000 }, { 1999, 1000 }, { 2000, 2000 },
        { 4999, 2000 }, { 5000, 5000 }, { 14999, 10000 }, { 15000, 15000 }, { 30000, 30000 },
        { 59999, 30000 }, { 86400000, 86400000 }, { 86400000 * UINT64_C(3650), 86400000 } };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        assert_int_equal(dblk_ttl_class(cases[i].ttl_ms * 1000), cases[i].class_ms * 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings__have_defaults),
        cmocka_unit_test(settings__are_checked),
        cmocka_unit_test(wish__follows_the_strategy),
        cmocka_unit_test(wish__takes_what_is_not_said_from_the_client),
        cmocka_unit_test(wish__refuses_what_this_release_cannot),
        cmocka_unit_test(struct__of_an_older_caller_is_filled_up_with_zero),
        cmocka_unit_test(struct__of_a_newer_caller_is_taken_if_its_tail_is_zero),
        cmocka_unit_test(struct__is_written_as_far_as_it_reaches),
        cmocka_unit_test(ttl_class__is_never_above_what_was_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
