/* SPDX-License-Identifier: MIT */
/* pgsql_many.c - several names of lease or insert at once. What makes that safe is said at the
 * statements, in sql/many.sql. */
#define _DEFAULT_SOURCE /* htobe32 */
#include "pgsql_fit.h"
#include "pgsql_grant.h"
#include "pgsql_line.h"
#include "pgsql_statement.h"
#include "pgsql_steps.h"

#include <endian.h>
#include <stdlib.h>

enum { /* columns of a gate */
    GATE_SESSION_EXPIRES,
    GATE_STATE, /* "mine", "no", "line" */
    GATE_PLACE,
    GATE_IS_HELD, /* 1 ended, 2 in force */
    GATE_GRANT,
    GATE_ENDED,
    GATE_HELD,
    GATE_NOW
};

enum { /* of a take */
    TAKE_NAME,
    TAKE_TOKEN,
    TAKE_NOW
};

enum { /* of a drop */
    DROP_NAME,
    DROP_NOW,
    DROP_WAS_IN_FORCE
};

enum { RESULT_GATE, RESULT_TAKE, RESULT_KEEP };

enum { HEAD = 20, LENGTH = 4 }; /* of an array in the server's binary format; of each element */

struct array {
    size_t size;
    size_t n_elements;
    unsigned char *bytes;
};

/* The names, owners, and keys of the lines. */
struct arrays {
    struct array names, owners, keys[2];
    unsigned char name_bytes[HEAD + DBLOCK_MANY_MAX * (LENGTH + DBLOCK_NAME_MAX)];
    unsigned char owner_bytes[HEAD + DBLOCK_MANY_MAX * (LENGTH + DBLOCK_ID_SIZE)];
    unsigned char key_bytes[2][HEAD + DBLOCK_MANY_MAX * (LENGTH + 4)];
};

static void write_32(unsigned char *target, uint32_t number)
{
    number = htobe32(number);
    memcpy(target, &number, sizeof number);
}

/* One dimension from 1, no NULL; the number of elements comes at the end. */
static void begin_array(struct array *array, unsigned char *bytes, uint32_t type)
{
    static const unsigned char head[HEAD] = { 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        1 };

    array->bytes = bytes;
    array->size = HEAD;
    array->n_elements = 0;
    memcpy(bytes, head, HEAD);
    write_32(bytes + 8, type);
}

static void append(struct array *array, const void *bytes, size_t size)
{
    write_32(array->bytes + array->size, (uint32_t)size);
    memcpy(array->bytes + array->size + LENGTH, bytes, size);
    array->size += LENGTH + size;
    write_32(array->bytes + 12, (uint32_t)++array->n_elements);
}

/* Those whose answer is still wanted; `is_all`: each of them. */
static void fill(struct arrays *arrays, const struct dblock_target *target, int32_t strategy,
    const struct dblock_many *many, int is_all)
{
    unsigned char number[4];
    uint64_t key;
    size_t i;
    int k;

    begin_array(&arrays->names, arrays->name_bytes, PGSQL_TYPE_BYTEA);
    begin_array(&arrays->owners, arrays->owner_bytes, PGSQL_TYPE_BYTEA);
    for (k = 0; k < 2; ++k)
        begin_array(&arrays->keys[k], arrays->key_bytes[k], PGSQL_TYPE_INT4);
    for (i = 0; i < many->n_names; ++i) {
        if (!is_all &&
            (many->outcomes[i] == DBLOCK_ANSWER_YES || many->outcomes[i] == DBLOCK_ANSWER_NO))
            continue;
        append(&arrays->names, many->subjects[i].name, many->subjects[i].name_size);
        append(&arrays->owners, many->owners[i], DBLOCK_ID_SIZE);
        key = pgsql_line_key(target, strategy, &many->subjects[i]);
        for (k = 0; k < 2; ++k) {
            write_32(number, (uint32_t)(k == 0 ? key >> 32 : key));
            append(&arrays->keys[k], number, sizeof number);
        }
    }
}

static void put(struct pgsql_parameters *parameters, const struct array *array, int is_bytes)
{
    pgsql_put_array(parameters, is_bytes, array != NULL ? array->bytes : NULL,
        array != NULL ? array->size : 0);
}

