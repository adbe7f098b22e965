/* SPDX-License-Identifier: MIT */
/* choice.c - see choice.h. */
#include "bench/lib/choice.h"

#include <stddef.h>
#include <string.h>

int choice_has(const struct choice *choice, const char *name, const char *const *kind)
{
    int is_kind_named = 0;
    int i, j;

    for (i = 0; i < choice->n_words; ++i)
        for (j = 0; kind[j] != NULL; ++j) {
            if (strncmp(kind[j], choice->words[i], strlen(choice->words[i])) != 0)
                continue;
            is_kind_named = 1;
            if (strcmp(kind[j], name) == 0)
                return 1;
        }
    return !is_kind_named;
}
