/* SPDX-License-Identifier: MIT */
/* names_test.c - what a client holds is found by strategy and name, and by nothing less. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/environment.h"
#include "core/lock.h"

enum { N_LOCKS = 1000 };

static struct dblock_lock *make(const char *name, int strategy)
{
    struct dblock_lock *lock = calloc(1, sizeof *lock + 64);
    char *text = (char *)(lock + 1);

    assert_non_null(lock);
    (void)snprintf(text, 64, "%s", name);
    lock->strategy = dblk_strategy_of(strategy);
    lock->subject.name = text;
    lock->subject.name_size = strlen(text);
    lock->name_hash = dblk_name_hash(strategy, &lock->subject);
    return lock;
}

static void names__are_found_until_they_are_removed(void **state)
{
    struct dblk_names names = { NULL, 0, 0 };
    struct dblock_lock *locks[N_LOCKS], *other;
    char name[32];
    int i;

    (void)state;
    for (i = 0; i < N_LOCKS; ++i) {
        (void)snprintf(name, sizeof name, "job/%d of many", i);
        locks[i] = make(name, DBLOCK_LEASE);
        assert_null(dblk_names_find(&names, locks[i]));
        dblk_names_add(&names, locks[i]);
    }
    for (i = 0; i < N_LOCKS; ++i)
        assert_ptr_equal(dblk_names_find(&names, locks[i]), locks[i]);
    other = make("job/7 of many", DBLOCK_INSERT);
    assert_null(dblk_names_find(&names, other));
    free(other);
    for (i = 0; i < N_LOCKS; i += 2)
        dblk_names_remove(&names, locks[i]);
    for (i = 0; i < N_LOCKS; ++i)
        assert_ptr_equal(dblk_names_find(&names, locks[i]), i % 2 != 0 ? locks[i] : NULL);
    dblk_names_remove(&names, locks[0]); /* a second time: nothing */
    assert_int_equal(names.n_locks, N_LOCKS / 2);
    for (i = 0; i < N_LOCKS; ++i) {
        dblk_names_remove(&names, locks[i]);
        free(locks[i]);
    }
    dblk_names_fini(&names);
}

/* PITFALL(E17) */
static void names__that_differ_in_little_are_others(void **state)
{
    static const char *const texts[] = { "a", "A", "a ", "aaaaaaaa", "aaaaaaaaa", "aaaaaaaab",
        "baaaaaaa", "aaaaaaaab0123456", "aaaaaaaab0123457" };
    enum { N = sizeof texts / sizeof texts[0] };
    struct dblk_names names = { NULL, 0, 0 };
    struct dblock_lock *locks[N], *number;
    size_t i, k;

    (void)state;
    for (i = 0; i < N; ++i) {
        locks[i] = make(texts[i], DBLOCK_ADVISORY);
        dblk_names_add(&names, locks[i]);
        for (k = 0; k < i; ++k)
            assert_true(locks[i]->name_hash != locks[k]->name_hash);
    }
    for (i = 0; i < N; ++i)
        assert_ptr_equal(dblk_names_find(&names, locks[i]), locks[i]);
    number = make("a", DBLOCK_ADVISORY);
    number->subject.has_advisory_id = 1;
    assert_null(dblk_names_find(&names, number));
    free(number);
    for (i = 0; i < N; ++i) {
        dblk_names_remove(&names, locks[i]);
        free(locks[i]);
    }
    dblk_names_fini(&names);
}

static void *allocate_nothing(size_t size)
{
    (void)size;
    return NULL;
}

/* Then it is not found, and whoever wants it asks the database. */
static void names__without_memory_are_not_noted(void **state)
{
    struct dblk_environment poor = dblk_real_environment;
    struct dblk_names names = { NULL, 0, 0 };
    struct dblock_lock *lock = make("x", DBLOCK_ROW);

    (void)state;
    poor.allocate = allocate_nothing;
    dblk_environment_set(&poor);
    dblk_names_add(&names, lock);
    dblk_environment_set(NULL);
    assert_null(dblk_names_find(&names, lock));
    dblk_names_remove(&names, lock);
    dblk_names_fini(&names);
    free(lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names__are_found_until_they_are_removed),
        cmocka_unit_test(names__that_differ_in_little_are_others),
        cmocka_unit_test(names__without_memory_are_not_noted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
