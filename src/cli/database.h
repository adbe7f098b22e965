/* SPDX-License-Identifier: MIT */
/* database.h - which database is meant, and a client of it. */
#ifndef CLI_DATABASE_H
#define CLI_DATABASE_H

#include "arguments.h"

#include <dblock/dblock.h>

#include <stdbool.h>

/* All zero is a database that is not known yet; database_close() accepts that. */
struct database {
    char *url;
    char *source;        /* where the URL stands, for messages; NULL: -d itself */
    bool is_from_option; /* -d: then COMMAND does not see the URL */
    bool is_local;       /* "local": the file is the user's own, and made by who takes a lock */
    const dblock_driver *driver;
    dblock_client *client; /* NULL after database_open(): local, and there is no file yet */
};

/* Finds the URL: -d, $DBLOCK_URL, the user's file, the system's file; resolves
 * @FILE and local; wipes a password out of argv. Returns -1, or the exit status
 * after a message. Connects to nothing. */
int database_find(const struct arguments *arguments, struct database *ret_database);

/* database_find(), then the driver and a client. `config` may be NULL. Only a command that takes
 * locks or makes tables makes the local file; to the others it may be missing, which is said. */
int database_open(const struct arguments *arguments, const struct dblock_config *config,
    struct database *ret_database);

/* Says what is wrong with the URL, and where it stands; returns the exit status. */
int database_refuse_url(const struct database *database, struct dblock_error *error,
    const char *consequence);

void database_close(struct database *database);

#endif
