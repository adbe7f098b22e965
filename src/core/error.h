/* SPDX-License-Identifier: MIT */
/* error.h - errors of this library's own functions; a driver's are set by sys/driver.h. */
#ifndef DBLK_ERROR_H
#define DBLK_ERROR_H

#include <dblock/sys/driver.h>

/* Says nothing, without writing all of its kilobyte: dblock_error_set() writes the whole of it
 * once there is something to say. */
static inline void dblk_error_clear(struct dblock_error *error)
{
    error->status = DBLOCK_OK;
    error->native_code = 0;
    error->is_transient = 0;
    error->reserved[0] = error->reserved[1] = error->reserved[2] = 0;
    error->sqlstate[0] = error->message[0] = error->hint[0] = 0;
}

/* To a caller that may not want to know: `reterr` may be NULL. */
void dblk_error_tell(struct dblock_error *reterr, const struct dblock_error *error) DBLOCK_COLD_;

#endif
