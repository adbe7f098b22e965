/* SPDX-License-Identifier: MIT */
/* contract_word.c - a word that tells the tests of this process from all others. */
#include "contract_database.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

const char *contract_word(void)
{
    static char word[32];
    static uint32_t random_part;

    /* made once: a child that is forked keeps its parent's, and its names */
    if (word[0] == 0) {
        if (getrandom(&random_part, sizeof random_part, 0) != (ssize_t)sizeof random_part)
            random_part = (uint32_t)getppid();
        (void)snprintf(word, sizeof word, "t%ldx%08" PRIx32, (long)getpid(), random_part);
    }
    return word;
}
