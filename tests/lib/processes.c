/* SPDX-License-Identifier: MIT */
/* processes.c - see processes.h. */
#include "child_exit.h"
#include "processes.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test_wait.h"

int process_start(struct test_process *process, test_process_fn fn, void *context)
{
    static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS };
    struct sigaction usual = { .sa_handler = SIG_DFL };
    pid_t parent = getpid();
    int ends[2];
    size_t i;

    process->pid = 0;
    if (pipe(ends) != 0)
        return errno;
    (void)fflush(NULL); /* what is buffered shall come out once */
    process->pid = fork();
    if (process->pid < 0) {
        int number = errno;

        process->pid = 0;
        (void)close(ends[0]);
        (void)close(ends[1]);
        return number;
    }
    if (process->pid == 0) {
        /* cmocka's handlers would have a child that crashes go on with the parent's tests */
        for (i = 0; i < sizeof crashes / sizeof crashes[0]; ++i)
            (void)sigaction(crashes[i], &usual, NULL);
        /* a test that dies leaves nobody behind who holds a lock */
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            child_exit(1);
        (void)close(ends[0]);
        child_exit(fn(context, ends[1]));
    }
    (void)close(ends[1]);
    process->ready_fd = ends[0];
    return 0;
}

void process_ready(int ready_fd, unsigned char byte)
{
    ssize_t n_bytes;

    do
        n_bytes = write(ready_fd, &byte, 1);
    while (n_bytes < 0 && errno == EINTR);
}

void process_stay(void)
{
    for (;;)
        (void)pause();
}

int process_await(struct test_process *process, uint64_t within_ms)
{
    unsigned char byte;

    if (!test_readable(process->ready_fd, within_ms))
        return -1;
    return read(process->ready_fd, &byte, 1) == 1 ? byte : -1;
}

static int is_over(void *context)
{
    siginfo_t info = { 0 };

    if (waitid(P_PID, (id_t) * (pid_t *)context, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
        return 1;
    return info.si_pid != 0;
}

int process_wait(struct test_process *process, uint64_t within_ms)
{
    int is_late;
    int status = 0;

    if (process->pid == 0)
        return -1;
    is_late = !test_until(is_over, &process->pid, within_ms);
    if (is_late)
        (void)kill(process->pid, SIGKILL);
    while (waitpid(process->pid, &status, 0) < 0 && errno == EINTR)
        ;
    process->pid = 0;
    (void)close(process->ready_fd);
    if (is_late)
        return -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void process_kill(struct test_process *process)
{
    if (process->pid == 0)
        return;
    (void)kill(process->pid, SIGKILL);
    (void)process_wait(process, 10000);
}
