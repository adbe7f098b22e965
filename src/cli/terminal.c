/* SPDX-License-Identifier: MIT */
/* terminal.c - the foreground group of the controlling terminal. */
#include "terminal.h"

#include "signals.h"

#include <fcntl.h>
#include <unistd.h>

void terminal_open(struct terminal *terminal)
{
    terminal->is_lent = false;
    terminal->descriptor = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
}

bool terminal_is_ours(const struct terminal *terminal)
{
    return terminal->descriptor >= 0 && tcgetpgrp(terminal->descriptor) == getpgrp();
}

bool terminal_is_with(const struct terminal *terminal, pid_t group)
{
    return terminal->descriptor >= 0 && tcgetpgrp(terminal->descriptor) == group;
}

bool terminal_is_to_be_lent(const struct terminal *terminal)
{
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && terminal_is_ours(terminal);
}

/* A background process that does this is stopped with SIGTTOU unless it is blocked. */
static void give(const struct terminal *terminal, pid_t group)
{
    sigset_t old_mask;

    signals_block_all(&old_mask);
    (void)tcsetpgrp(terminal->descriptor, group);
    signals_restore_mask(&old_mask);
}

void terminal_lend(struct terminal *terminal, pid_t group)
{
    give(terminal, group);
    terminal->is_lent = true;
}

void terminal_take_back(struct terminal *terminal, pid_t group)
{
    pid_t foreground;

    if (!terminal->is_lent)
        return;
    terminal->is_lent = false;
    foreground = tcgetpgrp(terminal->descriptor);
    /* Somebody else's by now: a shell that has put us into the background. */
    if (foreground == group || foreground <= 0)
        give(terminal, getpgrp());
}
