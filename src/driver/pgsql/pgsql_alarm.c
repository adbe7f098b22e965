/* SPDX-License-Identifier: MIT */
/* pgsql_alarm.c - a poll() with a time-out sets a timer and takes it back, a tenth of
 * what the client spends on a statement. This timer stays set: it fires when a deadline
 * of seconds ago has come, once in some seconds, and is set for the one of now then. */
#define _GNU_SOURCE /* CLOCK_BOOTTIME */

#include "pgsql_alarm.h"

#include <poll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

void pgsql_alarm_open(struct pgsql_alarm *alarm)
{
    alarm->fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    alarm->at_us = 0;
}

void pgsql_alarm_close(struct pgsql_alarm *alarm)
{
    if (alarm->fd >= 0)
        (void)close(alarm->fd);
    alarm->fd = -1;
}

static int set(struct pgsql_alarm *alarm, uint64_t at_us)
{
    struct itimerspec end = { { 0, 0 },
        { (time_t)(at_us / 1000000), (long)(at_us % 1000000) * 1000 } };

    alarm->at_us = 0;
    if (at_us == 0 || timerfd_settime(alarm->fd, TFD_TIMER_ABSTIME, &end, NULL) != 0)
        return -1;
    alarm->at_us = at_us;
    return 0;
}

int pgsql_alarm_wait(struct pgsql_alarm *alarm, int fd, short events, const struct dblock_call *call)
{
    uint64_t deadline_us = call->deadline_us;

    while (alarm->fd >= 0) {
        struct pollfd descriptors[2] = { { fd, events, 0 }, { alarm->fd, POLLIN, 0 } };

        if ((alarm->at_us == 0 || alarm->at_us > deadline_us) && set(alarm, deadline_us) != 0)
            break;
        if (poll(descriptors, 2, -1) < 0)
            break; /* a signal, most likely */
        if (descriptors[1].revents != 0)
            alarm->at_us = 0;
        if (descriptors[0].revents != 0)
            return 1;
        if (dblock_clock_us() >= deadline_us)
            return 0;
    }
    return dblock_fd_wait(fd, events, call, 0);
}
