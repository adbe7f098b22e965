/* SPDX-License-Identifier: MIT */
/* pgsql_error.h - what the server and libpq complain about, as our statuses. */
#ifndef DBLK_PGSQL_ERROR_H
#define DBLK_PGSQL_ERROR_H

#include "pgsql_connection.h"

/* Internal: the database decided against us (deadlock, serialization, a wait that took too long);
 * without effect. Steps make DBLOCK_ANSWER_AGAIN of it. */
#define PGSQL_CONFLICT 1001

/* The table by itself: the status of an error of five characters; "" or one that is not known:
 * E_DATABASE. */
dblock_status pgsql_status_of(const char *sqlstate);
/* Whether the server ends the session with such an error, or has ended it, or the session is of no
 * use any more. One that holds locks is of use. */
int pgsql_is_end_of_session(const struct dblock_connection *connection, const char *sqlstate);

#define PGSQL_HINT_INIT "run: dblock init"

/* An error of the server: fills `*reterr` unless it is a PGSQL_CONFLICT. `name`: of the lock, or
 * NULL. */
dblock_status pgsql_server_error(const struct dblock_connection *connection, const char *action,
    const char *name, const PGresult *result, struct dblock_error *reterr);
/* The connection itself failed. `status`: E_CONNECTION or E_UNCERTAIN. `reason`: NULL for what
 * libpq says. */
dblock_status pgsql_connection_error(const struct dblock_connection *connection,
    const char *action, const char *name, dblock_status status, const char *reason,
    struct dblock_error *reterr);
/* Connecting failed; libpq's message was asked for at PQERRORS_VERBOSE. */
dblock_status pgsql_connect_error(PGconn *pg, struct dblock_error *reterr);
/* The role lacks a right that only verify found missing. */
dblock_status pgsql_rights_error(const struct dblock_connection *connection, const char *action,
    struct dblock_error *reterr);

#endif
