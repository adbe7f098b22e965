/* SPDX-License-Identifier: MIT */
/* harm.c - see soak.h: what the conductor does to workers, networks and servers. A harm is told
 * to those whom it may reach before it begins and after it has ended. */
#define _DEFAULT_SOURCE
#include "soak.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "test_wait.h"

extern char **environ;

enum {
    STOPS_A_MINUTE = 150,
    KILLS_A_MINUTE = 60,
    CUTS_A_MINUTE = 20,
    SWALLOWS_A_MINUTE = 4,
    SERVERS_A_MINUTE = 1, /* each in turn */
    LOOKS_A_MINUTE = 1200,
    SETTLED_MS = 200 /* until a proxy has cut what it was told to */
};

unsigned long soak_n_harms[N_HARMS];

static uint64_t resume_us[N_WORKERS];      /* 0: is not stopped */
static uint64_t reconnect_us[N_DATABASES]; /* 0: its network is well */

static const char *const kinds[N_HARMS] = { "stopped", "killed", "cut", "swallowed",
    "server killed" };

static void tell_begin_to(struct soak_worker *worker, enum harm kind)
{
    atomic_store(&worker->harm, kinds[kind]);
    (void)atomic_fetch_add(&worker->n_ongoing, 1);
    (void)atomic_fetch_add(&worker->n_harms, 1);
}

static void tell_end_to(struct soak_worker *worker)
{
    atomic_store(&worker->harmed_us, soak_now_us());
    (void)atomic_fetch_add(&worker->n_harms, 1);
    (void)atomic_fetch_sub(&worker->n_ongoing, 1);
}

/* To both threads of a process. */
static void tell_begin(struct soak_worker *worker, enum harm kind)
{
    tell_begin_to(worker, kind);
    if (worker->twin != NULL)
        tell_begin_to(worker->twin, kind);
}

static void tell_end(struct soak_worker *worker)
{
    tell_end_to(worker);
    if (worker->twin != NULL)
        tell_end_to(worker->twin);
}

static void count_stop(struct soak_worker *worker)
{
    (void)atomic_fetch_add(&worker->n_stops, 1);
    if (worker->twin != NULL)
        (void)atomic_fetch_add(&worker->twin->n_stops, 1);
}

/* Of a network those who are behind the proxy. */
static int is_reached(const struct soak_worker *worker, size_t database, enum harm kind)
{
    return worker->database == database && !worker->is_twin &&
        (worker->is_proxied || kind == HARM_SERVER);
}

static void tell_all_begin(size_t database, enum harm kind)
{
    struct soak_worker *worker;

    ++soak_n_harms[kind];
    /* it lasts no longer than this, and its end is told */
    atomic_store(
        &soak_shared->network_harmed_us[database], soak_now_us() + 2000 * IO_LIMIT_MS);
    for (worker = soak_shared->workers; worker < soak_shared->workers + N_WORKERS; ++worker)
        if (is_reached(worker, database, kind))
            tell_begin(worker, kind);
}

static void tell_all_end(size_t database, enum harm kind)
{
    struct soak_worker *worker;

    atomic_store(&soak_shared->network_harmed_us[database], soak_now_us());
    for (worker = soak_shared->workers; worker < soak_shared->workers + N_WORKERS; ++worker)
        if (is_reached(worker, database, kind))
            tell_end(worker);
}

static int comes(int a_minute)
{
    return soak_draw(LOOKS_A_MINUTE) < (unsigned)a_minute;
}

/* ------------------------------------------------------------------- processes */

static void stop(size_t i, pid_t pid)
{
    struct soak_worker *worker = &soak_shared->workers[i];

    ++soak_n_harms[HARM_STOP];
    tell_begin(worker, HARM_STOP);
    count_stop(worker);
    (void)kill(pid, SIGSTOP);
    resume_us[i] = soak_now_us() + soak_draw(soak_draw(4) == 0 ? 2500 * TTL_MS : 400000);
}

static void resume(size_t i, pid_t pid)
{
    (void)kill(pid, SIGCONT);
    count_stop(&soak_shared->workers[i]);
    tell_end(&soak_shared->workers[i]);
    resume_us[i] = 0;
}

