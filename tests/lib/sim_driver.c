/* SPDX-License-Identifier: MIT */
/* sim_driver.c - the simulated worlds of this process, and the ways to hurt
 * them. The driver table over them is in sim_driver_steps.c. */
#include "sim_driver_parts.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t sites_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct sim_site *sites;

static int64_t real_time_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t sim_site_now(const struct sim_site *site)
{
    return (int64_t)dblock_clock_us() + site->clock_offset_us;
}

static void signal_connection(const struct dblock_connection *connection)
{
    const uint64_t one = 1;

    if (write(connection->fd, &one, sizeof one) != (ssize_t)sizeof one)
        abort();
}

/* ------------------------------------------------------------------- worlds */

static void notice(void *context, uint64_t number, enum sim_notice what)
{
    struct sim_site *site = context;
    struct dblock_connection *connection;

    for (connection = site->connections; connection != NULL; connection = connection->next) {
        if (connection->caller.connection != number)
            continue;
        if (what == SIM_ENDED)
            connection->is_dead = 1;
        signal_connection(connection);
    }
}

struct sim_site *sim_site_find(const char *name)
{
    struct sim_site *site;

    (void)pthread_mutex_lock(&sites_mutex);
    for (site = sites; site != NULL; site = site->next)
        if (strcmp(site->name, name) == 0)
            break;
    if (site == NULL) {
        site = calloc(1, sizeof *site);
        if (site == NULL)
            abort();
        dblock_text_copy(site->name, sizeof site->name, name);
        (void)pthread_mutex_init(&site->mutex, NULL);
        site->clock_offset_us = real_time_us() - (int64_t)dblock_clock_us();
        sim_world_init(&site->world, sim_site_now(site));
        site->world.notice = notice;
        site->world.notice_context = site;
        site->next = sites;
        sites = site;
    }
    (void)pthread_mutex_unlock(&sites_mutex);
    return site;
}

static struct sim_site *enter_site(const char *name)
{
    struct sim_site *site = sim_site_find(name);

    (void)pthread_mutex_lock(&site->mutex);
    return site;
}

static void leave_site(struct sim_site *site)
{
    (void)pthread_mutex_unlock(&site->mutex);
}

void sim_forget(const char *name)
{
    struct sim_site **link;

    (void)pthread_mutex_lock(&sites_mutex);
    for (link = &sites; *link != NULL; link = &(*link)->next) {
        struct sim_site *site = *link;

        if (strcmp(site->name, name) != 0)
            continue;
        *link = site->next;
        sim_world_fini(&site->world);
        (void)pthread_mutex_destroy(&site->mutex);
        free(site);
        break;
    }
    (void)pthread_mutex_unlock(&sites_mutex);
}

struct sim_world *sim_world_lock(const char *name)
{
    return &enter_site(name)->world;
}

int64_t sim_now_us_held(const char *name)
{
    return sim_site_now(sim_site_find(name));
}

void sim_world_unlock(const char *name)
{
    leave_site(sim_site_find(name));
}

void sim_site_end_connection(struct sim_site *site, struct dblock_connection *connection)
{
    if (connection->is_dead)
        return;
    connection->is_dead = 1;
    sim_connection_end(&site->world, sim_site_now(site), connection->caller.connection);
    signal_connection(connection);
}

static void end_connections(struct sim_site *site, const char *label)
{
    struct dblock_connection *connection;

    for (connection = site->connections; connection != NULL; connection = connection->next)
        if (label == NULL || strcmp(connection->caller.label, label) == 0)
            sim_site_end_connection(site, connection);
}

static void add_fault(const char *world, const struct sim_pending_fault *fault)
{
    struct sim_site *site = enter_site(world);

    if (site->n_faults == sizeof site->faults / sizeof site->faults[0])
        abort();
    site->faults[site->n_faults++] = *fault;
    leave_site(site);
}

void sim_fault_set(
    const char *world, enum sim_step step, unsigned nth, enum sim_fault fault, uint64_t delay_us)
{
    add_fault(world, &(struct sim_pending_fault){ step, nth, fault, delay_us, 0 });
}

void sim_answer_set(const char *world, enum sim_step step, unsigned nth, int32_t outcome)
{
    add_fault(world, &(struct sim_pending_fault){ step, nth, SIM_FAULT_ANSWER, 0, outcome });
}

void sim_fail_set(const char *world, enum sim_step step, unsigned nth, dblock_status status)
{
    add_fault(world, &(struct sim_pending_fault){ step, nth, SIM_FAULT_FAIL, 0, status });
}

void sim_fault_clear(const char *world)
{
    struct sim_site *site = enter_site(world);

    site->n_faults = 0;
    leave_site(site);
}

uint64_t sim_n_steps(const char *world, enum sim_step step)
{
    struct sim_site *site = enter_site(world);
    uint64_t n_steps = site->n_steps[step];

    leave_site(site);
    return n_steps;
}

int64_t sim_now_us(const char *world)
{
    struct sim_site *site = enter_site(world);
    int64_t now_us = sim_site_now(site);

    leave_site(site);
    return now_us;
}

void sim_clock_step(const char *world, int64_t by_us)
{
    struct sim_site *site = enter_site(world);

    site->clock_offset_us += by_us;
    leave_site(site);
}

void sim_cut(const char *world, const char *label)
{
    struct sim_site *site = enter_site(world);

    end_connections(site, label);
    leave_site(site);
}

void sim_strand(const char *world, const char *label)
{
    struct sim_site *site = enter_site(world);

    dblock_text_copy(site->stranded, sizeof site->stranded, label);
    end_connections(site, label);
    leave_site(site);
}

void sim_set_down(const char *world, int is_down)
{
    struct sim_site *site = enter_site(world);

    site->is_down = is_down;
    if (is_down)
        end_connections(site, NULL);
    leave_site(site);
}

void sim_set_silent(const char *world, int is_silent)
{
    struct sim_site *site = enter_site(world);

    site->is_silent = is_silent;
    leave_site(site);
}

void sim_set_password(const char *world, const char *password)
{
    struct sim_site *site = enter_site(world);

    dblock_text_copy(site->password, sizeof site->password, password);
    leave_site(site);
}

void sim_restart(const char *world)
{
    struct sim_site *site = enter_site(world);

    end_connections(site, NULL);
    site->world.start_us = sim_site_now(site);
    leave_site(site);
}

int sim_open(const dblock_driver *driver, const char *url, const struct dblock_config *config,
    dblock_client **ret_client, struct dblock_error *reterr)
{
    return dblock_open(driver, url, config, ret_client, reterr) == DBLOCK_OK &&
            dblock_schema_install(*ret_client, reterr) == DBLOCK_OK
        ? 0
        : -1;
}
