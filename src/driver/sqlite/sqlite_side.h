/* SPDX-License-Identifier: MIT */
/* sqlite_side.h - the side file, PATH-dblock: a byte for each name, locked in the
 * kernel by whoever holds the name.
 *
 * Exclusion is the byte's lock and nothing else. It belongs to one open file
 * description (F_OFD_SETLK), that is to one connection, and ends with it, also by
 * kill -9; it neither meets the locks of SQLite nor falls when another descriptor of
 * the file is closed. The bytes far behind the file's end have no contents: locks
 * need none.
 *
 *   offset 0              which kind of file this is
 *   4096 + 128 * i        line i: in which order a name is waited for (sqlite_line.h);
 *                         this part is mapped into memory
 *   69632 + 1024 * i      slot i: what the holder says of itself (sqlite_slot.h)
 *   2^59 + 2^44 * i + t   lock: ticket t of line i belongs to a living connection
 *   2^60 + i              lock: slot i belongs to a living connection
 *   2^61 + number         lock: the row lock of the name with that number
 *   2^62 + number         lock: the advisory lock with that number
 *
 * The number is the low 61 bits of dblock_name_number(), or of the advisory id that
 * was given. Two names with one number would only keep each other out.
 *
 * The file must not be deleted while it is in use: whoever makes it anew locks in
 * another file. So each grant is followed by a look whether the path still leads to
 * the file that is open. */
#ifndef DBLK_SQLITE_SIDE_H
#define DBLK_SQLITE_SIDE_H

#include <dblock/sys/driver.h>

#include <sys/stat.h>

#define SIDE_LINES_AT 4096
#define SIDE_N_LINES 512
#define SIDE_LINE_SIZE 128
#define SIDE_SLOTS_AT (SIDE_LINES_AT + SIDE_N_LINES * SIDE_LINE_SIZE)
#define SIDE_TICKET_LOCKS ((int64_t)1 << 59)
#define SIDE_SLOT_LOCKS ((int64_t)1 << 60)
#define SIDE_ROW_LOCKS ((int64_t)1 << 61)
#define SIDE_ADVISORY_LOCKS ((int64_t)1 << 62)

struct line;
struct side_wait;

struct sqlite_side {
    int fd; /* -1 in a forked child */
    char *path;
    void *map;          /* the file up to its slots; NULL: cannot be mapped, or in a forked child */
    struct line *lines; /* in it; NULL: there are no lines */
    struct stat identity;
    struct side_wait *wait; /* of the one thread that may be in a wait without an end */
};

/* Opens the side file of the database at `path`, with its owner and mode if it has to be made. */
dblock_status sqlite_side_open(
    const char *path, struct sqlite_side **ret_side, struct dblock_error *reterr);
/* In a forked child: gives up the descriptor and the map, and nothing else. */
void sqlite_side_abandon(struct sqlite_side *side);
/* Closes the descriptor: all that it holds is free. Takes NULL. */
void sqlite_side_close(struct sqlite_side *side);

/* The byte of a lock. `number`: of the name, or the advisory id. */
int64_t sqlite_side_offset(int strategy, int64_t number);

/* One byte, without waiting. 0, EAGAIN (another connection has it), or another errno. */
int sqlite_side_lock(struct sqlite_side *side, int64_t offset);
void sqlite_side_unlock(struct sqlite_side *side, int64_t offset);
/* Whether another connection has the byte; of a run of such bytes `*ret_end` is the first byte
 * behind. One's own locks are not seen. */
int sqlite_side_is_locked(struct sqlite_side *side, int64_t offset, int64_t *ret_end);

/* Whether other connections have any byte from `first` to before `end`. */
int sqlite_side_has_locks(struct sqlite_side *side, int64_t first, int64_t end);

/* Wait without an end, for the one thread of a helper (sqlite_helper.h), which may be cancelled
 * there: until the byte is ours, or until whoever has it has let go. 0, or an errno. */
int sqlite_side_wait_lock(struct sqlite_side *side, int64_t offset);
int sqlite_side_wait_free(struct sqlite_side *side, int64_t offset);

/* Whether the path still leads to this file. */
int sqlite_side_is_in_place(const struct sqlite_side *side);

#endif
