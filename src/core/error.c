/* SPDX-License-Identifier: MIT */
/* error.c - see error.h. */
#include "core/error.h"

void dblk_error_tell(struct dblock_error *reterr, const struct dblock_error *error)
{
    if (reterr != NULL)
        *reterr = *error;
}
