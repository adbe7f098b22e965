/* SPDX-License-Identifier: MIT */
/* raw_pgsql.c - pairs directly on libpq, with the statements of the driver: prepared,
 * binary, in a pipeline, on a connection with the driver's settings. Parameters are
 * encoded beforehand, so that this is the least that any client would do. */
#include "pairs.h"

#include <dblock/pgsql.h>

#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pgsql_sql.h"

enum { N_PARAMETERS = 8 };
enum { BYTEA = 17, INT8 = 20, TEXT = 25, TIMESTAMPTZ = 1184, INTERVAL = 1186 };

struct statement {
    const char *name;
    int n;
    Oid types[N_PARAMETERS];
    const char *values[N_PARAMETERS];
    int sizes[N_PARAMETERS];
    int column; /* that must be true (or not null, for a token) */
    int is_token;
};

struct raw {
    PGconn *pg;
    struct statement first; /* goes before the take in one message; no name: nothing does */
    struct statement take;
    struct statement drop;
    int strategy;
    unsigned char session[ID_SIZE];
    unsigned char owner[ID_SIZE];
    unsigned char ttl[16];
    unsigned char late[8];
    unsigned char pid[8];
    char name[64];
    char host[64];
};

static const int binary[N_PARAMETERS] = { 1, 1, 1, 1, 1, 1, 1, 1 };

static int complain(const struct raw *raw, const char *what)
{
    (void)fprintf(stderr, "pairs: libpq: %s: %s", what, PQerrorMessage(raw->pg));
    return -1;
}

static void write_number(unsigned char *target, uint64_t number)
{
    int i;

    for (i = 7; i >= 0; --i) {
        target[i] = (unsigned char)number;
        number >>= 8;
    }
}

static void add(struct statement *statement, Oid type, const void *value, size_t size)
{
    statement->types[statement->n] = type;
    statement->values[statement->n] = value;
    statement->sizes[statement->n] = (int)size;
    ++statement->n;
}

/* The tables are in the driver's default schema. */
static char *write_schema(const char *text)
{
    static const char mark[] = "dblock_schema.";
    static const char schema[] = "\"public\".";
    char *result = malloc(strlen(text) + 1); /* the schema is shorter than its mark */
    char *end = result;
    const char *place;

    if (result == NULL)
        return NULL;
    while ((place = strstr(text, mark)) != NULL) {
        memcpy(end, text, (size_t)(place - text));
        end += place - text;
        memcpy(end, schema, sizeof schema - 1);
        end += sizeof schema - 1;
        text = place + sizeof mark - 1;
    }
    memcpy(end, text, strlen(text) + 1);
    return result;
}

