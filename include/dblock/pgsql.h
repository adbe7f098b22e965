/* SPDX-License-Identifier: MIT */
/* pgsql.h - PostgreSQL 12 and later. Link with libdblock-pgsql. */
#ifndef DBLOCK_PGSQL_H
#define DBLOCK_PGSQL_H

#include "dblock.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The driver for dblock_open(). URLs: anything that libpq takes
 * (postgresql://..., postgres://..., or "host=... dbname=..."); what a URL
 * leaves open comes from PGHOST, PGPASSWORD, ~/.pgpass, service files, as for
 * every client of libpq. Static; any thread. */
DBLOCK_API const dblock_driver *dblock_pgsql_driver(void);

#ifdef __cplusplus
}
#endif

#endif
