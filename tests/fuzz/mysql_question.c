/* SPDX-License-Identifier: MIT */
/* mysql_question.c - what a statement asks for, as far as a liar must know: how many parameters and
 * columns it has, and which of them are texts. Reads our own statements, and no others. */
#include "mysql_liar.h"

static int begins(const char *text, const char *end, const char *word)
{
    size_t length = strlen(word);

    return (size_t)(end - text) >= length && memcmp(text, word, length) == 0;
}

static const char *skip_quoted(const char *text, const char *end)
{
    for (++text; text < end && *text != '\''; ++text)
        ;
    return text;
}

/* The word that a column ends with is its name. */
static int names_a_text(const char *text, const char *end)
{
    static const char *const words[] = { "owner", "session", "host", "label", "name", "prefix",
        "version" };
    size_t i;

    for (i = 0; i < sizeof words / sizeof *words; ++i)
        if ((size_t)(end - text) >= strlen(words[i]) &&
            memcmp(end - strlen(words[i]), words[i], strlen(words[i])) == 0)
            return 1;
    return 0;
}

static void add_column(struct question *question, const char *text, const char *end)
{
    while (end > text && (end[-1] == ' ' || end[-1] == '\n' || end[-1] == ';'))
        --end;
    if (question->n_columns < MYSQL_LIAR_COLUMNS)
        question->is_text[question->n_columns++] = (uint8_t)names_a_text(text, end);
}

void mysql_liar_read_question(struct question *question, const char *sql, size_t size)
{
    const char *end = sql + size;
    const char *column = NULL; /* where the one that is being read begins */
    const char *text;
    int depth = 0, is_list = 0, is_write = 0, has_table = 0;

    memset(question, 0, sizeof *question);
    for (text = sql; text < end; ++text) {
        if (*text == '\'')
            text = skip_quoted(text, end);
        else if (*text == '(')
            ++depth;
        else if (*text == ')')
            --depth;
        else if (*text == '?')
            ++question->n_parameters;
        else if (begins(text, end, "INSERT INTO dblock_") || begins(text, end, "UPDATE dblock_") ||
            begins(text, end, "DELETE FROM"))
            is_write = 1;
        else if (begins(text, end, "owner = ?") || begins(text, end, "LAST_INSERT_ID(\n"))
            has_table = 1;
        else if (depth == 0 && !is_list && column == NULL && begins(text, end, "SELECT "))
            column = text + 7, is_list = 1;
        else if (depth == 0 && is_list && *text == ',')
            add_column(question, column, text), column = text + 1;
        else if (depth == 0 && is_list && begins(text, end, "FROM "))
            add_column(question, column, text), is_list = 0;
    }
    if (is_list)
        add_column(question, column, end);
    if (is_write)
        question->n_columns = 0;
    question->is_take = is_write && has_table;
}
