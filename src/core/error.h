/* SPDX-License-Identifier: MIT */
/* error.h - an error struct that says nothing, without writing all of its kilobyte. */
#ifndef DBLK_ERROR_H
#define DBLK_ERROR_H

#include <dblock/dblock.h>

/* dblock_error_set() writes the whole of it once there is something to say. */
static inline void dblk_error_clear(struct dblock_error *error)
{
    error->status = DBLOCK_OK;
    error->native_code = 0;
    error->is_transient = 0;
    error->reserved[0] = error->reserved[1] = error->reserved[2] = 0;
    error->sqlstate[0] = error->message[0] = error->hint[0] = 0;
}

#endif
