/* SPDX-License-Identifier: MIT */
/* sqlite_fork.c - the list of this process's connections, and the handlers around
 * fork(); see sqlite_fork.h. */
#include "sqlite_fork.h"

#include "sqlite_side.h"

#include <pthread.h>

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t handlers_once = PTHREAD_ONCE_INIT;
static struct dblock_connection *connections; /* opened by this process */
static struct dblock_connection *inherited;   /* opened by a process that it was forked from */

static void lock_list(void)
{
    (void)pthread_mutex_lock(&list_mutex);
}

static void unlock_list(void)
{
    (void)pthread_mutex_unlock(&list_mutex);
}

/* Runs in the child, where only this thread is: nothing but system calls and plain writes. */
static void disown_connections(void)
{
    while (connections != NULL) {
        struct dblock_connection *connection = connections;

        connections = connection->next;
        if (connection->side != NULL)
            sqlite_side_abandon(connection->side);
        connection->is_broken = 1;
        connection->previous = NULL;
        connection->next = inherited;
        inherited = connection;
    }
    (void)pthread_mutex_unlock(&list_mutex);
}

static void install_handlers(void)
{
    /* without memory for the handlers there is none for a connection either */
    (void)pthread_atfork(lock_list, unlock_list, disown_connections);
}

void sqlite_fork_register(struct dblock_connection *connection)
{
    (void)pthread_once(&handlers_once, install_handlers);
    lock_list();
    connection->previous = NULL;
    connection->next = connections;
    if (connections != NULL)
        connections->previous = connection;
    connections = connection;
    unlock_list();
}

void sqlite_fork_unregister(struct dblock_connection *connection)
{
    lock_list();
    if (connection->previous != NULL)
        connection->previous->next = connection->next;
    else
        connections = connection->next;
    if (connection->next != NULL)
        connection->next->previous = connection->previous;
    unlock_list();
}

void sqlite_fork_hold(void)
{
    lock_list();
}

void sqlite_fork_let_go(void)
{
    unlock_list();
}

int sqlite_fork_has_inherited(const struct stat *identity)
{
    const struct dblock_connection *connection;
    int has_inherited = 0;

    lock_list();
    for (connection = inherited; connection != NULL; connection = connection->next)
        if ((connection->handle != NULL || connection->is_lent) &&
            connection->identity.st_dev == identity->st_dev &&
            connection->identity.st_ino == identity->st_ino)
            has_inherited = 1;
    unlock_list();
    return has_inherited;
}
