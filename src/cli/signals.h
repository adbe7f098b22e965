/* SPDX-License-Identifier: MIT */
/* signals.h - signals to dblock, turned into something that poll() sees, and into
 * the end of a wait for a lock. What is done about them is their readers' affair. */
#ifndef CLI_SIGNALS_H
#define CLI_SIGNALS_H

#include <dblock/dblock.h>

#include <signal.h>
#include <stdbool.h>

struct signal_notice {
    int number;
    bool is_from_terminal; /* typed: every process of the foreground group got it */
};

/* First of all: a file that may not grow (ulimit -f) is an error, with a message, and no end. */
void signals_ignore_limit(void);

/* Catches TERM, INT, HUP, QUIT, USR1 and USR2, except those that dblock was
 * started with ignored (nohup), and ignores PIPE. Each raises the canceller.
 * Returns -1, or the exit status after a message. */
int signals_begin(void);

/* In a forked child that goes on with all this, with all signals blocked: a canceller and a
 * descriptor of its own, as those that it inherited are its parent's too. Returns as
 * signals_begin(). */
int signals_renew(void);

/* For the acquires; raised by the first signal, for good. */
dblock_canceller *signals_canceller(void);

/* Also CHLD and CONT, and with `is_job` TSTP: from when a child is there to be
 * looked after. These do not raise the canceller. */
void signals_watch_child(bool is_job);

/* Readable when signals_next() may have something. */
int signals_fd(void);

/* The next signal that came; false if there is none. */
bool signals_next(struct signal_notice *ret_notice);

/* Stops this process group as the terminal would, until somebody continues it.
 * False if nobody could: the kernel does not stop orphans. */
bool signals_stop_self(void);

/* Around fork() and vfork(): no signal may come while the child still has our handlers. */
void signals_block_all(sigset_t *ret_old_mask);
void signals_restore_mask(const sigset_t *old_mask);

/* In the child: dispositions as dblock found them. Async-signal-safe, and changes no
 * memory. */
void signals_reset(void);

#endif
