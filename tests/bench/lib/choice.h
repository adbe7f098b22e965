/* SPDX-License-Identifier: MIT */
/* choice.h - `--only WORD`: which of many things are wanted. */
#ifndef DBLOCK_BENCH_CHOICE_H
#define DBLOCK_BENCH_CHOICE_H

enum { N_CHOICES = 16 };

struct choice {
    const char *words[N_CHOICES];
    int n_words;
};

/* Is it chosen among those of its kind (up to NULL)? A word is the begin of a name. All are
 * chosen if none of the kind was named. */
int choice_has(const struct choice *choice, const char *name, const char *const *kind);

#endif
