/* SPDX-License-Identifier: MIT */
/* command_init.c - dblock init: the tables, and dblock schema: their SQL. */
#include "commands.h"

#include "database.h"
#include "exit_code.h"
#include "json_output.h"
#include "message.h"
#include "rights.h"
#include "url.h"

#include <dblock/load.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int print_schema(const dblock_driver *driver, const char *role)
{
    char *rights = NULL;

    if (role != NULL) {
        rights = rights_text(dblock_driver_scheme(driver), role);
        if (rights == NULL)
            return message_usage("schema",
                "%s has no roles for -g: who may write the file may use the locks",
                dblock_driver_scheme(driver));
    }
    (void)printf("%s%s", dblock_schema(driver), rights != NULL ? rights : "");
    free(rights);
    if (ferror(stdout) || fflush(stdout) != 0) {
        message_failure("cannot write: %s", strerror(errno));
        return EXIT_CODE_MACHINE;
    }
    return EXIT_CODE_DONE;
}

/* The driver of a URL, or of a scheme alone ("mysql"); connects to nothing. */
static int load(
    const char *text, const struct database *database, const dblock_driver **ret_driver)
{
    struct dblock_error error;
    char url[64];

    if (strchr(text, ':') == NULL) {
        (void)snprintf(url, sizeof url, "%.40s:", text);
        text = url;
    }
    if (dblock_driver_load(text, ret_driver, &error) == DBLOCK_OK)
        return -1;
    return database_refuse_url(database, &error, NULL);
}

int command_schema(const struct arguments *arguments)
{
    const dblock_driver *driver;
    struct database database;
    int result = -1;

    memset(&database, 0, sizeof database);
    if (arguments->operand == NULL)
        result = database_find(arguments, &database);
    if (result == -1)
        result = load(arguments->operand != NULL ? arguments->operand : database.url, &database, &driver);
    if (result == -1)
        result = print_schema(driver, arguments->role);
    database_close(&database);
    return result;
}

static int print_json(const dblock_driver *driver, bool was_current)
{
    json_t *document = json_document("init");
    json_t *statements = json_array();

    (void)json_array_append_new(statements, json_string(dblock_schema(driver)));
    json_set_text(document, "database", dblock_driver_scheme(driver));
    json_set_text(document, "outcome", was_current ? "up_to_date" : "created");
    (void)json_object_set_new(document, "statements", statements);
    return json_print(document, stdout);
}

static void print_text(const struct database *database, bool was_current)
{
    char *where = url_for_people(database->url);

    message_warning(was_current ? "the tables in %s were up to date (dblock %s)"
                                : "the tables are in %s now (dblock %s)",
        where != NULL ? where : dblock_driver_scheme(database->driver), dblock_version());
    free(where);
}

/* Statements that make only what is missing say nothing of what they found, so it is asked before
 * and after. Where all is there already, a right to make tables is not needed. */
static dblock_status install(
    dblock_client *client, bool *ret_was_current, struct dblock_error *reterr)
{
    dblock_status status = dblock_ping(client, reterr);

    *ret_was_current = status == DBLOCK_OK;
    if (status != DBLOCK_OK && status != DBLOCK_E_SCHEMA && status != DBLOCK_E_PERMISSION)
        return status;
    status = dblock_schema_install(client, reterr);
    if (*ret_was_current)
        return status == DBLOCK_E_PERMISSION ? DBLOCK_OK : status;
    return status == DBLOCK_OK ? dblock_ping(client, reterr) : status;
}

static int install_and_say(const struct arguments *arguments, const struct database *database)
{
    struct dblock_error error;
    bool was_current;
    dblock_status status = install(database->client, &was_current, &error);

    if (status < 0) {
        message_error(&error, status == DBLOCK_E_UNCERTAIN ? "it is safe to run this again" : NULL);
        /* No lock is at stake, so there is nothing that one would have to find out. */
        return status == DBLOCK_E_UNCERTAIN ? EXIT_CODE_DATABASE : exit_code_of(status);
    }
    if (arguments->is_json)
        return print_json(database->driver, was_current);
    print_text(database, was_current);
    return EXIT_CODE_DONE;
}

int command_init(const struct arguments *arguments)
{
    struct dblock_config config = DBLOCK_CONFIG_INIT;
    struct database database;
    int result;

    if (arguments->is_dry_run)
        return command_schema(arguments);
    result = database_open(arguments, &config, &database);
    if (result == -1)
        result = install_and_say(arguments, &database);
    database_close(&database);
    return result;
}
