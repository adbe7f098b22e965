/* SPDX-License-Identifier: MIT */
/* rights.c - GRANT statements. They are printed and not performed: who may give
 * rights is seldom who runs dblock. The tables are those of schemas/. */
#include "rights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const tables[] = {"dblock_meta", "dblock_floor", "dblock_session",
    "dblock_lease", "dblock_insert", "dblock_row", "dblock_token"};

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

    (void)fputs("\nGRANT SELECT, INSERT, UPDATE, DELETE ON", file);
    for (i = 0; i < sizeof tables / sizeof tables[0]; i++)
        (void)fprintf(file, "%s\n    %s", i > 0 ? "," : "", tables[i]);
    (void)fputs("\n    TO ", file);
    quote(file, role, strlen(role), '"');
    (void)fputs(";\nGRANT USAGE ON SEQUENCE dblock_insert_token TO ", file);
    quote(file, role, strlen(role), '"');
    (void)fputs(";\n", file);
}

/* MySQL grants one table a statement; USER alone is USER@'%'. */
static void print_mysql(FILE *file, const char *role)
{
    const char *at = strrchr(role, '@');
    size_t length = at != NULL ? (size_t)(at - role) : strlen(role);
    const char *host = at != NULL ? at + 1 : "%";
    size_t i;

    (void)fputc('\n', file);
    for (i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        (void)fprintf(file, "GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO ", tables[i]);
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
