/* SPDX-License-Identifier: MIT */
/* question.c - see question.h. */
#include "question.h"

#include "exit_code.h"
#include "message.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int question_ask(const struct arguments *arguments, int wake_fd, const char *text)
{
    struct pollfd events[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
        {.fd = wake_fd, .events = POLLIN}};
    char answer[16] = "";

    if (arguments->is_yes)
        return -1;
    if (!isatty(STDIN_FILENO))
        return message_usage(
            arguments->command->name, "without a terminal to ask on, -y is needed");
    (void)fprintf(stderr, "%s [y/N] ", text);
    (void)fflush(stderr);
    while (poll(events, 2, -1) < 0)
        if (errno != EINTR)
            return EXIT_CODE_NO;
    if (events[1].revents != 0 || fgets(answer, sizeof answer, stdin) == NULL) {
        (void)fputc('\n', stderr);
        return EXIT_CODE_NO;
    }
    answer[strcspn(answer, "\r\n")] = '\0';
    return strcmp(answer, "y") == 0 || strcmp(answer, "Y") == 0 || strcmp(answer, "yes") == 0
               ? -1
               : EXIT_CODE_NO;
}
