/* SPDX-License-Identifier: MIT */
/* main.c - from the first word to a command. */
#include "commands.h"
#include "exit_code.h"
#include "message.h"
#include "nearest.h"
#include "signals.h"

#include "cli_help.h"

#include <dblock/dblock.h>
#include <dblock/version.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct command commands[] = {
    {COMMAND_RUN, "run", cli_help_run, 1, -1, "NAME", command_run},
    {COMMAND_ACQUIRE, "acquire", cli_help_acquire, 1, 1, "NAME", command_acquire},
    {COMMAND_EXTEND, "extend", cli_help_extend, 0, 1, "GRANT", command_extend},
    {COMMAND_RELEASE, "release", cli_help_release, 0, 1, "GRANT", command_release},
    {COMMAND_SHOW, "show", cli_help_show, 1, 1, "NAME", command_show},
    {COMMAND_LIST, "list", cli_help_list, 0, 1, "PREFIX", command_list},
    {COMMAND_BREAK, "break", cli_help_break, 1, 1, "NAME", command_break},
    {COMMAND_INIT, "init", cli_help_init, 0, 0, "", command_init},
    {COMMAND_SCHEMA, "schema", cli_help_schema, 0, 1, "DATABASE", command_schema},
    {COMMAND_BENCH, "bench", cli_help_bench, 0, 0, "", command_bench},
    {COMMAND_DOCTOR, "doctor", cli_help_doctor, 0, 0, "", command_doctor},
    {COMMAND_HELP, "help", cli_help_dblock, 0, 1, "TOPIC", command_help},
};

enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

/* Agreed upon and not built yet: nobody shall look for a typing error. */
static const char *const later[] = {
    "watch", "metrics", "fence", "elect", "history"};

static const struct command *find_command(const char *name)
{
    size_t i;

    for (i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int refuse_command(const char *name)
{
    struct nearest nearest = {.word = name, .length = strlen(name)};
    char meant[64];
    size_t i;

    for (i = 0; i < sizeof later / sizeof later[0]; i++)
        if (strcmp(later[i], name) == 0)
            return message_usage(NULL, "\"%s\" is not in this version", name);
    if (name[0] == '-')
        return message_usage(
            NULL, "the command comes first: dblock COMMAND [OPTION]..., not \"%s\"", name);
    for (i = 0; i < N_COMMANDS; i++)
        nearest_try(&nearest, commands[i].name);
    return message_usage(NULL, "there is no command \"%s\"%s", name,
        nearest_text(&nearest, "", meant, sizeof meant));
}

static int print(const char *text)
{
    if (fputs(text, stdout) >= 0 && fflush(stdout) == 0)
        return EXIT_CODE_DONE;
    message_failure("cannot write: %s", strerror(errno));
    return EXIT_CODE_MACHINE;
}

static int refuse_topic(const char *topic)
{
    char topics[20 * N_COMMANDS] = "";
    size_t used = 0;
    size_t i;

    for (i = 0; i < N_COMMANDS; i++)
        used += (size_t)snprintf(topics + used, sizeof topics - used, "%s ", commands[i].name);
    message_failure("there is no help on \"%s\"; topics: %sexit", topic, topics);
    return EXIT_CODE_USAGE;
}

int command_help(const struct arguments *arguments)
{
    const char *topic = arguments->operand;
    const struct command *command;

    if (topic == NULL)
        return print(cli_help_dblock);
    if (strcmp(topic, "exit") == 0)
        return print(cli_help_exit);
    command = find_command(topic);
    return command != NULL ? print(command->help) : refuse_topic(topic);
}

static int print_version(void)
{
    if (strcmp(DBLOCK_VERSION_TEXT, dblock_version()) == 0)
        return print("dblock " DBLOCK_VERSION_TEXT "\n");
    (void)printf("dblock " DBLOCK_VERSION_TEXT " (libdblock %s)\n", dblock_version());
    return print("");
}

/* A missing standard descriptor would be taken by the first file or connection that
 * is opened, and COMMAND's output would go into the database. */
static void open_standard_descriptors(void)
{
    int descriptor;

    /* in their order, so that each gets its number; output that nobody will see fails */
    for (descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor)
        if (fcntl(descriptor, F_GETFD) < 0)
            (void)open("/dev/null", descriptor == STDERR_FILENO ? O_RDWR : O_RDONLY);
}

int main(int argc, char **argv)
{
    const struct command *command;
    struct arguments arguments;
    int result;

    open_standard_descriptors();
    signals_ignore_limit();
    if (argc < 2) {
        (void)fputs(cli_help_dblock, stderr);
        return EXIT_CODE_USAGE;
    }
    if (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0)
        return print(cli_help_dblock);
    if (strcmp(argv[1], "-V") == 0 || strcmp(argv[1], "--version") == 0)
        return print_version();
    command = find_command(argv[1]);
    if (command == NULL)
        return refuse_command(argv[1]);
    result = arguments_parse(command, argc - 1, argv + 1, &arguments);
    return result != -1 ? result : command->perform(&arguments);
}
