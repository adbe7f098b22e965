/* SPDX-License-Identifier: MIT */
/* nearest.h - what somebody may have meant who mistyped a word. */
#ifndef CLI_NEAREST_H
#define CLI_NEAREST_H

#include <stddef.h>

/* At most two letters of a word may be wrong, missing, too many or in each other's place, and not
 * half of it. */
struct nearest {
    const char *word; /* what was given, of `length` bytes */
    size_t length;
    size_t distance;
    const char *name; /* the best so far; NULL */
};

void nearest_try(struct nearest *nearest, const char *name);

/* "; did you mean NAME?" with `before` in front of the name, or "". Returns `buffer`. */
const char *nearest_text(
    const struct nearest *nearest, const char *before, char *buffer, size_t size);

#endif
