/* SPDX-License-Identifier: MIT */
/* alarm.c - see alarm.h.
 *
 * The caller stores its limit and then reads when the thread will look; the thread stores that it
 * will not look any more and then reads the limit. All four in one order: whoever comes second
 * sees the other. */
#include "core/alarm.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/environment.h"

enum { FIRST_CALLS = 2 };
#define HAS_RUNG UINT64_MAX /* in limit_us: the socket was shut down */

int dblk_alarms_init(struct dblk_alarms *alarms)
{
    int fault = dblk_condition_init(&alarms->changed);

    if (fault != 0)
        return fault;
    (void)pthread_mutex_init(&alarms->mutex, NULL);
    return 0;
}

/* 1: a call is under way. */
static int look(struct dblk_alarm *alarm, uint64_t now_us)
{
    uint64_t limit_us;

    atomic_store(&alarm->look_us, 0);
    limit_us = atomic_load(&alarm->limit_us);
    if (limit_us == 0 || limit_us == HAS_RUNG)
        return 0;
    if (now_us < limit_us) {
        atomic_store(&alarm->look_us, limit_us);
        return 1;
    }
    if (atomic_compare_exchange_strong(&alarm->limit_us, &limit_us, HAS_RUNG))
        (void)shutdown(alarm->fd, SHUT_RDWR);
    return 0;
}

/* How many calls are under way, as far as that matters: of those whose time has not come, only
 * once there will be no more. `mutex` held. */
static int look_at_all(struct dblk_alarms *alarms, int is_stopping)
{
    uint64_t now_us = dblk_now_us();
    struct dblk_alarm *alarm;
    int n_calls = 0;

    alarms->next_us = DBLK_NEVER;
    for (alarm = alarms->first; alarm != NULL; alarm = alarm->next) {
        uint64_t look_us = atomic_load(&alarm->look_us);

        /* also at a limit that is not announced: who set it did not know of the stop yet */
        if (is_stopping || (look_us != 0 && now_us >= look_us))
            n_calls += look(alarm, now_us);
        look_us = atomic_load(&alarm->look_us);
        if (look_us != 0)
            alarms->next_us = dblk_sooner(alarms->next_us, look_us);
    }
    return n_calls;
}

static void *run(void *context)
{
    struct dblk_alarms *alarms = context;

    (void)pthread_mutex_lock(&alarms->mutex);
    for (;;) {
        int is_stopping = atomic_load(&alarms->is_stopping);

        if (look_at_all(alarms, is_stopping) == 0 && is_stopping)
            break;
        dblk_wait_condition(&alarms->changed, &alarms->mutex, alarms->next_us);
    }
    (void)pthread_mutex_unlock(&alarms->mutex);
    return NULL;
}

/* `mutex` held. */
static int start(struct dblk_alarms *alarms)
{
    sigset_t all, before;

    if (alarms->is_running)
        return 1;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    alarms->is_running = pthread_create(&alarms->thread, NULL, run, alarms) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return alarms->is_running;
}

static DBLOCK_COLD_ void set_up(struct dblk_alarms *alarms, struct dblk_alarm *alarm, int socket)
{
    alarm->is_set_up = -1;
    alarm->fd = fcntl(socket, F_DUPFD_CLOEXEC, 0);
    if (alarm->fd < 0)
        return;
    (void)pthread_mutex_lock(&alarms->mutex);
    if (!atomic_load(&alarms->is_stopping) && start(alarms)) {
        alarm->next = alarms->first;
        alarms->first = alarm;
        alarm->is_set_up = 1;
    }
    (void)pthread_mutex_unlock(&alarms->mutex);
    if (alarm->is_set_up < 0)
        (void)close(alarm->fd);
}

static void wake(struct dblk_alarms *alarms, struct dblk_alarm *alarm, uint64_t look_us)
{
    (void)pthread_mutex_lock(&alarms->mutex);
    if (look_us != 0)
        atomic_store(&alarm->look_us, look_us);
    if (look_us < alarms->next_us)
        (void)pthread_cond_signal(&alarms->changed);
    (void)pthread_mutex_unlock(&alarms->mutex);
}

int dblk_alarm_begin(
    struct dblk_alarms *alarms, struct dblk_alarm *alarm, int socket, uint64_t deadline_us)
{
    uint64_t look_us;

    if (alarm->is_set_up <= 0) {
        if (alarm->is_set_up < 0 || socket < 0 || ++alarm->n_calls <= FIRST_CALLS)
            return 0;
        set_up(alarms, alarm, socket);
        if (alarm->is_set_up < 0)
            return 0;
    }
    atomic_store(&alarm->limit_us, deadline_us);
    if (atomic_load(&alarms->is_stopping)) {
        (void)dblk_alarm_end(alarms, alarm);
        return 0;
    }
    look_us = atomic_load(&alarm->look_us);
    if (look_us == 0 || look_us > deadline_us)
        wake(alarms, alarm, deadline_us);
    return 1;
}

int dblk_alarm_end(struct dblk_alarms *alarms, struct dblk_alarm *alarm)
{
    int has_rung = atomic_exchange(&alarm->limit_us, 0) == HAS_RUNG;

    if (atomic_load(&alarms->is_stopping))
        wake(alarms, alarm, 0);
    return has_rung;
}

void dblk_alarm_forget(struct dblk_alarms *alarms, struct dblk_alarm *alarm, int is_forked)
{
    struct dblk_alarm **place = &alarms->first;

    if (alarm->is_set_up <= 0)
        return;
    if (!is_forked) {
        (void)pthread_mutex_lock(&alarms->mutex);
        while (*place != alarm)
            place = &(*place)->next;
        *place = alarm->next;
        (void)pthread_mutex_unlock(&alarms->mutex);
    }
    (void)close(alarm->fd);
    alarm->is_set_up = -1;
}

void dblk_alarms_stop(struct dblk_alarms *alarms)
{
    int was_running;

    (void)pthread_mutex_lock(&alarms->mutex);
    atomic_store(&alarms->is_stopping, 1);
    was_running = alarms->is_running;
    alarms->is_running = 0;
    (void)pthread_cond_signal(&alarms->changed);
    (void)pthread_mutex_unlock(&alarms->mutex);
    if (was_running)
        (void)pthread_join(alarms->thread, NULL);
}

void dblk_alarms_fini(struct dblk_alarms *alarms)
{
    (void)pthread_cond_destroy(&alarms->changed);
    (void)pthread_mutex_destroy(&alarms->mutex);
}
