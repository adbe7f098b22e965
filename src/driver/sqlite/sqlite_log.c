/* SPDX-License-Identifier: MIT */
/* sqlite_log.c - leaves the write-ahead log in place at the end of a program.
 *
 * The last connection that closes copies the log into the file and removes it, and the next one
 * makes it anew: four flushes and four changes of a folder for each short program, a third of
 * what `dblock run` took. A log that stays is read by whoever opens the file next, as after a
 * crash, and that takes no longer than to make one. It is done where it harms nobody:
 *   Only where all tables are ours. Another program's file can be copied, or moved without its
 *   log, by people who know that nothing uses it; they shall find it whole. Of ours, such a copy
 *   has the tables (install closes as SQLite does) and lacks grants that are over.
 *   Only when the log and its index belong to whom the file belongs to, so that everybody who may
 *   write the file may write them: what one user leaves must not shut out the next.
 *   Only while it is short. What is longer is copied and removed as ever.
 * A power cut loses no more than it does between two commits: session.sql. */
#include "sqlite_log.h"

#include <stdio.h>
#include <sys/stat.h>

#define LONGEST_LOG (256 * 1024) /* some fifteen times `dblock run` */

static int is_like_the_file(
    const struct dblock_connection *connection, const char *ending, off_t longest)
{
    struct stat file;
    struct stat beside;
    char path[4096];
    int length = snprintf(path, sizeof path, "%s%s", connection->path, ending);

    return length > 0 && (size_t)length < sizeof path && stat(connection->path, &file) == 0 &&
        stat(path, &beside) == 0 && beside.st_size > 0 && beside.st_size <= longest &&
        beside.st_uid == file.st_uid && beside.st_gid == file.st_gid && beside.st_mode == file.st_mode;
}

static int is_ours_alone(sqlite3 *handle)
{
    static const char ask[] = "SELECT count(*) FROM sqlite_master WHERE tbl_name NOT GLOB 'dblock_*'"
                              " AND tbl_name NOT GLOB 'sqlite_*'";
    sqlite3_stmt *statement = NULL;
    int is_alone = 0;

    if (sqlite3_prepare_v2(handle, ask, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        is_alone = sqlite3_column_int(statement, 0) == 0;
    (void)sqlite3_finalize(statement);
    return is_alone;
}

void sqlite_log_keep(struct dblock_connection *connection)
{
    if (is_like_the_file(connection, "-wal", LONGEST_LOG) &&
        is_like_the_file(connection, "-shm", 1 << 30) && is_ours_alone(connection->handle))
        (void)sqlite3_db_config(
            connection->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)NULL);
}
