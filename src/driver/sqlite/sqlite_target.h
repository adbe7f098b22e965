/* SPDX-License-Identifier: MIT */
/* sqlite_target.h - a parsed URL: which file, and who we are. Immutable after
 * target_open, so threads share it without a lock. */
#ifndef DBLK_SQLITE_TARGET_H
#define DBLK_SQLITE_TARGET_H

#include <dblock/sys/driver.h>

/* At most so often it is asked whether the path leads elsewhere by now. */
#define SQLITE_MOVED_EVERY_US 50000u

struct dblock_target {
    char *path;  /* absolute; as given, so symbolic links are still in it */
    char *host;  /* of this process */
    char *label; /* of the client */
    int64_t pid;
    struct sqlite_loan *loan; /* a handle of the application; NULL: connections open their own */
};

dblock_status sqlite_target_open(const struct dblock_target_config *config,
    struct dblock_target **ret_target, struct dblock_error *reterr);
/* The same for a path; config->url is not looked at. */
dblock_status sqlite_target_open_path(const struct dblock_target_config *config, const char *path,
    struct dblock_target **ret_target, struct dblock_error *reterr);
void sqlite_target_close(struct dblock_target *target);

/* The two texts as one, to be freed; NULL without memory. */
char *sqlite_join(const char *first, const char *second);

/* Whether files of this kind (statfs: f_type) are shared between machines, or kept by a program
 * that may not carry locks: neither the write-ahead log nor kernel locks hold there. The name, or
 * NULL for a local file system. */
const char *sqlite_shared_file_system(unsigned long type);

/* A file that is mounted by itself has another path somewhere, and what belongs to it (the log, its
 * index, the side file) is beside that one and not beside this. 0 too where the kernel (before
 * Linux 5.8) or a filter of system calls does not tell. */
int sqlite_is_mounted_alone(const char *path);

#endif
