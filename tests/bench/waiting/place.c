/* SPDX-License-Identifier: MIT */
/* place.c - see place.h. */
#include "place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

long place_pid(const char *pid_variable)
{
    const char *path = pid_variable != NULL ? getenv(pid_variable) : NULL;
    FILE *file = path != NULL ? fopen(path, "r") : NULL;
    long pid = 0;

    if (file == NULL)
        return 0;
    if (fscanf(file, "%ld", &pid) != 1)
        pid = 0;
    (void)fclose(file);
    return pid;
}

double place_log_lines(const char *pid_variable)
{
    const char *pid_path = pid_variable != NULL ? getenv(pid_variable) : NULL;
    const char *slash = pid_path != NULL ? strrchr(pid_path, '/') : NULL;
    char path[512];
    char line[512];
    int is_begin = 1;
    double n = 0;
    FILE *file;

    if (slash == NULL)
        return -1;
    (void)snprintf(path, sizeof path, "%.*s/log", (int)(slash - pid_path), pid_path);
    file = fopen(path, "r");
    if (file == NULL)
        return -1;
    while (fgets(line, sizeof line, file) != NULL) {
        n += is_begin && strstr(line, "checkpoint") == NULL;
        is_begin = strchr(line, '\n') != NULL;
    }
    (void)fclose(file);
    return n;
}
