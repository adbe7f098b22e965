/* SPDX-License-Identifier: MIT */
/* signal_name.c - the table of signals. POSIX has no function for the short
 * names, and those of the C libraries are too new to rely on. */
#include "signal_name.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

static const struct {
    const char *name;
    int number;
} table[] = {
    {"HUP", SIGHUP},
    {"INT", SIGINT},
    {"QUIT", SIGQUIT},
    {"ILL", SIGILL},
    {"TRAP", SIGTRAP},
    {"ABRT", SIGABRT},
    {"BUS", SIGBUS},
    {"FPE", SIGFPE},
    {"KILL", SIGKILL},
    {"USR1", SIGUSR1},
    {"SEGV", SIGSEGV},
    {"USR2", SIGUSR2},
    {"PIPE", SIGPIPE},
    {"ALRM", SIGALRM},
    {"TERM", SIGTERM},
    {"CHLD", SIGCHLD},
    {"CONT", SIGCONT},
    {"STOP", SIGSTOP},
    {"TSTP", SIGTSTP},
    {"TTIN", SIGTTIN},
    {"TTOU", SIGTTOU},
    {"URG", SIGURG},
    {"XCPU", SIGXCPU},
    {"XFSZ", SIGXFSZ},
    {"VTALRM", SIGVTALRM},
    {"PROF", SIGPROF},
    {"SYS", SIGSYS},
};

int signal_from_name(const char *name)
{
    char *end;
    long number;
    size_t i;

    if (*name >= '1' && *name <= '9') {
        number = strtol(name, &end, 10);
        return *end == '\0' && number <= 64 ? (int)number : 0;
    }
    if (strncasecmp(name, "SIG", 3) == 0)
        name += 3;
    for (i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcasecmp(name, table[i].name) == 0)
            return table[i].number;
    return 0;
}

const char *signal_text(int number, char buffer[SIGNAL_TEXT_SIZE])
{
    size_t i;

    (void)snprintf(buffer, SIGNAL_TEXT_SIZE, "signal %d", number);
    for (i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].number == number)
            (void)snprintf(buffer, SIGNAL_TEXT_SIZE, "SIG%s", table[i].name);
    return buffer;
}
