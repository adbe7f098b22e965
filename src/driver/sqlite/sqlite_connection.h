/* SPDX-License-Identifier: MIT */
/* sqlite_connection.h - one connection: a handle of SQLite, or a descriptor of
 * the side file, or both. */
#ifndef DBLK_SQLITE_CONNECTION_H
#define DBLK_SQLITE_CONNECTION_H

#include "sqlite_chain.h"
#include "sqlite_slot.h"
#include "sqlite_target.h"

#include <sqlite3.h>
#include <sys/stat.h>

/* In the order of the table in sqlite_statement.c. Insert's are lease's plus an offset. */
enum {
    STATEMENT_PING,
    STATEMENT_VERIFY,
    STATEMENT_COUNT_TABLES,
    STATEMENT_SESSION_BEGIN,
    STATEMENT_SESSION_RENEW,
    STATEMENT_SESSION_END,
    STATEMENT_SESSION_END_EXPIRED,
    STATEMENT_SESSION_TOUCH,
    STATEMENT_SESSION_HOLDS,
    STATEMENT_SESSION_PURGE,
    STATEMENT_LEASE_TAKE,
    STATEMENT_LEASE_DROP,
    STATEMENT_LEASE_EXTEND,
    STATEMENT_LEASE_LOOK,
    STATEMENT_LEASE_DRAW,
    STATEMENT_LEASE_LIST,
    STATEMENT_LEASE_END,
    STATEMENT_LEASE_PURGE,
    STATEMENT_INSERT_TAKE,
    STATEMENT_INSERT_DROP,
    STATEMENT_INSERT_EXTEND,
    STATEMENT_INSERT_LOOK,
    STATEMENT_INSERT_DRAW,
    STATEMENT_INSERT_LIST,
    STATEMENT_INSERT_END,
    STATEMENT_INSERT_PURGE,
    STATEMENT_TOKEN_DRAW,
    STATEMENT_TOKEN_LOOK,
    STATEMENT_TOKEN_PURGE,
    N_STATEMENTS
};

#define N_NOTES 2

/* A byte of the side file that a connection holds. */
struct held_byte {
    int64_t offset;
    int64_t slot;   /* -1: none to be had */
    int64_t ticket; /* byte of the ticket it was waited for with, kept as long; 0: did not wait */
};

struct dblock_connection {
    struct dblock_target *target;
    int role;
    char *path;      /* the file itself, without symbolic links: the side file is beside it */
    sqlite3 *handle; /* NULL: not needed yet (row, advisory), or lent for the time of a step */
    int may_create;  /* it is install's */
    int is_lent;     /* the handle is the application's: sqlite_loan.h */
    struct dblock_connection *self; /* what the functions of our SQL answer to */
    sqlite3_stmt *statements[N_STATEMENTS];
    struct sqlite_side *side; /* row, advisory, line, or once it was wanted; else NULL */
    int has_no_side;          /* for lines it was wanted in vain */
    struct slot_list slots;
    struct held_byte *held; /* ascending by offset */
    size_t n_held, held_capacity;
    struct sqlite_chain chain; /* line: its place, until it leaves; else during a wait */
    int64_t left;              /* line: the byte of the ticket it left with last; 0 none */
    uint32_t heard;            /* line: the count of the bell that has been answered */

    /* of the step that runs */
    const struct dblock_call *call;
    const char *action;     /* "take lease", for messages */
    const char *name;       /* of the lock, or NULL */
    int64_t clock_us;       /* what dblock_now_us() said; 0: not asked yet */
    int64_t notes[N_NOTES]; /* what dblock_note() was told */
    int is_patient;         /* 0: do not wait for the write lock */
    int is_cancelled;       /* the wait for it was cancelled */

    int expects_busy;  /* the last take found a holder: look before the next one */
    int is_broken;     /* of no use any more */
    uint64_t moved_us; /* CLOCK_BOOTTIME: look again then whether the file was replaced */
    uint64_t random;   /* of the pauses; not for secrets */

    struct stat identity; /* st_dev and st_ino of the file when it was opened */
    struct dblock_connection *next, *previous; /* all of this process; see sqlite_fork.h */
};

dblock_status sqlite_connection_open(struct dblock_target *target, int role,
    const struct dblock_call *call, struct dblock_connection **ret_connection,
    struct dblock_answer *answer, struct dblock_error *reterr);
void sqlite_connection_close(struct dblock_connection *connection, int how);
int sqlite_connection_is_alive(const struct dblock_connection *connection);
int sqlite_connection_fd(const struct dblock_connection *connection);
dblock_status sqlite_connection_ping(struct dblock_connection *connection,
    const struct dblock_call *call, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status sqlite_connection_verify(struct dblock_connection *connection,
    const struct dblock_call *call, struct dblock_answer *answer, struct dblock_error *reterr);

/* Opens the handle if there is none; `may_create` for install alone. */
dblock_status sqlite_connection_handle(
    struct dblock_connection *connection, int may_create, struct dblock_error *reterr);
/* Whether the path now leads to another file than the one that is open. Then the connection is
 * broken: what it writes nobody else will ever see. Asks the file system at most every 50 ms. */
dblock_status sqlite_connection_check_moved(
    struct dblock_connection *connection, struct dblock_error *reterr);
/* Opens the side file if it is not open yet. */
dblock_status sqlite_connection_side(
    struct dblock_connection *connection, struct dblock_error *reterr);
/* Whether it lives in the side file: row, advisory and line do. */
int sqlite_connection_has_own_side(const struct dblock_connection *connection);
/* Gives up a side file that was replaced, if it is open for a look at others only. */
void sqlite_connection_renew_side(struct dblock_connection *connection);
/* The side file for its lines' sake: NULL if there is none to be had. */
struct sqlite_side *sqlite_connection_lines(struct dblock_connection *connection);
/* E_CONNECTION: the side file has been replaced, and what this connection has in it is nothing. */
dblock_status sqlite_connection_refuse_side(
    struct dblock_connection *connection, struct dblock_error *reterr);
/* A half-made connection for install: no file need be there yet. */
dblock_status sqlite_connection_new(struct dblock_target *target, int role, int may_create,
    struct dblock_connection **ret_connection, struct dblock_error *reterr);

/* A busy handler, of a connection whose step runs. */
int sqlite_wait_for_write_lock(void *connection, int n_waits);
/* The functions of our SQL, which answer to `*user` (NULL: with NULL). `end` (or NULL) is called once
 * they are gone, also if they could not be added. A code of SQLite. */
int sqlite_functions_add(
    sqlite3 *handle, struct dblock_connection **user, void (*end)(void *user));

/* A pause of up to 1.5 ms, or until the deadline or the cancel. 1: go on, 0: give up. */
int sqlite_pause(struct dblock_connection *connection, const struct dblock_call *call);

#endif
