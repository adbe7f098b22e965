/* SPDX-License-Identifier: MIT */
/* sqlite.h - SQLite 3.35 and later, on a local file. Link with libdblock-sqlite. */
#ifndef DBLOCK_SQLITE_H
#define DBLOCK_SQLITE_H

#include "dblock.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The driver for dblock_open(). URLs: sqlite:PATH (sqlite:/var/lib/app/lock.db,
 * or relative: sqlite:lock.db). The file is made by dblock_schema_install(); row
 * and advisory locks, and the lines of those who wait for any, live in PATH-dblock
 * beside it; neither may be deleted or replaced while in use. Network file systems
 * are refused. A program that carries its own copy of SQLite gives dblock a file of
 * its own. Static; any thread. */
DBLOCK_API const dblock_driver *dblock_sqlite_driver(void);

#ifdef __cplusplus
}
#endif

#endif
