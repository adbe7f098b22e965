/* SPDX-License-Identifier: MIT */
/* child_exit.h - _exit() of a forked child, after which gcov knows what the child did. */
#ifndef DBLOCK_TEST_CHILD_EXIT_H
#define DBLOCK_TEST_CHILD_EXIT_H

#include <unistd.h>

/* Of a build for gcov only. */
extern void __gcov_dump(void) __attribute__((weak));

static inline void child_exit(int status)
{
    if (__gcov_dump != NULL)
        __gcov_dump();
    _exit(status);
}

#endif
