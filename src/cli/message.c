/* SPDX-License-Identifier: MIT */
/* message.c - standard error, one write a line: two processes that log to one
 * file do not mix their lines. */
#include "message.h"

#include "exit_code.h"
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_SIZE 4096

static enum message_level current_level = MESSAGE_NORMAL;

void message_set_level(enum message_level level)
{
    current_level = level;
}

void message_raise_level(void)
{
    current_level = current_level < MESSAGE_VERBOSE ? MESSAGE_VERBOSE : MESSAGE_TRACING;
}

bool message_is_verbose(void)
{
    return current_level >= MESSAGE_VERBOSE;
}

bool message_is_tracing(void)
{
    return current_level == MESSAGE_TRACING;
}

bool message_is_chatty(void)
{
    return message_is_verbose() ||
           (current_level == MESSAGE_NORMAL && isatty(STDERR_FILENO));
}

static void write_line(char *line, size_t length)
{
    /* A line feed or an escape sequence in a server's answer is not ours to
     * pass on to the terminal. */
    size_t i;

    for (i = 0; i < length; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7F)
            line[i] = ' ';
    line[length] = '\n';
    /* There is nobody left to tell when standard error itself fails. */
    if (write(STDERR_FILENO, line, length + 1) < 0)
        return;
}

__attribute__((format(printf, 1, 0))) static void print_list(const char *format, va_list list)
{
    char line[LINE_SIZE];
    int length;
    size_t used;

    used = (size_t)snprintf(line, sizeof line, "dblock: ");
    length = vsnprintf(line + used, sizeof line - used - 1, format, list);
    if (length < 0)
        return;
    used = strlen(line);
    write_line(line, used);
}

void message_failure(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    print_list(format, list);
    va_end(list);
}

void message_warning(const char *format, ...)
{
    va_list list;

    if (current_level == MESSAGE_QUIET)
        return;
    va_start(list, format);
    print_list(format, list);
    va_end(list);
}

void message_note(const char *format, ...)
{
    va_list list;

    if (!message_is_chatty())
        return;
    va_start(list, format);
    print_list(format, list);
    va_end(list);
}

void message_detail(const char *format, ...)
{
    va_list list;

    if (!message_is_verbose())
        return;
    va_start(list, format);
    print_list(format, list);
    va_end(list);
}

/* The library names the parameter that is wrong, as the programmer knows it. What the user gave
 * instead; NULL if the text begins with none of these. `*ret_rest` is what follows. */
static const char *find_word(const char *text, const char **ret_rest)
{
    static const struct {
        const char *parameter;
        const char *word;
    } words[] = {
        {"name: ", "NAME"},
        {"filter.prefix: ", "PREFIX"},
        {"options.label: ", "-l"},
        {"options.ttl_ms: ", "-t"},
        {"options.min_hold_ms: ", "--at-least"},
    };
    size_t i;

    for (i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t length = strlen(words[i].parameter);

        if (strncmp(text, words[i].parameter, length) == 0) {
            *ret_rest = text + length;
            return words[i].word;
        }
    }
    *ret_rest = text;
    return NULL;
}

void message_error(const struct dblock_error *error, const char *consequence)
{
    const char *text =
        error->message[0] != '\0' ? error->message : dblock_status_text(error->status);

    const char *word = find_word(text, &text);

    message_failure("%s%s%s%s%s%s%s", word != NULL ? word : "", word != NULL ? ": " : "", text, consequence != NULL ? "; " : "",
        consequence != NULL ? consequence : "", error->hint[0] != '\0' ? "; " : "", error->hint);
}

int message_usage(const char *command, const char *format, ...)
{
    char text[LINE_SIZE];
    va_list list;

    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (command != NULL)
        message_failure("%s: %s; see \"dblock %s --help\"", command, text, command);
    else
        message_failure("%s; see \"dblock --help\"", text);
    return EXIT_CODE_USAGE;
}
