/* SPDX-License-Identifier: MIT */
/* sha256_test.c - names to numbers, as any other SHA-256 gives them. */
#include <dblock/sys/driver.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* PITFALL(A8): golden values, made by Python's hashlib. */
static void name_number__agrees_with_other_languages(void **state)
{
    static const struct {
        size_t size; /* of that many "a" */
        int64_t number;
    } lengths[] = {
        {0, INT64_C(-2039914840885289964)},
        {55, INT64_C(-6970568399872315943)},
        {56, INT64_C(-5524727463446378168)},
        {63, INT64_C(9024778935409160539)},
        {64, INT64_C(-8913747294762131)},
        {119, INT64_C(3597150267889048584)},
        {120, INT64_C(3403933330084137816)},
        {255, INT64_C(-5696153859773387382)},
    };
    char name[256];
    size_t i;

    (void)state;
    memset(name, 'a', sizeof name);
    for (i = 0; i < sizeof lengths / sizeof lengths[0]; ++i)
        assert_true(dblock_name_number(name, lengths[i].size) == lengths[i].number);
    assert_true(dblock_name_number("job", 3) == INT64_C(6812988570718632683)); /* dblock(7) */
    assert_true(dblock_name_number("nightly-report", 14) == INT64_C(7440995589958059143));
    assert_true(dblock_name_number("J\xC3\xB6"
                                 "b",
                    4) == INT64_C(6007079653076722657));
}

static int compare(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;

    return (left > right) - (left < right);
}

/* PITFALL(A6), PITFALL(A7): of 32 bits, a hundred thousand names would share one with near
 * certainty, and more often of 16. The two words have one and the same CRC32. */
static void name_number__tells_many_names_apart(void **state)
{
    enum { N_NAMES = 100000 };
    int64_t *numbers = malloc((N_NAMES + 2) * sizeof *numbers);
    char name[32];
    size_t i;

    (void)state;
    assert_non_null(numbers);
    for (i = 0; i < N_NAMES; ++i) {
        int size = snprintf(name, sizeof name, "job-%zu", i);

        numbers[i] = dblock_name_number(name, (size_t)size);
    }
    numbers[N_NAMES] = dblock_name_number("plumless", 8);
    numbers[N_NAMES + 1] = dblock_name_number("buckeroo", 8);
    qsort(numbers, N_NAMES + 2, sizeof *numbers, compare);
    for (i = 1; i < N_NAMES + 2; ++i)
        assert_true(numbers[i - 1] != numbers[i]);
    free(numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(name_number__agrees_with_other_languages),
        cmocka_unit_test(name_number__tells_many_names_apart),
    };

    return cmocka_run_group_tests_name("sha256", tests, NULL, NULL);
}
