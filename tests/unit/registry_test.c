/* SPDX-License-Identifier: MIT */
/* registry_test.c - lock objects by owner id, through growth, collisions and
 * removal in any order; and the doubly linked list through the same objects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/environment.h"
#include "core/lock.h"
#include "core/registry.h"

enum { N_LOCKS = 1000 };

static void set_owner(struct dblock_lock *lock, unsigned number, int collides)
{
    memset(lock->owner, 0, sizeof lock->owner);
    /* the first bytes are the hash */
    lock->owner[0] = collides ? 1 : (unsigned char)number;
    lock->owner[1] = collides ? 1 : (unsigned char)(number >> 8);
    lock->owner[14] = (unsigned char)(number >> 8);
    lock->owner[15] = (unsigned char)number;
}

static void exercise(int collides)
{
    struct dblock_lock *locks = calloc(N_LOCKS, sizeof *locks);
    struct dblk_registry registry;
    unsigned i;

    assert_non_null(locks);
    memset(&registry, 0, sizeof registry);
    set_owner(&locks[0], 0, collides);
    assert_null(dblk_registry_find(&registry, locks[0].owner)); /* nothing allocated yet */
    for (i = 0; i < N_LOCKS; ++i) {
        set_owner(&locks[i], i, collides);
        assert_int_equal(dblk_registry_reserve(&registry), 0);
        dblk_registry_add(&registry, &locks[i]);
    }
    assert_int_equal(registry.n_locks, N_LOCKS);
    for (i = 0; i < N_LOCKS; ++i)
        assert_ptr_equal(dblk_registry_find(&registry, locks[i].owner), &locks[i]);
    for (i = 0; i < N_LOCKS; ++i) { /* in an order that is none of the order of adding */
        struct dblock_lock *lock = &locks[i * 7 % N_LOCKS];

        dblk_registry_remove(&registry, lock);
        assert_null(dblk_registry_find(&registry, lock->owner));
        assert_int_equal(registry.n_locks, N_LOCKS - 1 - i);
        if (i + 1 < N_LOCKS)
            assert_ptr_equal(dblk_registry_find(&registry, locks[(i + 1) * 7 % N_LOCKS].owner),
                &locks[(i + 1) * 7 % N_LOCKS]);
    }
    dblk_registry_fini(&registry);
    free(locks);
}

static void registry__finds_each_owner(void **state)
{
    (void)state;
    exercise(0);
}

static void registry__finds_each_owner_in_one_bucket(void **state)
{
    (void)state;
    exercise(1);
}

static void *allocate_nothing(size_t size)
{
    (void)size;
    return NULL;
}

static void registry__stays_as_it_was_without_memory(void **state)
{
    struct dblk_environment poor = dblk_real_environment;
    struct dblock_lock *locks = calloc(17, sizeof *locks);
    struct dblk_registry registry;
    unsigned i;

    (void)state;
    assert_non_null(locks);
    memset(&registry, 0, sizeof registry);
    poor.allocate = allocate_nothing;
    dblk_environment_set(&poor);
    assert_int_equal(dblk_registry_reserve(&registry), -1);
    dblk_environment_set(NULL);
    for (i = 0; i < 16; ++i) {
        set_owner(&locks[i], i, 0);
        assert_int_equal(dblk_registry_reserve(&registry), 0);
        dblk_registry_add(&registry, &locks[i]);
    }
    dblk_environment_set(&poor);
    assert_int_equal(dblk_registry_reserve(&registry), -1);
    dblk_environment_set(NULL);
    for (i = 0; i < 16; ++i)
        assert_ptr_equal(dblk_registry_find(&registry, locks[i].owner), &locks[i]);
    dblk_registry_fini(&registry);
    assert_int_equal(registry.n_locks, 0);
    free(locks);
}

static void list__loses_the_first_the_last_and_one_between(void **state)
{
    static const unsigned orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 },
        { 2, 0, 1 }, { 2, 1, 0 } };
    struct dblock_lock *locks = calloc(3, sizeof *locks);
    size_t i;

    (void)state;
    assert_non_null(locks);
    for (i = 0; i < 6; ++i) {
        struct dblk_lock_list list = { NULL, 0 };
        unsigned k;

        for (k = 0; k < 3; ++k)
            dblk_list_add(&list, &locks[k]);
        assert_ptr_equal(list.first, &locks[2]); /* the youngest first */
        assert_int_equal(list.n_locks, 3);
        for (k = 0; k < 3; ++k) {
            const struct dblock_lock *next;
            size_t n_seen = 0;

            dblk_list_remove(&list, &locks[orders[i][k]]);
            assert_null(locks[orders[i][k]].next);
            assert_null(locks[orders[i][k]].previous);
            for (next = list.first; next != NULL; next = next->next) {
                assert_true(next->next == NULL || next->next->previous == next);
                ++n_seen;
            }
            assert_int_equal(n_seen, list.n_locks);
            assert_int_equal(list.n_locks, 2 - k);
        }
        assert_null(list.first);
    }
    free(locks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registry__finds_each_owner),
        cmocka_unit_test(registry__finds_each_owner_in_one_bucket),
        cmocka_unit_test(registry__stays_as_it_was_without_memory),
        cmocka_unit_test(list__loses_the_first_the_last_and_one_between),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
