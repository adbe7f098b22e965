/* SPDX-License-Identifier: MIT */
/* backoff_test.c - pauses grow by half, never beyond the longest, and are spread
 * over their upper half. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/environment.h"
#include "strategy/backoff.h"

static void backoff__grows_by_half_up_to_the_longest(void **state)
{
    static const struct {
        unsigned n_pauses;
        uint64_t first_us, last_us, most_us;
    } cases[] = {
        { 0, 1000, 20000, 1000 },
        { 1, 1000, 20000, 1500 },
        { 2, 1000, 20000, 2250 },
        { 3, 1000, 20000, 3375 },
        { 8, 1000, 20000, 20000 },
        { 1000000, 1000, 20000, 20000 },
        { UINT32_MAX, 1, 1, 1 },
        { 0, 30000, 20000, 20000 }, /* the longest wins over the first */
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        uint64_t most_us = cases[i].most_us;
        uint64_t half_us = most_us / 2;
        uint64_t random;

        /* the draw that is the largest remainder gives the whole pause, 0 gives half of it */
        assert_int_equal(dblk_backoff(cases[i].n_pauses, half_us, cases[i].first_us,
                             cases[i].last_us), half_us + half_us);
        assert_int_equal(
            dblk_backoff(cases[i].n_pauses, 0, cases[i].first_us, cases[i].last_us), half_us);
        for (random = 1; random != 0; random = random << 1) {
            uint64_t pause_us = dblk_backoff(
                cases[i].n_pauses, random * 3 + 1, cases[i].first_us, cases[i].last_us);

            assert_in_range(pause_us, half_us, most_us);
        }
        assert_in_range(dblk_backoff(cases[i].n_pauses, UINT64_MAX, cases[i].first_us,
                            cases[i].last_us), half_us, most_us);
    }
}

/* PITFALL(E18) */
static void backoff__spreads_a_herd(void **state)
{
    unsigned buckets[4] = { 0, 0, 0, 0 };
    uint64_t random = 1;
    unsigned i;

    (void)state;
    for (i = 0; i < 4000; ++i) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        ++buckets[(dblk_backoff(0, random >> 20, 8000, 8000) - 4000) * 4 / 4001];
    }
    for (i = 0; i < 4; ++i)
        assert_in_range(buckets[i], 800, 1200);
}

static void times__saturate(void **state)
{
    (void)state;
    assert_int_equal(dblk_later(5, 7), 12);
    assert_int_equal(dblk_later(DBLK_NEVER, 1), DBLK_NEVER);
    assert_int_equal(dblk_later(1, DBLK_NEVER), DBLK_NEVER);
    assert_int_equal(dblk_later(DBLK_NEVER - 1, 1), DBLK_NEVER);
    assert_int_equal(dblk_later(DBLK_NEVER - 2, 1), DBLK_NEVER - 1);
    assert_int_equal(dblk_until(5, 7), 2);
    assert_int_equal(dblk_until(7, 5), 0);
    assert_int_equal(dblk_until(7, 7), 0);
    assert_int_equal(dblk_sooner(3, DBLK_NEVER), 3);
    assert_int_equal(dblk_sooner(DBLK_NEVER, 3), 3);
    assert_int_equal(dblk_ms(3), 3000);
    assert_int_equal(dblk_ms(UINT64_MAX / 1000), UINT64_MAX / 1000 * 1000);
    assert_int_equal(dblk_ms(UINT64_MAX / 1000 + 1), DBLK_NEVER);
    assert_int_equal(dblk_ms(UINT64_MAX), DBLK_NEVER); /* DBLOCK_FOREVER stays for ever */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(backoff__grows_by_half_up_to_the_longest),
        cmocka_unit_test(backoff__spreads_a_herd),
        cmocka_unit_test(times__saturate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
