/* SPDX-License-Identifier: MIT */
/* rights.c - GRANT statements. They are printed and not performed: who may give
 * rights is seldom who runs dblock. The tables, and what is needed of each, are said
 * in schemas/. */
#include "rights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const postgresql[] = {
    "SELECT, INSERT, UPDATE, DELETE ON dblock_session, dblock_lease, dblock_insert",
    "SELECT, INSERT, UPDATE, DELETE ON dblock_row, dblock_token",
    "SELECT ON dblock_meta",
    "USAGE, SELECT, UPDATE ON SEQUENCE dblock_token_base, dblock_token_count",
};

/* MySQL grants on one table a statement. */
static const char *const mysql[] = {
    "SELECT, INSERT, UPDATE, DELETE ON dblock_floor",
    "SELECT, INSERT, UPDATE, DELETE ON dblock_session",
    "SELECT, INSERT, UPDATE, DELETE ON dblock_lease",
    "SELECT, INSERT, UPDATE, DELETE ON dblock_insert",
    "SELECT, INSERT, UPDATE, DELETE ON dblock_row",
    "SELECT, INSERT, UPDATE, DELETE ON dblock_token",
    "SELECT ON dblock_meta",
};

enum {
    N_POSTGRESQL = sizeof postgresql / sizeof postgresql[0],
    N_MYSQL = sizeof mysql / sizeof mysql[0]
};

/* Appends `text` in quotes, a quote inside doubled. */
static void quote(FILE *file, const char *text, size_t length, char mark)
{
    size_t i;

    (void)fputc(mark, file);
    for (i = 0; i < length; i++) {
        if (text[i] == mark || (mark == '\'' && text[i] == '\\'))
            (void)fputc(text[i], file);
        (void)fputc(text[i], file);
    }
    (void)fputc(mark, file);
}

static void print_postgresql(FILE *file, const char *role)
{
    size_t i;

    for (i = 0; i < N_POSTGRESQL; i++) {
        (void)fprintf(file, "GRANT %s TO ", postgresql[i]);
        quote(file, role, strlen(role), '"');
        (void)fputs(";\n", file);
    }
    (void)fputs("-- And, where they are missing: USAGE on the schema; to see and end row and\n"
                "-- advisory locks of other roles, pg_read_all_stats and pg_signal_backend.\n",
        file);
}

/* USER alone is USER@'%'. */
static void print_mysql(FILE *file, const char *role)
{
    const char *at = strrchr(role, '@');
    size_t length = at != NULL ? (size_t)(at - role) : strlen(role);
    const char *host = at != NULL ? at + 1 : "%";
    size_t i;

    for (i = 0; i < N_MYSQL; i++) {
        (void)fprintf(file, "GRANT %s TO ", mysql[i]);
        quote(file, role, length, '\'');
        (void)fputc('@', file);
        quote(file, host, strlen(host), '\'');
        (void)fputs(";\n", file);
    }
}

char *rights_text(const char *scheme, const char *role)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file;

    if (strcmp(scheme, "postgresql") != 0 && strcmp(scheme, "mysql") != 0)
        return NULL;
    file = open_memstream(&text, &size);
    if (file == NULL)
        return NULL;
    (void)fprintf(file, "\n-- The rights of who locks.\n");
    if (strcmp(scheme, "postgresql") == 0)
        print_postgresql(file, role);
    else
        print_mysql(file, role);
    if (fclose(file) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
