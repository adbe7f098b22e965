/* SPDX-License-Identifier: MIT */
/* sqlite_side.c - locks of the kernel on the side file; see sqlite_side.h. */
#include "sqlite_side.h"

#include <stdlib.h>
#include <unistd.h>

struct sqlite_side {
    int fd;
};

void sqlite_side_abandon(struct sqlite_side *side)
{
    if (side->fd >= 0)
        (void)close(side->fd);
    side->fd = -1;
}

void sqlite_side_close(struct sqlite_side *side)
{
    if (side == NULL)
        return;
    sqlite_side_abandon(side);
    free(side);
}
