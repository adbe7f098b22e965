/* SPDX-License-Identifier: MIT */
/* sqlite_side.c - making, opening and locking the side file; see sqlite_side.h. */
#define _GNU_SOURCE /* F_OFD_SETLK, mkostemp */
#define _FILE_OFFSET_BITS 64

#include "sqlite_side.h"

#include "sqlite_error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUFFIX "-dblock"
#define MAGIC "dblock side file 1\n"

static int fcntl_lock(int fd, int command, struct flock *lock)
{
    int result;

    do
        result = fcntl(fd, command, lock);
    while (result != 0 && errno == EINTR);
    return result;
}

int sqlite_side_lock(struct sqlite_side *side, int64_t offset)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = offset, .l_len = 1};

    if (fcntl_lock(side->fd, F_OFD_SETLK, &lock) == 0)
        return 0;
    return errno == EACCES ? EAGAIN : errno;
}

void sqlite_side_unlock(struct sqlite_side *side, int64_t offset)
{
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = offset, .l_len = 1};

    /* The kernel may want memory to split a range; only bytes side by side are one range, and
     * names' bytes lie far apart. What stays locked ends with the connection. */
    (void)fcntl_lock(side->fd, F_OFD_SETLK, &lock);
}

int sqlite_side_is_locked(struct sqlite_side *side, int64_t offset, int64_t *ret_end)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = offset, .l_len = 1};

    if (fcntl_lock(side->fd, F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK)
        return 0;
    if (ret_end != NULL)
        *ret_end = lock.l_start + lock.l_len;
    return 1;
}

int64_t sqlite_side_offset(int strategy, int64_t number)
{
    return (strategy == DBLOCK_ROW ? SIDE_ROW_LOCKS : SIDE_ADVISORY_LOCKS) +
           (int64_t)((uint64_t)number & ((UINT64_C(1) << 61) - 1));
}

int sqlite_side_is_in_place(const struct sqlite_side *side)
{
    struct stat there;

    return stat(side->path, &there) == 0 && there.st_dev == side->identity.st_dev &&
           there.st_ino == side->identity.st_ino;
}

/* Whoever comes second uses the file of the first. Where there are no hard links the last one wins:
 * the others see after their next grant that the path leads elsewhere, and open it anew. */
static int put_in_place(const char *draft, const char *path)
{
    if (link(draft, path) == 0 || errno == EEXIST)
        return 0;
    if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS)
        return errno;
    return rename(draft, path) == 0 ? 0 : errno;
}

/* Made under another name and linked when it is complete: whoever opens it sees its contents and
 * may use it, whatever the umask of the maker is. */
static int make_file(const char *database, const char *path)
{
    static const char magic[] = MAGIC;
    struct stat model;
    char *draft = malloc(strlen(path) + 32);
    int number = 0;
    int fd;

    if (draft == NULL)
        return ENOMEM;
    if (stat(database, &model) != 0) {
        number = errno;
        free(draft);
        return number;
    }
    (void)snprintf(draft, strlen(path) + 32, "%s.%08lx-XXXXXX", path, (unsigned long)getpid());
    fd = mkostemp(draft, O_CLOEXEC);
    if (fd < 0) {
        number = errno;
        free(draft);
        return number;
    }
    /* not the owner: whoever may open the database then has to get at this file by its mode */
    (void)(fchown(fd, geteuid() == 0 ? model.st_uid : (uid_t)-1, model.st_gid) == 0);
    if (fchmod(fd, model.st_mode & 0666) != 0 ||
        write(fd, magic, sizeof magic - 1) != (ssize_t)(sizeof magic - 1))
        number = errno != 0 ? errno : EIO;
    if (number == 0)
        number = put_in_place(draft, path);
    (void)unlink(draft);
    (void)close(fd);
    free(draft);
    return number;
}

static int open_file(const char *database, const char *path, int *ret_fd)
{
    const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
    int number;

    *ret_fd = open(path, flags);
    if (*ret_fd < 0 && errno == ENOENT) {
        number = make_file(database, path);
        if (number != 0)
            return number;
        *ret_fd = open(path, flags);
    }
    return *ret_fd < 0 ? errno : 0;
}

static dblock_status check_kind(struct sqlite_side *side, struct dblock_error *reterr)
{
    char found[sizeof MAGIC] = "";

    if (fstat(side->fd, &side->identity) != 0)
        return sqlite_system_error(errno, "look at", side->path, reterr);
    if (S_ISREG(side->identity.st_mode) &&
        pread(side->fd, found, sizeof found - 1, 0) == (ssize_t)sizeof found - 1 &&
        strcmp(found, MAGIC) == 0)
        return DBLOCK_OK;
    return dblock_error_set(reterr, DBLOCK_E_DATABASE, "move that file away",
        "cannot use %s for locks: it is not a file that dblock made", side->path);
}

static dblock_status check_locks(struct sqlite_side *side, struct dblock_error *reterr)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};

    if (fcntl_lock(side->fd, F_OFD_GETLK, &lock) == 0)
        return DBLOCK_OK;
    (void)dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED, "use the strategies lease or insert",
        "cannot lock in %s: %s", side->path, strerror(errno));
    dblock_error_native(reterr, errno, NULL, 0);
    return DBLOCK_E_UNSUPPORTED;
}

dblock_status sqlite_side_open(
    const char *path, struct sqlite_side **ret_side, struct dblock_error *reterr)
{
    struct sqlite_side *side = calloc(1, sizeof *side);
    dblock_status status = DBLOCK_OK;
    int number;

    if (side != NULL) {
        side->fd = -1;
        side->path = sqlite_join(path, SUFFIX);
    }
    if (side == NULL || side->path == NULL) {
        sqlite_side_close(side);
        return sqlite_system_error(ENOMEM, "open the locks of", path, reterr);
    }
    number = open_file(path, side->path, &side->fd);
    if (number != 0)
        status = sqlite_system_error(number, "open", side->path, reterr);
    if (status == DBLOCK_OK)
        status = check_kind(side, reterr);
    if (status == DBLOCK_OK)
        status = check_locks(side, reterr);
    if (status != DBLOCK_OK) {
        sqlite_side_close(side);
        return status;
    }
    *ret_side = side;
    return DBLOCK_OK;
}

void sqlite_side_abandon(struct sqlite_side *side)
{
    if (side->fd >= 0)
        (void)close(side->fd);
    side->fd = -1;
}

void sqlite_side_close(struct sqlite_side *side)
{
    if (side == NULL)
        return;
    sqlite_side_abandon(side);
    free(side->path);
    free(side);
}
