/* SPDX-License-Identifier: MIT */
/* option_values.c - from an option's text to a member of struct arguments. */
#include "option_values.h"

#include "duration.h"
#include "exit_code.h"
#include "message.h"
#include "signal_name.h"

#include <dblock/dblock.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Of what `bench` measures. */
enum { CLIENTS_MAX = 500, LEASES_MAX = 100000, PART_MIN_MS = 100, PART_MAX_MS = 3600 * 1000 };

/* Decimal digits, with a minus if `minimum` is below zero. */
static bool parse_integer(const char *text, int64_t minimum, int64_t maximum, int64_t *ret_number)
{
    const char *digits = *text == '-' && minimum < 0 ? text + 1 : text;
    long long number;
    char *end;

    if (*digits < '0' || *digits > '9')
        return false;
    errno = 0;
    number = strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0' || number < minimum || number > maximum)
        return false;
    *ret_number = number;
    return true;
}

static int refuse_value(
    const struct command *command, const char *option, const char *value, const char *expected)
{
    return message_usage(command->name, "%s \"%s\" is not %s", option, value, expected);
}

static int parse_duration(
    const struct command *command, const char *option, const char *value, uint64_t *ret_ms)
{
    if (duration_parse(value, ret_ms))
        return -1;
    return refuse_value(
        command, option, value, "a duration in whole milliseconds, at most ten years, like 10, 1.5, 500ms, 90s, 5m, 2h or 1d");
}

int option_apply(struct arguments *arguments, int value, char *text)
{
    const struct command *command = arguments->command;
    int64_t number;

    switch (value) {
    case 'd':
        arguments->database = text;
        return *text != '\0' ? -1 : refuse_value(command, "-d", text, "a database");
    case 'q':
        message_set_level(MESSAGE_QUIET);
        arguments->is_quiet = true;
        return -1;
    case 'v':
        message_raise_level();
        return -1;
    case OPTION_JSON:
        arguments->is_json = true;
        return -1;
    case 'n':
        arguments->is_nonblock = true;
        arguments->wait_ms = 0;
        return -1;
    case 'w':
        arguments->has_wait = true;
        return parse_duration(command, "-w", text, &arguments->wait_ms);
    case 'E':
        if (!parse_integer(text, 0, 255, &number))
            return refuse_value(command, "-E", text, "an exit status from 0 to 255");
        arguments->busy_exit = (int)number;
        return -1;
    case 'x':
        return -1;
    case 'f':
        arguments->is_fair = true;
        return -1;
    case 'S':
        arguments->strategy = dblock_strategy_from_name(text);
        if (arguments->strategy <= DBLOCK_STRATEGY_DEFAULT)
            return refuse_value(command, "-S", text, "one of lease, insert, row, advisory");
        arguments->strategies |= 1u << arguments->strategy;
        return -1;
    case 't':
        arguments->has_ttl = true;
        if (duration_parse(text, &arguments->ttl_ms) && arguments->ttl_ms < TTL_MIN_MS)
            return refuse_value(command, "-t", text, "20 ms or more");
        return parse_duration(command, "-t", text, &arguments->ttl_ms);
    case 'l':
        if (command->id == COMMAND_LIST) {
            if (!parse_integer(text, 1, INT64_MAX, &number))
                return refuse_value(command, "-l", text, "a number from 1 on");
            arguments->limit = (uint64_t)number;
        } else {
            if (strlen(text) > DBLOCK_LABEL_MAX)
                return message_usage(
                    command->name, "-l: a label has at most %d bytes", DBLOCK_LABEL_MAX);
            arguments->label = text;
        }
        return -1;
    case OPTION_AT_LEAST:
        return parse_duration(command, "--at-least", text, &arguments->at_least_ms);
    case OPTION_ID:
        arguments->has_id = true;
        if (!parse_integer(text, INT64_MIN, INT64_MAX, &arguments->id))
            return refuse_value(command, "--id", text, "a whole number of 64 bits");
        return -1;
    case OPTION_ON_LOST:
        if (strcmp(text, "kill") != 0 && strcmp(text, "warn") != 0)
            return refuse_value(command, "--on-lost", text, "kill or warn");
        arguments->on_lost = text[0] == 'k' ? ON_LOST_KILL : ON_LOST_WARN;
        return -1;
    case OPTION_SIGNAL:
        arguments->first_signal = signal_from_name(text);
        if (arguments->first_signal == 0)
            return refuse_value(command, "--signal", text, "the name of a signal, like TERM");
        return -1;
    case 'k':
        arguments->has_kill_after = true;
        return parse_duration(command, "-k", text, &arguments->kill_after_ms);
    case OPTION_FOREGROUND:
        arguments->is_foreground = true;
        return -1;
    case OPTION_REPORT:
        arguments->report = text;
        return *text != '\0' ? -1 : refuse_value(command, "--report", text, "a file");
    case OPTION_EXPORT_URL:
        arguments->is_url_exported = true;
        return -1;
    case 'P':
        if (!parse_integer(text, 1, INT32_MAX, &arguments->parent_pid))
            return refuse_value(command, "-P", text, "the number of a process");
        return -1;
    case 'T':
        if (!parse_integer(text, 1, INT64_MAX, &arguments->token))
            return refuse_value(command, "-T", text, "a token");
        return -1;
    case OPTION_HOST:
        arguments->host = text;
        return -1;
    case 'g':
        arguments->role = text;
        return *text != '\0' ? -1 : refuse_value(command, "-g", text, "a role");
    case 'a':
        arguments->is_all = true;
        return -1;
    case '0':
        arguments->is_null_separated = true;
        return -1;
    case 'y':
        arguments->is_yes = true;
        return -1;
    case 'c':
        if (!parse_integer(text, 2, CLIENTS_MAX, &number))
            return refuse_value(command, "-c", text, "a number of clients from 2 to 500");
        arguments->n_clients = (uint64_t)number;
        return -1;
    case OPTION_LEASES:
        if (!parse_integer(text, 1, LEASES_MAX, &number))
            return refuse_value(command, "--leases", text, "a number from 1 to 100000");
        arguments->n_leases = (uint64_t)number;
        return -1;
    case OPTION_SECONDS:
        if (duration_parse(text, &arguments->part_ms) &&
            (arguments->part_ms < PART_MIN_MS || arguments->part_ms > PART_MAX_MS))
            return refuse_value(command, "--seconds", text, "from 100 ms to 1 h");
        return parse_duration(command, "--seconds", text, &arguments->part_ms);
    case OPTION_SVG:
        arguments->svg = text;
        return *text != '\0' ? -1 : refuse_value(command, "--svg", text, "a file");
    case OPTION_DRY_RUN:
        arguments->is_dry_run = true;
        return -1;
    default:
        return EXIT_CODE_BUG;
    }
}
