/* SPDX-License-Identifier: MIT */
/* trace.h - what -v and -vv tell of the library's doings. */
#ifndef CLI_TRACE_H
#define CLI_TRACE_H

#include "database.h"

/* Sets the trace callback if -v was given. It reads `database` while the client lives. */
void trace_configure(struct dblock_config *config, const struct database *database);

#endif
