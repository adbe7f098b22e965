/* SPDX-License-Identifier: MIT */
/* name_test.c - names are well-formed UTF-8 of 1 to 255 bytes, and nothing is
 * folded, trimmed or cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/name.h"

static void utf8__is_judged_byte_by_byte(void **state)
{
    static const struct {
        const char *text;
        enum dblk_text_fault fault;
    } cases[] = {
        { "a", DBLK_TEXT_GOOD },
        { " ", DBLK_TEXT_GOOD },
        { "job ", DBLK_TEXT_GOOD },
        { "\x01\x7F", DBLK_TEXT_GOOD },
        { "\xC2\x80", DBLK_TEXT_GOOD },         /* the least of two bytes */
        { "\xDF\xBF", DBLK_TEXT_GOOD },
        { "\xE0\xA0\x80", DBLK_TEXT_GOOD },     /* the least of three */
        { "\xED\x9F\xBF", DBLK_TEXT_GOOD },     /* the last before the surrogates */
        { "\xEE\x80\x80", DBLK_TEXT_GOOD },     /* the first after them */
        { "\xEF\xBF\xBF", DBLK_TEXT_GOOD },
        { "\xF0\x90\x80\x80", DBLK_TEXT_GOOD }, /* the least of four */
        { "\xF4\x8F\xBF\xBF", DBLK_TEXT_GOOD }, /* the last of all */
        { "", DBLK_TEXT_EMPTY },
        { "\x80", DBLK_TEXT_INVALID },          /* continues nothing */
        { "a\xBF", DBLK_TEXT_INVALID },
        { "\xC2", DBLK_TEXT_INVALID },          /* cut off */
        { "\xE2\x82", DBLK_TEXT_INVALID },
        { "\xF0\x9F\x98", DBLK_TEXT_INVALID },
        { "\xC2g", DBLK_TEXT_INVALID },
        { "\xE2\x82g", DBLK_TEXT_INVALID },
        { "\xC0\x80", DBLK_TEXT_INVALID },      /* longer than need be */
        { "\xC1\xBF", DBLK_TEXT_INVALID },
        { "\xE0\x9F\xBF", DBLK_TEXT_INVALID },
        { "\xF0\x8F\xBF\xBF", DBLK_TEXT_INVALID },
        { "\xED\xA0\x80", DBLK_TEXT_INVALID },  /* surrogates */
        { "\xED\xBF\xBF", DBLK_TEXT_INVALID },
        { "\xF4\x90\x80\x80", DBLK_TEXT_INVALID }, /* beyond Unicode */
        { "\xF5\x80\x80\x80", DBLK_TEXT_INVALID },
        { "\xFE", DBLK_TEXT_INVALID },
        { "\xFF", DBLK_TEXT_INVALID },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        if (dblk_text_check(cases[i].text, 255) != cases[i].fault)
            fail_msg("case %zu: %d", i, (int)dblk_text_check(cases[i].text, 255));
}

static void length__is_counted_in_bytes(void **state)
{
    char name[DBLOCK_NAME_MAX + 2];
    struct dblock_error error;

    (void)state;
    memset(name, 'x', sizeof name);
    name[DBLOCK_NAME_MAX] = 0;
    assert_int_equal(dblk_name_check(name, &error), DBLOCK_OK);
    name[DBLOCK_NAME_MAX] = 'x';
    name[DBLOCK_NAME_MAX + 1] = 0;
    assert_int_equal(dblk_name_check(name, &error), DBLOCK_E_ARGUMENT);
    assert_non_null(strstr(error.message, "longer than 255 bytes"));
    /* a character that stands across the limit is not cut */
    name[DBLOCK_NAME_MAX - 1] = (char)0xC3;
    name[DBLOCK_NAME_MAX] = (char)0xA9;
    assert_int_equal(dblk_name_check(name, &error), DBLOCK_E_ARGUMENT);
    assert_non_null(strstr(error.message, "longer"));
}

static void name__says_what_is_wrong(void **state)
{
    struct dblock_error error;

    (void)state;
    assert_int_equal(dblk_name_check(NULL, &error), DBLOCK_E_ARGUMENT);
    assert_non_null(strstr(error.message, "name: NULL"));
    assert_int_equal(dblk_name_check("", &error), DBLOCK_E_ARGUMENT);
    assert_non_null(strstr(error.message, "empty"));
    assert_int_equal(dblk_name_check("\xFF", &error), DBLOCK_E_ARGUMENT);
    assert_non_null(strstr(error.message, "UTF-8"));
    assert_int_equal(error.status, DBLOCK_E_ARGUMENT);
    assert_int_equal(error.is_transient, 0);
    assert_int_equal(dblk_name_check("\xFF", NULL), DBLOCK_E_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(utf8__is_judged_byte_by_byte),
        cmocka_unit_test(length__is_counted_in_bytes),
        cmocka_unit_test(name__says_what_is_wrong),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
