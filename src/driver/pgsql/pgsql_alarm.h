/* SPDX-License-Identifier: MIT */
/* pgsql_alarm.h - waiting for a socket without setting a timer each time. */
#ifndef DBLK_PGSQL_ALARM_H
#define DBLK_PGSQL_ALARM_H

#include <dblock/sys/driver.h>

struct pgsql_alarm {
    int fd;         /* of a timer; -1: there is none, and poll() sets its own */
    uint64_t at_us; /* when it fires, never after the deadline of now; 0: it is not set */
};

void pgsql_alarm_open(struct pgsql_alarm *alarm);
void pgsql_alarm_close(struct pgsql_alarm *alarm);
/* 1: the socket is ready, or was hung up. 0: the deadline came. */
int pgsql_alarm_wait(struct pgsql_alarm *alarm, int fd, short events, const struct dblock_call *call);

#endif