static char read_state(const PGresult *gate)
{
    return pgsql_get_letter(gate, 0, GATE_STATE);
}

/* 0: some grants have ended, and are to be cleared away. */
static int32_t judge_take(const struct dblock_take *terms, const struct dblock_many *many,
    const struct pgsql_message *message)
{
    const PGresult *gate = message->results[RESULT_GATE];
    int64_t now_us = pgsql_get_time(gate, 0, GATE_NOW);

    if (PQntuples(message->results[RESULT_TAKE]) == (int)many->n_names &&
        PQntuples(message->results[RESULT_KEEP]) == 0)
        return DBLOCK_ANSWER_YES;
    if (terms->session != NULL && PQgetisnull(gate, 0, GATE_SESSION_EXPIRES))
        return DBLOCK_ANSWER_SESSION;
    if (pgsql_get_int32(gate, 0, GATE_IS_HELD) == 2)
        return DBLOCK_ANSWER_BUSY;
    if (now_us > terms->not_after_us)
        return DBLOCK_ANSWER_LATE;
    if (read_state(gate) == 'l')
        return DBLOCK_ANSWER_BUSY;
    return pgsql_get_int32(gate, 0, GATE_IS_HELD) == 1 ? 0 : DBLOCK_ANSWER_AGAIN;
}

static void tell_grants(const struct dblock_take *terms, const struct dblock_many *many,
    const struct pgsql_message *message, struct dblock_answer *answer)
{
    const PGresult *gate = message->results[RESULT_GATE];
    const PGresult *taken = message->results[RESULT_TAKE];
    struct pgsql_field name;
    size_t i;
    int row;

    answer->now_us = pgsql_get_time(taken, 0, TAKE_NOW);
    answer->session_remaining_us =
        pgsql_remaining(pgsql_get_time(gate, 0, GATE_SESSION_EXPIRES), answer->now_us);
    answer->remaining_us = terms->session != NULL ? answer->session_remaining_us : terms->ttl_us;
    for (row = 0; row < PQntuples(taken); ++row) {
        name = pgsql_get_field(taken, row, TAKE_NAME);
        for (i = 0; i < many->n_names; ++i)
            if (name.size == many->subjects[i].name_size &&
                memcmp(name.bytes, many->subjects[i].name, name.size) == 0)
                many->tokens[i] = pgsql_get_int64(taken, row, TAKE_TOKEN);
    }
}

/* The next of "1,17,64" as a place from 0; n_names: there is none. */
static size_t next_place(const char **list, size_t n_names)
{
    char *end;
    unsigned long place = strtoul(*list, &end, 10);

    *list = *end == ',' ? end + 1 : end;
    return place == 0 || place > n_names ? n_names : place - 1;
}

static void tell_held(const struct dblock_many *many, const PGresult *gate)
{
    char held[DBLOCK_MANY_MAX * 4];
    const char *next = held;
    size_t place;

    pgsql_get_text(gate, 0, GATE_HELD, held, sizeof held);
    while ((place = next_place(&next, many->n_names)) < many->n_names)
        many->outcomes[place] = DBLOCK_ANSWER_BUSY;
}

static void tell_holder(const struct pgsql_hold *hold, const struct dblock_many *many,
    const PGresult *gate, size_t *ret_place, struct dblock_grant *holder,
    struct dblock_answer *answer)
{
    int64_t place = pgsql_get_int64(gate, 0, GATE_PLACE);

    answer->now_us = pgsql_get_time(gate, 0, GATE_NOW);
    answer->session_remaining_us =
        pgsql_remaining(pgsql_get_time(gate, 0, GATE_SESSION_EXPIRES), answer->now_us);
    if (place > 0 && (uint64_t)place <= many->n_names)
        *ret_place = (size_t)place - 1;
    if (answer->outcome != DBLOCK_ANSWER_BUSY || read_state(gate) == 'l')
        return;
    tell_held(many, gate);
    answer->remaining_us =
        pgsql_remaining(pgsql_grant_expires(gate, 0, GATE_GRANT), answer->now_us);
    if (holder != NULL)
        pgsql_grant_row(holder, hold->strategy, gate, 0, GATE_GRANT, answer->now_us, 1);
}

