/* SPDX-License-Identifier: MIT */
/* sim_driver_connect.c - how a client of a simulated world reaches it: targets,
 * connections, and what befalls a step on its way there and back.
 *
 * One mutex for each world. A connection has an eventfd, which is also what the
 * library may poll: written when the server ends the connection, or when a lock
 * that it queues for is granted. */
#include "sim_driver_parts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void leave_site(struct sim_site *site)
{
    (void)pthread_mutex_unlock(&site->mutex);
}

/* -------------------------------------------------------------------- steps */

/* Lets time pass without the world's mutex. 0: the deadline came first. */
static int pass_time(struct sim_site *site, uint64_t duration_us, const struct dblock_call *call)
{
    uint64_t until_us = dblock_clock_us() + duration_us;
    struct dblock_call pause = { until_us, -1 };

    if (pause.deadline_us > call->deadline_us || until_us < duration_us)
        pause.deadline_us = call->deadline_us;
    leave_site(site);
    (void)dblock_fd_wait(-1, 0, &pause, 0); /* poll leaves a descriptor below zero alone */
    (void)pthread_mutex_lock(&site->mutex);
    return until_us >= duration_us && until_us <= call->deadline_us;
}

/* The fault that this step is to have; `fault` 0 none. */
static struct sim_pending_fault next_fault(struct sim_site *site, enum sim_step step)
{
    struct sim_pending_fault due = { SIM_STEP_ANY, 0, 0, 0, 0 };
    size_t i;

    ++site->n_steps[SIM_STEP_ANY];
    ++site->n_steps[step];
    for (i = site->n_faults; i > 0; --i) {
        struct sim_pending_fault *fault = &site->faults[i - 1];

        if (fault->step != SIM_STEP_ANY && fault->step != step)
            continue;
        if (--fault->n_left > 0)
            continue;
        due = *fault;
        *fault = site->faults[--site->n_faults];
    }
    return due;
}

static dblock_status say_unreached(struct dblock_error *reterr)
{
    return dblock_error_set(reterr, DBLOCK_E_CONNECTION, NULL, "cannot reach the simulated server");
}

static dblock_status say_lost(struct dblock_error *reterr)
{
    return dblock_error_set(
        reterr, DBLOCK_E_UNCERTAIN, NULL, "the simulated server closed the connection");
}

static dblock_status say_failed(dblock_status status, struct dblock_error *reterr)
{
    return status >= 0 ? status
                       : dblock_error_set(reterr, status, NULL, "the simulated server failed");
}

static int is_cut_off(const struct sim_site *site, const struct sim_caller *caller)
{
    return site->is_down || (site->stranded[0] != 0 && strcmp(site->stranded, caller->label) == 0);
}

struct sim_visit sim_enter(struct dblock_connection *connection, enum sim_step step,
    const struct dblock_call *call, struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct sim_site *site = connection->target->site;
    struct sim_visit visit = { connection, &site->world, 0, DBLOCK_OK, 0, 0 };
    struct sim_pending_fault fault;

    (void)pthread_mutex_lock(&site->mutex);
    fault = next_fault(site, step);
    if (site->is_silent && !connection->is_dead) {
        (void)pass_time(site, UINT64_MAX, call);
        sim_site_end_connection(site, connection);
        visit.status = say_lost(reterr);
    } else {
        if (fault.fault == SIM_FAULT_DELAY)
            visit.is_lost = !pass_time(site, fault.delay_us, call);
        if (connection->is_dead || is_cut_off(site, &connection->caller) ||
            fault.fault == SIM_FAULT_REFUSE) {
            sim_site_end_connection(site, connection);
            visit.status = say_unreached(reterr);
        }
    }
    if (visit.status == DBLOCK_OK && fault.fault == SIM_FAULT_FAIL)
        visit.status = say_failed(fault.result, reterr);
    if (visit.status == DBLOCK_OK && fault.fault == SIM_FAULT_ANSWER) {
        answer->outcome = fault.result;
        answer->now_us = sim_site_now(site);
        leave_site(site);
        return visit;
    }
    if (visit.status != DBLOCK_OK) {
        leave_site(site);
        return visit;
    }
    if (fault.fault == SIM_FAULT_LOSE)
        visit.is_lost = 1;
    visit.is_inside = 1;
    visit.now_us = sim_site_now(site);
    return visit;
}

dblock_status sim_leave(struct sim_visit *visit, struct dblock_error *reterr)
{
    struct sim_site *site = visit->connection->target->site;

    if (!visit->is_inside)
        return visit->status;
    if (visit->is_lost) {
        sim_site_end_connection(site, visit->connection);
        visit->status = say_lost(reterr);
    }
    leave_site(site);
    return visit->status;
}

/* ------------------------------------------------------------------- target */

dblock_status sim_target_open(const struct dblock_target_config *config,
    struct dblock_target **ret_target, struct dblock_error *reterr)
{
    static const char scheme[] = "sim:";
    static const char option[] = "?password=";
    struct dblock_target *target;
    char name[64];
    const char *password;
    size_t length;

