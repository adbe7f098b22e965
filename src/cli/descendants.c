/* SPDX-License-Identifier: MIT */
/* descendants.c - the kernel's list of our children. A kernel without that list
 * (CONFIG_PROC_CHILDREN) leaves the process group as the only means. */
#include "descendants.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

/* A shell that became dblock by `exec` leaves us children that are no affair of
 * ours. They cannot be told apart later; then only the group is looked after. */
static bool are_all_of_command;

static FILE *children; /* NULL: there is no list */

/* Sends `number` (0 none) to each; returns how many there are. */
static unsigned for_each(pid_t except, int number)
{
    unsigned n_found = 0;
    long pid;

    if (children == NULL)
        return 0;
    rewind(children); /* the kernel makes the list anew */
    while (fscanf(children, "%ld", &pid) == 1) {
        if (pid <= 1 || (pid_t)pid == except)
            continue;
        n_found++;
        if (number != 0)
            (void)kill((pid_t)pid, number);
    }
    return n_found;
}

int descendants_prepare(void)
{
    char path[64];

    /* Orphans are given to the first thread, which is the one that forks, too. */
    (void)snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
    children = fopen(path, "re");
    return children != NULL || (errno != EMFILE && errno != ENFILE && errno != ENOMEM) ? 0 : -1;
}

void descendants_adopt(void)
{
    are_all_of_command = for_each(0, 0) == 0;
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1UL, 0L, 0L, 0L);
}

bool descendants_exist(pid_t except)
{
    return are_all_of_command && for_each(except, 0) > 0;
}

void descendants_kill(pid_t except)
{
    if (are_all_of_command)
        (void)for_each(except, SIGKILL);
}
