/* SPDX-License-Identifier: MIT */
/* arguments.c - the options of all commands in one table, and the words between
 * them. The order of getopt_long() is kept to POSIX for `run`: what follows NAME is
 * COMMAND's. */
#define _GNU_SOURCE /* getopt_long, as <getopt.h> says */
#include "arguments.h"

#include "exit_code.h"
#include "message.h"
#include "nearest.h"
#include "option_values.h"
#include "url.h"

#include <dblock/dblock.h>

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum {
    ALL = COMMAND_RUN | COMMAND_ACQUIRE | COMMAND_EXTEND | COMMAND_RELEASE | COMMAND_SHOW |
          COMMAND_LIST | COMMAND_BREAK | COMMAND_INIT | COMMAND_SCHEMA | COMMAND_BENCH |
          COMMAND_DOCTOR,
    TAKING = COMMAND_RUN | COMMAND_ACQUIRE,
    NAMING = TAKING | COMMAND_SHOW | COMMAND_LIST | COMMAND_BREAK
};

static const struct rule {
    int value; /* the letter, or OPTION_* */
    const char *name;
    int has_value;
    unsigned commands;
} rules[] = {
    {'d', "database", required_argument, ALL},
    {'q', "quiet", no_argument, ALL},
    {'v', "verbose", no_argument, ALL},
    {'h', "help", no_argument, ALL | COMMAND_HELP},
    {OPTION_JSON, "json", no_argument, ALL & ~(unsigned)(COMMAND_RUN | COMMAND_SCHEMA)},
    {'n', "nonblock", no_argument, TAKING},
    {'w', "wait", required_argument, TAKING | COMMAND_SHOW},
    {'E', "conflict-exit-code", required_argument, TAKING},
    {'x', "exclusive", no_argument, TAKING},
    {'f', "fair", no_argument, TAKING | COMMAND_BENCH},
    {'S', "strategy", required_argument, NAMING | COMMAND_BENCH | COMMAND_DOCTOR},
    {'t', "ttl", required_argument, TAKING | COMMAND_EXTEND},
    {'l', "label", required_argument, TAKING},
    {OPTION_AT_LEAST, "at-least", required_argument, COMMAND_RUN},
    {OPTION_ID, "id", required_argument, COMMAND_RUN},
    {OPTION_ON_LOST, "on-lost", required_argument, COMMAND_RUN},
    {OPTION_SIGNAL, "signal", required_argument, COMMAND_RUN},
    {'k', "kill-after", required_argument, COMMAND_RUN},
    {OPTION_FOREGROUND, "foreground", no_argument, COMMAND_RUN},
    {OPTION_REPORT, "report", required_argument, COMMAND_RUN},
    {OPTION_EXPORT_URL, "export-url", no_argument, COMMAND_RUN},
    {'P', "parent", required_argument, COMMAND_ACQUIRE},
    {'a', "all", no_argument, COMMAND_LIST},
    {'l', "limit", required_argument, COMMAND_LIST},
    {OPTION_HOST, "host", required_argument, COMMAND_LIST},
    {'0', "null", no_argument, COMMAND_LIST},
    {'T', "token", required_argument, COMMAND_BREAK},
    {'y', "yes", no_argument, COMMAND_BREAK | COMMAND_BENCH},
    {OPTION_DRY_RUN, "dry-run", no_argument, COMMAND_INIT},
    {'g', "grant", required_argument, COMMAND_SCHEMA},
    {'c', "clients", required_argument, COMMAND_BENCH},
    {OPTION_SECONDS, "seconds", required_argument, COMMAND_BENCH},
    {OPTION_LEASES, "leases", required_argument, COMMAND_BENCH},
    {OPTION_SVG, "svg", required_argument, COMMAND_BENCH},
};

enum { N_RULES = sizeof rules / sizeof rules[0] };

/* Options that are agreed upon and not built yet: "unknown option" would send
 * people looking for a typing error. */
static const struct {
    char letter;
    const char *name;
    unsigned commands;
} later[] = {
    {'s', "shared", TAKING},
    {'p', "permits", TAKING},
    {0, "once", COMMAND_RUN},
    {0, "history", COMMAND_INIT},
    {'g', "grant", COMMAND_INIT},
    {0, "from", COMMAND_SCHEMA},
    {0, "guard", COMMAND_SCHEMA},
};

static bool is_later(const struct command *command, int letter, const char *word)
{
    size_t length = strcspn(word, "=");
    size_t i;

    for (i = 0; i < sizeof later / sizeof later[0]; i++) {
        if ((later[i].commands & command->id) == 0)
            continue;
        if (letter != 0
                ? later[i].letter == letter
                : strlen(later[i].name) == length && strncmp(later[i].name, word, length) == 0)
            return true;
    }
    return false;
}

static bool is_letter_of(const struct command *command, int letter)
{
    size_t i;

    for (i = 0; i < N_RULES; i++)
        if (rules[i].value == letter && (rules[i].commands & command->id) != 0)
            return true;
    return false;
}

/* An unknown long option, without its value: one that has several meanings, or none. */
static int refuse_long_option(const struct command *command, const char *word, int length)
{
    struct nearest nearest = {.word = word + 2, .length = (size_t)length - 2};
    char names[N_RULES * 24] = "";
    size_t used = 0;
    char meant[64];
    size_t i;

    for (i = 0; i < N_RULES; i++) {
        if ((rules[i].commands & command->id) == 0)
            continue;
        nearest_try(&nearest, rules[i].name);
        if (strncmp(rules[i].name, nearest.word, nearest.length) == 0)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s--%s",
                used > 0 ? ", " : "", rules[i].name);
    }
    if (used > 0)
        return message_usage(command->name, "option %.*s is ambiguous: %s", length, word, names);
    return message_usage(command->name, "unknown option %.*s%s", length, word,
        nearest_text(&nearest, "--", meant, sizeof meant));
}

