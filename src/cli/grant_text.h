/* SPDX-License-Identifier: MIT */
/* grant_text.h - a grant, for people. */
#ifndef CLI_GRANT_TEXT_H
#define CLI_GRANT_TEXT_H

#include "text.h"

#include <dblock/dblock.h>

#include <stdio.h>

/* Host, label and what is put around them. */
#define GRANT_SENTENCE_SIZE (ESCAPED_SIZE(256) + ESCAPED_SIZE(128) + 160)

/* "web3 pid 4711 since 02:30:01 (lease, 21 s left, "report")". Returns `buffer`. */
const char *grant_sentence(const struct dblock_grant *grant, char buffer[GRANT_SENTENCE_SIZE]);

/* One line of `show` and `list`; also for names that nobody holds. */
void grant_print_line(const struct dblock_grant *grant, FILE *file);

/* Is somebody holding it, or is it only a row? */
int grant_is_held(const struct dblock_grant *grant);

#endif
