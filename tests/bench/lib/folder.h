/* SPDX-License-Identifier: MIT */
/* folder.h - a folder for the files of one run, that goes with it. */
#ifndef DBLOCK_BENCH_FOLDER_H
#define DBLOCK_BENCH_FOLDER_H

#include <stddef.h>

/* On a disk, as /tmp may be memory. 0, or -1 and said why. */
int folder_make(char *ret_path, size_t size);
void folder_remove(const char *path);

#endif
