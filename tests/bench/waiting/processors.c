/* SPDX-License-Identifier: MIT */
/* processors.c - see processors.h. Who may not bind another's process leaves it where it is. */
#define _GNU_SOURCE /* cpu_set_t */

#include "processors.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

static void bind_process(long pid, const cpu_set_t *set)
{
    char path[64];
    struct dirent *entry;
    DIR *threads;
    FILE *file;
    long child;

    (void)snprintf(path, sizeof path, "/proc/%ld/task", pid);
    threads = opendir(path);
    while (threads != NULL && (entry = readdir(threads)) != NULL) {
        long thread = strtol(entry->d_name, NULL, 10);

        if (thread > 0)
            (void)sched_setaffinity((pid_t)thread, sizeof *set, set);
    }
    if (threads != NULL)
        (void)closedir(threads);
    (void)snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", pid, pid);
    file = fopen(path, "r");
    if (file == NULL)
        return;
    while (fscanf(file, "%ld", &child) == 1)
        bind_process(child, set);
    (void)fclose(file);
}

void processors_bind(int processor, const long *pids, int n_pids)
{
    size_t n = (size_t)sysconf(_SC_NPROCESSORS_CONF);
    cpu_set_t set;
    size_t k;
    int i;

    CPU_ZERO(&set);
    for (k = 0; k < n && k < CPU_SETSIZE; ++k)
        if (processor < 0 || k == (size_t)processor)
            CPU_SET(k, &set);
    (void)sched_setaffinity(0, sizeof set, &set);
    for (i = 0; i < n_pids; ++i)
        if (pids[i] > 0)
            bind_process(pids[i], &set);
}
