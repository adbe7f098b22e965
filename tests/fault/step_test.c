/* SPDX-License-Identifier: MIT */
/* step_test.c - every single step that a client asks of the database fails, in every way in which
 * a driver may let it fail: refused, its answer lost, an error, and each answer that is not the one
 * that was hoped for. What fails says so, nobody holds what another holds, and nothing is left.
 * Runs beside others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dblock/sys/driver.h>
#include <stdio.h>

#include "life.h"
#include "sim_driver.h"

#define WORLD "step_test"

/* The answers of each step besides YES that driver.h allows. */
static const struct {
    enum sim_step step;
    int32_t outcomes[6];
} answers[] = {
    { SIM_STEP_BEGIN, { DBLOCK_ANSWER_AGAIN } },
    { SIM_STEP_END, { DBLOCK_ANSWER_NO, DBLOCK_ANSWER_AGAIN } },
    { SIM_STEP_TAKE,
        { DBLOCK_ANSWER_BUSY, DBLOCK_ANSWER_AGAIN, DBLOCK_ANSWER_LATE, DBLOCK_ANSWER_PINNED } },
    { SIM_STEP_DROP, { DBLOCK_ANSWER_NO, DBLOCK_ANSWER_PINNED, DBLOCK_ANSWER_AGAIN } },
    { SIM_STEP_EXTEND, { DBLOCK_ANSWER_NO, DBLOCK_ANSWER_PINNED, DBLOCK_ANSWER_AGAIN } },
    { SIM_STEP_LOOK, { DBLOCK_ANSWER_NO } },
    { SIM_STEP_SEED, { DBLOCK_ANSWER_AGAIN } },
    { SIM_STEP_PROVE, { DBLOCK_ANSWER_NO } },
    { SIM_STEP_DRAW, { DBLOCK_ANSWER_PINNED, DBLOCK_ANSWER_AGAIN, DBLOCK_ANSWER_NO } },
    { SIM_STEP_BREAK, { DBLOCK_ANSWER_NO, DBLOCK_ANSWER_PINNED } },
    { SIM_STEP_STAND, { DBLOCK_ANSWER_AGAIN, DBLOCK_ANSWER_BUSY, DBLOCK_ANSWER_NO } },
    { SIM_STEP_REST, { DBLOCK_ANSWER_AGAIN, DBLOCK_ANSWER_NO, DBLOCK_ANSWER_YES } },
};

static uint64_t count_steps(struct life *life, enum sim_step step)
{
    uint64_t n_before = sim_n_steps(WORLD, step);

    life_run(life);
    return sim_n_steps(WORLD, step) - n_before;
}

/* The world, and who is in it, is the same for all of them: what one life leaves meets the next. */
static void visit(struct life *life, unsigned n_lives)
{
    life_run(life);
    sim_fault_clear(WORLD);
    if (n_lives % 64 == 0)
        (void)life_is_over(life);
}

static void begin(struct life *life)
{
    life_begin(life, WORLD);
    life_run(life); /* what the first use makes is made */
    assert_int_equal(0, life->n_wrong);
}

static void end(struct life *life, int n_descriptors, unsigned n_lives)
{
    (void)life_is_over(life);
    (void)printf("# %u faults, %d wrong\n", n_lives, life->n_wrong);
    life_end(life);
    assert_int_equal(0, life->n_wrong);
    assert_int_equal(n_descriptors, life_count_descriptors());
}

static void visit_all(const dblock_driver *driver)
{
    static const struct {
        const char *text;
        enum sim_fault fault;
        dblock_status status;
    } faults[] = {
        { "refused", SIM_FAULT_REFUSE, DBLOCK_OK },
        { "answer lost", SIM_FAULT_LOSE, DBLOCK_OK },
        { "error of the database", SIM_FAULT_FAIL, DBLOCK_E_DATABASE },
        { "lost, but the connection stays", SIM_FAULT_FAIL, DBLOCK_E_UNCERTAIN },
    };
    struct life life;
    unsigned n_lives = 0;
    unsigned nth;
    int n_descriptors;
    size_t i;

    n_descriptors = life_count_descriptors();
    begin(&life);
    for (i = 0; i < sizeof faults / sizeof faults[0]; ++i) {
        uint64_t n_steps;

        life.driver = driver;
        n_steps = count_steps(&life, SIM_STEP_ANY);
        assert_true(n_steps > 50);
        life.fault = faults[i].text;
        for (nth = 1; nth <= n_steps; ++nth) {
            life.n = nth;
            if (faults[i].fault == SIM_FAULT_FAIL)
                sim_fail_set(WORLD, SIM_STEP_ANY, nth, faults[i].status);
            else
                sim_fault_set(WORLD, SIM_STEP_ANY, nth, faults[i].fault, 0);
            visit(&life, ++n_lives);
        }
    }
    end(&life, n_descriptors, n_lives);
}

static void fault__at_every_step(void **state)
{
    (void)state;
    visit_all(life_driver());
}

static void fault__at_every_step_of_a_plain_driver(void **state)
{
    (void)state;
    visit_all(life_plain_driver());
}

static void answer__of_every_step(void **state)
{
    struct life life;
    unsigned n_lives = 0;
    unsigned nth;
    int n_descriptors;
    size_t i, j;

    (void)state;
    n_descriptors = life_count_descriptors();
    begin(&life);
    for (i = 0; i < sizeof answers / sizeof answers[0]; ++i) {
        uint64_t n_steps = count_steps(&life, answers[i].step);
        char fault[60];

        for (j = 0; j < 6 && answers[i].outcomes[j] != 0; ++j) {
            (void)snprintf(fault, sizeof fault, "step %d answers %d", (int)answers[i].step,
                (int)answers[i].outcomes[j]);
            life.fault = fault;
            for (nth = 1; nth <= n_steps; ++nth) {
                life.n = nth;
                sim_answer_set(WORLD, answers[i].step, nth, answers[i].outcomes[j]);
                visit(&life, ++n_lives);
            }
        }
    }
    end(&life, n_descriptors, n_lives);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fault__at_every_step),
        cmocka_unit_test(fault__at_every_step_of_a_plain_driver),
        cmocka_unit_test(answer__of_every_step),
    };

    return cmocka_run_group_tests_name("step", tests, NULL, NULL);
}
