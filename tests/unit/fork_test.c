/* SPDX-License-Identifier: MIT */
/* fork_test.c - a child is told from its parent, and a grandchild from both. */
#include "child_exit.h"
#include "core/fork.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* 0: the child exited with 0. */
static int wait_for(pid_t child)
{
    int status = -1;

    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void same_within_a_process(void **state)
{
    (void)state;
    assert_true(dblk_fork_generation() != 0);
    assert_true(dblk_fork_generation() == dblk_fork_generation());
}

static void child_and_grandchild_are_others(void **state)
{
    uint64_t mine = dblk_fork_generation();
    pid_t child = fork();

    (void)state;
    if (child == 0) {
        uint64_t childs = dblk_fork_generation();
        pid_t grandchild = fork();
        int status = -1;

        if (grandchild == 0)
            child_exit(dblk_fork_generation() == mine || dblk_fork_generation() == childs);
        (void)waitpid(grandchild, &status, 0);
        child_exit(status != 0 || childs == mine || dblk_fork_generation() != childs);
    }
    assert_int_equal(wait_for(child), 0);
    assert_true(dblk_fork_generation() == mine);
}

/* The child asks for the first time only after it has a child of its own. */
static void grandchild_of_one_that_never_asked(void **state)
{
    uint64_t mine = dblk_fork_generation();
    pid_t child = fork();

    (void)state;
    if (child == 0) {
        pid_t grandchild = fork();
        int status = -1;

        if (grandchild == 0)
            child_exit(dblk_fork_generation() == mine);
        (void)waitpid(grandchild, &status, 0);
        child_exit(status != 0 || dblk_fork_generation() == mine);
    }
    assert_int_equal(wait_for(child), 0);
}

#if !defined(__SANITIZE_THREAD__) /* which cannot follow threads of a forked child */
enum { N_THREADS = 8 };

static void *ask(void *context)
{
    *(uint64_t *)context = dblk_fork_generation();
    return NULL;
}

static int ask_at_once(void)
{
    pthread_t threads[N_THREADS];
    uint64_t answers[N_THREADS];
    int i;

    for (i = 0; i < N_THREADS; ++i)
        if (pthread_create(&threads[i], NULL, ask, &answers[i]) != 0)
            return -1;
    for (i = 0; i < N_THREADS; ++i)
        (void)pthread_join(threads[i], NULL);
    for (i = 1; i < N_THREADS; ++i)
        if (answers[i] != answers[0])
            return -1;
    return 0;
}

static void threads_of_a_young_process_agree(void **state)
{
    int i;

    (void)state;
    for (i = 0; i < 20; ++i) {
        pid_t child = fork();

        if (child == 0)
            child_exit(ask_at_once() != 0);
        assert_int_equal(wait_for(child), 0);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_within_a_process),
        cmocka_unit_test(child_and_grandchild_are_others),
        cmocka_unit_test(grandchild_of_one_that_never_asked),
#if !defined(__SANITIZE_THREAD__)
        cmocka_unit_test(threads_of_a_young_process_agree),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
