/* SPDX-License-Identifier: MIT */
/* dead_route.c - see dead_route.h. A route of the machine's own table that leads nowhere stands
 * before the one that leads to the loopback device. */
#include "dead_route.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int is_dead;

const char *dead_route_address(void)
{
    static char address[32];
    unsigned int number = (unsigned int)getpid();

    (void)snprintf(
        address, sizeof address, "127.77.%u.%u", number / 250 % 250 + 1, number % 250 + 1);
    return address;
}

static int change(const char *verb)
{
    char words[7][32] = { "ip", "route", "", "blackhole", "", "table", "local" };
    char *const arguments[] = { words[0], words[1], words[2], words[3], words[4], words[5], words[6],
        NULL };
    pid_t child;
    int status = 1;

    (void)snprintf(words[2], sizeof words[2], "%s", verb);
    (void)snprintf(words[4], sizeof words[4], "%s", dead_route_address());
    if (posix_spawnp(&child, "ip", NULL, NULL, arguments, environ) != 0)
        return -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

int dead_route_begin(void)
{
    if (geteuid() != 0 || change("add") != 0)
        return -1;
    if (!is_dead)
        (void)atexit(dead_route_end);
    is_dead = 1;
    return 0;
}

void dead_route_end(void)
{
    if (is_dead)
        (void)change("del");
    is_dead = 0;
}
