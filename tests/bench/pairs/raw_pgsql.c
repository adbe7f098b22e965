/* SPDX-License-Identifier: MIT */
/* raw_pgsql.c - pairs directly on libpq: the statements that the driver sends in a pair,
 * recorded from it (record_pgsql.h) and sent again with the same values: prepared, binary,
 * one message each way, on a connection with the driver's settings; several statements
 * in a pipeline, one without, which is the cheaper way in either case. Nothing
 * is encoded or looked at, so this is the least that any client would do. */
#define _DEFAULT_SOURCE /* htobe32 */
#include "pairs.h"

#include <dblock/pgsql.h>

#include <endian.h>
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

#include "pgsql_sql.h"
#include "record_pgsql.h"

enum { INT4 = 23, TIMESTAMPTZ = 1184 };

struct raw {
    PGconn *pg;
    struct library *recorded; /* kept: the grants name its session */
    int is_patient;           /* the release waits for the disk, too */
    struct recorded_message messages[N_MESSAGES];
};

static const int binary[N_PARAMETERS_MAX] = { 1, 1, 1, 1, 1, 1, 1, 1 };

static int complain(const struct raw *raw, const char *what)
{
    (void)fprintf(stderr, "pairs: libpq: %s: %s", what, PQerrorMessage(raw->pg));
    return -1;
}

