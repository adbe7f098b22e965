/* SPDX-License-Identifier: MIT */
/* child_environment.c - the environment of COMMAND. It is a copy: the strings of
 * our own belong to the C library. */
#include "child_environment.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

/* "NAME=value", NAME without '='. */
static char *make_variable(const char *name, const char *value)
{
    size_t size = strlen(name) + strlen(value) + 2;
    char *variable = malloc(size);

    if (variable != NULL)
        (void)snprintf(variable, size, "%s=%s", name, value);
    return variable;
}

static bool is_variable(const char *variable, const char *name)
{
    size_t length = strlen(name);

    return strncmp(variable, name, length) == 0 && variable[length] == '=';
}

/* What describes the lock of somebody further out, or must not be seen. */
static bool is_left_out(const char *variable, bool is_url_hidden)
{
    return is_variable(variable, "DBLOCK_NAME") || is_variable(variable, "DBLOCK_OWNER") ||
           is_variable(variable, "DBLOCK_TOKEN") || is_variable(variable, "DBLOCK_GRANT") ||
           (is_url_hidden && is_variable(variable, "DBLOCK_URL"));
}

char **child_environment_new(const struct arguments *arguments, const struct database *database,
    const dblock_lock *lock, int64_t token, const char *grant)
{
    bool is_url_hidden = database->is_from_option || arguments->is_url_exported;
    char token_text[24];
    struct {
        const char *name;
        const char *value;
    } ours[] = {
        {"DBLOCK_NAME", arguments->operand},
        {"DBLOCK_OWNER", dblock_lock_owner(lock)},
        {"DBLOCK_TOKEN", token != 0 ? token_text : NULL},
        {"DBLOCK_GRANT", grant},
        {"DBLOCK_URL", arguments->is_url_exported ? database->url : NULL},
    };
    const size_t n_ours = sizeof ours / sizeof ours[0];
    size_t n_all = 0;
    size_t used = 0;
    char **environment;
    size_t i;

    (void)snprintf(token_text, sizeof token_text, "%" PRId64, token);
    while (environ[n_all] != NULL)
        n_all++;
    environment = calloc(n_all + n_ours + 1, sizeof *environment);
    if (environment == NULL)
        return NULL;
    for (i = 0; i < n_all + n_ours; i++) {
        if (i < n_all ? is_left_out(environ[i], is_url_hidden) : ours[i - n_all].value == NULL)
            continue;
        environment[used] = i < n_all ? strdup(environ[i])
                                      : make_variable(ours[i - n_all].name, ours[i - n_all].value);
        if (environment[used] == NULL) {
            child_environment_free(environment);
            return NULL;
        }
        used++;
    }
    return environment;
}

void child_environment_free(char **environment)
{
    size_t i;

    for (i = 0; environment != NULL && environment[i] != NULL; i++)
        free(environment[i]);
    free(environment);
}
