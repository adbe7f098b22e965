/* SPDX-License-Identifier: MIT */
/* check.h - what on this database would hurt, and what mends it. Part of libdblock; in a
 * header of its own as few programs need it. */
#ifndef DBLOCK_CHECK_H
#define DBLOCK_CHECK_H

#include "dblock.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { /* how bad a finding is */
    DBLOCK_FINDING_GOOD = 0,
    DBLOCK_FINDING_WARNING = 1, /* it works, and will hurt one day */
    DBLOCK_FINDING_UNUSABLE = 2 /* what it touches is refused, or would lock nothing */
};

struct dblock_finding {
    size_t struct_size;
    int32_t severity;    /* DBLOCK_FINDING_* */
    uint32_t strategies; /* which ones it touches: 1 << DBLOCK_LEASE ... */
    const char *id;      /* stable, for programs: "pooler", "durability" */
    const char *text;    /* a sentence for people */
    const char *remedy;  /* the statement, setting or command that mends it; "" none is needed */
};

/* Strings live during the call. Non-zero stops. */
typedef int (*dblock_finding_fn)(const struct dblock_finding *finding, void *context);

/**
 * dblock_check - what on this database would hurt
 *
 * Looks at the server's settings, at the tables and at this role's rights, and
 * calls `fn` for each thing that it looked at, the good ones too, when all has
 * been read. Changes nothing. For a person, at set-up and after changes on the
 * server; for a health check dblock_ping() does. A few round trips.
 *
 * Returns
 *   DBLOCK_OK  looked at, whatever was found, also if `fn` stopped it. Tables that
 *              are missing, and rights to them, are findings
 *   others     the database cannot be reached or asked: as dblock_ping()
 */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_check(dblock_client *client,
    dblock_finding_fn fn, void *context, struct dblock_error *reterr);

#ifdef __cplusplus
}
#endif

#endif
