/* SPDX-License-Identifier: MIT */
/* sqlite_functions.c - the functions of our SQL: the clock of a step, and what a statement tells
 * besides its rows. */
#include "sqlite_connection.h"

#include "sqlite_byte.h"
#include "sqlite_clock.h"

#include <string.h>

static void say_now(sqlite3_context *context, int n_arguments, sqlite3_value **arguments)
{
    struct dblock_connection *connection = *(struct dblock_connection **)sqlite3_user_data(context);

    (void)n_arguments;
    (void)arguments;
    if (connection == NULL)
        return;
    if (connection->clock_us == 0)
        connection->clock_us = sqlite_clock_us();
    sqlite3_result_int64(context, connection->clock_us);
}

static void take_note(sqlite3_context *context, int n_arguments, sqlite3_value **arguments)
{
    struct dblock_connection *connection = *(struct dblock_connection **)sqlite3_user_data(context);
    int index = sqlite3_value_int(arguments[0]);

    (void)n_arguments;
    if (connection == NULL)
        return;
    if (index >= 0 && index < N_NOTES)
        connection->notes[index] = sqlite3_value_int64(arguments[1]);
    sqlite3_result_value(context, arguments[1]);
}

/* For the purge alone, which has opened the side file. */
static void say_is_held(sqlite3_context *context, int n_arguments, sqlite3_value **arguments)
{
    struct dblock_connection *connection = *(struct dblock_connection **)sqlite3_user_data(context);
    char name[DBLOCK_NAME_MAX + 1];
    struct dblock_subject subject = {name, 0, 0, 0};
    const void *bytes = sqlite3_value_blob(arguments[1]);

    (void)n_arguments;
    subject.name_size = (size_t)sqlite3_value_bytes(arguments[1]);
    sqlite3_result_int(context, 0);
    if (connection == NULL || connection->side == NULL || bytes == NULL ||
        subject.name_size >= sizeof name)
        return;
    memcpy(name, bytes, subject.name_size);
    name[subject.name_size] = 0;
    sqlite3_result_int(
        context, sqlite_byte_has_holder(connection, sqlite3_value_int(arguments[0]), &subject));
}

int sqlite_functions_add(
    sqlite3 *handle, struct dblock_connection **user, void (*end)(void *user))
{
    /* DIRECTONLY: not from a trigger or view that somebody else put into the file */
    const int flags = SQLITE_UTF8 | SQLITE_DIRECTONLY;
    int code = sqlite3_create_function_v2(
        handle, "dblock_note", 2, flags, user, take_note, NULL, NULL, NULL);

    if (code == SQLITE_OK)
        code = sqlite3_create_function_v2(
            handle, "dblock_is_held", 2, flags, user, say_is_held, NULL, NULL, NULL);
    if (code == SQLITE_OK)
        return sqlite3_create_function_v2(
            handle, "dblock_now_us", 0, flags, user, say_now, NULL, NULL, end);
    if (end != NULL)
        end(user);
    return code;
}
