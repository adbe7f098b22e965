/* SPDX-License-Identifier: MIT */
/**
 * status.h - what a call can answer, and the error that explains a failure
 *
 * The sign tells the kind. Zero: done. Above zero: the database answered, and
 * the answer is no; nothing failed. Below zero: something failed, and the
 * `reterr` of the call says what and what to do. Later versions may add
 * numbers, so a program tests the sign and names only what it treats apart.
 */
#ifndef DBLOCK_STATUS_H
#define DBLOCK_STATUS_H

#include <stdint.h>

#include "export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An int and not an enum: the size is known to every language, and a number of
 * a later version is still a valid value. Numbers are never removed or reused. */
typedef int dblock_status;

enum {
    DBLOCK_OK = 0,

    DBLOCK_BUSY = 1,           /* someone else holds it; nothing was changed */
    DBLOCK_LOST = 2,           /* this grant ended, and not by its holder: stop */
    DBLOCK_NOT_HELD = 3,       /* nothing to end: released before, or held by nobody */
    DBLOCK_CANCELLED = 4,      /* the canceller was raised; not held, nothing left behind */
    DBLOCK_PENDING = 5,        /* accepted; ends by itself once a guarded transaction ends */
    DBLOCK_STALE_SNAPSHOT = 6, /* roll back and begin again: reads are older than the grant */
    DBLOCK_ROLLED_BACK = 7,    /* the server ended or doomed the application's transaction */
    DBLOCK_CONFLICT = 8,       /* held under other terms: permits, mode, or an upgrade */
    DBLOCK_DONE = 9,           /* once: that key has run already */
    DBLOCK_EMPTY = 10,         /* no event is waiting */

    DBLOCK_E_ARGUMENT = -101,    /* wrong call; the message names the parameter */
    DBLOCK_E_UNSUPPORTED = -102, /* this database or strategy cannot; the hint says what can */
    DBLOCK_E_CALLBACK = -103,    /* not to be called from this callback */
    DBLOCK_E_FORKED = -104,      /* this client belongs to the parent process */
    DBLOCK_E_CLOSED = -105,      /* dblock_close() was called meanwhile */

    DBLOCK_E_CONNECTION = -201, /* not reached; the request had no effect */
    DBLOCK_E_UNCERTAIN = -202,  /* sent, and the answer was lost; the keeper goes on to settle it */
    DBLOCK_E_LOGIN = -203,      /* reached, and refused: password, TLS, database name */

    DBLOCK_E_SCHEMA = -301,     /* tables missing, older or changed; the hint mends it */
    DBLOCK_E_PERMISSION = -302, /* the role lacks a right; the hint has the GRANT */
    DBLOCK_E_READ_ONLY = -303,  /* a standby, or a file that cannot be written */
    DBLOCK_E_DATABASE = -304,   /* any other error of the server; see native_code */

    DBLOCK_E_MEMORY = -401,
    DBLOCK_E_SYSTEM = -402, /* descriptors, threads: native_code is errno */
    DBLOCK_E_DRIVER = -403  /* missing, of another release, or of another client library */
};

/**
 * struct dblock_error - why a call failed
 *
 * Owned by the caller, nothing in it to free, and filled completely whenever a
 * call answers below zero; untouched otherwise. Its size is part of the binary
 * interface and stays 1024 bytes. Texts are UTF-8, cut at a character, without
 * a full stop, and never contain a password.
 */
struct dblock_error {
    dblock_status status;  /* what the call returned */
    int32_t native_code;   /* the client library's number or errno; 0 if there is none */
    uint32_t is_transient; /* 1: the same call may succeed later without a change */
    char sqlstate[8];      /* five characters, or "" */
    uint32_t reserved[3];
    char message[480]; /* what was attempted, and the cause in the database's words */
    char hint[512];    /* the way out, or "" */
};

/* "DBLOCK_BUSY"; "DBLOCK_UNKNOWN" for a number of another version. Never NULL.
 * Any thread, any callback. */
DBLOCK_API const char *dblock_status_name(dblock_status status);

/* A sentence for people, like "someone else holds the lock". Never NULL. Any
 * thread, any callback. */
DBLOCK_API const char *dblock_status_text(dblock_status status);

#ifdef __cplusplus
}
#endif

#endif