    if (strncmp(config->url, scheme, sizeof scheme - 1) != 0)
        return dblock_error_set(
            reterr, DBLOCK_E_ARGUMENT, "sim:NAME", "this is not a URL of the simulated database");
    password = strchr(config->url, '?');
    if (password != NULL && strncmp(password, option, sizeof option - 1) != 0)
        return dblock_error_set(
            reterr, DBLOCK_E_ARGUMENT, "sim:NAME?password=WORD", "unknown option in the URL");
    length = password == NULL ? strlen(config->url) : (size_t)(password - config->url);
    length -= sizeof scheme - 1;
    if (length == 0 || length >= sizeof name)
        return dblock_error_set(
            reterr, DBLOCK_E_ARGUMENT, "sim:NAME", "the URL names no simulated database");
    memcpy(name, config->url + sizeof scheme - 1, length);
    name[length] = 0;
    target = calloc(1, sizeof *target);
    if (target == NULL)
        return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "out of memory");
    target->site = sim_site_find(name);
    target->pid = config->pid;
    dblock_text_copy(target->host, sizeof target->host, config->host);
    dblock_text_copy(target->label, sizeof target->label, config->label);
    if (password != NULL)
        dblock_text_copy(target->password, sizeof target->password, password + sizeof option - 1);
    *ret_target = target;
    return DBLOCK_OK;
}

void sim_target_close(struct dblock_target *target)
{
    free(target);
}

/* Connecting and installing: what can be in the way before there is a connection. The mutex is
 * held on DBLOCK_OK. */
static dblock_status reach(struct dblock_target *target, enum sim_step step,
    const struct dblock_call *call, struct dblock_error *reterr)
{
    const struct sim_caller caller = { 0, target->host, target->label, target->pid };
    struct sim_site *site = target->site;
    struct sim_pending_fault fault;
    dblock_status status = DBLOCK_OK;

    (void)pthread_mutex_lock(&site->mutex);
    fault = next_fault(site, step);
    if (site->is_silent)
        (void)pass_time(site, UINT64_MAX, call);
    if (fault.fault == SIM_FAULT_DELAY && !pass_time(site, fault.delay_us, call))
        status = say_unreached(reterr);
    if (site->is_silent || fault.fault == SIM_FAULT_REFUSE || fault.fault == SIM_FAULT_LOSE ||
        is_cut_off(site, &caller))
        status = say_unreached(reterr);
    else if (status == DBLOCK_OK && fault.fault == SIM_FAULT_FAIL)
        status = say_failed(fault.result, reterr);
    else if (status == DBLOCK_OK && strcmp(site->password, target->password) != 0 &&
             site->password[0] != 0)
        status = dblock_error_set(reterr, DBLOCK_E_LOGIN, "check the password in the URL",
            "the simulated server refuses the password");
    if (status != DBLOCK_OK)
        leave_site(site);
    return status;
}

dblock_status sim_install(
    struct dblock_target *target, const struct dblock_call *call, struct dblock_error *reterr)
{
    dblock_status status = reach(target, SIM_STEP_INSTALL, call, reterr);
    struct sim_world *world = &target->site->world;

    if (status != DBLOCK_OK)
        return status;
    if (world->is_denied)
        status = dblock_error_set(reterr, DBLOCK_E_PERMISSION, "GRANT CREATE TO you",
            "permission denied to create the tables");
    else if (world->is_read_only)
        status = dblock_error_set(reterr, DBLOCK_E_READ_ONLY, "connect to the primary",
            "cannot create the tables: the database is read-only");
    else
        world->is_installed = 1;
    leave_site(target->site);
    return status;
}

/* --------------------------------------------------------------- connection */

dblock_status sim_connection_open(struct dblock_target *target, int role,
    const struct dblock_call *call, struct dblock_connection **ret_connection,
    struct dblock_answer *answer, struct dblock_error *reterr)
{
    struct dblock_connection *connection;
    struct sim_site *site = target->site;
    dblock_status status;

    (void)role; /* all connections are alike here */
    connection = calloc(1, sizeof *connection);
    if (connection == NULL)
        return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "out of memory");
    connection->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (connection->fd < 0) {
        free(connection);
        return dblock_error_set(reterr, DBLOCK_E_SYSTEM, NULL, "no descriptor is to be had");
    }
    status = reach(target, SIM_STEP_OPEN, call, reterr);
    if (status != DBLOCK_OK) {
        (void)close(connection->fd);
        free(connection);
        return status;
    }
    connection->target = target;
    connection->caller =
        (struct sim_caller){ ++site->last_connection, target->host, target->label, target->pid };
    connection->next = site->connections;
    site->connections = connection;
    answer->now_us = sim_site_now(site);
    leave_site(site);
    *ret_connection = connection;
    return DBLOCK_OK;
}

void sim_connection_close(struct dblock_connection *connection, int how)
{
    struct dblock_connection **link;
    struct sim_site *site;

    if (connection == NULL)
        return;
    /* a forked child has a copy of the world, whose mutex may be held by nobody in it */
    if (how != DBLOCK_CLOSE_FORKED) {
        site = connection->target->site;
        (void)pthread_mutex_lock(&site->mutex);
        sim_connection_end(&site->world, sim_site_now(site), connection->caller.connection);
        for (link = &site->connections; *link != connection; link = &(*link)->next)
            ;
        *link = connection->next;
        leave_site(site);
    }
    (void)close(connection->fd);
    free(connection);
}

int sim_connection_is_alive(const struct dblock_connection *connection)
{
    return !atomic_load(&connection->is_dead);
}

int sim_connection_fd(const struct dblock_connection *connection)
{
    return connection->fd;
}
