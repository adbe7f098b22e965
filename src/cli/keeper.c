/* SPDX-License-Identifier: MIT */
/* keeper.c - the process behind `acquire -P`. It is forked before there is any
 * client, as no client survives a fork, and takes the lock itself. */
#define _GNU_SOURCE /* pipe2, syscall */
#include "keeper.h"

#include "descriptors.h"
#include "exit_code.h"
#include "message.h"
#include "signals.h"
#include "url.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* How often to look for PID where the kernel has no descriptors for processes. */
#define LOOK_MS 1000

/* -1 if this kernel has none. */
static int open_process(pid_t pid)
{
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, pid, 0U);
#else
    (void)pid;
    errno = ENOSYS;
    return -1;
#endif
}

static bool write_all(int descriptor, const void *bytes, size_t size)
{
    const char *next = bytes;

    while (size > 0) {
        ssize_t written = write(descriptor, next, size);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        next += written;
        size -= (size_t)written;
    }
    return true;
}

/* Until PID has ended, the lock is lost or released by its grant, or somebody ends
 * the keeper. */
static void keep(dblock_client *client, int events_fd, pid_t pid, int pid_fd)
{
    struct dblock_event event = DBLOCK_EVENT_INIT;
    struct signal_notice notice;
    struct pollfd sources[3] = {
        {.fd = pid_fd, .events = POLLIN},
        {.fd = signals_fd(), .events = POLLIN},
        {.fd = events_fd, .events = POLLIN},
    };

    for (;;) {
        if (poll(sources, 3, pid_fd < 0 ? LOOK_MS : -1) < 0 && errno != EINTR)
            return;
        if (pid_fd < 0 ? kill(pid, 0) != 0 && errno == ESRCH : sources[0].revents != 0)
            return;
        if (signals_next(&notice))
            return;
        while (dblock_client_next_event(client, &event) == DBLOCK_OK)
            if (event.kind == DBLOCK_EVENT_LOST)
                return;
    }
}

/* A daemon keeps neither the terminal nor the folder nor the pipe of $(...). */
static bool detach(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)setsid();
    return null >= 0 && chdir("/") == 0 && dup2(null, STDIN_FILENO) >= 0 &&
           dup2(null, STDOUT_FILENO) >= 0;
}

/* Whatever keeping a lock needs, once it is there and before anybody is told so. Returns -1, or
 * the exit status after a message. */
static int prepare(dblock_client *client, int *ret_events_fd)
{
    struct dblock_error error;
    dblock_status status = dblock_client_fd(client, ret_events_fd, &error);

    if (status != DBLOCK_OK) {
        message_error(&error, "not taken");
        return exit_code_of(status);
    }
    if (!detach()) {
        message_failure("cannot go into the background: %s", strerror(errno));
        return EXIT_CODE_MACHINE;
    }
    return -1;
}

_Noreturn static void be_keeper(
    const struct arguments *arguments, int pid_fd, int report_fd, const sigset_t *mask)
{
    struct acquisition acquisition;
    struct database database;
    dblock_lock *lock = NULL;
    int events_fd;

    descriptors_close(STDERR_FILENO + 1, pid_fd, report_fd);
    memset(&database, 0, sizeof database);
    memset(&acquisition, 0, sizeof acquisition);
    acquisition.result = signals_begin();
    signals_restore_mask(mask);
    if (acquisition.result == -1)
        acquisition_make(arguments, true, &database, &lock, &acquisition);
    if (lock != NULL)
        acquisition.result = prepare(database.client, &events_fd);
    /* Nobody reads it if the other process has been killed: then nobody knows the
     * grant, and the lock is given back below. */
    if (write_all(report_fd, &acquisition, sizeof acquisition) && acquisition.result == -1 &&
        lock != NULL) {
        (void)close(report_fd);
        (void)dup2(STDOUT_FILENO, STDERR_FILENO);
        keep(database.client, events_fd, (pid_t)arguments->parent_pid, pid_fd);
    }
    if (lock != NULL)
        (void)dblock_release(lock, NULL); /* a failure leaves it to the ttl */
    dblock_lock_free(lock);
    database_close(&database);
    _exit(EXIT_CODE_DONE);
}

