/* SPDX-License-Identifier: MIT */
/* signals.c - handlers that note a signal and wake whoever waits. Everything is
 * static: a handler has no other way to reach it. */
#include "signals.h"

#include "exit_code.h"
#include "message.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum note { NOTE_NONE, NOTE_SENT, NOTE_TYPED };

static struct {
    int number;
    bool is_ending; /* raises the canceller */
    bool is_caught;
    struct sigaction original;
    volatile sig_atomic_t note;
} table[] = {
    {.number = SIGTERM, .is_ending = true},
    {.number = SIGINT, .is_ending = true},
    {.number = SIGHUP, .is_ending = true},
    {.number = SIGQUIT, .is_ending = true},
    {.number = SIGUSR1, .is_ending = true},
    {.number = SIGUSR2, .is_ending = true},
    {.number = SIGCHLD},
    {.number = SIGCONT},
    {.number = SIGTSTP},
};

enum { N_SIGNALS = sizeof table / sizeof table[0] };

static struct sigaction original_pipe;
static struct sigaction original_limit;
static dblock_canceller *canceller;
static int wake_fd = -1;
static volatile sig_atomic_t was_continued;

static void handle(int number, siginfo_t *details, void *context)
{
    const uint64_t one = 1;
    int saved_errno = errno;
    size_t i;

    (void)context;
    if (number == SIGCONT)
        was_continued = 1;
    for (i = 0; i < N_SIGNALS; i++) {
        if (table[i].number != number)
            continue;
        /* The kernel itself sends what is typed; kill() leaves SI_USER. */
        table[i].note = details->si_code == SI_KERNEL ? NOTE_TYPED : NOTE_SENT;
        if (table[i].is_ending)
            dblock_cancel(canceller);
    }
    /* It can only fail when it is full, and then it wakes as well. */
    if (write(wake_fd, &one, sizeof one) < 0)
        errno = saved_errno;
    errno = saved_errno;
}

static void catch_signal(size_t i)
{
    struct sigaction action;

    memset(&action, 0, sizeof action);
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(table[i].number, &action, &table[i].original);
    table[i].is_caught = true;
}

static void leave_signal(size_t i)
{
    if (!table[i].is_caught)
        return;
    (void)sigaction(table[i].number, &table[i].original, NULL);
    table[i].is_caught = false;
}

/* What a handler touches. */
static int make_targets(void)
{
    struct dblock_error error;
    dblock_status status;

    wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_fd < 0) {
        message_failure("cannot make a descriptor: %s", strerror(errno));
        return EXIT_CODE_MACHINE;
    }
    status = dblock_canceller_new(&canceller, &error);
    if (status != DBLOCK_OK) {
        message_error(&error, NULL);
        return exit_code_of(status);
    }
    return -1;
}

static void ignore_signal(int number, struct sigaction *ret_original)
{
    struct sigaction ignore;

    memset(&ignore, 0, sizeof ignore);
    ignore.sa_handler = SIG_IGN;
    (void)sigaction(number, &ignore, ret_original);
}

void signals_ignore_limit(void)
{
    ignore_signal(SIGXFSZ, &original_limit);
}

int signals_begin(void)
{
    struct sigaction current;
    int result = make_targets();
    size_t i;

    if (result != -1)
        return result;
    for (i = 0; i < N_SIGNALS; i++)
        if (table[i].is_ending && sigaction(table[i].number, NULL, &current) == 0 &&
            current.sa_handler != SIG_IGN)
            catch_signal(i);
    ignore_signal(SIGPIPE, &original_pipe);
    return -1;
}

int signals_renew(void)
{
    size_t i;

    for (i = 0; i < N_SIGNALS; i++)
        table[i].note = NOTE_NONE;
    (void)close(wake_fd);
    dblock_canceller_free(canceller);
    canceller = NULL;
    return make_targets();
}

dblock_canceller *signals_canceller(void)
{
    return canceller;
}

void signals_watch_child(bool is_job)
{
    struct sigaction current;
    size_t i;

    for (i = 0; i < N_SIGNALS; i++) {
        if (table[i].is_ending || table[i].is_caught)
            continue;
        if (table[i].number == SIGTSTP &&
            (!is_job || sigaction(SIGTSTP, NULL, &current) != 0 || current.sa_handler == SIG_IGN))
            continue;
        catch_signal(i);
    }
}

int signals_fd(void)
{
    return wake_fd;
}

bool signals_next(struct signal_notice *ret_notice)
{
    uint64_t count;
    size_t i;

    for (i = 0; i < N_SIGNALS; i++)
        if (table[i].note != NOTE_NONE) {
            ret_notice->number = table[i].number;
            ret_notice->is_from_terminal = table[i].note == NOTE_TYPED;
            table[i].note = NOTE_NONE;
            return true;
        }
    /* Emptied first and looked through once more: what comes in between leaves it
     * readable. */
    if (read(wake_fd, &count, sizeof count) == (ssize_t)sizeof count)
        return signals_next(ret_notice);
    return false;
}

bool signals_stop_self(void)
{
    size_t i;

    for (i = 0; i < N_SIGNALS && table[i].number != SIGTSTP; i++)
        continue;
    was_continued = 0;
    leave_signal(i);
    (void)kill(0, SIGTSTP);
    catch_signal(i);
    return was_continued != 0;
}

void signals_block_all(sigset_t *ret_old_mask)
{
    sigset_t all;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, ret_old_mask);
}

void signals_restore_mask(const sigset_t *old_mask)
{
    (void)pthread_sigmask(SIG_SETMASK, old_mask, NULL);
}

void signals_reset(void)
{
    size_t i;

    for (i = 0; i < N_SIGNALS; i++)
        if (table[i].is_caught)
            (void)sigaction(table[i].number, &table[i].original, NULL);
    (void)sigaction(SIGPIPE, &original_pipe, NULL);
    (void)sigaction(SIGXFSZ, &original_limit, NULL);
}