static void crash(size_t i, struct test_process *process)
{
    struct soak_worker *worker = &soak_shared->workers[i];

    ++soak_n_harms[HARM_KILL];
    tell_begin(worker, HARM_KILL);
    process_kill(process);
    soak_leave(worker);
    if (worker->twin != NULL)
        soak_leave(worker->twin);
    tell_end(worker);
    if (process_start(process, soak_work, worker) != 0)
        soak_violation(VIOLATION_ERROR, "no process can be started");
}

/* -------------------------------------------------------------------- networks */

static void cut(size_t d)
{
    tell_all_begin(d, HARM_CUT);
    tcp_proxy_cut_all(soak_databases[d].proxy);
    test_pass_ms(SETTLED_MS);
    tell_all_end(d, HARM_CUT);
}

static void swallow(size_t d)
{
    tell_all_begin(d, HARM_SWALLOW);
    tcp_proxy_swallow(soak_databases[d].proxy, 1 + soak_draw(3));
    reconnect_us[d] = soak_now_us() + soak_draw(1200 * IO_LIMIT_MS);
}

static void reconnect(size_t d)
{
    tcp_proxy_swallow(soak_databases[d].proxy, 0);
    test_pass_ms(SETTLED_MS);
    tell_all_end(d, HARM_SWALLOW);
    reconnect_us[d] = 0;
}

/* --------------------------------------------------------------------- servers */

static int ask_services(const char *services, const char *command, const char *service)
{
    char path[4096], words[2][32];
    char *arguments[] = { path, words[0], words[1], NULL };
    pid_t pid;
    int status = -1;

    (void)snprintf(path, sizeof path, "%s", services);
    (void)snprintf(words[0], sizeof words[0], "%s", command);
    (void)snprintf(words[1], sizeof words[1], "%s", service);
    if (posix_spawn(&pid, path, NULL, NULL, arguments, environ) != 0)
        return -1;
    while (waitpid(pid, &status, 0) != pid)
        if (errno != EINTR)
            return -1;
    return status == 0 ? 0 : -1;
}

static int kill_server(size_t d)
{
    const char *services = getenv("DBLOCK_TEST_SERVICES");
    int result;

    if (services == NULL)
        return 0;
    tell_all_begin(d, HARM_SERVER);
    result = ask_services(services, "kill9", soak_databases[d].service);
    if (result == 0)
        result = ask_services(services, "restart", soak_databases[d].service);
    tell_all_end(d, HARM_SERVER);
    return result;
}

/* ------------------------------------------------------------------------- all */

static int harm_databases(void)
{
    size_t d;

    for (d = 0; d < N_DATABASES; ++d) {
        const struct soak_database *database = &soak_databases[d];

        if (database->service == NULL || database->why_not != NULL)
            continue;
        if (reconnect_us[d] != 0 && soak_now_us() >= reconnect_us[d])
            reconnect(d);
        else if (reconnect_us[d] == 0 && comes(CUTS_A_MINUTE))
            cut(d);
        else if (reconnect_us[d] == 0 && comes(SWALLOWS_A_MINUTE))
            swallow(d);
        else if (comes(SERVERS_A_MINUTE) && kill_server(d) != 0)
            return -1;
    }
    return 0;
}

int soak_harm(struct test_process *processes)
{
    size_t i;

    for (i = 0; i < N_WORKERS; ++i)
        if (resume_us[i] != 0 && soak_now_us() >= resume_us[i])
            resume(i, processes[i].pid);
    i = soak_draw(N_WORKERS);
    if (processes[i].pid != 0 && resume_us[i] == 0 && comes(STOPS_A_MINUTE))
        stop(i, processes[i].pid);
    i = soak_draw(N_WORKERS);
    if (processes[i].pid != 0 && resume_us[i] == 0 && !soak_shared->workers[i].is_steady &&
        comes(KILLS_A_MINUTE))
        crash(i, &processes[i]);
    return harm_databases();
}

void soak_heal(struct test_process *processes)
{
    size_t i;

    for (i = 0; i < N_WORKERS; ++i)
        if (resume_us[i] != 0)
            resume(i, processes[i].pid);
    for (i = 0; i < N_DATABASES; ++i)
        if (reconnect_us[i] != 0)
            reconnect(i);
}