/* Reads the report, and hands on the signals that come meanwhile: the keeper is the
 * one that waits. *ret_signal is the last of them, or 0. */
static bool read_report(
    int descriptor, pid_t keeper, struct acquisition *ret_acquisition, int *ret_signal)
{
    struct pollfd sources[2] = {
        {.fd = descriptor, .events = POLLIN},
        {.fd = signals_fd(), .events = POLLIN},
    };
    struct signal_notice notice;
    size_t n_read = 0;

    *ret_signal = 0;
    while (n_read < sizeof *ret_acquisition) {
        if (poll(sources, 2, -1) < 0 && errno != EINTR)
            return false;
        while (signals_next(&notice)) {
            *ret_signal = notice.number;
            (void)kill(keeper, notice.number);
        }
        if (sources[0].revents != 0) {
            ssize_t answer = read(
                descriptor, (char *)ret_acquisition + n_read, sizeof *ret_acquisition - n_read);

            if (answer < 0 && errno == EINTR)
                continue;
            if (answer <= 0)
                return false;
            n_read += (size_t)answer;
        }
    }
    return true;
}

/* What the keeper reported, as far as it still holds. */
static void receive(int descriptor, pid_t keeper, struct acquisition *ret_acquisition)
{
    int number;

    if (!read_report(descriptor, keeper, ret_acquisition, &number)) {
        message_failure("the process that was to keep the lock has died");
        ret_acquisition->result = EXIT_CODE_UNCERTAIN;
    } else if (number != 0 && ret_acquisition->status == DBLOCK_OK) {
        /* It came too late for the wait, and in time for the lock: that has been given
         * back. */
        ret_acquisition->status = DBLOCK_CANCELLED;
        ret_acquisition->signal = number;
    }
}

void keeper_start(
    const struct arguments *arguments, struct acquisition *ret_acquisition, pid_t *ret_keeper)
{
    pid_t pid = (pid_t)arguments->parent_pid;
    int pid_fd = open_process(pid);
    int cause = errno;
    sigset_t mask;
    int ends[2];

    memset(ret_acquisition, 0, sizeof *ret_acquisition);
    *ret_keeper = -1;
    if (pid_fd < 0 && kill(pid, 0) != 0 && errno == ESRCH) {
        ret_acquisition->result =
            message_usage(arguments->command->name, "-P: there is no process %ld", (long)pid);
        return;
    }
    /* A kernel without such descriptors is one thing; another is that there is none to be had. */
    if (pid_fd < 0 && (cause == EMFILE || cause == ENFILE || cause == ENOMEM)) {
        message_failure("cannot make a descriptor: %s", strerror(cause));
        ret_acquisition->result = EXIT_CODE_MACHINE;
        return;
    }
    if (pipe2(ends, O_CLOEXEC) != 0) {
        message_failure("cannot make a pipe: %s", strerror(errno));
        ret_acquisition->result = EXIT_CODE_MACHINE;
        return;
    }
    /* Until both have their handlers: a signal in between would end only one. */
    signals_block_all(&mask);
    *ret_keeper = fork();
    if (*ret_keeper == 0) {
        (void)close(ends[0]);
        be_keeper(arguments, pid_fd, ends[1], &mask);
    }
    (void)close(ends[1]);
    if (arguments->database != NULL)
        url_hide_password(arguments->database); /* the keeper has read it in its own memory */
    ret_acquisition->result = EXIT_CODE_MACHINE;
    if (*ret_keeper < 0)
        message_failure("cannot start a process: %s", strerror(errno));
    else
        ret_acquisition->result = signals_begin();
    signals_restore_mask(&mask);
    if (ret_acquisition->result == -1)
        receive(ends[0], *ret_keeper, ret_acquisition);
    (void)close(ends[0]);
}
