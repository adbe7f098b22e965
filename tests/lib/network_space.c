/* SPDX-License-Identifier: MIT */
/* network_space.c - see network_space.h. What is dropped goes to a route that leads nowhere, as not
 * every kernel has a packet filter. */
#define _GNU_SOURCE /* unshare() */
#include "network_space.h"

#include <errno.h>
#include <sched.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dblock/sys/driver.h>

extern char **environ;

enum { WORDS_MAX = 20, COMMAND_MAX = 200 };

static pid_t joined;
static int has_cut;
static enum network_cut last_cut;

/* A network of four addresses for each: the second of them is ours, the third the process's. */
static const char *address(unsigned int which)
{
    static char texts[3][32];
    unsigned int number = (unsigned int)joined % 16384 * 4 + which;

    (void)snprintf(texts[which], sizeof texts[which], "10.213.%u.%u", number / 256, number % 256);
    return texts[which];
}

const char *network_space_address(void)
{
    return address(1);
}

static int run(const char *format, ...) DBLOCK_PRINTF_(1, 2);

/* The words are parted by blanks. 0: done. */
static int run(const char *format, ...)
{
    char command[COMMAND_MAX];
    char *words[WORDS_MAX + 1] = { NULL };
    char *rest = command;
    pid_t child;
    int status = 1;
    va_list arguments;
    size_t n;

    va_start(arguments, format);
    (void)vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    for (n = 0; n < WORDS_MAX && rest != NULL; ++n) {
        words[n] = rest;
        rest = strchr(rest, ' ');
        if (rest != NULL)
            *rest++ = 0;
    }
    if (posix_spawnp(&child, words[0], NULL, NULL, words, environ) != 0)
        return -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int network_space_enter(void)
{
    return unshare(CLONE_NEWNET);
}

/* In a process that is over at once, and its network with it. */
static int try_in_a_child(void)
{
    pid_t child = fork();
    int status = -1;

    if (child == 0) {
        if (network_space_enter() != 0)
            _exit(1);
        /* it says why not, if not */
        _exit(run("ip link add probe0 type veth peer name probe1") == 0 ? 0 : 2);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int network_space_probe(const char **ret_why_not)
{
    if (geteuid() != 0 || run("ip -V") != 0 || run("nsenter -V") != 0) {
        *ret_why_not = "needs root, ip(8) and nsenter(1)";
        return -2;
    }
    switch (try_in_a_child()) {
    case 0:
        return 0;
    case 1:
        *ret_why_not = "no network namespace may be made here";
        return -1;
    default:
        *ret_why_not = "no veth device may be made here";
        return -1;
    }
}

int network_space_join(pid_t process)
{
    const int pid = (int)process;

    joined = process;
    if (run("ip link add db%d type veth peer name peer netns %d", pid, pid) != 0 ||
        run("ip addr add %s/30 dev db%d", address(1), pid) != 0 ||
        run("ip link set db%d up", pid) != 0 ||
        run("nsenter -t %d -n ip addr add %s/30 dev peer", pid, address(2)) != 0 ||
        run("nsenter -t %d -n ip link set peer up", pid) != 0)
        return -1;
    return 0;
}

/* With the cable out, what would go to the process goes nowhere else. */
static void change(enum network_cut cut, int is_cut)
{
    if (cut == NETWORK_LOSES_REQUESTS)
        (void)run("nsenter -t %d -n ip route %s blackhole %s/32", (int)joined,
            is_cut ? "add" : "del", address(1));
    else
        (void)run("ip route %s blackhole %s/32", is_cut ? "add" : "del", address(2));
    if (cut == NETWORK_DOWN)
        (void)run("ip link set db%d %s", (int)joined, is_cut ? "down" : "up");
}

static void mend_at_exit(void)
{
    if (has_cut)
        network_space_mend(last_cut);
}

void network_space_cut(enum network_cut cut)
{
    static int is_registered;

    if (!is_registered)
        is_registered = atexit(mend_at_exit) == 0;
    has_cut = 1;
    last_cut = cut;
    change(cut, 1);
}

void network_space_mend(enum network_cut cut)
{
    has_cut = 0;
    change(cut, 0);
}
