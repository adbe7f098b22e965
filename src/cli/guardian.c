/* SPDX-License-Identifier: MIT */
/* guardian.c - see guardian.h. It waits for the end of a pipe whose other end only
 * dblock holds: descriptors are closed for the dead, whatever killed them.
 *
 * The process is forked from one with threads, so it does system calls only. */
#define _GNU_SOURCE /* pipe2 */
#include "guardian.h"

#include "descriptors.h"
#include "signals.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

_Noreturn static void guard(int descriptor, pid_t group)
{
    char byte;
    ssize_t n_read;

    /* Away from the terminal's signals and from those to dblock's group; what is
     * blocked stays blocked. */
    (void)setsid();
    (void)prctl(PR_SET_NAME, "dblock-guardian", 0L, 0L, 0L);
    /* What it inherits would outlive dblock in it: a connection whose end frees the
     * lock, a pipe for whose end somebody waits. */
    descriptors_close(0, descriptor, -1);
    do
        n_read = read(descriptor, &byte, 1);
    while (n_read < 0 && errno == EINTR);
    (void)kill(-group, SIGKILL);
    _exit(0);
}

int guardian_prepare(struct guardian *guardian)
{
    *guardian = GUARDIAN_NONE;
    return pipe2(guardian->ends, O_CLOEXEC);
}

bool guardian_start(struct guardian *guardian, pid_t group)
{
    sigset_t old_mask;
    int cause;

    signals_block_all(&old_mask);
    guardian->pid = fork();
    if (guardian->pid == 0)
        guard(guardian->ends[0], group);
    cause = errno;
    signals_restore_mask(&old_mask);
    errno = cause;
    return guardian->pid > 0;
}

void guardian_stop(struct guardian *guardian)
{
    if (guardian->pid > 0) {
        (void)kill(guardian->pid, SIGKILL);
        while (waitpid(guardian->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    if (guardian->ends[0] >= 0) {
        (void)close(guardian->ends[0]);
        (void)close(guardian->ends[1]);
    }
    *guardian = GUARDIAN_NONE;
}
