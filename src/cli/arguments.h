/* SPDX-License-Identifier: MIT */
/* arguments.h - a command line, read and judged. Nothing here is looked up or
 * done; that is the commands' part. */
#ifndef CLI_ARGUMENTS_H
#define CLI_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum command_id {
    COMMAND_RUN = 1 << 0,
    COMMAND_ACQUIRE = 1 << 1,
    COMMAND_EXTEND = 1 << 2,
    COMMAND_RELEASE = 1 << 3,
    COMMAND_SHOW = 1 << 4,
    COMMAND_LIST = 1 << 5,
    COMMAND_BREAK = 1 << 6,
    COMMAND_INIT = 1 << 7,
    COMMAND_SCHEMA = 1 << 8,
    COMMAND_HELP = 1 << 9,
    COMMAND_BENCH = 1 << 10,
    COMMAND_DOCTOR = 1 << 11
};

struct arguments;

struct command {
    enum command_id id;
    const char *name;
    const char *help;
    int operands_min; /* words that are no options */
    int operands_max; /* -1: the rest belongs to COMMAND */
    const char *operands_text;
    int (*perform)(const struct arguments *arguments); /* returns the exit status */
};

enum lost_action { ON_LOST_KILL, ON_LOST_WARN };

/* All strings point into argv. What was not given has the value that is said. */
struct arguments {
    const struct command *command;

    char *database; /* -d; NULL */
    bool is_quiet;
    bool is_json;

    /* Taking a lock. */
    bool is_nonblock, is_fair;
    bool has_wait;
    uint64_t wait_ms; /* DBLOCK_FOREVER; -n is 0 */
    int busy_exit;    /* -E; EXIT_CODE_BUSY */
    int strategy;     /* DBLOCK_STRATEGY_DEFAULT */
    bool has_ttl;
    uint64_t ttl_ms; /* DEFAULT_TTL_MS */
    uint64_t at_least_ms;
    const char *label; /* NULL */
    bool has_id;
    int64_t id;

    /* Running a command. */
    enum lost_action on_lost;
    int first_signal; /* SIGTERM */
    bool has_kill_after;
    uint64_t kill_after_ms; /* ttl / 3 */
    bool is_foreground;
    bool is_url_exported;
    const char *report; /* NULL */
    char *shell_text;   /* -c; NULL */
    char **words;       /* COMMAND and its arguments, NULL at the end; NULL with -c */

    /* The other commands. */
    int64_t parent_pid; /* acquire -P; 0 */
    int64_t token;      /* break -T; 0 */
    uint64_t limit;     /* list -l; 0 none */
    const char *host;   /* NULL */
    const char *role;   /* NULL */
    bool is_all, is_null_separated, is_yes, is_dry_run;

    /* Measuring. */
    unsigned strategies; /* all of -S, 1 << strategy each; 0 none */
    uint64_t n_clients;
    uint64_t n_leases;
    uint64_t part_ms;
    const char *svg; /* NULL */

    const char *operand; /* NAME, PREFIX, GRANT, DATABASE or topic; NULL */
};

#define DEFAULT_TTL_MS UINT64_C(30000)
#define DEFAULT_CLIENTS 8
#define DEFAULT_LEASES 100
#define DEFAULT_PART_MS UINT64_C(3000)
#define TTL_MIN_MS 20 /* the library's own limit */

/* Reads what stands after the command's word; argv[0] is that word. Returns -1 if
 * the command is to be performed, else the exit status: what there was to say,
 * also the help text, has been said. */
int arguments_parse(
    const struct command *command, int argc, char **argv, struct arguments *ret_arguments);

#endif