struct attempt {
    const struct pgsql_hold *hold;
    struct dblock_connection *connection;
    const struct dblock_call *call;
    const struct dblock_take *terms;
    const struct dblock_many *many;
    const struct arrays *arrays;
    char ended[DBLOCK_MANY_MAX * 4]; /* the places of grants that have ended: "1,17,64" */
};

static void add_statements(const struct attempt *attempt, struct pgsql_message *message)
{
    const struct dblock_target *target = attempt->connection->target;
    const struct dblock_take *terms = attempt->terms;
    const struct arrays *arrays = attempt->arrays;
    char host[PGSQL_FIT_SIZE], label[PGSQL_FIT_SIZE];
    struct pgsql_parameters parameters;
    int k;

    parameters.n = 0;
    put(&parameters, &arrays->names, 1);
    pgsql_put_id(&parameters, terms->session);
    pgsql_put_time(&parameters, terms->not_after_us);
    for (k = 0; k < 2; ++k)
        put(&parameters, terms->heeds_line ? &arrays->keys[k] : NULL, 0);
    pgsql_message_add(message, attempt->hold->many_gate, &parameters);
    parameters.n = 2;
    pgsql_put_duration(&parameters, terms->ttl_us);
    put(&parameters, &arrays->owners, 1);
    pgsql_put_text(&parameters, pgsql_fit(attempt->connection, terms->label, label));
    pgsql_put_text(&parameters, pgsql_fit(attempt->connection, target->host, host));
    pgsql_put_int64(&parameters, target->pid);
    pgsql_message_add(message, attempt->hold->many_take, &parameters);
    parameters.n = 1;
    put(&parameters, &arrays->owners, 1);
    pgsql_put_time(&parameters, terms->not_after_us);
    pgsql_message_add(message, attempt->hold->many_keep, &parameters);
}

static dblock_status take(struct attempt *attempt, size_t *ret_place, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct pgsql_message message;
    dblock_status status;

    pgsql_message_init(&message, attempt->connection, attempt->call, attempt->hold->take_action,
        attempt->many->subjects[0].name, PGSQL_WRITES);
    add_statements(attempt, &message);
    status = pgsql_message_run(&message, reterr);
    if (status == DBLOCK_OK) {
        answer->outcome = judge_take(attempt->terms, attempt->many, &message);
        pgsql_get_text(message.results[RESULT_GATE], 0, GATE_ENDED, attempt->ended,
            sizeof attempt->ended);
        if (answer->outcome == DBLOCK_ANSWER_YES)
            tell_grants(attempt->terms, attempt->many, &message, answer);
        else
            tell_holder(attempt->hold, attempt->many, message.results[RESULT_GATE], ret_place, holder,
                answer);
    }
    return pgsql_message_fini(&message, status, answer);
}

/* The grant of that name has ended without being given back. `answer` says PINNED if somebody stands
 * on its row; anything else is found out by the next take. */
static dblock_status clear(const struct attempt *attempt, size_t place,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    const struct dblock_subject *subject = &attempt->many->subjects[place];
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    dblock_status status;

    parameters.n = 0;
    pgsql_put_name(&parameters, subject);
    pgsql_put_id(&parameters, attempt->terms->session);
    pgsql_put_time(&parameters, attempt->terms->not_after_us);
    pgsql_put_bool(&parameters, 1);
    pgsql_put_null_int32(&parameters);
    pgsql_put_null_int32(&parameters);
    pgsql_message_init(&message, attempt->connection, attempt->call, attempt->hold->take_action,
        subject->name, PGSQL_WRITES);
    pgsql_message_add(&message, attempt->hold->gate, &parameters);
    parameters.n = 1;
    pgsql_message_add(&message, attempt->hold->clear, &parameters);
    status = pgsql_message_run(&message, reterr);
    if (status == DBLOCK_OK) {
        const PGresult *gate = message.results[0];

        answer->now_us = pgsql_get_time(gate, 0, 3);
        if (pgsql_get_letter(gate, 0, 1) == 'm' && !PQgetisnull(gate, 0, 2) &&
            !pgsql_get_bool(message.results[1], 0, 0))
            answer->outcome = DBLOCK_ANSWER_PINNED;
    }
    status = pgsql_message_fini(&message, status, answer);
    /* no name of ours was in it: whatever became of it, nothing is taken */
    return status == DBLOCK_E_UNCERTAIN ? DBLOCK_E_CONNECTION : status;
}

