/* SPDX-License-Identifier: MIT */
/* pgsql_target.h - a parsed URL: where to connect, who we are, and the statements
 * with the schema written into them. Immutable after target_open (but for the alarm), so
 * threads share it without a lock. */
#ifndef DBLK_PGSQL_TARGET_H
#define DBLK_PGSQL_TARGET_H

#include <dblock/sys/driver.h>

#include <libpq-fe.h>
#include <stdatomic.h>

#include "pgsql_alarm.h"
#include "pgsql_texts.h"

struct dblock_target {
    char **keywords; /* for PQconnectStartParams(), ended by NULL */
    char **values;
    size_t n_values;
    int names_application; /* the URL has an application_name; else the last keyword is that, and
                            * each connection fills in a value of its own */
    char *schema;          /* as given */
    char *schema_quoted;   /* as an identifier in SQL */
    char *texts[N_STATEMENTS];
    char *host;  /* of this process */
    char *label; /* of the client */
    int64_t pid;
    uint64_t io_timeout_us;
    uint64_t ttl_us;
    PGconn *lent;             /* the application's connection: the only one there is; NULL */
    atomic_flag is_lent_used; /* by a message */
    /* for waits on connections of the application: of whoever needs it first */
    atomic_flag is_alarm_used;
    struct pgsql_alarm alarm;
};

dblock_status pgsql_target_open(const struct dblock_target_config *config,
    struct dblock_target **ret_target, struct dblock_error *reterr);
void pgsql_target_close(struct dblock_target *target);

#endif
