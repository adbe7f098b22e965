/* SPDX-License-Identifier: MIT */
/* step_test.c - every single step that a client asks of the database fails, in every way in which
 * a driver may let it fail: refused, its answer lost, an error, and each answer that is not the one
 * that was hoped for. What fails says so, nobody holds what another holds, and nothing is left.
 * A third of the steps is visited, another one each time; all with DBLOCK_TEST_STEPS=all.
 * Runs beside others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dblock/sys/driver.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "life.h"
#include "sim_driver.h"

enum { N_OUTCOMES = 6 };

/* The answers of each step besides YES that driver.h allows. */
static const struct {
    enum sim_step step;
    int32_t outcomes[N_OUTCOMES];
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

/* The lives are shared out to some threads, as most of their time is waiting; each has a world of
 * its own, in which what one life leaves meets the next. */
enum { N_WORKERS = 4 };

struct worker {
    struct life life;
    char world[40];
    pthread_t thread;
    unsigned number;
    unsigned n_lives;
};

static uint64_t count_steps(struct worker *worker, enum sim_step step)
{
    uint64_t n_before = sim_n_steps(worker->world, step);

    life_run(&worker->life);
    return sim_n_steps(worker->world, step) - n_before;
}

static unsigned one_of; /* so many are not visited but for one: 1, all are */

static int is_mine(const struct worker *worker, uint64_t nth)
{
    return nth % N_WORKERS == worker->number &&
        (nth / N_WORKERS + (uint64_t)getpid()) % one_of == 0;
}

static void visit(struct worker *worker, uint64_t nth)
{
    worker->life.n = nth;
    life_run(&worker->life);
    sim_fault_clear(worker->world);
    if (++worker->n_lives % 64 == 0)
        (void)life_is_over(&worker->life);
}

static void *fail_each(void *context)
{
    static const struct {
        const char *text;
        enum sim_fault fault;
    } faults[] = {
        { "refused", SIM_FAULT_REFUSE },
        { "answer lost", SIM_FAULT_LOSE },
        { "error of the database", SIM_FAULT_FAIL },
    };
    struct worker *worker = context;
    size_t i;

    for (i = 0; i < sizeof faults / sizeof faults[0]; ++i) {
        uint64_t n_steps = count_steps(worker, SIM_STEP_ANY);
        unsigned nth;

        worker->life.fault = faults[i].text;
        for (nth = 1; nth <= n_steps; ++nth) {
            if (!is_mine(worker, nth))
                continue;
            if (faults[i].fault == SIM_FAULT_FAIL)
                sim_fail_set(worker->world, SIM_STEP_ANY, nth, DBLOCK_E_DATABASE);
            else
                sim_fault_set(worker->world, SIM_STEP_ANY, nth, faults[i].fault, 0);
            visit(worker, nth);
        }
    }
    return NULL;
}

static void *answer_each(void *context)
{
    struct worker *worker = context;
    size_t i, j;

    for (i = 0; i < sizeof answers / sizeof answers[0]; ++i) {
        uint64_t n_steps = count_steps(worker, answers[i].step);
        char fault[60];

        for (j = 0; j < N_OUTCOMES && answers[i].outcomes[j] != 0; ++j) {
            unsigned nth;

            (void)snprintf(fault, sizeof fault, "step %d answers %d", (int)answers[i].step,
                (int)answers[i].outcomes[j]);
            worker->life.fault = fault;
            for (nth = 1; nth <= n_steps; ++nth) {
                if (!is_mine(worker, nth + i + j))
                    continue;
                sim_answer_set(worker->world, answers[i].step, nth, answers[i].outcomes[j]);
                visit(worker, nth);
            }
        }
    }
    worker->life.fault = "the end";
    return NULL;
}

static void visit_all(const dblock_driver *driver, void *(*work)(void *context))
{
    static struct worker workers[N_WORKERS];
    int n_descriptors = life_count_descriptors();
    unsigned n_lives = 0;
    int n_wrong = 0;
    unsigned i;

    one_of = getenv("DBLOCK_TEST_STEPS") != NULL ? 1 : 3;
    memset(workers, 0, sizeof workers);
    for (i = 0; i < N_WORKERS; ++i) {
        struct worker *worker = &workers[i];

        worker->number = i;
        (void)snprintf(worker->world, sizeof worker->world, "step_test-%u", i);
        life_begin(&worker->life, worker->world);
        worker->life.driver = driver;
        life_run(&worker->life); /* what the first use makes is made */
        assert_int_equal(0, worker->life.n_wrong);
        assert_int_equal(0, pthread_create(&worker->thread, NULL, work, worker));
    }
    for (i = 0; i < N_WORKERS; ++i) {
        assert_int_equal(0, pthread_join(workers[i].thread, NULL));
        (void)life_is_over(&workers[i].life);
        life_end(&workers[i].life);
        n_lives += workers[i].n_lives;
        n_wrong += workers[i].life.n_wrong;
    }
    (void)printf("# %u faults, %d wrong\n", n_lives, n_wrong);
    assert_true(n_lives > 50);
    assert_int_equal(0, n_wrong);
    assert_int_equal(n_descriptors, life_count_descriptors());
}

static void fault__at_every_step(void **state)
{
    (void)state;
    visit_all(life_driver(), fail_each);
}

static void fault__at_every_step_of_a_plain_driver(void **state)
{
    (void)state;
    visit_all(life_plain_driver(), fail_each);
}

static void answer__of_every_step(void **state)
{
    (void)state;
    visit_all(life_driver(), answer_each);
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
