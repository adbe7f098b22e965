/* SPDX-License-Identifier: MIT */
/* command_doctor.c - dblock doctor: what on this database would hurt, and the cure. */
#include "commands.h"

#include "database.h"
#include "exit_code.h"
#include "json_output.h"
#include "message.h"
#include "text.h"

#include <dblock/check.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FINDINGS_MAX = 64 };

static const char *const severities[] = {"good", "warning", "unusable"};
static const char *const verdicts[] = {"good", "warnings", "unusable"};

struct finding {
    int severity;
    unsigned strategies;
    char id[48];
    char text[512];
    char remedy[512];
};

struct diagnosis {
    unsigned strategies;     /* what is asked about; 0 all */
    unsigned without_tables; /* those that lock also where the tables are missing */
    size_t n_findings;
    struct finding findings[FINDINGS_MAX];
};

/* Row locks are bytes of a file on SQLite, and rows of a table elsewhere. */
static unsigned strategies_without_tables(const struct database *database)
{
    bool is_file = strcmp(dblock_driver_scheme(database->driver), "sqlite") == 0;

    return 1u << DBLOCK_ADVISORY | (is_file ? 1u << DBLOCK_ROW : 0);
}

/* Missing tables take from these strategies only what is kept there. */
static int severity_for(
    const struct diagnosis *diagnosis, const struct finding *finding, unsigned strategies)
{
    bool is_bearable = finding->severity == DBLOCK_FINDING_UNUSABLE &&
                       strcmp(finding->id, "tables") == 0 && strategies != 0 &&
                       (strategies & ~diagnosis->without_tables) == 0;

    return is_bearable ? DBLOCK_FINDING_WARNING : finding->severity;
}

static int add(const struct dblock_finding *found, void *context)
{
    struct diagnosis *diagnosis = context;
    struct finding *finding;

    if (diagnosis->strategies != 0 && (found->strategies & diagnosis->strategies) == 0)
        return 0;
    if (diagnosis->n_findings == FINDINGS_MAX)
        return 1;
    finding = &diagnosis->findings[diagnosis->n_findings++];
    finding->severity = found->severity;
    finding->strategies = found->strategies;
    (void)snprintf(finding->id, sizeof finding->id, "%s", found->id);
    (void)snprintf(finding->text, sizeof finding->text, "%s", found->text);
    (void)snprintf(finding->remedy, sizeof finding->remedy, "%s", found->remedy);
    finding->severity = severity_for(diagnosis, finding, diagnosis->strategies);
    if (finding->severity != found->severity)
        (void)snprintf(finding->text, sizeof finding->text,
            "%.400s; locks work without tokens, and list, show and break do not", found->text);
    return 0;
}

/* The worst that was found about those strategies (0 all). */
static int judge(const struct diagnosis *diagnosis, unsigned strategies)
{
    int worst = DBLOCK_FINDING_GOOD;
    size_t i;

    for (i = 0; i < diagnosis->n_findings; i++) {
        const struct finding *finding = &diagnosis->findings[i];

        if ((strategies == 0 || (finding->strategies & strategies) != 0) &&
            severity_for(diagnosis, finding, strategies) > worst)
            worst = severity_for(diagnosis, finding, strategies);
    }
    return worst;
}

/* ---------------------------------------------------------------------- JSON */

static json_t *json_strategies(unsigned strategies)
{
    json_t *names = json_array();
    int strategy;

    for (strategy = DBLOCK_LEASE; strategy <= DBLOCK_ADVISORY; strategy++)
        if ((strategies & 1u << strategy) != 0)
            (void)json_array_append_new(names, json_string(dblock_strategy_name(strategy)));
    return names;
}

static json_t *json_finding(const struct finding *finding)
{
    json_t *object = json_object();

    json_set_text(object, "id", finding->id);
    json_set_text(object, "severity", severities[finding->severity]);
    json_set_text(object, "text", finding->text);
    json_set_text(object, "remedy", finding->remedy);
    (void)json_object_set_new(object, "strategies", json_strategies(finding->strategies));
    return object;
}

