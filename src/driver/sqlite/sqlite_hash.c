/* SPDX-License-Identifier: MIT */
/* sqlite_hash.c - see sqlite_hash.h. */
#include "sqlite_hash.h"

int64_t sqlite_hash_quickly(const char *name, size_t size)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    size_t i;

    for (i = 0; i < size; ++i)
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(1099511628211);
    return (int64_t)(hash ^ hash >> 32);
}
