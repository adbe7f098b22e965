/* SPDX-License-Identifier: MIT */
/* pgsql_token.c - tokens of row and advisory locks, drawn when asked for. Why they
 * rise is said in sql/token.sql. */
#include "pgsql_error.h"
#include "pgsql_statement.h"
#include "pgsql_steps.h"

dblock_status pgsql_token_draw(struct dblock_connection *connection,
    const struct dblock_call *call, int32_t strategy, const struct dblock_subject *subject,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    dblock_status status;

    /* the lock's connection keeps one of the pooler's connections busy, and a few locks all of
     * them: the second one that this needs would then come when it is too late */
    if (connection->is_pooled && !connection->is_lent)
        return dblock_error_set(reterr, DBLOCK_E_UNSUPPORTED,
            "use a URL that leads to the server directly, or strategy lease",
            "cannot draw a token of row \"%s\": the connection goes through a pooler",
            subject->name);
    parameters.n = 0;
    pgsql_put_int32(&parameters, strategy);
    pgsql_put_token_name(&parameters, strategy, subject);
    pgsql_message_init(
        &message, connection, call, "draw a token of", subject->name, PGSQL_WRITES);
    status = pgsql_message_ask(&message, STATEMENT_TOKEN_DRAW, &parameters, reterr);
    if (status == DBLOCK_OK) {
        answer->now_us = pgsql_get_time(message.results[0], 0, 0);
        answer->outcome = DBLOCK_ANSWER_PINNED;
    }
    if (status == DBLOCK_OK && !PQgetisnull(message.results[0], 0, 1)) {
        answer->token = pgsql_get_int64(message.results[0], 0, 1);
        answer->outcome = DBLOCK_ANSWER_YES;
    }
    return pgsql_message_fini(&message, status, answer);
}

dblock_status pgsql_token_end(struct dblock_connection *connection,
    const struct dblock_call *call, int strategy, const struct dblock_subject *subject,
    int64_t token, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    dblock_status status;

    parameters.n = 0;
    pgsql_put_int32(&parameters, strategy);
    pgsql_put_token_name(&parameters, strategy, subject);
    pgsql_put_int64(&parameters, token);
    pgsql_message_init(
        &message, connection, call, "end the token of", subject->name, PGSQL_WRITES);
    status = pgsql_message_ask(&message, STATEMENT_TOKEN_END, &parameters, reterr);
    if (status == DBLOCK_OK)
        answer->outcome = pgsql_get_bool(message.results[0], 0, 0) ||
                !pgsql_get_bool(message.results[0], 0, 1)
            ? DBLOCK_ANSWER_YES
            : DBLOCK_ANSWER_PINNED;
    answer->token = token;
    return pgsql_message_fini(&message, status, answer);
}
