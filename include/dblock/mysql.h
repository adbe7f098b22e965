/* SPDX-License-Identifier: MIT */
/* mysql.h - MySQL 5.7 and later, MariaDB 10.5 and later. Link with
 * libdblock-mysql. */
#ifndef DBLOCK_MYSQL_H
#define DBLOCK_MYSQL_H

#include "dblock.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The driver for dblock_open(). URLs: mysql://user:password@host:port/database
 * (also mariadb://), with ?socket=PATH, ssl-mode=DISABLED|PREFERRED|REQUIRED|
 * VERIFY_CA|VERIFY_IDENTITY, ssl-ca=, ssl-cert=, ssl-key=, option-file=PATH and
 * option-group=NAME. What a URL leaves open comes from the [client] group of the
 * usual option files. Static; any thread. */
DBLOCK_API const dblock_driver *dblock_mysql_driver(void);

#ifdef __cplusplus
}
#endif

#endif
