/* SPDX-License-Identifier: MIT */
/* latency_test.c - durations in classes: what is read back is what was put in, to a
 * hundredth. */
#include "cli/latency.h"

#include "cli/bench_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static struct latency *new_latency(void)
{
    struct latency *latency = calloc(1, sizeof *latency);

    assert_non_null(latency);
    return latency;
}

static void assert_near(uint64_t actual, double expected)
{
    assert_true((double)actual >= expected * 0.99 - 1);
    assert_true((double)actual <= expected * 1.01 + 1);
}

static void nothing_has_no_percentiles(void **state)
{
    struct latency *latency = new_latency();

    (void)state;
    assert_int_equal(latency_at(latency, 0.5), 0);
    assert_int_equal(latency_at(latency, 1), 0);
    free(latency);
}

static void one_is_all_percentiles(void **state)
{
    struct latency *latency = new_latency();

    (void)state;
    latency_add(latency, 123456789);
    assert_int_equal(latency_at(latency, 0), 123456789);
    assert_int_equal(latency_at(latency, 0.5), 123456789);
    assert_int_equal(latency_at(latency, 1), 123456789);
    free(latency);
}

static void percentiles_are_right_to_a_hundredth(void **state)
{
    uint64_t unit;

    (void)state;
    for (unit = 1; unit < UINT64_C(1000000000); unit *= 7) {
        struct latency *latency = new_latency();
        uint64_t i;

        for (i = 1; i <= 1000; i++)
            latency_add(latency, i * unit);
        assert_near(latency_at(latency, 0), (double)unit);
        assert_near(latency_at(latency, 0.5), 500.0 * (double)unit);
        assert_near(latency_at(latency, 0.99), 990.0 * (double)unit);
        assert_int_equal(latency_at(latency, 1), 1000 * unit);
        free(latency);
    }
}

static void neighbours_do_not_change_places(void **state)
{
    uint64_t last = 0;
    uint64_t ns;

    (void)state;
    /* around each power of two, where classes begin to be wider */
    for (ns = 1; ns < UINT64_C(1) << 40; ns *= 2) {
        uint64_t near;

        for (near = ns > 2 ? ns - 2 : 1; near <= ns + 2; near++) {
            struct latency *latency = new_latency();
            uint64_t at;

            latency_add(latency, near);
            latency_add(latency, UINT64_C(1) << 42);
            at = latency_at(latency, 0.5);
            assert_near(at, (double)near);
            assert_true(near < last || at >= last || near <= ns);
            last = at;
            free(latency);
        }
    }
}

static void what_is_longer_than_all_classes_is_kept(void **state)
{
    struct latency *latency = new_latency();

    (void)state;
    latency_add(latency, 5);
    latency_add(latency, UINT64_MAX);
    assert_int_equal(latency_at(latency, 0.5), 5);
    assert_int_equal(latency_at(latency, 1), UINT64_MAX);
    free(latency);
}

static void merged_is_as_if_added(void **state)
{
    struct latency *one = new_latency();
    struct latency *other = new_latency();
    uint64_t i;

    (void)state;
    for (i = 1; i <= 100; i++)
        latency_add(i % 2 == 0 ? one : other, i);
    latency_merge(one, other);
    assert_int_equal(one->n, 100);
    assert_int_equal(latency_at(one, 0.5), 50);
    assert_int_equal(latency_at(one, 1), 100);
    free(one);
    free(other);
}

static void figures_have_three_digits_and_a_unit(void **state)
{
    static const struct {
        uint64_t ns;
        const char *text;
    } cases[] = {{0, "-"}, {1, "1 ns"}, {999, "999 ns"}, {1000, "1.00 us"}, {9994, "9.99 us"},
        {9996, "10.0 us"}, {42123, "42.1 us"}, {99960, "100 us"}, {999499, "999 us"},
        {999600, "1.00 ms"}, {UINT64_C(2050000000), "2.05 s"},
        {UINT64_C(3600000000000), "3600 s"}};
    char text[BENCH_TEXT_SIZE];
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(bench_text_duration(cases[i].ns, text), cases[i].text);
    assert_string_equal(bench_text_rate(10, 0, text), "-");
    assert_string_equal(bench_text_rate(1, UINT64_C(4000000000), text), "0.25");
    assert_string_equal(bench_text_rate(3410, UINT64_C(1000000000), text), "3410");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_has_no_percentiles),
        cmocka_unit_test(one_is_all_percentiles),
        cmocka_unit_test(percentiles_are_right_to_a_hundredth),
        cmocka_unit_test(neighbours_do_not_change_places),
        cmocka_unit_test(what_is_longer_than_all_classes_is_kept),
        cmocka_unit_test(merged_is_as_if_added),
        cmocka_unit_test(figures_have_three_digits_and_a_unit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
