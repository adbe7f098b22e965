/* SPDX-License-Identifier: MIT */
/* check.c - what on this database would hurt: dblock_check(). The driver looks at the
 * server; that the tables are there, and the clocks, are looked at here. */
#include <dblock/check.h>

#include <stdio.h>

#include "core/error.h"
#include "core/link.h"

enum {
    FINDINGS_MAX = 64,
    CLOCKS_APART_MS = 1000, /* people compare times; dblock does not */
    ALL = 1 << DBLOCK_LEASE | 1 << DBLOCK_INSERT | 1 << DBLOCK_ROW | 1 << DBLOCK_ADVISORY
};

struct note {
    int32_t severity;
    uint32_t strategies;
    char id[48];
    char text[512];
    char remedy[512];
};

/* Kept until all is read: a step may be repeated, and `fn` may use the client. */
struct notes {
    size_t n;
    struct note notes[FINDINGS_MAX];
};

static int keep(const struct dblock_finding *finding, void *context)
{
    struct notes *notes = context;
    struct note *note;

    if (notes->n == FINDINGS_MAX)
        return 1;
    note = &notes->notes[notes->n++];
    note->severity = finding->severity;
    note->strategies = finding->strategies;
    dblock_text_copy(note->id, sizeof note->id, finding->id);
    dblock_text_copy(note->text, sizeof note->text, finding->text);
    dblock_text_copy(note->remedy, sizeof note->remedy, finding->remedy);
    return 0;
}

static void add(
    struct notes *notes, int severity, const char *id, const char *text, const char *remedy)
{
    const struct dblock_finding finding = { sizeof finding, severity, ALL, id, text, remedy };

    (void)keep(&finding, notes);
}

static dblock_status verify(dblock_client *client, struct dblk_link *link,
    const struct dblock_call *call, void *context, struct dblock_answer *answer,
    struct dblock_error *error)
{
    (void)context;
    return client->driver->connection.verify(link->connection, call, answer, error);
}

static dblock_status look(dblock_client *client, struct dblk_link *link,
    const struct dblock_call *call, void *context, struct dblock_answer *answer,
    struct dblock_error *error)
{
    struct notes *notes = context;

    notes->n = 0;
    return client->driver->observe.check(link->connection, call, keep, notes, answer, error);
}

static dblock_status ask(dblock_client *client, struct dblk_link *link,
    const struct dblock_call *call, void *context, struct dblock_answer *answer,
    struct dblock_error *error)
{
    (void)context;
    return client->driver->connection.ping(link->connection, call, answer, error);
}

static void note_clocks(struct notes *notes, int64_t here_us, int64_t there_us, uint64_t trip_us)
{
    int64_t apart_ms = (here_us - there_us) / 1000;
    uint64_t much_ms = (uint64_t)(apart_ms < 0 ? -apart_ms : apart_ms);
    char text[200];

    /* read at some time during the trip: so much is not known */
    if (much_ms <= CLOCKS_APART_MS + trip_us / 1000) {
        (void)snprintf(text, sizeof text, "the clock here agrees with the database's (%lld ms)",
            (long long)apart_ms);
        add(notes, DBLOCK_FINDING_GOOD, "clock", text, "");
        return;
    }
    (void)snprintf(text, sizeof text,
        "the clock here is %llu.%03llu s %s the database's; locks do not mind, people who compare"
        " times will", (unsigned long long)(much_ms / 1000), (unsigned long long)(much_ms % 1000),
        apart_ms > 0 ? "ahead of" : "behind");
    add(notes, DBLOCK_FINDING_WARNING, "clock", text, "let both follow one time server (NTP)");
}

static dblock_status compare_clocks(
    dblock_client *client, struct notes *notes, struct dblock_error *error)
{
    struct dblk_short_result result;
    uint64_t trip_us;
    dblock_status status = dblk_short(client, 0, 0, ask, NULL, &result, error);

    if (status != DBLOCK_OK || result.answer.now_us == 0)
        return status;
    trip_us = dblk_now_us() - result.sent_us;
    note_clocks(
        notes, dblk_calendar_us() - (int64_t)(trip_us / 2), result.answer.now_us, trip_us);
    return DBLOCK_OK;
}

static int is_unusable(const struct notes *notes)
{
    size_t i;

    for (i = 0; i < notes->n; ++i)
        if (notes->notes[i].severity == DBLOCK_FINDING_UNUSABLE)
            return 1;
    return 0;
}

/* In this order: `look` begins anew if it is repeated. */
static dblock_status read_all(
    dblock_client *client, struct notes *notes, struct dblock_error *error)
{
    struct dblk_short_result result;
    dblock_status status = DBLOCK_OK;

    notes->n = 0;
    if (client->driver->observe.check != NULL)
        status = dblk_short(client, 0, 0, look, notes, &result, error);
    if (status != DBLOCK_OK)
        return status;
    status = dblk_short(client, 0, 0, verify, NULL, &result, error);
    if (status == DBLOCK_OK)
        add(notes, DBLOCK_FINDING_GOOD, "tables", "the tables are there, and this role may use them", "");
    else if (status == DBLOCK_E_SCHEMA || status == DBLOCK_E_PERMISSION ||
        (status == DBLOCK_E_CONNECTION && is_unusable(notes))) /* whose reason is told */
        add(notes, DBLOCK_FINDING_UNUSABLE, "tables", error->message, error->hint);
    else
        return status;
    status = compare_clocks(client, notes, error);
    return status == DBLOCK_E_CONNECTION && is_unusable(notes) ? DBLOCK_OK : status;
}

static void tell(const struct notes *notes, dblock_finding_fn fn, void *context)
{
    size_t i;

    for (i = 0; i < notes->n; ++i) {
        const struct note *note = &notes->notes[i];
        const struct dblock_finding finding = { sizeof finding, note->severity, note->strategies,
            note->id, note->text, note->remedy };

        if (fn(&finding, context) != 0)
            return;
    }
}

dblock_status dblock_check(
    dblock_client *client, dblock_finding_fn fn, void *context, struct dblock_error *reterr)
{
    struct dblock_error error;
    struct notes *notes = NULL;
    dblock_status status = dblk_client_enter(client, reterr);

    if (status != DBLOCK_OK)
        return status;
    dblk_error_clear(&error);
    if (fn == NULL) {
        status = dblock_error_set(&error, DBLOCK_E_ARGUMENT, NULL, "fn: NULL");
    } else {
        notes = dblk_allocate(sizeof *notes);
        status = notes == NULL
            ? dblock_error_set(&error, DBLOCK_E_MEMORY, NULL, "out of memory")
            : read_all(client, notes, &error);
    }
    if (status == DBLOCK_OK)
        tell(notes, fn, context);
    else if (status < 0)
        dblk_error_tell(reterr, &error);
    dblk_release(notes);
    dblk_client_leave(client);
    return status;
}
