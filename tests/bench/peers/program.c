/* SPDX-License-Identifier: MIT */
/* program.c - a pair that is a command around `true`: what a crontab pays. */
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "peers.h"

extern char **environ;

enum { N_MOST = 16 };

struct program {
    char *words[N_MOST + 1];
    posix_spawn_file_actions_t silent; /* what it prints is not for who reads ours */
    char about[64];                    /* the variable that has a server's version */
};

/* A word that begins with "$" names a variable of the environment. */
static char *expand(char *word)
{
    return word[0] == '$' ? getenv(word + 1) : word;
}

static void *open_words(const char *line)
{
    struct program *program = calloc(1, sizeof *program);
    char *rest = strdup(line);
    int n = 0;

    if (program == NULL || posix_spawn_file_actions_init(&program->silent) != 0 ||
        posix_spawn_file_actions_addopen(&program->silent, 1, "/dev/null", O_WRONLY, 0) != 0)
        return NULL;
    while (rest != NULL && n < N_MOST) {
        char *word = rest;

        rest = strchr(rest, ' ');
        if (rest != NULL)
            *rest++ = 0;
        program->words[n] = expand(word);
        if (strncmp(word, "$BENCH_", 7) == 0)
            (void)snprintf(program->about, sizeof program->about, "%.40s_ABOUT", word + 1);
        if (program->words[n++] == NULL)
            return NULL;
    }
    return program;
}

static int pair(void *context)
{
    const struct program *program = context;
    int status = -1;
    pid_t pid;

    if (posix_spawnp(&pid, program->words[0], &program->silent, NULL, program->words, environ) !=
            0 ||
        waitpid(pid, &status, 0) != pid)
        return -1;
    return status == 0 ? 0 : -1;
}

static void about(void *context, char *ret_text, size_t size)
{
    const struct program *program = context;
    const char *text = getenv(program->about);

    (void)snprintf(ret_text, size, "%s", text != NULL ? text : "-");
}

const struct side side_program = { open_words, pair, about };
