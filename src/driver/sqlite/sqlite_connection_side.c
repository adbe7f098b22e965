/* SPDX-License-Identifier: MIT */
/* sqlite_connection_side.c - the side file of a connection: opened when it is needed,
 * and again when it was replaced. */
#include "sqlite_connection.h"

#include "sqlite_fork.h"

int sqlite_connection_has_own_side(const struct dblock_connection *connection)
{
    return connection->role == DBLOCK_ROLE_ROW || connection->role == DBLOCK_ROLE_ADVISORY ||
           connection->role == DBLOCK_ROLE_LINE;
}

dblock_status sqlite_connection_side(
    struct dblock_connection *connection, struct dblock_error *reterr)
{
    struct sqlite_side *side = NULL;
    dblock_status status;

    if (connection->side != NULL)
        return DBLOCK_OK;
    sqlite_fork_hold();
    status = sqlite_side_open(connection->path, &side, reterr);
    connection->side = side;
    sqlite_fork_let_go();
    return status;
}

/* A side file that was replaced: nobody waits in the old one. Where bytes or places are held
 * it stays: those steps notice by themselves. */
void sqlite_connection_renew_side(struct dblock_connection *connection)
{
    struct sqlite_side *side = connection->side;

    connection->has_no_side = 0;
    if (side == NULL || sqlite_connection_has_own_side(connection) || sqlite_side_is_in_place(side))
        return;
    sqlite_fork_hold();
    connection->side = NULL;
    sqlite_fork_let_go();
    sqlite_side_close(side);
}

struct sqlite_side *sqlite_connection_lines(struct dblock_connection *connection)
{
    struct dblock_error error; /* whoever cannot look at lines works without */

    if (connection->side == NULL && !connection->has_no_side)
        connection->has_no_side = sqlite_connection_side(connection, &error) != DBLOCK_OK;
    return connection->side;
}

dblock_status sqlite_connection_refuse_side(
    struct dblock_connection *connection, struct dblock_error *reterr)
{
    connection->is_broken = 1;
    return dblock_error_set(reterr, DBLOCK_E_CONNECTION,
        "never delete or replace the file while programs use it",
        "cannot lock in %s: the file that was open has been deleted or replaced",
        connection->side->path);
}