static int is_good(PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    PQclear(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

static int prepare(struct raw *raw, const struct statement *statement, const char *sql)
{
    char *text = write_schema(sql);
    int good = text != NULL &&
        is_good(PQprepare(raw->pg, statement->name, text, statement->n, statement->types));

    free(text);
    return good ? 0 : complain(raw, "prepare");
}

static int set_up(struct raw *raw)
{
    const char *commit = raw->strategy == DBLOCK_ROW ? "off" : "on";
    const char *settings[6] = { NULL, "10000", "10", "3", "30000", commit };
    char pid[16];

    (void)snprintf(pid, sizeof pid, "%d", PQbackendPID(raw->pg));
    settings[0] = pid;
    if (!is_good(PQexecParams(
            raw->pg, pgsql_sql_connection_open, 6, NULL, settings, NULL, NULL, 1)))
        return complain(raw, "set up");
    settings[1] = "2000";
    if (PQserverVersion(raw->pg) >= 140000 &&
        !is_good(PQexecParams(
            raw->pg, pgsql_sql_connection_open_14, 2, NULL, settings, NULL, NULL, 1)))
        return complain(raw, "set up");
    return 0;
}

static int begin_session(struct raw *raw, const unsigned char *day)
{
    struct statement begin = { "session_begin", 0, { 0 }, { NULL }, { 0 }, 0, 0 };
    static const unsigned char day_us[8] = { 0 };

    add(&begin, BYTEA, raw->session, ID_SIZE);
    add(&begin, INTERVAL, day, 16);
    add(&begin, INT8, day_us, 8);
    add(&begin, TEXT, raw->host, strlen(raw->host));
    add(&begin, INT8, raw->pid, 8);
    add(&begin, TEXT, "", 0);
    if (prepare(raw, &begin, pgsql_sql_session_begin) != 0)
        return -1;
    return is_good(PQexecPrepared(raw->pg, begin.name, begin.n, begin.values, begin.sizes, binary,
               1))
        ? 0
        : complain(raw, "begin a session");
}

static int prepare_hold(struct raw *raw)
{
    int is_lease = raw->strategy == DBLOCK_LEASE;

    raw->first.name = "gate";
    add(&raw->first, BYTEA, raw->name, strlen(raw->name));
    if (prepare(raw, &raw->first, is_lease ? pgsql_sql_lease_gate : pgsql_sql_insert_gate) != 0)
        return -1;
    raw->take.column = 4;
    raw->take.is_token = 1;
    add(&raw->take, BYTEA, raw->name, strlen(raw->name));
    add(&raw->take, BYTEA, is_lease ? raw->session : NULL, is_lease ? ID_SIZE : 0);
    add(&raw->take, BYTEA, raw->owner, ID_SIZE);
    add(&raw->take, INTERVAL, raw->ttl, sizeof raw->ttl);
    add(&raw->take, TIMESTAMPTZ, raw->late, sizeof raw->late);
    add(&raw->take, TEXT, "", 0);
    add(&raw->take, TEXT, raw->host, strlen(raw->host));
    add(&raw->take, INT8, raw->pid, sizeof raw->pid);
    raw->drop.column = 1;
    add(&raw->drop, BYTEA, raw->name, strlen(raw->name));
    add(&raw->drop, BYTEA, raw->owner, ID_SIZE);
    return prepare(raw, &raw->take, is_lease ? pgsql_sql_lease_take : pgsql_sql_insert_take) != 0 ||
            prepare(raw, &raw->drop, is_lease ? pgsql_sql_lease_drop : pgsql_sql_insert_drop) != 0
        ? -1
        : 0;
}

static int prepare_advisory(struct raw *raw)
{
    raw->take.column = raw->drop.column = 2;
    add(&raw->take, BYTEA, raw->name, strlen(raw->name));
    add(&raw->take, INT8, NULL, 0);
    raw->drop = raw->take;
    raw->drop.name = "drop";
    return prepare(raw, &raw->take, pgsql_sql_advisory_take) != 0 ||
            prepare(raw, &raw->drop, pgsql_sql_advisory_drop) != 0
        ? -1
        : 0;
}

static int prepare_row(struct raw *raw)
{
    struct statement seed = { "seed", 0, { 0 }, { NULL }, { 0 }, 0, 0 };

    raw->take.column = 1;
    add(&raw->take, BYTEA, raw->name, strlen(raw->name));
    add(&seed, BYTEA, raw->name, strlen(raw->name));
    if (prepare(raw, &seed, pgsql_sql_row_seed) != 0 ||
        !is_good(
            PQexecPrepared(raw->pg, "seed", 1, seed.values, seed.sizes, binary, 1)))
        return complain(raw, "make the row");
    raw->first.name = "begin";
    return prepare(raw, &raw->first, "BEGIN ISOLATION LEVEL READ COMMITTED") != 0 ||
            prepare(raw, &raw->take, pgsql_sql_row_take) != 0 ||
            prepare(raw, &raw->drop, "COMMIT") != 0
        ? -1
        : 0;
}

static void raw_close(void *context)
{
    struct raw *raw = context;

    PQfinish(raw->pg);
    free(raw);
}

static int open_connection(struct raw *raw, const char *url)
{
    unsigned char day[16] = { 0 };
    int failed;

    raw->pg = PQconnectdb(url);
    if (PQstatus(raw->pg) != CONNECTION_OK)
        return complain(raw, "connect");
    write_number(raw->ttl, 30u * 1000000u);
    write_number(day, UINT64_C(86400) * 1000000u);
    write_number(raw->late, INT64_C(1) << 60);
    write_number(raw->pid, (uint64_t)getpid());
    raw->take.name = "take";
    raw->drop.name = "drop";
    failed = set_up(raw);
    if (!failed && raw->strategy == DBLOCK_LEASE)
        failed = begin_session(raw, day);
    if (failed)
        return failed;
    if (raw->strategy == DBLOCK_ROW)
        failed = prepare_row(raw);
    else if (raw->strategy == DBLOCK_ADVISORY)
        failed = prepare_advisory(raw);
    else
        failed = prepare_hold(raw);
    if (failed)
        return failed;
    return PQenterPipelineMode(raw->pg) ? 0 : complain(raw, "enter pipeline mode");
}

static void *raw_open(const char *url, int strategy)
{
    struct raw *raw = calloc(1, sizeof *raw);

    if (raw == NULL)
        return NULL;
    raw->strategy = strategy;
    memset(raw->session, 's', sizeof raw->session);
    raw->session[0] = (unsigned char)getpid();
    raw->session[1] = (unsigned char)(getpid() >> 8);
    raw->session[2] = (unsigned char)bench_now_ns();
    raw->session[3] = (unsigned char)(bench_now_ns() >> 8);
    memset(raw->owner, 'o', sizeof raw->owner);
    (void)gethostname(raw->host, sizeof raw->host - 1);
    (void)snprintf(raw->name, sizeof raw->name, "bench-raw--%ld-%s", (long)getpid(),
        dblock_strategy_name(strategy));
    if (open_connection(raw, url) == 0)
        return raw;
    raw_close(raw);
    return NULL;
}

static int send_statement(struct raw *raw, const struct statement *statement)
{
    return PQsendQueryPrepared(raw->pg, statement->name, statement->n, statement->values,
        statement->sizes, binary, 1);
}

static int is_yes(const struct statement *statement, const PGresult *result)
{
    /* what goes before the take answers first, with fewer columns */
    if (PQntuples(result) == 0 || PQnfields(result) <= statement->column ||
        PQgetisnull(result, 0, statement->column))
        return 0;
    return statement->is_token || PQgetvalue(result, 0, statement->column)[0] != 0;
}

/* Reads up to the end of the message; the last statement's row must say yes. */
static int receive(struct raw *raw, const struct statement *statement)
{
    int is_synced = 0;
    int answer = statement->column == 0; /* COMMIT has no row */
    int has_failed = 0;

    while (!is_synced) {
        PGresult *result = PQgetResult(raw->pg);

        if (result == NULL) {
            if (PQstatus(raw->pg) != CONNECTION_OK)
                return complain(raw, "answer");
            continue;
        }
        switch (PQresultStatus(result)) {
        case PGRES_TUPLES_OK:
            answer = is_yes(statement, result);
            break;
        case PGRES_PIPELINE_SYNC:
            is_synced = 1;
            break;
        case PGRES_COMMAND_OK:
            break;
        default:
            has_failed = 1;
            (void)fprintf(stderr, "pairs: libpq: %s", PQresultErrorMessage(result));
        }
        PQclear(result);
    }
    if (!answer)
        (void)fprintf(stderr, "pairs: libpq: %s: the answer is no\n", statement->name);
    return has_failed || !answer ? -1 : 0;
}

static int raw_pair(void *context)
{
    struct raw *raw = context;

    ++raw->owner[0];
    if ((raw->first.name != NULL && !send_statement(raw, &raw->first)) ||
        !send_statement(raw, &raw->take) || !PQpipelineSync(raw->pg))
        return complain(raw, "send");
    if (receive(raw, &raw->take) != 0)
        return -1;
    if (!send_statement(raw, &raw->drop) || !PQpipelineSync(raw->pg))
        return complain(raw, "send");
    return receive(raw, &raw->drop);
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
