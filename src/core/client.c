/* SPDX-License-Identifier: MIT */
/* client.c - opening and closing a client, and what every public call begins
 * with. */
#include "core/client.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "core/borrowed.h"
#include "core/channel.h"
#include "core/close.h"
#include "core/driver_check.h"
#include "core/error.h"
#include "core/fork.h"
#include "core/identity.h"
#include "core/keeper.h"
#include "core/link.h"
#include "core/lock.h"
#include "core/queue.h"
#include "core/seat.h"
#include "core/session.h"
#include "core/watch.h"

static _Thread_local unsigned n_callbacks; /* that run on this thread, one inside the other */

void dblk_callback_begin(void)
{
    ++n_callbacks;
}

void dblk_callback_end(void)
{
    --n_callbacks;
}

int dblk_is_in_callback(void)
{
    return n_callbacks > 0;
}

int dblk_is_forked(const dblock_client *client)
{
    return client->generation != dblk_fork_generation();
}

int dblk_client_new_id(dblock_client *client, unsigned char id[DBLOCK_ID_SIZE])
{
    int fault;

    if (client->n_random < DBLOCK_ID_SIZE) {
        fault = dblk_environment()->random(client->random_pool, sizeof client->random_pool);
        if (fault != 0)
            return fault;
        client->n_random = sizeof client->random_pool;
    }
    client->n_random -= DBLOCK_ID_SIZE;
    memcpy(id, client->random_pool + client->n_random, DBLOCK_ID_SIZE);
    return 0;
}

void dblk_client_wait(dblock_client *client, uint64_t until_us)
{
    /* in short steps: a close, a canceller or a clock that jumped is seen soon */
    dblk_wait_condition(
        &client->changed, &client->mutex, dblk_sooner(until_us, dblk_now_us() + 50000));
}

static int open_descriptors(dblock_client *client)
{
    struct epoll_event event;
    int fault = dblk_signal_fd_new(&client->stop_fd);

    if (fault == 0)
        fault = dblk_signal_fd_new(&client->keeper.wake_fd);
    if (fault == 0) {
        client->keeper.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (client->keeper.epoll_fd < 0)
            fault = errno;
    }
    if (fault != 0)
        return fault;
    memset(&event, 0, sizeof event);
    event.events = EPOLLIN;
    if (epoll_ctl(client->keeper.epoll_fd, EPOLL_CTL_ADD, client->keeper.wake_fd, &event) != 0)
        return errno;
    return 0;
}

static void close_descriptor(int fd)
{
    if (fd >= 0)
        (void)close(fd);
}

static void free_client(dblock_client *client)
{
    dblk_channels_fini(client);
    if (client->keeper_target != client->target)
        client->driver->target_close(client->keeper_target);
    client->driver->target_close(client->target);
    dblk_registry_fini(&client->registry);
    dblk_names_fini(&client->names);
    while (client->sessions != NULL) {
        struct dblk_session *session = client->sessions;

        client->sessions = session->next;
        dblk_release(session);
    }
    dblk_seats_fini(client);
    close_descriptor(client->stop_fd);
    close_descriptor(atomic_load(&client->spare_epoll_fd));
    close_descriptor(client->events.fd);
    close_descriptor(client->keeper.wake_fd);
    close_descriptor(client->keeper.epoll_fd);
    /* in a child after fork they still count threads that exist in the parent alone */
    if (!dblk_is_forked(client)) {
        dblk_alarms_fini(&client->alarms);
        (void)pthread_cond_destroy(&client->keeper.work);
        (void)pthread_cond_destroy(&client->given_back);
        (void)pthread_cond_destroy(&client->changed);
        (void)pthread_mutex_destroy(&client->control_use);
        (void)pthread_mutex_destroy(&client->mutex);
    }
    dblk_release(client);
}

