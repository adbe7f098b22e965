/* SPDX-License-Identifier: MIT */
/* pgsql_cancel.h - asking the server to end what runs on a connection. */
#ifndef DBLK_PGSQL_CANCEL_H
#define DBLK_PGSQL_CANCEL_H

#include <libpq-fe.h>
#include <stdint.h>

/* 1: the request has reached the server, and acts on what runs there now and on nothing later. 0:
 * the server does not answer within the limit, so nothing was sent. */
int pgsql_cancel(PGconn *pg, uint64_t limit_us);

#endif
