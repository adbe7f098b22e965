/* SPDX-License-Identifier: MIT */
/* folder.c - see folder.h. */
#define _XOPEN_SOURCE 700 /* nftw */

#include "bench/lib/folder.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int folder_make(char *ret_path, size_t size)
{
    const char *place = getenv("TMPDIR");

    (void)snprintf(
        ret_path, size, "%.400s/dblock-bench.XXXXXX", place != NULL ? place : "/var/tmp");
    if (mkdtemp(ret_path) != NULL)
        return 0;
    perror(ret_path);
    return -1;
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about;
    (void)kind;
    (void)place;
    return remove(path);
}

void folder_remove(const char *path)
{
    (void)nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
