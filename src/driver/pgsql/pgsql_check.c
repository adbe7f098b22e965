/* SPDX-License-Identifier: MIT */
/* pgsql_check.c - what on this server would hurt. The server judges: sql/check.sql. */
#include "pgsql_statement.h"
#include "pgsql_steps.h"

dblock_status pgsql_observe_check(struct dblock_connection *connection,
    const struct dblock_call *call, dblock_finding_fn fn, void *context,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    dblock_status status;
    int row;

    parameters.n = 0;
    pgsql_put_bool(&parameters, connection->is_pooled && !connection->is_direct);
    pgsql_put_text(&parameters, connection->target->schema_quoted);
    pgsql_put_bool(&parameters, connection->is_lent);
    pgsql_message_init(&message, connection, call, "look at the server", NULL, PGSQL_READS);
    status = pgsql_message_ask(&message, STATEMENT_CHECK, &parameters, reterr);
    for (row = 0; status == DBLOCK_OK && row < PQntuples(message.results[0]); ++row) {
        const PGresult *result = message.results[0];
        char id[48], text[512], remedy[512];
        struct dblock_finding finding = { sizeof finding, pgsql_get_int32(result, row, 1),
            (uint32_t)pgsql_get_int32(result, row, 2), id, text, remedy };

        pgsql_get_text(result, row, 0, id, sizeof id);
        pgsql_get_text(result, row, 3, text, sizeof text);
        pgsql_get_text(result, row, 4, remedy, sizeof remedy);
        if (fn(&finding, context) != 0)
            break;
    }
    if (status == DBLOCK_OK)
        answer->outcome = DBLOCK_ANSWER_YES;
    return pgsql_message_fini(&message, status, answer);
}
