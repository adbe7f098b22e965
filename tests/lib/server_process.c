/* SPDX-License-Identifier: MIT */
/* server_process.c - see server_process.h. */
#include "server_process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>

extern char **environ;

enum { WORDS_MAX = 12 };

static long read_number(const char *path)
{
    FILE *file = fopen(path, "r");
    long number = 0;

    if (file == NULL)
        return 0;
    if (fscanf(file, "%ld", &number) != 1)
        number = 0;
    (void)fclose(file);
    return number;
}

/* "PID (COMMAND) STATE PARENT ...", and COMMAND may hold anything. */
static long find_parent(const char *pid)
{
    char path[300];
    char line[400];
    const char *end;
    long parent = 0;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%s/stat", pid);
    file = fopen(path, "r");
    if (file == NULL)
        return 0;
    if (fgets(line, sizeof line, file) != NULL && (end = strrchr(line, ')')) != NULL &&
        sscanf(end + 1, " %*c %ld", &parent) != 1)
        parent = 0;
    (void)fclose(file);
    return parent;
}

static void signal_all(const char *pidfile, int number)
{
    const char *path = getenv(pidfile);
    long server = path != NULL ? read_number(path) : 0;
    DIR *folder = opendir("/proc");
    struct dirent *entry;

    if (server <= 0 || folder == NULL) {
        (void)fprintf(stderr, "server_process: no pid in %s\n", pidfile);
        abort();
    }
    (void)kill((pid_t)server, number); /* first, so that it makes no more of them */
    while ((entry = readdir(folder)) != NULL)
        if (isdigit((unsigned char)entry->d_name[0]) && find_parent(entry->d_name) == server)
            (void)kill((pid_t)strtol(entry->d_name, NULL, 10), number);
    (void)closedir(folder);
}

void server_stop(const char *pidfile)
{
    signal_all(pidfile, SIGSTOP);
}

void server_continue(const char *pidfile)
{
    signal_all(pidfile, SIGCONT);
}

int server_services(const char *const *words)
{
    const char *services = getenv("DBLOCK_TEST_SERVICES");
    char *arguments[WORDS_MAX + 2] = { NULL };
    pid_t child;
    int status = -1;
    size_t n = 0, i;

    if (services == NULL)
        return -1;
    arguments[n++] = strdup(services);
    while (*words != NULL && n <= WORDS_MAX)
        arguments[n++] = strdup(*words++);
    if (posix_spawn(&child, services, NULL, NULL, arguments, environ) == 0)
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
    for (i = 0; i < n; ++i)
        free(arguments[i]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