static int is_good(PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    PQclear(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

static int set_up(struct raw *raw, int strategy)
{
    const char *commit = strategy == DBLOCK_ROW ? "off" : "on";
    const char *settings[8] = { NULL, "10000", "10", "3", "30000", commit, NULL, "0" };
    char pid[16];

    (void)snprintf(pid, sizeof pid, "%d", PQbackendPID(raw->pg));
    settings[0] = pid;
    if (!is_good(PQexecParams(
            raw->pg, pgsql_sql_connection_open, 8, NULL, settings, NULL, NULL, 1)))
        return complain(raw, "set up");
    settings[1] = "2000";
    if (PQserverVersion(raw->pg) >= 140000 &&
        !is_good(PQexecParams(
            raw->pg, pgsql_sql_connection_open_14, 2, NULL, settings, NULL, NULL, 1)))
        return complain(raw, "set up");
    return 0;
}

/* The driver's pair has a time after which it is refused; ours is for the whole run. */
static void allow_late(struct recorded_statement *statement)
{
    static const unsigned char far_away[8] = { 0x10 }; /* 2 ** 60 us: some 36,000 years */
    int i;

    for (i = 0; i < statement->n; ++i)
        if (statement->types[i] == TIMESTAMPTZ && statement->values[i] != NULL)
            memcpy(statement->bytes[i], far_away, sizeof far_away);
}

/* What proves that the server's process is the connection's own. */
static void make_own(struct recorded_statement *statement, int pid)
{
    const uint32_t recorded = htobe32((uint32_t)record_pid()), own = htobe32((uint32_t)pid);
    int i;

    for (i = 0; i < statement->n; ++i)
        if (statement->types[i] == INT4 && statement->values[i] != NULL &&
            memcmp(statement->bytes[i], &recorded, sizeof recorded) == 0)
            memcpy(statement->bytes[i], &own, sizeof own);
}

/* A release turns the wait for the disk off for itself; this copy leaves it as it is. */
static char *make_patient(const char *text)
{
    static const char off[] = "'synchronous_commit', 'off'";
    static const char on[] = "'synchronous_commit', 'on' ";
    char *copy = strdup(text);
    char *place = copy != NULL ? strstr(copy, off) : NULL;

    if (place != NULL)
        memcpy(place, on, sizeof on - 1);
    return copy;
}

static int prepare(struct raw *raw, struct recorded_statement *statement)
{
    const char *text = record_text(statement->name);
    char *copy = NULL;
    int is_prepared;

    if (text == NULL) {
        (void)fprintf(stderr, "pairs: libpq: nobody prepared %s\n", statement->name);
        return -1;
    }
    if (raw->is_patient)
        text = copy = make_patient(text);
    allow_late(statement);
    make_own(statement, PQbackendPID(raw->pg));
    is_prepared = text != NULL &&
        is_good(PQprepare(raw->pg, statement->name, text, statement->n, statement->types));
    free(copy);
    return is_prepared ? 0 : complain(raw, "prepare");
}

static int set_pipeline(PGconn *pg, int is_on)
{
    if ((PQpipelineStatus(pg) != PQ_PIPELINE_OFF) == is_on)
        return 1;
    return is_on ? PQenterPipelineMode(pg) : PQexitPipelineMode(pg);
}

static int send_message(struct raw *raw, const struct recorded_message *message)
{
    int i;

    if (!set_pipeline(raw->pg, !message->is_alone))
        return complain(raw, "pipeline mode");
    for (i = 0; i < message->n; ++i) {
        const struct recorded_statement *statement = &message->statements[i];

        if (!PQsendQueryPrepared(raw->pg, statement->name, statement->n, statement->values,
                statement->sizes, binary, 1))
            return complain(raw, "send");
    }
    return message->is_alone || PQpipelineSync(raw->pg) ? 0 : complain(raw, "send");
}

/* Up to the end of the message: NULL behind one statement, or the sync of several. */
static int receive(struct raw *raw, int is_alone)
{
    int has_failed = 0;

    for (;;) {
        PGresult *result = PQgetResult(raw->pg);
        ExecStatusType status = PQresultStatus(result);

        if (result == NULL) {
            if (PQstatus(raw->pg) != CONNECTION_OK)
                return complain(raw, "answer");
            if (is_alone)
                return has_failed ? -1 : 0;
            continue;
        }
        if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK &&
            status != PGRES_EMPTY_QUERY && status != PGRES_PIPELINE_SYNC) {
            (void)fprintf(stderr, "pairs: libpq: %s: %s\n", PQresStatus(status),
                PQresultErrorMessage(result));
            has_failed = 1;
        }
        PQclear(result);
        if (status == PGRES_PIPELINE_SYNC)
            return has_failed ? -1 : 0;
    }
}

static int exchange(struct raw *raw, int i)
{
    return send_message(raw, &raw->messages[i]) != 0 || receive(raw, raw->messages[i].is_alone) != 0
        ? -1
        : 0;
}

static int raw_pair(void *context)
{
    struct raw *raw = context;

    return exchange(raw, 0) != 0 || exchange(raw, 1) != 0 ? -1 : 0;
}

/* Does the recorded pair do what it did? The library tries for the lock in between. */
static int prove(struct raw *raw)
{
    int is_taken, is_dropped;

    if (exchange(raw, 0) != 0)
        return -1;
    is_taken = library_is_busy(raw->recorded) == 1;
    if (exchange(raw, 1) != 0)
        return -1;
    is_dropped = library_is_busy(raw->recorded) == 0;
    if (is_taken && is_dropped)
        return 0;
    (void)fprintf(stderr, "pairs: libpq: what was recorded does not %s the lock\n",
        is_taken ? "release" : "take");
    return -1;
}

static void raw_close(void *context)
{
    struct raw *raw = context;

    PQfinish(raw->pg);
    library_close(raw->recorded);
    free(raw);
}

static int open_connection(struct raw *raw, const char *url, int strategy)
{
    int i, j;

    raw->recorded = library_open(&bench_pgsql, url, strategy, 0);
    if (raw->recorded == NULL || library_pair(raw->recorded) != 0)
        return -1;
    record_begin();
    if (library_pair(raw->recorded) != 0 || record_end(raw->messages) != 0) {
        (void)fprintf(stderr, "pairs: a pair is not two messages any more\n");
        return -1;
    }
    raw->pg = PQconnectdb(url);
    if (PQstatus(raw->pg) != CONNECTION_OK)
        return complain(raw, "connect");
    if (set_up(raw, strategy) != 0)
        return -1;
    for (i = 0; i < N_MESSAGES; ++i)
        for (j = 0; j < raw->messages[i].n; ++j)
            if (prepare(raw, &raw->messages[i].statements[j]) != 0)
                return -1;
    return prove(raw);
}

static void *open_new(const char *url, int strategy, int is_patient)
{
    struct raw *raw = calloc(1, sizeof *raw);

    if (raw == NULL)
        return NULL;
    raw->is_patient = is_patient;
    if (open_connection(raw, url, strategy) == 0)
        return raw;
    raw_close(raw);
    return NULL;
}

static void *raw_open(const char *url, int strategy)
{
    return open_new(url, strategy, 0);
}

void *raw_pgsql_open_patient(const char *url, int strategy)
{
    return open_new(url, strategy, 1);
}

static double count_updates(const char *url)
{
    PGconn *pg = PQconnectdb(url);
    PGresult *result = PQexec(
        pg, "SELECT sum(n_tup_upd) FROM pg_stat_user_tables WHERE relname LIKE 'dblock%'");
    double n = 0;

    if (PQresultStatus(result) == PGRES_TUPLES_OK && !PQgetisnull(result, 0, 0))
        n = strtod(PQgetvalue(result, 0, 0), NULL);
    PQclear(result);
    PQfinish(pg);
    return n;
}

const struct database bench_pgsql = {
    .name = "PostgreSQL",
    .variable = "DBLOCK_TEST_PGSQL",
    .driver = dblock_pgsql_driver,
    .open = raw_open,
    .pair = raw_pair,
    .close = raw_close,
    .count_updates = count_updates,
    .goals = { 0, 1.10, 1.10, 1.10, 1.10 },
};
