/* SPDX-License-Identifier: MIT */
/* driver_services_test.c - ids as text, and texts that are cut at a character. */
#include <dblock/sys/driver.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void id_text__writes_every_byte_in_order(void **state)
{
    unsigned char id[DBLOCK_ID_SIZE];
    char expected[40];
    char text[40];
    int byte;
    size_t i;

    (void)state;
    for (byte = 0; byte < 256; ++byte) {
        for (i = 0; i < sizeof id; ++i) {
            id[i] = (unsigned char)(byte + 17 * (int)i);
            (void)snprintf(expected + 2 * i, 3, "%02x", id[i]);
        }
        dblock_id_text(id, text);
        assert_string_equal(text, expected);
    }
}

static void text_copy__cuts_at_a_character(void **state)
{
    char text[4];

    (void)state;
    dblock_text_copy(text, sizeof text, "abc");
    assert_string_equal(text, "abc");
    dblock_text_copy(text, sizeof text, "abcd");
    assert_string_equal(text, "abc");
    dblock_text_copy(text, sizeof text, "ab\xC3\xA9");
    assert_string_equal(text, "ab");
    dblock_text_copy(text, sizeof text, "\xF0\x9F\x98\x80");
    assert_string_equal(text, "");
    dblock_text_copy(text, sizeof text, "a\xE2\x82\xAC");
    assert_string_equal(text, "a");
    dblock_text_copy(text, sizeof text, "\xE2\x82\xAC!");
    assert_string_equal(text, "\xE2\x82\xAC");
    dblock_text_copy(text, sizeof text, "\x80\x80\x80\x80"); /* no character at all */
    assert_int_equal(strlen(text), 3);
    dblock_text_copy(text, 1, "abc");
    assert_string_equal(text, "");
}

static void error__may_be_unwanted(void **state)
{
    struct dblock_error error;

    (void)state;
    dblock_error_native(NULL, 1, "HY000", 1);
    assert_int_equal(DBLOCK_E_DATABASE, dblock_error_set(NULL, DBLOCK_E_DATABASE, NULL, "no"));
    (void)dblock_error_set(&error, DBLOCK_E_DATABASE, "hint", "no");
    dblock_error_native(&error, 1205, "HY000", 1);
    assert_string_equal("HY000", error.sqlstate);
    assert_int_equal(1, error.is_transient);
}

static void fd_wait__without_a_canceller(void **state)
{
    const struct dblock_call call = { dblock_clock_us() + 1000, -1 };

    (void)state;
    assert_int_equal(0, dblock_fd_wait(-1, 0, &call, 1));
}

static void names__of_nothing(void **state)
{
    (void)state;
    assert_string_equal("unknown", dblock_strategy_name(9));
    assert_string_equal("unknown", dblock_strategy_name(-1));
    assert_string_equal("", dblock_driver_scheme(NULL));
    assert_string_equal("", dblock_schema(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(id_text__writes_every_byte_in_order),
        cmocka_unit_test(text_copy__cuts_at_a_character),
        cmocka_unit_test(error__may_be_unwanted),
        cmocka_unit_test(fd_wait__without_a_canceller),
        cmocka_unit_test(names__of_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
