/* SPDX-License-Identifier: MIT */
/* grant_name.h - the name in the text of a grant, for messages about a grant that
 * is over: the library makes no lock of it that could be asked. */
#ifndef CLI_GRANT_NAME_H
#define CLI_GRANT_NAME_H

#include <dblock/dblock.h>

#include <stdbool.h>

/* False if the text is not of the form that is known here: dblock1:STRATEGY:OWNER:TOKEN:NAME,
 * with %XX in NAME. Nothing but what is said rests on it. */
bool grant_name(const char *text, char name[DBLOCK_NAME_MAX + 1]);

#endif
