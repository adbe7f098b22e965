/* SPDX-License-Identifier: MIT */
/* simulate_test.c - the strategies and the heartbeat in a hostile world: seeds that
 * once failed, then fresh ones until a million steps and more have been made, and
 * mistakes made on purpose, each of which the checks must find.
 *
 * A failure prints the seed, the last events, and the command that replays it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "scene.h"

enum { STEPS_OF_A_SEED = 4000, FRESH_STEPS = 2000000 };

/* A drop of a grant that came too late, answered "again", is taken for done by the strategy: until
 * that is mended, databases that undo statements are left to `simulate --with 2048`. */
static const unsigned left_out = 0;

static struct scene scene;

static void explain(uint64_t n_steps, enum scene_mistake mistake)
{
    scene_print_notes(&scene);
    printf("seed %llu: %s\n", (unsigned long long)scene.seed, scene.violation);
    printf("again: simulate --seed %llu --steps %llu --mistake %s --with %u --without %u --trace\n",
        (unsigned long long)scene.seed, (unsigned long long)n_steps, scene_mistake_names[mistake],
        scene.with, scene.without);
}

static void play_faithfully(uint64_t seed, uint64_t n_steps)
{
    scene.with = 0;
    scene.without = left_out;
    if (scene_play(&scene, seed, n_steps, 0, SCENE_FAITHFUL, 0) == 0)
        return;
    explain(n_steps, SCENE_FAITHFUL);
    fail_msg("seed %llu: %s", (unsigned long long)seed, scene.violation);
}

static void seeds_that_once_failed__pass(void **state)
{
    FILE *file = fopen("tests/simulation/seeds.txt", "r");
    char line[200];
    unsigned n_seeds = 0;

    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        char *end;
        uint64_t seed = strtoull(line, &end, 10);

        if (end == line)
            continue; /* a remark */
        play_faithfully(seed, strtoull(end, NULL, 10));
        ++n_seeds;
    }
    (void)fclose(file);
    assert_int_not_equal(n_seeds, 0);
}

static void fresh_seeds__hold_for_two_million_steps(void **state)
{
    uint64_t first = (uint64_t)time(NULL) * 100000;
    uint64_t before = scene.counts.steps;
    uint64_t n_seeds = 0;

    (void)state;
    print_message("first fresh seed %llu\n", (unsigned long long)first);
    while (scene.counts.steps - before < FRESH_STEPS)
        play_faithfully(first + n_seeds++, STEPS_OF_A_SEED);
    print_message("%llu steps, %llu seeds, 0 violations\n",
        (unsigned long long)scene.counts.steps, (unsigned long long)scene.counts.seeds);
}

/* What happens seldom. */
static int has_met_all(void)
{
    return scene.counts.uncertain > 0 && scene.counts.settled_yes > 0 &&
        scene.counts.settled_no > 0 && scene.counts.given_back > 0 &&
        scene.counts.late_refused > 0 && scene.counts.lost > 0 && scene.counts.swept > 0 &&
        scene.counts.restored > 0 && scene.counts.excused_forward > 0 &&
        scene.counts.excused_broken > 0 && scene.counts.excused_lag > 0;
}

/* Everything that is meant to be met is met, some of it only after more seeds than those: else the
 * checks would pass for want of work. */
static void fresh_seeds__meet_all_that_can_go_wrong(void **state)
{
    uint64_t seed = (uint64_t)time(NULL) * 100000 + 50000;

    (void)state;
    assert_true(scene.counts.grants > 1000);
    while (!has_met_all() && scene.counts.steps < 20 * (uint64_t)FRESH_STEPS)
        play_faithfully(seed++, STEPS_OF_A_SEED);
    assert_true(has_met_all());
}

static void one_seed__has_one_history(void **state)
{
    uint64_t steps, grants;
    int64_t notes;

    (void)state;
    steps = scene.counts.steps;
    grants = scene.counts.grants;
    play_faithfully(7, STEPS_OF_A_SEED);
    steps = scene.counts.steps - steps;
    grants = scene.counts.grants - grants;
    notes = (int64_t)scene.n_notes;
    play_faithfully(8, STEPS_OF_A_SEED);
    steps += scene.counts.steps;
    grants += scene.counts.grants;
    play_faithfully(7, STEPS_OF_A_SEED);
    assert_int_equal(scene.counts.steps, steps);
    assert_int_equal(scene.counts.grants, grants);
    assert_int_equal(scene.n_notes, notes);
}

static void planted_mistakes__are_found(void **state)
{
    static const struct {
        enum scene_mistake mistake;
        unsigned n_seeds; /* within so many */
        unsigned with;
    } cases[] = {
        { SCENE_DEADLINE_FROM_ANSWER, 100, 0 },
        { SCENE_NO_MARGIN, 200, SCENE_FAULT_DRIFT },
        { SCENE_NOT_AFTER_IGNORED, 50, SCENE_FAULT_STUCK },
        { SCENE_RENEWAL_REVIVES, 50, SCENE_FAULT_STUCK },
        { SCENE_REASK_IS_TAKE, 50, SCENE_FAULT_NETWORK },
        { SCENE_TOKEN_BEFORE_WAIT, 50, SCENE_FAULT_STUCK },
        { SCENE_NO_WITHOUT_LOOK, 50, SCENE_FAULT_NETWORK },
        { SCENE_YES_WITHOUT_LOOK, 50, SCENE_FAULT_NETWORK },
        { SCENE_DROP_BY_NAME, 50, 0 },
        { SCENE_NO_SWEEP, 1000, SCENE_FAULT_RESTART },
        { SCENE_OWN_SESSION_UNCHECKED, 50, SCENE_FAULT_STUCK },
        { SCENE_EXTEND_FORGETS, 50, SCENE_FAULT_NETWORK },
        { SCENE_NO_REGULAR_READ, 200, SCENE_FAULT_LAG },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        unsigned seed;
        int is_found = 0;

        scene.with = cases[i].with;
        scene.without = left_out;
        for (seed = 1; seed <= cases[i].n_seeds && !is_found; ++seed)
            is_found = scene_play(&scene, seed, STEPS_OF_A_SEED, 0, cases[i].mistake, 0) != 0;
        if (!is_found)
            fail_msg("%s: not found within %u seeds", scene_mistake_names[cases[i].mistake],
                cases[i].n_seeds);
        print_message("%s: found by seed %u: %s\n", scene_mistake_names[cases[i].mistake], seed - 1,
            scene.violation);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seeds_that_once_failed__pass),
        cmocka_unit_test(fresh_seeds__hold_for_two_million_steps),
        cmocka_unit_test(fresh_seeds__meet_all_that_can_go_wrong),
        cmocka_unit_test(one_seed__has_one_history),
        cmocka_unit_test(planted_mistakes__are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
