/* SPDX-License-Identifier: MIT */
/* process_cpu.c - see process_cpu.h. */
#include "process_cpu.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double process_cpu_ms(pid_t pid)
{
    struct timespec used;
    clockid_t clock;

    if (pid <= 0 || clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
        return 0;
    return (double)used.tv_sec * 1e3 + (double)used.tv_nsec / 1e6;
}

/* Of children that ended: what they had used stays part of the sum. In ticks, but of all
 * of them together. */
static double ended_children_ms(pid_t pid)
{
    char path[64], line[1024];
    unsigned long user = 0, system = 0;
    const char *rest;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    file = fopen(path, "r");
    if (file == NULL)
        return 0;
    rest = fgets(line, sizeof line, file) != NULL ? strrchr(line, ')') : NULL;
    (void)fclose(file);
    /* behind the name: state, 12 numbers, and then those two */
    if (rest == NULL ||
        sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %lu %lu", &user,
            &system) != 2)
        return 0;
    return (double)(user + system) * 1e3 / (double)sysconf(_SC_CLK_TCK);
}

double process_tree_cpu_ms(pid_t pid, pid_t except)
{
    double sum = process_cpu_ms(pid) + ended_children_ms(pid);
    char path[64];
    long child;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", (long)pid, (long)pid);
    file = fopen(path, "r");
    if (file == NULL)
        return sum;
    while (fscanf(file, "%ld", &child) == 1)
        if (child != except)
            sum += process_cpu_ms((pid_t)child);
    (void)fclose(file);
    return sum;
}