static int print_json(const struct database *database, const struct diagnosis *diagnosis)
{
    json_t *document = json_document("doctor");
    json_t *strategies = json_object();
    json_t *findings = json_array();
    int strategy;
    size_t i;

    json_set_text(document, "database", dblock_driver_scheme(database->driver));
    json_set_text(document, "verdict", verdicts[judge(diagnosis, 0)]);
    for (strategy = DBLOCK_LEASE; strategy <= DBLOCK_ADVISORY; strategy++)
        if (diagnosis->strategies == 0 || (diagnosis->strategies & 1u << strategy) != 0)
            json_set_text(strategies, dblock_strategy_name(strategy),
                severities[judge(diagnosis, 1u << strategy)]);
    (void)json_object_set_new(document, "strategies", strategies);
    for (i = 0; i < diagnosis->n_findings; i++)
        (void)json_array_append_new(findings, json_finding(&diagnosis->findings[i]));
    (void)json_object_set_new(document, "findings", findings);
    return json_print(document, stdout);
}

/* ---------------------------------------------------------------------- text */

/* Texts name objects of the database, whose names may contain anything. */
static void print_escaped(const char *before, const char *text)
{
    char escaped[ESCAPED_SIZE(512)];

    (void)printf("%s%s\n", before, text_escape(text, escaped, sizeof escaped));
}

static void print_finding(const struct finding *finding)
{
    char begin[80];

    (void)snprintf(
        begin, sizeof begin, "%-9s %-16s ", severities[finding->severity], finding->id);
    print_escaped(begin, finding->text);
    if (finding->remedy[0] != '\0')
        print_escaped("          mend:            ", finding->remedy);
}

static int print_text(const struct arguments *arguments, const struct diagnosis *diagnosis)
{
    int severity;
    size_t i;

    for (severity = DBLOCK_FINDING_UNUSABLE; severity >= DBLOCK_FINDING_GOOD; severity--)
        for (i = 0; i < diagnosis->n_findings; i++)
            if (diagnosis->findings[i].severity == severity &&
                (severity != DBLOCK_FINDING_GOOD || !arguments->is_quiet))
                print_finding(&diagnosis->findings[i]);
    if (ferror(stdout) || fflush(stdout) != 0) {
        message_failure("cannot write: %s", strerror(errno));
        return EXIT_CODE_MACHINE;
    }
    return EXIT_CODE_DONE;
}

/* A database that cannot be asked is unusable; what is wrong here and not there keeps its own
 * status. */
static int fail(dblock_status status, const struct dblock_error *error)
{
    message_error(error, NULL);
    switch (exit_code_of(status)) {
    case EXIT_CODE_DATABASE:
    case EXIT_CODE_REFUSED:
    case EXIT_CODE_UNCERTAIN:
    case EXIT_CODE_CONFIGURATION:
        return DBLOCK_FINDING_UNUSABLE;
    default:
        return exit_code_of(status);
    }
}

static int examine(const struct arguments *arguments, const struct database *database)
{
    struct dblock_error error;
    struct diagnosis *diagnosis;
    dblock_status status;
    int result;

    if (database->client == NULL) { /* "local", and no lock was ever taken */
        message_warning("there is no file yet; the first lock makes it");
        return EXIT_CODE_DONE;
    }
    diagnosis = calloc(1, sizeof *diagnosis);
    if (diagnosis == NULL) {
        message_failure("out of memory");
        return EXIT_CODE_MACHINE;
    }
    diagnosis->strategies = arguments->strategies;
    diagnosis->without_tables = strategies_without_tables(database);
    status = dblock_check(database->client, add, diagnosis, &error);
    if (status < 0)
        result = fail(status, &error);
    else if (arguments->is_json)
        result = print_json(database, diagnosis);
    else
        result = print_text(arguments, diagnosis);
    if (status == DBLOCK_OK && result == EXIT_CODE_DONE)
        result = judge(diagnosis, 0);
    free(diagnosis);
    return result;
}

int command_doctor(const struct arguments *arguments)
{
    struct database database;
    int result = database_open(arguments, NULL, &database);

    if (result == -1)
        result = examine(arguments, &database);
    database_close(&database);
    return result;
}
