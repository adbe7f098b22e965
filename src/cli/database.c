/* SPDX-License-Identifier: MIT */
/* database.c - which database is meant. There is no silent default: machines that
 * each took a lock in a file of their own would all run.
 *
 * The places, files and rights are here; url.c knows what a password looks like,
 * local_file.c where "local" lives. */
#include "database.h"

#include "exit_code.h"
#include "local_file.h"
#include "message.h"
#include "trace.h"
#include "url.h"

#include <dblock/load.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SYSTEM_FILE "/etc/dblock/url"
#define PATH_SIZE 4096
#define LINE_MAX_SIZE 65536 /* a device or a wrong file need not be read to its end */

enum { MAKING = COMMAND_RUN | COMMAND_ACQUIRE | COMMAND_INIT | COMMAND_BENCH };

static int fail_memory(void)
{
    message_failure("out of memory");
    return EXIT_CODE_MACHINE;
}

/* The first line of a stream, without its end, into LINE_MAX_SIZE bytes. NULL, or what is wrong. */
static const char *read_line(FILE *file, char *line)
{
    size_t length = 0;
    int byte;

    for (;;) {
        byte = getc(file);
        if (byte == EOF || byte == '\n')
            break;
        if (length + 1 == LINE_MAX_SIZE)
            return "its first line is longer than 64 KiB";
        line[length++] = (char)byte;
    }
    line[length] = '\0';
    return ferror(file) ? strerror(errno) : NULL;
}

static int fail_open(const char *path)
{
    int cause = errno;

    message_failure("cannot read %s: %s", path, strerror(cause));
    return cause == EMFILE || cause == ENFILE || cause == ENOMEM ? EXIT_CODE_MACHINE
                                                                 : EXIT_CODE_CONFIGURATION;
}

/* A source of NULL is the command line itself. */
static int keep(struct database *database, const char *url, const char *source)
{
    database->url = strdup(url);
    database->source = source != NULL ? strdup(source) : NULL;
    return database->url != NULL && (source == NULL || database->source != NULL) ? -1
                                                                                 : fail_memory();
}

/* The first line of a file, without blanks around it. Returns -1, or the exit
 * status after a message; with `is_optional`, a file that is not there is -1 with
 * no URL. */
static int read_url_file(const char *path, bool is_optional, struct database *database)
{
    FILE *file = fopen(path, "re");
    struct stat status;
    const char *fault;
    char *line;
    size_t start;
    size_t end;
    int result = EXIT_CODE_CONFIGURATION;

    if (file == NULL)
        return is_optional && (errno == ENOENT || errno == ENOTDIR) ? -1 : fail_open(path);
    line = malloc(LINE_MAX_SIZE);
    if (line == NULL) {
        result = fail_memory();
        goto done;
    }
    fault = read_line(file, line);
    if (fault != NULL) {
        message_failure("cannot read %s: %s", path, fault);
        goto done;
    }
    end = strcspn(line, "\r\n");
    while (end > 0 && (line[end - 1] == ' ' || line[end - 1] == '\t'))
        end--;
    line[end] = '\0';
    start = strspn(line, " \t");
    if (line[start] == '\0' || line[start] == '@') {
        message_failure("%s does not begin with the URL of a database", path);
        goto done;
    }
    if (url_has_password(line + start) &&
        (fstat(fileno(file), &status) != 0 || (status.st_mode & S_IROTH) != 0)) {
        message_failure(
            "%s holds a password and everybody can read it; run: chmod o-r %s", path, path);
        goto done;
    }
    result = keep(database, line + start, path);
done:
    free(line);
    (void)fclose(file);
    return result;
}

/* Empty if the user has no home folder. */
static void find_user_file(char path[PATH_SIZE])
{
    const char *folder = getenv("XDG_CONFIG_HOME");
    const char *below = "/dblock/url";
    int length;

    /* A relative folder is invalid by the XDG specification. */
    if (folder == NULL || folder[0] != '/') {
        folder = getenv("HOME");
        below = "/.config/dblock/url";
    }
    path[0] = '\0';
    if (folder == NULL || folder[0] == '\0')
        return;
    length = snprintf(path, PATH_SIZE, "%s%s", folder, below);
    if (length < 0 || length >= PATH_SIZE)
        path[0] = '\0';
}

