/* SPDX-License-Identifier: MIT */
/* identity.h - who this process is, for people who read `dblock show`. */
#ifndef DBLK_IDENTITY_H
#define DBLK_IDENTITY_H

#include <stddef.h>

/* The host's name, or "localhost". */
void dblk_identity_host(char *host, size_t size);

#endif
