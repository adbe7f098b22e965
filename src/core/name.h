/* SPDX-License-Identifier: MIT */
/* name.h - which names and labels are good. */
#ifndef DBLK_NAME_H
#define DBLK_NAME_H

#include <dblock/dblock.h>

enum dblk_text_fault { DBLK_TEXT_GOOD = 0, DBLK_TEXT_EMPTY, DBLK_TEXT_LONG, DBLK_TEXT_INVALID };

/* 1 to `max` bytes of well-formed UTF-8 (no overlong forms, no surrogates). */
enum dblk_text_fault dblk_text_check(const char *text, size_t max);

/* OK, or E_ARGUMENT with what is wrong with it. */
dblock_status dblk_name_check(const char *name, struct dblock_error *reterr);

#endif
