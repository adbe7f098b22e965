/* SPDX-License-Identifier: MIT */
/* raw_mysql.h - the raw loops of MariaDB and MySQL. */
#ifndef DBLOCK_BENCH_RAW_MYSQL_H
#define DBLOCK_BENCH_RAW_MYSQL_H

#include <mysql.h>

#include "mechanism.h"

enum { RAW_ADVISORY = 1, RAW_ROW, RAW_PAIR, RAW_GATE };

/* mysql://USER:PASSWORD@HOST/DATABASE?socket=PATH, without escapes, as these are the tests'
 * own. NULL: failed, and complain() has been told why. */
MYSQL *raw_mysql_connect(const char *url);

void *raw_mysql_open(const struct mechanism *mechanism, const struct opening *opening);
int raw_mysql_acquire(void *context, int64_t *ret_token);
int raw_mysql_release(void *context);
void raw_mysql_close(void *context);

#endif
