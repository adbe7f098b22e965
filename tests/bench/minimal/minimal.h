/* SPDX-License-Identifier: MIT */
/* minimal.h - the least that a C program does which takes a lock, runs `true` and gives the
 * lock back: one connection, one statement each way, on a table of its own that "init"
 * makes. What `dblock run` is compared with (tests/bench/start): no line, no heartbeat,
 * no token, no signals.
 *
 * The database is named by DBLOCK_URL, as for dblock. */
#ifndef DBLOCK_BENCH_MINIMAL_H
#define DBLOCK_BENCH_MINIMAL_H

#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>

extern char **environ;

static inline int minimal_fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "minimal: %s: %s\n", what, why);
    return 1;
}

/* The exit status of COMMAND. */
static inline int minimal_run(void)
{
    char name[] = "true";
    char *words[] = { name, NULL };
    int status = -1;
    pid_t pid;

    if (posix_spawnp(&pid, name, NULL, NULL, words, environ) != 0 ||
        waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return minimal_fail(name, "cannot be run");
    return WEXITSTATUS(status);
}

#endif
