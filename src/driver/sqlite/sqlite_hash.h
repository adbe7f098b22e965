/* SPDX-License-Identifier: MIT */
/* sqlite_hash.h - the number of a lock's name. */
#ifndef DBLK_SQLITE_HASH_H
#define DBLK_SQLITE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* The first eight bytes of the SHA-256 of the name, big-endian, as a signed number: the same that
 * the advisory locks of PostgreSQL get, so every language and database agrees on it.
 *   "nightly-report" 7440995589958059143, "J\u00f6b" 6007079653076722657 */
int64_t sqlite_hash_name(const char *name, size_t size);

/* Of no use outside this machine and cheap: 64 bits to find a name's line by (FNV-1a). */
int64_t sqlite_hash_quickly(const char *name, size_t size);

#endif