/* What was given: a URL, @FILE, or local. */
static int resolve(const char *text, const char *source, struct database *database)
{
    if (strcmp(text, "@") == 0) {
        message_failure("%s: there is no name of a file after the @", source != NULL ? source : "-d");
        return source != NULL ? EXIT_CODE_CONFIGURATION : EXIT_CODE_USAGE;
    }
    if (text[0] == '@')
        return read_url_file(text + 1, false, database);
    return keep(database, text, source);
}

static int find_url(const struct arguments *arguments, struct database *database)
{
    const char *environment = getenv("DBLOCK_URL");
    char user_file[PATH_SIZE];
    int result = -1;

    if (arguments->database != NULL) {
        database->is_from_option = true;
        result = resolve(arguments->database, NULL, database);
        if (url_has_password(arguments->database))
            message_note("a password on the command line can be seen by others until it is "
                         "overwritten; $DBLOCK_URL or -d @FILE keeps it to yourself");
        url_hide_password(arguments->database);
        return result;
    }
    if (environment != NULL && environment[0] != '\0')
        return resolve(environment, "$DBLOCK_URL", database);
    find_user_file(user_file);
    if (user_file[0] != '\0')
        result = read_url_file(user_file, true, database);
    if (result == -1 && database->url == NULL)
        result = read_url_file(SYSTEM_FILE, true, database);
    if (result == -1 && database->url == NULL) {
        message_failure("no database named; give -d URL, $DBLOCK_URL, %s%s%s (-d local locks on "
                        "this machine alone)",
            user_file, user_file[0] != '\0' ? " or " : "", SYSTEM_FILE);
        return EXIT_CODE_CONFIGURATION;
    }
    return result;
}

int database_find(const struct arguments *arguments, struct database *ret_database)
{
    int result;

    memset(ret_database, 0, sizeof *ret_database);
    result = find_url(arguments, ret_database);
    if (result != -1)
        return result;
    if (strcmp(ret_database->url, "local") == 0) {
        ret_database->is_local = true;
        free(ret_database->url);
        ret_database->url = NULL;
        return local_file_url(&ret_database->url);
    }
    return -1;
}

int database_refuse_url(const struct database *database, struct dblock_error *error,
    const char *consequence)
{
    char text[sizeof error->message];

    if (error->status == DBLOCK_E_ARGUMENT && database->source != NULL) {
        (void)snprintf(text, sizeof text, "%.100s: %.370s", database->source, error->message);
        (void)snprintf(error->message, sizeof error->message, "%s", text);
    }
    message_error(error, consequence);
    /* What a file or the environment says is configuration. */
    return error->status == DBLOCK_E_ARGUMENT && database->source != NULL
               ? EXIT_CODE_CONFIGURATION
               : exit_code_of(error->status);
}

int database_open(const struct arguments *arguments, const struct dblock_config *config,
    struct database *ret_database)
{
    struct dblock_config settings = DBLOCK_CONFIG_INIT;
    struct dblock_error error;
    dblock_status status;
    const char *consequence = arguments->command->id == COMMAND_RUN ? "not run" : NULL;
    bool is_missing;
    int result = database_find(arguments, ret_database);

    if (result != -1)
        return result;
    is_missing = ret_database->is_local && local_file_is_missing(ret_database->url);
    if (is_missing && (arguments->command->id & MAKING) == 0) {
        message_warning("no locks: %s does not exist yet", strchr(ret_database->url, '/'));
        return -1;
    }
    if (config != NULL)
        settings = *config;
    trace_configure(&settings, ret_database);
    status = dblock_driver_load(ret_database->url, &ret_database->driver, &error);
    if (status == DBLOCK_OK)
        status = dblock_open(
            ret_database->driver, ret_database->url, &settings, &ret_database->client, &error);
    if (status != DBLOCK_OK)
        return database_refuse_url(ret_database, &error, consequence);
    if (is_missing)
        result = local_file_make_folders(ret_database->url, consequence);
    if (is_missing && result == -1 && arguments->command->id != COMMAND_INIT)
        result = local_file_make_tables(ret_database->client, consequence);
    return result;
}

void database_close(struct database *database)
{
    dblock_close(database->client);
    free(database->url);
    free(database->source);
    memset(database, 0, sizeof *database);
}
