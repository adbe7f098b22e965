/* SPDX-License-Identifier: MIT */
/* record_pgsql.c - see record_pgsql.h. Stands between the driver and libpq all the time,
 * but only looks while it records. */
#define _GNU_SOURCE /* RTLD_NEXT */

#include "record_pgsql.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { N_TEXTS = 64 };

struct text {
    char name[64];
    char *text;
    Oid types[N_PARAMETERS_MAX];
};

static struct text texts[N_TEXTS];
static int n_texts;
static pthread_mutex_t texts_mutex = PTHREAD_MUTEX_INITIALIZER; /* the keeper prepares as well */

static struct recorded_message *recording; /* NULL: not now */
static struct recorded_message buffer[N_MESSAGES + 1];
static int n_recorded;
static int pid;
static pthread_t recorder;

typedef int (*prepare_fn)(PGconn *, const char *, const char *, int, const Oid *);
typedef int (*send_fn)(PGconn *, const char *, int, const char *const *, const int *, const int *,
    int);
typedef int (*sync_fn)(PGconn *);

/* ISO C has no cast from an object pointer to a function. */
static void find(const char *name, void *ret_function)
{
    void *symbol = dlsym(RTLD_NEXT, name);

    memcpy(ret_function, &symbol, sizeof symbol);
}

static struct text *find_text(const char *name)
{
    int i;

    for (i = 0; i < n_texts; ++i)
        if (strcmp(texts[i].name, name) == 0)
            return &texts[i];
    return NULL;
}

int PQsendPrepare(PGconn *pg, const char *name, const char *query, int n, const Oid *types)
{
    static prepare_fn next;
    struct text *text;

    (void)pthread_mutex_lock(&texts_mutex);
    if (next == NULL)
        find("PQsendPrepare", &next);
    if (find_text(name) == NULL && n_texts < N_TEXTS && strlen(name) < sizeof text->name) {
        text = &texts[n_texts];
        memcpy(text->name, name, strlen(name) + 1);
        text->text = strdup(query);
        if (n > 0 && n <= N_PARAMETERS_MAX)
            memcpy(text->types, types, (size_t)n * sizeof *types);
        n_texts += text->text != NULL;
    }
    (void)pthread_mutex_unlock(&texts_mutex);
    return next(pg, name, query, n, types);
}

static int is_recording(void)
{
    return recording != NULL && pthread_equal(recorder, pthread_self());
}

static void keep(const char *name, int n, const char *const *values, const int *sizes)
{
    struct recorded_message *message = &recording[n_recorded];
    struct recorded_statement *statement = &message->statements[message->n];
    const struct text *text;
    int i;

    if (n_recorded == N_MESSAGES || message->n == N_STATEMENTS_MAX || n > N_PARAMETERS_MAX)
        return;
    memset(statement, 0, sizeof *statement);
    (void)strncpy(statement->name, name, sizeof statement->name - 1);
    (void)pthread_mutex_lock(&texts_mutex);
    text = find_text(name);
    if (text != NULL)
        memcpy(statement->types, text->types, sizeof statement->types);
    (void)pthread_mutex_unlock(&texts_mutex);
    for (i = 0; i < n; ++i) {
        if (values[i] == NULL || sizes[i] > N_BYTES_MAX)
            continue;
        memcpy(statement->bytes[i], values[i], (size_t)sizes[i]);
        statement->values[i] = statement->bytes[i];
        statement->sizes[i] = sizes[i];
    }
    statement->n = n;
    ++message->n;
}

static void end_message(int is_alone)
{
    if (n_recorded == N_MESSAGES || recording[n_recorded].n == 0)
        return;
    recording[n_recorded].is_alone = is_alone;
    ++n_recorded;
}

int PQsendQueryPrepared(PGconn *pg, const char *name, int n, const char *const *values,
    const int *sizes, const int *formats, int result_format)
{
    static send_fn next;

    if (next == NULL)
        find("PQsendQueryPrepared", &next);
    if (is_recording()) {
        pid = PQbackendPID(pg);
        keep(name, n, values, sizes);
        if (PQpipelineStatus(pg) == PQ_PIPELINE_OFF)
            end_message(1);
    }
    return next(pg, name, n, values, sizes, formats, result_format);
}

int PQpipelineSync(PGconn *pg)
{
    static sync_fn next;

    if (next == NULL)
        find("PQpipelineSync", &next);
    if (is_recording())
        end_message(0);
    return next(pg);
}

int record_pid(void)
{
    return pid;
}

void record_begin(void)
{
    memset(buffer, 0, sizeof buffer);
    n_recorded = 0;
    recorder = pthread_self();
    recording = buffer;
}

int record_end(struct recorded_message *messages)
{
    int i, j, k;

    recording = NULL;
    if (n_recorded != N_MESSAGES)
        return -1;
    memcpy(messages, buffer, N_MESSAGES * sizeof *messages);
    for (i = 0; i < N_MESSAGES; ++i)
        for (j = 0; j < messages[i].n; ++j)
            for (k = 0; k < N_PARAMETERS_MAX; ++k)
                if (messages[i].statements[j].values[k] != NULL)
                    messages[i].statements[j].values[k] = messages[i].statements[j].bytes[k];
    return 0;
}

const char *record_text(const char *name)
{
    const struct text *text;
    const char *result = NULL;

    (void)pthread_mutex_lock(&texts_mutex);
    text = find_text(name);
    if (text != NULL)
        result = text->text;
    (void)pthread_mutex_unlock(&texts_mutex);
    return result;
}
