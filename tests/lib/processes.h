/* SPDX-License-Identifier: MIT */
/* processes.h - child processes of a test: one that tells when it is ready, and
 * can be killed without warning. */
#ifndef DBLOCK_TEST_PROCESSES_H
#define DBLOCK_TEST_PROCESSES_H

#include <stdint.h>
#include <sys/types.h>

struct test_process {
    pid_t pid;    /* 0: none, or waited for */
    int ready_fd; /* the parent's end */
};

/* Runs in the child; its result is the exit status. process_ready() may be called with ready_fd,
 * any number of times. */
typedef int (*test_process_fn)(void *context, int ready_fd);

/* 0, or an errno. */
int process_start(struct test_process *process, test_process_fn fn, void *context);

/* In the child: tells the parent one byte. */
void process_ready(int ready_fd, unsigned char byte);
/* In the child: stays until it is killed. */
void process_stay(void);

/* In the parent: the byte, or -1 if none came in time. */
int process_await(struct test_process *process, uint64_t within_ms);
/* SIGKILL, and waited for. */
void process_kill(struct test_process *process);
/* The exit status, 128 + the signal, or -1 if it had to be killed because the time was over. */
int process_wait(struct test_process *process, uint64_t within_ms);

#endif
