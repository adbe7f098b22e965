/* SPDX-License-Identifier: MIT */
/* local_file.c - where "local" lives, and its tables. This is the one database in
 * which the command makes tables unasked: nobody else has a say in it. */
#include "local_file.h"

#include "exit_code.h"
#include "message.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCHEME "sqlite:"

/* Like mkdir -p below `path`, which is changed and restored. */
static int make_folders(char *path, mode_t mode, const char *consequence)
{
    char *slash;

    for (slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, mode) != 0 && errno != EEXIST) {
            int cause = errno;

            message_failure("cannot make the folder %s: %s%s%s", path, strerror(cause),
                consequence != NULL ? "; " : "", consequence != NULL ? consequence : "");
            *slash = '/';
            return cause == EACCES || cause == EPERM || cause == EROFS ? EXIT_CODE_REFUSED
                                                                       : EXIT_CODE_CONFIGURATION;
        }
        *slash = '/';
    }
    return -1;
}

int local_file_url(char **ret_url)
{
    const char *folder;
    const char *below;
    char url[4096];
    int length;

    if (geteuid() == 0) {
        folder = "/var/lib";
        below = "/dblock/local.db";
    } else {
        folder = getenv("XDG_STATE_HOME");
        below = "/dblock/local.db";
        /* A relative folder is invalid by the XDG specification. */
        if (folder == NULL || folder[0] != '/') {
            folder = getenv("HOME");
            below = "/.local/state/dblock/local.db";
        }
        if (folder == NULL || folder[0] != '/') {
            message_failure("-d local needs $HOME");
            return EXIT_CODE_CONFIGURATION;
        }
    }
    length = snprintf(url, sizeof url, SCHEME "%s%s", folder, below);
    if (length < 0 || (size_t)length >= sizeof url) {
        message_failure("-d local: the path of the home folder is too long");
        return EXIT_CODE_CONFIGURATION;
    }
    *ret_url = strdup(url);
    if (*ret_url == NULL) {
        message_failure("out of memory");
        return EXIT_CODE_MACHINE;
    }
    return -1;
}

/* An empty file is one that another process is just making, or was killed while it did. */
bool local_file_is_missing(const char *url)
{
    struct stat file;

    return stat(url + strlen(SCHEME), &file) == 0 ? file.st_size == 0 : errno == ENOENT;
}

int local_file_make_folders(char *url, const char *consequence)
{
    return make_folders(url + strlen(SCHEME), geteuid() == 0 ? 0755 : 0700, consequence);
}

int local_file_make_tables(dblock_client *client, const char *consequence)
{
    struct dblock_error error;
    dblock_status status = dblock_schema_install(client, &error); /* twice is safe */

    if (status == DBLOCK_OK)
        return -1;
    message_error(&error, consequence);
    return exit_code_of(status);
}
