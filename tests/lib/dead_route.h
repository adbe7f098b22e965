/* SPDX-License-Identifier: MIT */
/* dead_route.h - an address of this machine to which nothing can be sent any more, as if the cable
 * had been pulled: neither data nor what the kernel itself sends. Needs root and ip(8). */
#ifndef DBLOCK_TEST_DEAD_ROUTE_H
#define DBLOCK_TEST_DEAD_ROUTE_H

/* One of 127.0.0.0/8 that only this process uses; static. */
const char *dead_route_address(void);
/* 0, or it cannot be done here. */
int dead_route_begin(void);
void dead_route_end(void);

#endif
