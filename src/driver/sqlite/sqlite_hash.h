/* SPDX-License-Identifier: MIT */
/* sqlite_hash.h - a number for a lock's name that nobody else has to agree on. */
#ifndef DBLK_SQLITE_HASH_H
#define DBLK_SQLITE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Of no use outside this machine and cheap: 64 bits to find a name's line by (FNV-1a). */
int64_t sqlite_hash_quickly(const char *name, size_t size);

#endif