static dblock_status open_targets(dblock_client *client, const char *url,
    const struct dblock_config *config, struct dblock_error *reterr)
{
    struct dblock_target_config target;
    struct dblock_config given = DBLOCK_CONFIG_INIT;
    struct dblock_error error;
    char host[256];
    dblock_status status;

    if (config != NULL) /* checked before */
        (void)dblk_struct_read(config, &given, sizeof given, "config", NULL);
    memset(&target, 0, sizeof target);
    memset(&error, 0, sizeof error);
    dblk_identity_host(host, sizeof host);
    target.url = url;
    target.schema = given.schema;
    target.host = host;
    target.pid = client->pid;
    target.label = client->settings.label;
    target.connect_timeout_us = client->settings.connect_us;
    target.io_timeout_us = client->settings.io_us;
    target.ttl_us = client->settings.ttl_us;
    status = dblk_is_borrowing(client)
        ? client->borrowing.target_open(
              client->borrowing.connection, &target, &client->target, &error)
        : client->driver->target_open(&target, &client->target, &error);
    client->keeper_target = client->target;
    if (status == DBLOCK_OK && given.keeper_url != NULL) {
        target.url = given.keeper_url;
        client->keeper_target = NULL;
        status = client->driver->target_open(&target, &client->keeper_target, &error);
    }
    if (status < 0)
        dblk_error_tell(reterr, &error);
    return status;
}

/* `borrowing` NULL: by `url`. */
static dblock_status open_client(const dblock_driver *driver, const char *url,
    const struct dblock_borrowing *borrowing, const struct dblock_config *config,
    dblock_client **ret_client, struct dblock_error *reterr)
{
    struct dblk_settings settings;
    dblock_client *client;
    dblock_status status = dblk_driver_check(driver, reterr);
    int fault;

    if (status == DBLOCK_OK && ret_client == NULL)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL, "ret_client: NULL");
    if (status == DBLOCK_OK && dblk_is_in_callback())
        return dblock_error_set(reterr, DBLOCK_E_CALLBACK, NULL, "not from a callback");
    if (status == DBLOCK_OK)
        status = dblk_settings_resolve(config, &settings, reterr);
    if (status != DBLOCK_OK)
        return status;
    client = dblk_allocate(sizeof *client);
    if (client == NULL)
        return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "out of memory");
    client->driver = driver;
    client->settings = settings;
    if (borrowing != NULL) {
        client->borrowing = *borrowing;
        client->settings.connections_max = 1; /* whoever comes second waits for the first */
    }
    client->pid = getpid();
    client->generation = dblk_fork_generation();
    client->stop_fd = client->events.fd = -1;
    atomic_init(&client->spare_epoll_fd, -1);
    client->keeper.wake_fd = client->keeper.epoll_fd = -1;
    atomic_init(&client->n_refs, 1);
    (void)pthread_mutex_init(&client->mutex, NULL);
    (void)pthread_mutex_init(&client->control_use, NULL);
    fault = dblk_condition_init(&client->changed);
    if (fault == 0)
        fault = dblk_condition_init(&client->given_back);
    if (fault == 0)
        fault = dblk_condition_init(&client->keeper.work);
    if (fault == 0)
        fault = dblk_alarms_init(&client->alarms);
    if (fault == 0)
        fault = open_descriptors(client);
    if (fault != 0) {
        status = dblock_error_set(reterr, DBLOCK_E_SYSTEM, "raise the limit of open files",
            "cannot make the descriptors of a client: %s", strerror(fault));
        dblock_error_native(reterr, fault, NULL, 1);
    } else {
        status = open_targets(client, url, config, reterr);
    }
    if (status != DBLOCK_OK) {
        free_client(client);
        return status;
    }
    if (borrowing != NULL && dblk_way_of(client, DBLOCK_ROLE_LINE, NULL) == NULL)
        atomic_store(&client->has_no_line, 1);
    *ret_client = client;
    return DBLOCK_OK;
}

dblock_status dblock_open(const dblock_driver *driver, const char *url,
    const struct dblock_config *config, dblock_client **ret_client, struct dblock_error *reterr)
{
    if (driver != NULL && url == NULL)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL, "url: NULL");
    if (driver != NULL && url[0] == 0) /* else some client libraries take their own defaults */
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL, "url: empty");
    return open_client(driver, url, NULL, config, ret_client, reterr);
}

dblock_status dblock_open_borrowed(const dblock_driver *driver,
    const struct dblock_borrowing *borrowing, const struct dblock_config *config,
    dblock_client **ret_client, struct dblock_error *reterr)
{
    return open_client(driver, NULL, borrowing, config, ret_client, reterr);
}