/* getopt_long() leaves open which word was wrong, and how. A long option and a
 * letter without its value are the word before optind; optopt is the letter, or
 * 0 for an unknown long option; a letter that is known was a long option with a
 * value too many. */
static int refuse_option(const struct command *command, int answer, const char *last_word)
{
    char letter[3] = {'-', (char)optopt, '\0'};
    bool is_long = optopt == 0 || optopt >= 256 ||
                   (answer == ':' ? last_word[1] == '-' : is_letter_of(command, optopt));
    const char *word = is_long ? last_word : letter;

    /* Without the value, which may be a URL with a password. */
    int length = (int)strcspn(word, "=");

    if (is_later(command, is_long ? 0 : optopt, is_long ? word + 2 : ""))
        return message_usage(command->name, "option %.*s is not in this version", length, word);
    if (answer == ':')
        return message_usage(command->name, "option %.*s needs a value", length, word);
    if (is_long && optopt != 0)
        return message_usage(command->name, "option %.*s takes no value", length, word);
    return is_long ? refuse_long_option(command, word, length)
                   : message_usage(command->name, "unknown option %s", word);
}

static int parse_options(struct arguments *arguments, int argc, char **argv)
{
    const struct command *command = arguments->command;
    struct option long_options[N_RULES + 1];
    char letters[2 * N_RULES + 3];
    size_t n_long = 0;
    size_t n_letters = 0;
    int answer;
    size_t i;

    /* '+': stop at the first word that is no option; ':': tell a missing value
     * from an unknown option. */
    if (command->id == COMMAND_RUN)
        letters[n_letters++] = '+';
    letters[n_letters++] = ':';
    for (i = 0; i < N_RULES; i++) {
        if ((rules[i].commands & command->id) == 0)
            continue;
        if (rules[i].value < 256) {
            letters[n_letters++] = (char)rules[i].value;
            if (rules[i].has_value != no_argument)
                letters[n_letters++] = ':';
        }
        long_options[n_long++] =
            (struct option){rules[i].name, rules[i].has_value, NULL, rules[i].value};
    }
    letters[n_letters] = '\0';
    long_options[n_long] = (struct option){NULL, 0, NULL, 0};

    opterr = 0;
    for (;;) {
        int result;

        answer = getopt_long(argc, argv, letters, long_options, NULL);
        if (answer == -1)
            return -1;
        if (answer == '?' || answer == ':')
            return refuse_option(command, answer, argv[optind - 1]);
        if (answer == 'h') {
            (void)fputs(command->help, stdout);
            return fflush(stdout) == 0 ? EXIT_CODE_DONE : EXIT_CODE_MACHINE;
        }
        result = option_apply(arguments, answer, optarg);
        if (result != -1)
            return result;
    }
}

/* NAME [--] COMMAND [ARGUMENT]..., or NAME -c TEXT */
static int parse_child(struct arguments *arguments, char **words)
{
    const char *name = arguments->command->name;

    if (*words != NULL && strcmp(*words, "-c") == 0) {
        if (words[1] == NULL)
            return message_usage(name, "-c needs the shell's text");
        if (words[2] != NULL)
            return message_usage(name, "-c takes one text; quote it as a whole, or leave -c out");
        arguments->shell_text = words[1];
        return -1;
    }
    if (*words != NULL && strcmp(*words, "--") == 0)
        words++;
    else if (*words != NULL && **words == '-')
        return message_usage(
            name, "option %s stands after NAME; options go before it, COMMAND after it", *words);
    if (*words == NULL)
        return message_usage(name, "COMMAND is missing");
    if (**words == '\0')
        return message_usage(name, "the name of COMMAND is empty");
    arguments->words = words;
    return -1;
}

/* Two that want the same output, each in its own way. */
static int check_output(const struct arguments *arguments)
{
    const struct command *command = arguments->command;

    if (!arguments->is_json)
        return -1;
    if (arguments->is_null_separated)
        return message_usage(command->name, "-0 and --json exclude each other");
    if (arguments->is_dry_run)
        return message_usage(
            command->name, "--dry-run and --json exclude each other: it prints SQL");
    return -1;
}

int arguments_parse(
    const struct command *command, int argc, char **argv, struct arguments *ret_arguments)
{
    int n_operands;
    int result;

    *ret_arguments = (struct arguments){
        .command = command,
        .wait_ms = DBLOCK_FOREVER,
        .busy_exit = EXIT_CODE_BUSY,
        .ttl_ms = DEFAULT_TTL_MS,
        .first_signal = SIGTERM,
        .n_clients = DEFAULT_CLIENTS,
        .n_leases = DEFAULT_LEASES,
        .part_ms = DEFAULT_PART_MS,
    };
    result = parse_options(ret_arguments, argc, argv);
    if (result == -1)
        result = check_output(ret_arguments);
    if (result != -1)
        return result;

    n_operands = argc - optind;
    if (n_operands < command->operands_min)
        return message_usage(command->name, "%s is missing", command->operands_text);
    if (command->operands_max >= 0 && n_operands > command->operands_max) {
        char *word = argv[optind + command->operands_max];

        url_hide_password(word); /* somebody forgot -d */
        return message_usage(command->name, "\"%s\" is one word too many", word);
    }
    ret_arguments->operand = n_operands > 0 ? argv[optind] : NULL;
    return command->operands_max < 0 ? parse_child(ret_arguments, argv + optind + 1) : -1;
}
