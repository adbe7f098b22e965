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
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(id_text__writes_every_byte_in_order),
        cmocka_unit_test(text_copy__cuts_at_a_character),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
