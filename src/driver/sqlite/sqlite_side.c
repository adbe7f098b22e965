/* SPDX-License-Identifier: MIT */
/* sqlite_side.c - making, opening and locking the side file; see sqlite_side.h. */
#define _GNU_SOURCE /* F_OFD_SETLK, F_OFD_SETLKW, mkostemp */
#define _FILE_OFFSET_BITS 64

#include "sqlite_side.h"

#include "sqlite_error.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SUFFIX "-dblock"
#define MAGIC "dblock side file 2\n"

/* Not on the stack of the thread that waits: it may be cancelled in the middle, and leave it as it
 * is. */
struct side_wait {
    struct flock lock;
    int cancel_type;
};

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

int sqlite_side_has_locks(struct sqlite_side *side, int64_t first, int64_t end)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = first, .l_len = end - first};

    return first < end && fcntl_lock(side->fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* The cancel may come at any instruction in between, not only where the C library has it. */
static int wait_for(struct sqlite_side *side, short type, int64_t offset)
{
    struct side_wait *wait = side->wait;
    int result;

    wait->lock =
        (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = offset, .l_len = 1};
    (void)pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &wait->cancel_type);
    do
        result = fcntl(side->fd, F_OFD_SETLKW, &wait->lock) == 0 ? 0 : errno;
    while (result == EINTR);
    (void)pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &wait->cancel_type);
    return result;
}

int sqlite_side_wait_lock(struct sqlite_side *side, int64_t offset)
{
    return wait_for(side, F_WRLCK, offset);
}

/* Shared, so that those who wait for one byte do not wait for each other. */
int sqlite_side_wait_free(struct sqlite_side *side, int64_t offset)
{
    int number = wait_for(side, F_RDLCK, offset);

    if (number == 0)
        sqlite_side_unlock(side, offset);
    return number;
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

/* 0, or why not: what is written in part is not said to be a full disk before that is asked. */
static int write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t n_written = write(fd, bytes, size);

        if (n_written <= 0)
            return n_written < 0 ? errno : ENOSPC;
        bytes += n_written;
        size -= (size_t)n_written;
    }
    return 0;
}

/* The lines are written, although they are zero: where a page that is mapped had no block yet, a
 * full disk would kill whoever touches it. */
static int fill_file(int fd)
{
    static const char magic[SIDE_LINES_AT] = MAGIC;
    static const char zeros[4096];
    int64_t offset;
    int number = write_all(fd, magic, sizeof magic);

    for (offset = SIDE_LINES_AT; number == 0 && offset < SIDE_SLOTS_AT;
         offset += (int64_t)sizeof zeros)
        number = write_all(fd, zeros, sizeof zeros);
    return number;
}

/* Made under another name and linked when it is complete: whoever opens it sees its contents and
 * may use it, whatever the umask of the maker is. */
static int make_file(const char *database, const char *path)
{
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
    number = fchmod(fd, model.st_mode & 0666) == 0 ? fill_file(fd) : errno;
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

/* A file that was cut short since is not mapped: to touch what is not there would kill. Without the
 * map waiters are not served in order and are not woken, and nothing else is missing. */
static void map_lines(struct sqlite_side *side)
{
    void *map = MAP_FAILED;

    if (side->identity.st_size >= SIDE_SLOTS_AT)
        map = mmap(NULL, SIDE_SLOTS_AT, PROT_READ | PROT_WRITE, MAP_SHARED, side->fd, 0);
    if (map == MAP_FAILED)
        return;
    side->map = map;
    side->lines = (struct line *)(void *)((char *)map + SIDE_LINES_AT);
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
        side->wait = calloc(1, sizeof *side->wait);
    }
    if (side == NULL || side->path == NULL || side->wait == NULL) {
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
    map_lines(side);
    *ret_side = side;
    return DBLOCK_OK;
}

void sqlite_side_abandon(struct sqlite_side *side)
{
    if (side->fd >= 0)
        (void)close(side->fd);
    side->fd = -1;
    if (side->map != NULL)
        (void)munmap(side->map, SIDE_SLOTS_AT);
    side->map = NULL;
    side->lines = NULL;
}

void sqlite_side_close(struct sqlite_side *side)
{
    if (side == NULL)
        return;
    sqlite_side_abandon(side);
    free(side->wait);
    free(side->path);
    free(side);
}
