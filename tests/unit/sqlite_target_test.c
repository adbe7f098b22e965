/* SPDX-License-Identifier: MIT */
/* sqlite_target_test.c - which file systems will do; URLs are in
 * tests/system/sqlite_file_test.c. */
#include "driver/sqlite/sqlite_target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* PITFALL(G2) */
static void shared_file_systems__are_known(void **state)
{
    static const unsigned long shared[] = {0x6969, 0xFF534D42, 0xFE534D42, 0x65735546, 0x01021997};
    static const unsigned long local[] = {0xEF53 /* ext4 */, 0x01021994 /* tmpfs */,
        0x794C7630 /* overlayfs */, 0x58465342 /* xfs */, 0x9123683E /* btrfs */,
        0x2FC12FC1 /* zfs */};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof shared / sizeof shared[0]; ++i)
        assert_non_null(sqlite_shared_file_system(shared[i]));
    for (i = 0; i < sizeof local / sizeof local[0]; ++i)
        assert_null(sqlite_shared_file_system(local[i]));
    /* some machines give the number as a negative int */
    assert_non_null(sqlite_shared_file_system((unsigned long)(long)(int)0xFF534D42));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shared_file_systems__are_known),
    };

    return cmocka_run_group_tests_name("sqlite_target", tests, NULL, NULL);
}
