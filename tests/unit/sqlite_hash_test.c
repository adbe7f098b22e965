/* SPDX-License-Identifier: MIT */
/* sqlite_hash_test.c - names to numbers, as any other SHA-256 gives them. */
#include "driver/sqlite/sqlite_hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

/* PITFALL(A8): golden values, made by Python's hashlib. */
static void hash_name__agrees_with_other_languages(void **state)
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
        assert_true(sqlite_hash_name(name, lengths[i].size) == lengths[i].number);
    assert_true(sqlite_hash_name("nightly-report", 14) == INT64_C(7440995589958059143));
    assert_true(sqlite_hash_name("J\xC3\xB6"
                                 "b",
                    4) == INT64_C(6007079653076722657));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hash_name__agrees_with_other_languages),
    };

    return cmocka_run_group_tests_name("sqlite_hash", tests, NULL, NULL);
}
