/* SPDX-License-Identifier: MIT */
/* sqlite_fork.h - what a fork does to connections.
 *
 * Side file. A lock of the kernel belongs to the open file description, which a
 * forked child shares: it would keep the locks of a dead parent alive. So the
 * child closes the descriptors, at once, in a handler of pthread_atfork(). (A raw
 * clone() system call does not run it: then a lock ends with the last process that
 * has the descriptor. exec() closes it by itself.)
 *
 * Database. SQLite's locks are per process, so the child has none; but SQLite's
 * notes in the child's memory say that it has. A handle that is used or closed
 * there acts on locks that do not exist, and may find a mutex locked for ever by a
 * thread that was not copied. Even a new handle of the same file shares those notes
 * by its inode, and would not lock where they say that it is locked already. So in
 * a child inherited handles are left alone (leaked: the memory is the price, the
 * descriptors hold no lock and close with exec()), and the file is not opened again. */
#ifndef DBLK_SQLITE_FORK_H
#define DBLK_SQLITE_FORK_H

#include "sqlite_connection.h"

void sqlite_fork_register(struct dblock_connection *connection);
void sqlite_fork_unregister(struct dblock_connection *connection);
/* Between the two no fork happens: a descriptor is either not open yet, or known to the handlers. */
void sqlite_fork_hold(void);
void sqlite_fork_let_go(void);
/* 1: a handle of that file came with the fork, so SQLite must not open it in this process. */
int sqlite_fork_has_inherited(const struct stat *identity);

#endif
