/* SPDX-License-Identifier: MIT */
/* descriptors.c - see descriptors.h. */
#define _GNU_SOURCE /* syscall */
#include "descriptors.h"

#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Higher ones exist only where somebody has raised the limit on an old kernel. */
#define OLD_KERNEL_MAX 65536

static void close_between(int first, int last)
{
    int i;

    if (first > last)
        return;
#ifdef SYS_close_range
    if (syscall(SYS_close_range, (unsigned)first, (unsigned)last, 0U) == 0)
        return;
#endif
    for (i = first; i <= last && i < OLD_KERNEL_MAX; i++)
        (void)close(i);
}

void descriptors_close(int first, int kept, int also_kept)
{
    int low = kept < also_kept ? kept : also_kept;
    int high = kept < also_kept ? also_kept : kept;

    if (low >= first) {
        close_between(first, low - 1);
        first = low + 1;
    }
    if (high >= first) {
        close_between(first, high - 1);
        first = high + 1;
    }
    close_between(first, INT_MAX);
}
