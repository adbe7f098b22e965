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
 * usual option files.
 *
 * Who waits for a lease or insert is woken by named locks of the server, GET_LOCK(), over
 * a connection of its own, in order of arrival. Through a proxy that lends out connections
 * of its own he looks from time to time instead, and on Galera if the holder's
 * connection leads to another node. Static; any thread. */
DBLOCK_API const dblock_driver *dblock_mysql_driver(void);

#ifdef __cplusplus
}
#endif

#endif
