/* SPDX-License-Identifier: MIT */
/* new_file.c - see new_file.h. */
#define _GNU_SOURCE /* mkostemp */
#include "new_file.h"

#include "exit_code.h"
#include "message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A device, a pipe or a socket that is there is written to, and so is what a symbolic link names: a
 * rename would put a file in the place of the link or the device, and root can do that to /dev. */
static bool is_special(const char *path)
{
    struct stat status;

    return lstat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

/* A pipe that nobody reads would keep us waiting for ever: a few seconds, as its reader may just be
 * starting. */
static int open_special(const char *path)
{
    const struct timespec pause = {0, 20 * 1000000};
    int n_tries = 250;
    int descriptor;

    do {
        descriptor = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (descriptor >= 0)
            (void)fcntl(descriptor, F_SETFL, O_WRONLY);
    } while (descriptor < 0 && errno == ENXIO && --n_tries > 0 && nanosleep(&pause, NULL) == 0);
    return descriptor;
}

int new_file_begin(
    struct new_file *file, const char *path, const char *option, const char *consequence)
{
    mode_t mask;
    int length;

    file->path = path;
    file->descriptor = -1;
    file->temporary[0] = 0;
    if (path == NULL)
        return -1;
    if (is_special(path)) {
        file->descriptor = open_special(path);
        if (file->descriptor >= 0)
            return -1;
        message_failure("cannot open %s: %s; %s", path,
            errno == ENXIO ? "nobody reads from it" : strerror(errno), consequence);
        file->path = NULL;
        return EXIT_CODE_MACHINE;
    }
    length = snprintf(file->temporary, sizeof file->temporary, "%s.XXXXXX", path);
    if (length < 0 || (size_t)length >= sizeof file->temporary) {
        message_failure("%s: the path is too long", option);
        file->path = NULL;
        return EXIT_CODE_USAGE;
    }
    file->descriptor = mkostemp(file->temporary, O_CLOEXEC);
    if (file->descriptor < 0) {
        message_failure("cannot make %s: %s; %s", file->temporary, strerror(errno), consequence);
        file->path = NULL;
        return EXIT_CODE_MACHINE;
    }
    /* mkostemp() makes it for the owner alone; this is as public as any file. */
    mask = umask(0);
    (void)umask(mask);
    (void)fchmod(file->descriptor, 0666 & ~mask);
    return -1;
}

FILE *new_file_stream(struct new_file *file)
{
    FILE *stream = fdopen(file->descriptor, "w");

    if (stream == NULL) {
        message_failure("cannot write %s: %s", file->path, strerror(errno));
        new_file_abandon(file);
        return NULL;
    }
    file->descriptor = -1; /* it is the stream's now */
    return stream;
}

bool new_file_finish(struct new_file *file, FILE *stream, bool is_good)
{
    /* What was in the buffer fails here, and so may a network's file system. */
    bool is_closed = !ferror(stream);

    if (fclose(stream) != 0)
        is_closed = false;
    if (is_good && (!is_closed || (file->temporary[0] != 0 &&
                                      rename(file->temporary, file->path) != 0))) {
        message_failure("cannot write %s: %s", file->path, strerror(errno));
        is_good = false;
    }
    if (is_good)
        file->temporary[0] = 0;
    new_file_abandon(file);
    return is_good;
}

void new_file_abandon(struct new_file *file)
{
    if (file->path == NULL)
        return;
    if (file->descriptor >= 0)
        (void)close(file->descriptor);
    if (file->temporary[0] != 0)
        (void)unlink(file->temporary);
    file->path = NULL;
}
