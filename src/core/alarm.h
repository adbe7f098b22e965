/* SPDX-License-Identifier: MIT */
/* alarm.h - the end of a call whose driver simply blocks in its client library.
 *
 * A poll() with a time-out sets a timer and takes it back, and one beside a timer's descriptor
 * waits for two things: either is a twentieth of a short statement. So a driver that is told
 * that its call is watched waits for the socket alone, and for ever; a thread of the client
 * shuts the socket down when the deadline has come, and the driver's wait ends as if the server
 * had hung up. Nothing but I/O on that socket may be waited for in such a call.
 *
 * A call costs two stores as long as the thread looks often enough anyway, which is once in the
 * length of a call's limit. */
#ifndef DBLK_ALARM_H
#define DBLK_ALARM_H

#include <dblock/sys/driver.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct dblk_alarms;

/* Of one connection; zero is a good beginning. */
struct dblk_alarm {
    _Atomic uint64_t limit_us;  /* of the call under way; 0: there is none */
    _Atomic uint64_t look_us;   /* when the thread will look at it; 0: it will not */
    unsigned n_calls;           /* before the first that is watched */
    int is_set_up;              /* 1; -1: it cannot be had */
    int fd; /* the socket by a number of our own: the client library may close its own one any
             * time, and the number be somebody else's then */
    struct dblk_alarm *next; /* guarded by the mutex of the alarms */
};

/* The thread of a client. It starts with the first connection that is used for the third time, so
 * that a program which takes one lock does without. */
struct dblk_alarms {
    pthread_mutex_t mutex; /* after every other; never held during a wait but its own */
    pthread_cond_t changed;
    pthread_t thread;
    struct dblk_alarm *first;
    uint64_t next_us; /* when the thread looks */
    int is_running;
    atomic_int is_stopping;
};

int dblk_alarms_init(struct dblk_alarms *alarms); /* 0 or an errno */
/* No call is begun from now on; waits for those under way, and ends the thread. */
void dblk_alarms_stop(struct dblk_alarms *alarms);
void dblk_alarms_fini(struct dblk_alarms *alarms);

/* Before a call by `socket`; one at a time on a connection. 1: it is watched. */
int dblk_alarm_begin(
    struct dblk_alarms *alarms, struct dblk_alarm *alarm, int socket, uint64_t deadline_us);
/* After one that is. 1: the deadline had come, and the connection is of no use any more. */
int dblk_alarm_end(struct dblk_alarms *alarms, struct dblk_alarm *alarm);
/* Before the connection is closed. In a forked child, which has no such thread: is_forked. */
void dblk_alarm_forget(struct dblk_alarms *alarms, struct dblk_alarm *alarm, int is_forked);

#endif
