/* SPDX-License-Identifier: MIT */
/* trace.h - what -v tells of the library's doings. */
#ifndef CLI_TRACE_H
#define CLI_TRACE_H

#include <dblock/dblock.h>

/* Sets the trace callback if -v was given. */
void trace_configure(struct dblock_config *config);

#endif
