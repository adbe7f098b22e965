/* SPDX-License-Identifier: MIT */
/* identity.c - see identity.h. It is shown and never compared: hosts share names. */
#include "core/identity.h"

#include <dblock/sys/driver.h>
#include <sys/utsname.h>

#include "core/name.h"

void dblk_identity_host(char *host, size_t size)
{
    struct utsname system;

    if (uname(&system) == 0 && dblk_text_check(system.nodename, size - 1) == DBLK_TEXT_GOOD)
        dblock_text_copy(host, size, system.nodename);
    else
        dblock_text_copy(host, size, "localhost");
}
