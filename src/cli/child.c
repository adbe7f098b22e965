/* SPDX-License-Identifier: MIT */
/* child.c - finding and starting COMMAND.
 *
 * By the time it is started the library has threads, so the child does nothing but
 * async-signal-safe calls until it is another program; whatever needs memory is
 * prepared before. */
#define _GNU_SOURCE /* vfork */
#include "child.h"

#include "exit_code.h"
#include "message.h"
#include "signals.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHELL "/bin/sh"

/* 0, or an errno. */
static int check_program(const char *path)
{
    struct stat status;

    if (stat(path, &status) != 0)
        return errno;
    if (S_ISDIR(status.st_mode))
        return EISDIR;
    return access(path, X_OK) == 0 ? 0 : errno;
}

/* Along $PATH, as execvp() does it. 0, or an errno; what was found and may not be
 * run is remembered, as it says more than "not found". */
static int find_in_path(const char *name, char *buffer, size_t size)
{
    const char *list = getenv("PATH");
    int result = ENOENT;

    if (list == NULL)
        list = "/bin:/usr/bin";
    for (;;) {
        size_t length = strcspn(list, ":");
        /* An empty entry is the current folder. */
        int written =
            snprintf(buffer, size, "%.*s%s%s", (int)length, list, length > 0 ? "/" : "./", name);

        if (written > 0 && (size_t)written < size) {
            int answer = check_program(buffer);

            if (answer == 0)
                return 0;
            if (answer == EACCES || answer == EISDIR)
                result = EACCES;
        }
        if (list[length] == '\0')
            return result;
        list += length + 1;
    }
}

/* [shell, path, argument...] from [name, argument...] */
static char **words_for_shell(char *path, char **words)
{
    static char shell[] = SHELL;
    size_t n_words = 0;
    char **result;

    while (words[n_words] != NULL)
        n_words++;
    result = calloc(n_words + 2, sizeof *result);
    if (result == NULL)
        return NULL;
    result[0] = shell;
    result[1] = path;
    if (n_words > 0)
        memcpy(result + 2, words + 1, n_words * sizeof *result);
    return result;
}

int child_find(char **words, char *shell_text, struct child_plan *ret_plan)
{
    static char shell[] = SHELL;
    static char shell_name[] = "sh";
    static char shell_option[] = "-c";
    char found[PATH_MAX];
    const char *path = words != NULL ? words[0] : shell;
    int answer;

    memset(ret_plan, 0, sizeof *ret_plan);
    if (words == NULL) {
        ret_plan->shell_words[0] = shell_name;
        ret_plan->shell_words[1] = shell_option;
        ret_plan->shell_words[2] = shell_text;
        words = ret_plan->shell_words;
    }
    if (path[0] == '\0') {
        answer = ENOENT;
    } else if (strchr(path, '/') != NULL) {
        answer = check_program(path);
    } else {
        answer = find_in_path(path, found, sizeof found);
        if (answer == 0)
            path = found;
    }
    if (answer != 0) {
        message_failure("cannot run %s: %s", path, strerror(answer));
        return answer == ENOENT || answer == ENOTDIR ? EXIT_CODE_NOT_FOUND : EXIT_CODE_CANNOT_RUN;
    }
    ret_plan->words = words;
    ret_plan->path = strdup(path);
    if (ret_plan->path != NULL)
        ret_plan->words_for_shell = words_for_shell(ret_plan->path, words);
    if (ret_plan->words_for_shell == NULL) {
        message_failure("out of memory");
        return EXIT_CODE_MACHINE;
    }
    return -1;
}

void child_plan_clear(struct child_plan *plan)
{
    free(plan->path);
    free(plan->words_for_shell);
    memset(plan, 0, sizeof *plan);
}

/* The child of vfork(): it runs in our memory while we wait, so it changes nothing
 * there but *ret_cause. All signals are blocked until the very end. */
_Noreturn static void become(const struct child_plan *plan, char **environment, bool is_foreground,
    pid_t parent, const sigset_t *mask, volatile int *ret_cause)
{
    /* KILL, as a lock that ends with dblock's connection is free at once: there is
     * no time for anything gentler. A parent that is dead already sends nothing. */
    if (prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0L, 0L, 0L) != 0 || getppid() != parent ||
        (!is_foreground && setpgid(0, 0) != 0)) {
        *ret_cause = errno;
        _exit(EXIT_CODE_MACHINE);
    }
    signals_reset();
    signals_restore_mask(mask);
    (void)execve(plan->path, plan->words, environment);
    if (errno == ENOEXEC)
        (void)execve(SHELL, plan->words_for_shell, environment);
    *ret_cause = errno;
    _exit(errno == ENOENT ? EXIT_CODE_NOT_FOUND : EXIT_CODE_CANNOT_RUN);
}

pid_t child_start(const struct child_plan *plan, char **environment, bool is_foreground,
    struct terminal *terminal)
{
    const bool is_terminal_lent = !is_foreground && terminal_is_to_be_lent(terminal);
    const pid_t parent = getpid();
    volatile int cause = 0;
    sigset_t mask;
    pid_t child;

    signals_block_all(&mask);
    /* A third of a millisecond cheaper than fork(), which copies the page tables of
     * all libraries; and it returns after the exec, so that its failure is known.
     * posix_spawn() would be as cheap, and knows of no parent-death signal. */
    child = vfork();
    if (child == 0)
        become(plan, environment, is_foreground, parent, &mask, &cause);
    if (child < 0)
        cause = errno;
    signals_restore_mask(&mask);
    if (child > 0 && cause != 0) {
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            continue;
        child = -1;
    }
    /* Not by the child, before its exec: a control-Z would stop it there, and us with it, as we
     * wait for the exec. One that reads before this is stopped by SIGTTIN, and continued. */
    if (child > 0 && is_terminal_lent)
        terminal_lend(terminal, child);
    errno = cause;
    return child;
}
