/* SPDX-License-Identifier: MIT */
/* pgsql_cancel.h - asking the server to end what runs on a connection. */
#ifndef DBLK_PGSQL_CANCEL_H
#define DBLK_PGSQL_CANCEL_H

#include <dblock/sys/driver.h>
#include <libpq-fe.h>
#include <sys/socket.h>

/* 1: the request has reached the server, and acts on what runs there now and on nothing later. 0:
 * the server does not answer within the limit, so nothing was sent. */
int pgsql_cancel(PGconn *pg, uint64_t limit_us);

/* The same in two steps. The second needs no connection, so another thread may use that meanwhile,
 * and heeds cancel_fd until the server has answered. */
struct pgsql_cancel {
    PGcancel *key;
    struct sockaddr_storage address;
    socklen_t size;
};

int pgsql_cancel_init(struct pgsql_cancel *way, PGconn *pg); /* 0: not connected, or no memory */
int pgsql_cancel_send(const struct pgsql_cancel *way, const struct dblock_call *call);
void pgsql_cancel_fini(struct pgsql_cancel *way); /* sends nothing */

#endif
