/* SPDX-License-Identifier: MIT */
/* sqlite_target.c - URLs, and which file systems will do. No file is opened here.
 *
 * sqlite:PATH, where PATH is everything after the colon, as it stands: nothing is
 * decoded, so a "%" is a "%". sqlite:///absolute/path means the same as
 * sqlite:/absolute/path. There are no parameters, and a "?" is refused rather than
 * taken for a part of the name: who writes one means a parameter. */
#define _GNU_SOURCE /* statx */

#include "sqlite_target.h"

#include "sqlite_loan.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCHEME "sqlite:"
#define OLDEST_VERSION 3035000 /* UPDATE and DELETE forms that the statements need */

char *sqlite_join(const char *first, const char *second)
{
    size_t first_size = strlen(first);
    size_t second_size = strlen(second);
    char *joined = malloc(first_size + second_size + 1);

    if (joined == NULL)
        return NULL;
    memcpy(joined, first, first_size);
    memcpy(joined + first_size, second, second_size + 1);
    return joined;
}

/* Absolute, because a connection may be opened after the program has changed its folder. */
static char *make_absolute(const char *path)
{
    char folder[4096];
    size_t size;

    if (path[0] == '/')
        return sqlite_join("", path);
    if (getcwd(folder, sizeof folder - 1) == NULL)
        return NULL;
    size = strlen(folder);
    if (size == 1) /* the root */
        size = 0;
    folder[size] = '/';
    folder[size + 1] = 0;
    return sqlite_join(folder, path);
}

static dblock_status check_library(struct dblock_error *reterr)
{
    if (sqlite3_libversion_number() < OLDEST_VERSION)
        return dblock_error_set(reterr, DBLOCK_E_DRIVER, "install SQLite 3.35 or later",
            "SQLite %s is too old for dblock", sqlite3_libversion());
    if (sqlite3_threadsafe() == 0)
        return dblock_error_set(reterr, DBLOCK_E_DRIVER,
            "use a SQLite that was built with SQLITE_THREADSAFE=1 or 2",
            "this SQLite was built without support for threads");
    return DBLOCK_OK;
}

/* Who takes a file for a server may have put a password there: neither is repeated. */
static dblock_status find_path(const char *url, const char **ret_path, struct dblock_error *reterr)
{
    static const char form[] = "write sqlite:PATH, like sqlite:/var/lib/app/lock.db";
    const char *path;

    if (strncmp(url, SCHEME, strlen(SCHEME)) != 0)
        return dblock_error_set(
            reterr, DBLOCK_E_ARGUMENT, form, "url does not begin with \"" SCHEME "\"");
    path = url + strlen(SCHEME);
    if (strncmp(path, "//", 2) == 0) {
        if (path[2] != '/')
            return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, form,
                "url \"" SCHEME "//...\": what stands after \"//\" would be a host, and a file has none");
        path += 2;
    }
    if (path[0] == 0)
        return dblock_error_set(
            reterr, DBLOCK_E_ARGUMENT, form, "url \"%s\" names no file after \"" SCHEME "\"", url);
    if (strncmp(path, ":memory:", strlen(":memory:")) == 0)
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED,
            "use a file; in /dev/shm it is kept in memory as well",
            "url \"" SCHEME ":memory:\": a database in memory belongs to one connection, so nobody "
            "else would see its locks");
    if (strchr(path, '?') != NULL)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, form,
            "url \"" SCHEME "%.*s?...\": a file has no parameters", (int)strcspn(path, "?"), path);
    if (path[strlen(path) - 1] == '/')
        return dblock_error_set(
            reterr, DBLOCK_E_ARGUMENT, form, "url \"%s\" names a folder, not a file", url);
    *ret_path = path;
    return DBLOCK_OK;
}

dblock_status sqlite_target_open_path(const struct dblock_target_config *config, const char *path,
    struct dblock_target **ret_target, struct dblock_error *reterr)
{
    struct dblock_target *target;
    dblock_status status;
    int number;

    status = check_library(reterr);
    if (status != DBLOCK_OK)
        return status;
    if (config->schema != NULL && strcmp(config->schema, "main") != 0)
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED, "use another file instead",
            "schema \"%s\": a SQLite file has no schemas", config->schema);
    target = calloc(1, sizeof *target);
    if (target != NULL) {
        target->path = make_absolute(path);
        if (target->path == NULL && errno != ENOMEM) {
            number = errno;
            sqlite_target_close(target);
            return dblock_error_set(reterr, DBLOCK_E_SCHEMA, "give the whole path",
                "cannot find %s: this process is in a folder that is gone (%s)", path,
                strerror(number));
        }
        target->host = sqlite_join("", config->host);
        target->label = sqlite_join("", config->label);
        target->pid = config->pid;
    }
    if (target == NULL || target->path == NULL || target->host == NULL || target->label == NULL) {
        sqlite_target_close(target);
        return dblock_error_set(
            reterr, DBLOCK_E_MEMORY, NULL, "no memory for the path \"%s\"", path);
    }
    *ret_target = target;
    return DBLOCK_OK;
}

dblock_status sqlite_target_open(const struct dblock_target_config *config,
    struct dblock_target **ret_target, struct dblock_error *reterr)
{
    const char *path = NULL;
    dblock_status status = find_path(config->url, &path, reterr);

    return status == DBLOCK_OK ? sqlite_target_open_path(config, path, ret_target, reterr) : status;
}

void sqlite_target_close(struct dblock_target *target)
{
    if (target == NULL)
        return;
    sqlite_loan_close(target->loan);
    free(target->path);
    free(target->host);
    free(target->label);
    free(target);
}

static const struct file_system {
    unsigned long type;
    const char *name;
} shared_file_systems[] = {
    {0x6969, "NFS"},
    {0xFF534D42, "CIFS"},
    {0xFE534D42, "SMB2"},
    {0x517B, "SMB"},
    {0x65735546, "FUSE or virtiofs"}, /* virtiofs says the same number */
    {0x01021997, "9p"},
    {0x5346414F, "AFS"},
    {0x6B414653, "AFS"},
    {0x00C36400, "Ceph"},
    {0x73757245, "Coda"},
    {0x7461636F, "OCFS2"},
    {0x01161970, "GFS2"},
    {0x0BD00BD0, "Lustre"},
    {0x47504653, "GPFS"},
    {0x786F4256, "vboxsf"},
};

const char *sqlite_shared_file_system(unsigned long type)
{
    size_t i;

    for (i = 0; i < sizeof shared_file_systems / sizeof shared_file_systems[0]; ++i)
        if (shared_file_systems[i].type == (type & 0xFFFFFFFF))
            return shared_file_systems[i].name;
    return NULL;
}

int sqlite_is_mounted_alone(const char *path)
{
#ifdef STATX_ATTR_MOUNT_ROOT
    struct statx file;

    return statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE, &file) == 0 &&
        (file.stx_attributes_mask & file.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
#else
    (void)path;
    return 0;
#endif
}