void dblk_client_ref(dblock_client *client)
{
    (void)atomic_fetch_add(&client->n_refs, 1);
}

void dblk_client_unref(dblock_client *client)
{
    if (atomic_fetch_sub(&client->n_refs, 1) == 1)
        free_client(client);
}

dblock_status dblk_client_check(const dblock_client *client, struct dblock_error *reterr)
{
    if (client == NULL)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL, "client: NULL");
    if (dblk_is_forked(client))
        return dblock_error_set(reterr, DBLOCK_E_FORKED,
            "open a client of its own in the child, after fork()",
            "this client belongs to process %ld", (long)client->pid);
    if (dblk_is_in_callback())
        return dblock_error_set(reterr, DBLOCK_E_CALLBACK,
            "note the event and act on it outside the callback", "not from a callback");
    if (atomic_load(&client->is_closing))
        return dblock_error_set(reterr, DBLOCK_E_CLOSED, NULL, "the client has been closed");
    return DBLOCK_OK;
}

dblock_status dblk_client_enter(dblock_client *client, struct dblock_error *reterr)
{
    dblock_status status = dblk_client_check(client, reterr);

    if (status == DBLOCK_OK)
        dblk_client_ref(client);
    return status;
}

dblock_status dblk_client_closed(struct dblock_error *reterr)
{
    return dblock_error_set(
        reterr, DBLOCK_E_CLOSED, NULL, "the client has been closed meanwhile");
}

void dblk_client_leave(dblock_client *client)
{
    dblk_client_unref(client);
}

static void close_forked_links(dblock_client *client, struct dblk_link *link)
{
    while (link != NULL) {
        struct dblk_link *next = link->next;

        dblk_link_close(client, link, DBLOCK_CLOSE_FORKED);
        link = next;
    }
}

/* In a child after fork: not a byte may go out, and no mutex may be trusted. */
static void close_forked(dblock_client *client)
{
    close_forked_links(client, client->idle);
    close_forked_links(client, client->idle_places);
    client->idle = client->idle_places = NULL;
    dblk_link_close(client, client->control, DBLOCK_CLOSE_FORKED);
    dblk_link_close(client, client->keeper.link, DBLOCK_CLOSE_FORKED);
    client->control = client->keeper.link = NULL;
    dblk_channels_close(client, DBLOCK_CLOSE_FORKED);
    dblk_client_unref(client);
}


void dblock_close(dblock_client *client)
{
    uint64_t deadline_us;

    if (client == NULL)
        return;
    if (dblk_is_forked(client)) {
        close_forked(client);
        return;
    }
    if (dblk_is_in_callback() || atomic_exchange(&client->is_closing, 1))
        return;
    /* one limit for all of it: the keeper may be at work with a server that does not answer */
    deadline_us = dblk_later(dblk_now_us(), client->settings.io_us);
    dblk_signal_fd_raise(client->stop_fd);
    dblk_lock_client(client);
    (void)pthread_cond_broadcast(&client->changed);
    (void)pthread_cond_broadcast(&client->given_back);
    dblk_queues_rouse(client);
    dblk_unlock_client(client);
    dblk_keeper_stop(client);
    dblk_watch_end_all(client);
    dblk_close_give_back(client, deadline_us);
    dblk_alarms_stop(&client->alarms);
    dblk_client_unref(client);
}

dblock_status dblock_client_stats(dblock_client *client, struct dblock_stats *ret_stats)
{
    struct dblock_stats stats;
    struct dblk_session *session;

    if (client == NULL || ret_stats == NULL)
        return DBLOCK_E_ARGUMENT;
    if (dblk_is_forked(client))
        return DBLOCK_E_FORKED;
    dblk_lock_client(client);
    stats = client->stats;
    stats.locks_held = (uint32_t)client->held.n_locks;
    stats.connections = client->n_connections;
    stats.sessions = 0;
    for (session = client->sessions; session != NULL; session = session->next)
        stats.sessions += session->state == DBLK_SESSION_ALIVE;
    dblk_unlock_client(client);
    return dblk_struct_write(ret_stats, &stats, sizeof stats, "ret_stats", NULL);
}