static dblock_status clear_all(const struct attempt *attempt, size_t *ret_place,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    const char *next = attempt->ended;
    dblock_status status = DBLOCK_OK;
    size_t place;

    while (status == DBLOCK_OK && answer->outcome != DBLOCK_ANSWER_PINNED) {
        place = next_place(&next, attempt->many->n_names);
        if (place == attempt->many->n_names)
            break;
        *ret_place = place;
        status = clear(attempt, place, answer, reterr);
    }
    return status;
}

dblock_status pgsql_hold_take_many(const struct pgsql_hold *hold,
    struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_take *terms, const struct dblock_many *many, size_t *ret_place,
    struct dblock_grant *holder, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct arrays arrays;
    struct attempt attempt = { hold, connection, call, terms, many, &arrays, "" };
    dblock_status status;

    fill(&arrays, connection->target, hold->strategy, many, 1);
    status = take(&attempt, ret_place, holder, answer, reterr);
    if (pgsql_fit_is_wanted(connection, status, reterr))
        status = take(&attempt, ret_place, holder, answer, reterr);
    if (status != DBLOCK_OK || answer->outcome != 0)
        return status;
    status = clear_all(&attempt, ret_place, answer, reterr);
    if (status != DBLOCK_OK)
        return status;
    if (answer->outcome == DBLOCK_ANSWER_PINNED) {
        answer->remaining_us = DBLOCK_NO_END;
        if (holder != NULL)
            holder->is_pinned = 1;
        return DBLOCK_OK;
    }
    status = take(&attempt, ret_place, holder, answer, reterr);
    if (status == DBLOCK_OK && answer->outcome == 0)
        answer->outcome = DBLOCK_ANSWER_AGAIN; /* another one has ended meanwhile */
    return status;
}

dblock_status pgsql_hold_drop_many(const struct pgsql_hold *hold,
    struct dblock_connection *connection, const struct dblock_call *call,
    const struct dblock_many *many, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct pgsql_parameters parameters;
    struct pgsql_message message;
    struct arrays arrays;
    int is_told[DBLOCK_MANY_MAX] = { 0 };
    dblock_status status;
    size_t i;
    int row;

    fill(&arrays, connection->target, hold->strategy, many, 0);
    parameters.n = 0;
    put(&parameters, &arrays.names, 1);
    put(&parameters, &arrays.owners, 1);
    put(&parameters, &arrays.keys[0], 0);
    put(&parameters, &arrays.keys[1], 0);
    pgsql_message_init(&message, connection, call, hold->drop_action, many->subjects[0].name,
        PGSQL_WRITES);
    status = pgsql_message_ask(&message, hold->many_drop, &parameters, reterr);
    for (row = 0; status == DBLOCK_OK && row < PQntuples(message.results[0]); ++row) {
        const struct pgsql_field name = pgsql_get_field(message.results[0], row, DROP_NAME);

        answer->now_us = pgsql_get_time(message.results[0], row, DROP_NOW);
        for (i = 0; i < many->n_names; ++i)
            if (name.size == many->subjects[i].name_size &&
                memcmp(name.bytes, many->subjects[i].name, name.size) == 0) {
                is_told[i] = 1;
                many->outcomes[i] = pgsql_get_bool(message.results[0], row, DROP_WAS_IN_FORCE)
                    ? DBLOCK_ANSWER_YES
                    : DBLOCK_ANSWER_NO;
            }
    }
    status = pgsql_message_fini(&message, status, answer);
    if (status != DBLOCK_OK || answer->outcome != 0)
        return status;
    for (i = 0; i < many->n_names && status == DBLOCK_OK; ++i) {
        if (is_told[i] || many->outcomes[i] == DBLOCK_ANSWER_YES ||
            many->outcomes[i] == DBLOCK_ANSWER_NO)
            continue;
        status = pgsql_hold_judge_skipped(hold, connection, call, &many->subjects[i],
            many->owners[i], DBLOCK_ANSWER_NO, answer, reterr);
        if (status == DBLOCK_OK)
            many->outcomes[i] = answer->outcome;
    }
    answer->outcome = 0;
    return status;
}
