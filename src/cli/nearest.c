/* SPDX-License-Identifier: MIT */
/* nearest.c - see nearest.h. */
#include "nearest.h"

#include <stdio.h>
#include <string.h>

enum { LENGTH_MAX = 24, DISTANCE_MAX = 2 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Levenshtein's distance, in which two neighbours that changed places count once; of words that
 * are not too long. */
static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t table[LENGTH_MAX + 1][LENGTH_MAX + 1];
    size_t i, j;

    for (i = 0; i <= a_length; i++)
        for (j = 0; j <= b_length; j++) {
            if (i == 0 || j == 0) {
                table[i][j] = i + j;
                continue;
            }
            table[i][j] = least(least(table[i - 1][j], table[i][j - 1]) + 1,
                table[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                table[i][j] = least(table[i][j], table[i - 2][j - 2] + 1);
        }
    return table[a_length][b_length];
}

void nearest_try(struct nearest *nearest, const char *name)
{
    size_t length = strlen(name);
    size_t d;

    if (nearest->length > LENGTH_MAX || length > LENGTH_MAX)
        return;
    d = distance(nearest->word, nearest->length, name, length);
    if (d > DISTANCE_MAX || 2 * d > nearest->length ||
        (nearest->name != NULL && d >= nearest->distance))
        return;
    nearest->distance = d;
    nearest->name = name;
}

const char *nearest_text(
    const struct nearest *nearest, const char *before, char *buffer, size_t size)
{
    buffer[0] = '\0';
    if (nearest->name != NULL)
        (void)snprintf(buffer, size, "; did you mean %s%s?", before, nearest->name);
    return buffer;
}
