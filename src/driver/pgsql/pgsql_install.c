/* SPDX-License-Identifier: MIT */
/* pgsql_install.c - applying the schema's text, over a connection of its own. */
#include "pgsql_error.h"
#include "pgsql_receive.h"
#include "pgsql_sql.h"
#include "pgsql_statement.h"
#include "pgsql_steps.h"

#include <poll.h>

static dblock_status run_one(struct dblock_connection *connection, const struct dblock_call *call,
    enum pgsql_statement statement, const char *text, int *ret_is_there,
    struct dblock_error *reterr)
{
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    struct dblock_answer unused;
    dblock_status status;

    parameters.n = 0;
    if (text != NULL)
        pgsql_put_text(&parameters, text);
    pgsql_message_init(&message, connection, call, "create the tables of dblock", NULL,
        PGSQL_WRITES | PGSQL_OWN_BOUNDS);
    status = pgsql_message_ask(&message, statement, &parameters, reterr);
    if (status == DBLOCK_OK && ret_is_there != NULL)
        *ret_is_there = pgsql_get_bool(message.results[0], 0, 0);
    (void)pgsql_message_fini(&message, status, &unused);
    return status;
}

static dblock_status make_schema(struct dblock_connection *connection,
    const struct dblock_call *call, struct dblock_error *reterr)
{
    const char *schema = connection->target->schema;
    int is_there = 0;
    dblock_status status =
        run_one(connection, call, STATEMENT_INSTALL_SCHEMA, schema, &is_there, reterr);

    if (status != DBLOCK_OK || is_there)
        return status;
    status = run_one(connection, call, STATEMENT_INSTALL_MAKE_SCHEMA, NULL, NULL, reterr);
    if (status == DBLOCK_OK || !pgsql_connection_is_alive(connection))
        return status;
    /* made by another installation in this moment? */
    if (run_one(connection, call, STATEMENT_INSTALL_SCHEMA, schema, &is_there, NULL) ==
            DBLOCK_OK &&
        is_there)
        return DBLOCK_OK;
    return status;
}

/* Many statements in one text: the simple protocol, outside of pipeline mode. The answers are read
 * to the end; the first error is the one that counts. */
static dblock_status run_script(struct dblock_connection *connection,
    const struct dblock_call *call, const char *text, struct dblock_error *reterr)
{
    const char *action = "create the tables of dblock";
    PGconn *pg = connection->pg;
    PGresult *result = NULL;
    dblock_status status = DBLOCK_OK;

    connection->is_busy = 1;
    pgsql_receive_after_poll(connection);
    if (!PQexitPipelineMode(pg) || !PQsendQuery(pg, text))
        goto lost;
    for (;;) {
        while (PQflush(pg) == 1 || PQisBusy(pg)) {
            if (dblock_fd_wait(PQsocket(pg), POLLIN, call, 0) <= 0) {
                connection->is_broken = 1;
                return pgsql_connection_error(connection, action, NULL, DBLOCK_E_UNCERTAIN,
                    "no answer from the server in time", reterr);
            }
            if (!PQconsumeInput(pg))
                break;
        }
        result = PQgetResult(pg);
        if (result == NULL)
            break;
        if (status == DBLOCK_OK && PQresultStatus(result) == PGRES_FATAL_ERROR) {
            if (PQresultErrorField(result, PG_DIAG_SQLSTATE) == NULL) {
                PQclear(result);
                goto lost;
            }
            status = pgsql_server_error(connection, action, NULL, result, reterr);
        }
        PQclear(result);
    }
    connection->is_busy = 0;
    if (!PQenterPipelineMode(pg))
        connection->is_broken = 1;
    return status;
lost:
    connection->is_broken = 1;
    return pgsql_connection_error(connection, action, NULL, DBLOCK_E_UNCERTAIN, NULL, reterr);
}

static dblock_status create_tables(struct dblock_connection *connection,
    const struct dblock_call *call, struct dblock_error *reterr)
{
    dblock_status status =
        run_one(connection, call, STATEMENT_BEGIN_COMMITTED, NULL, NULL, reterr);

    if (status == DBLOCK_OK)
        status = run_one(connection, call, STATEMENT_INSTALL_PATH,
            connection->target->schema_quoted, NULL, reterr);
    if (status == DBLOCK_OK)
        status = run_script(connection, call, pgsql_schema_text, reterr);
    if (status == DBLOCK_OK)
        status = run_one(connection, call, STATEMENT_COMMIT, NULL, NULL, reterr);
    return status;
}

dblock_status pgsql_install(
    struct dblock_target *target, const struct dblock_call *call, struct dblock_error *reterr)
{
    struct dblock_connection *connection = NULL;
    struct dblock_answer answer;
    dblock_status status =
        pgsql_connection_open(target, DBLOCK_ROLE_SHORT, call, &connection, &answer, reterr);

    if (status == DBLOCK_OK)
        status = make_schema(connection, call, reterr);
    if (status == DBLOCK_OK)
        status = create_tables(connection, call, reterr);
    if (status == PGSQL_CONFLICT) {
        status = dblock_error_set(reterr, DBLOCK_E_DATABASE, "try again",
            "cannot create the tables of dblock: another installation was under way");
        dblock_error_native(reterr, 0, NULL, 1);
    }
    if (status == DBLOCK_E_PERMISSION && reterr != NULL)
        dblock_text_copy(reterr->hint, sizeof reterr->hint,
            "GRANT CREATE ON SCHEMA public (or CREATE ON DATABASE, for a new schema) to this role,"
            " or run the text of `dblock schema` as the owner");
    pgsql_connection_close(connection, DBLOCK_CLOSE_POLITE);
    return status;
}
