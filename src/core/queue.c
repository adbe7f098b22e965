/* SPDX-License-Identifier: MIT */
/* queue.c - see queue.h.
 *
 * A queue is there as long as a thread waits in it or asks the database for it. Who
 * holds the name is not in it but in client->names: a holder that nobody waits for
 * costs nothing here.
 *
 * A grant that is handed over keeps its owner id, its session or channel and with it
 * its deadline; it has no token until one is asked for, as those of row and advisory
 * (a grant never has the token of an earlier one). Others wait for the name too, on
 * other machines: so no more than N_HANDED in a row, and no longer than HANDED_US. A timed
 * one is handed over as long as no more than 1/TIMED_PART of its time is gone. */
#include "core/queue.h"

#include <string.h>

#include "core/channel.h"
#include "core/driver_steps.h"
#include "core/lock.h"
#include "core/perform.h"
#include "core/place.h"
#include "core/seat.h"
#include "core/session.h"

enum { N_HANDED = 64, HANDED_US = 50000, TIMED_PART = 64 };

struct dblk_queue {
    struct dblk_queue *next;
    const struct dblock_lock *like; /* any lock of the name that is in here: the key */
    struct dblk_queued *first, *last;
    struct dblk_queued *contender; /* asks the database; NULL */
};

static struct dblk_queue *find_queue(const dblock_client *client, const struct dblock_lock *like)
{
    struct dblk_queue *queue = client->queues;

    while (queue != NULL &&
        (queue->like->name_hash != like->name_hash || queue->like->strategy != like->strategy ||
            !dblk_subject_equal(&queue->like->subject, &like->subject)))
        queue = queue->next;
    return queue;
}

static struct dblk_queue *make_queue(dblock_client *client, const struct dblock_lock *like)
{
    struct dblk_queue *queue = dblk_allocate(sizeof *queue);

    if (queue == NULL)
        return NULL;
    queue->like = like;
    queue->next = client->queues;
    client->queues = queue;
    return queue;
}

static void append(struct dblk_queue *queue, struct dblk_queued *queued)
{
    queued->queue = queue;
    queued->next = NULL;
    queued->turn = 0;
    if (queue->last != NULL)
        queue->last->next = queued;
    else
        queue->first = queued;
    queue->last = queued;
}

static void take_out(struct dblk_queue *queue, struct dblk_queued *queued)
{
    struct dblk_queued **place = &queue->first;
    struct dblk_queued *before = NULL;

    while (*place != queued) {
        before = *place;
        place = &(*place)->next;
    }
    *place = queued->next;
    if (queue->last == queued)
        queue->last = before;
    queued->next = NULL;
}

/* Whoever left may have been the key; an empty queue goes. */
static void tidy(dblock_client *client, struct dblk_queue *queue)
{
    struct dblk_queue **place = &client->queues;
    const struct dblk_queued *any = queue->contender != NULL ? queue->contender : queue->first;

    if (any != NULL) {
        queue->like = any->attempt->lock;
        return;
    }
    while (*place != queue)
        place = &(*place)->next;
    *place = queue->next;
    dblk_release(queue);
}

static void promote(struct dblk_queue *queue)
{
    struct dblk_queued *queued = queue->first;

    if (queue->contender != NULL || queued == NULL)
        return;
    take_out(queue, queued);
    queue->contender = queued;
    queued->turn = DBLK_TURN_AGAIN;
    dblk_seat_promise(queued->seat);
    dblk_seat_call(queued->seat);
}

/* The mutex is held, and given up while it waits. */
static enum dblk_turn wait_here(
    struct dblk_queued *queued, uint64_t give_up_us, uint64_t *now_us)
{
    struct dblk_waiter *waiter = &queued->attempt->waiter;
    dblock_client *client = waiter->client;

    ++client->stats.waiters;
    while (queued->turn == 0 && dblk_waiter_verdict(waiter) == 0 && *now_us < give_up_us) {
        dblk_seat_rest(client, queued->seat, waiter->canceller, give_up_us);
        *now_us = dblk_now_us();
        if (queued->turn == 0)
            dblk_seat_clear(queued->seat); /* it was for who had the seat before */
    }
    --client->stats.waiters;
    if (queued->turn != 0)
        return queued->turn;
    take_out(queued->queue, queued);
    tidy(client, queued->queue);
    queued->queue = NULL;
    return DBLK_TURN_OVER;
}

static enum dblk_turn join(struct dblk_queued *queued, struct dblk_queue *queue,
    uint64_t give_up_us, uint64_t *now_us)
{
    dblock_client *client = queued->attempt->client;

    if (queued->seat == NULL)
        queued->seat = dblk_seat_take(client, queued->attempt->waiter.canceller != NULL);
    else
        dblk_seat_clear(queued->seat);
    if (queued->seat == NULL)
        return DBLK_TURN_ASK; /* without a seat it has to do without the others */
    if (queue == NULL)
        queue = make_queue(client, queued->attempt->lock);
    if (queue == NULL)
        return DBLK_TURN_ASK;
    append(queue, queued);
    return wait_here(queued, give_up_us, now_us);
}

enum dblk_turn dblk_queue_enter(struct dblk_queued *queued, uint64_t give_up_us, uint64_t *now_us)
{
    const struct dblock_lock *lock = queued->attempt->lock;
    dblock_client *client = queued->attempt->client;
    enum dblk_turn turn = DBLK_TURN_ASK;
    struct dblk_queue *queue;

    dblk_lock_client(client);
    queue = find_queue(client, lock);
    if (queue != NULL || dblk_names_find(&client->names, lock) != NULL)
        turn = join(queued, queue, give_up_us, now_us);
    if ((turn == DBLK_TURN_ASK || turn == DBLK_TURN_AGAIN) &&
        *now_us < give_up_us && give_up_us - *now_us >= DBLK_CONTENDED_LEAST_US)
        queued->attempt->machine.terms.is_contended =
            dblk_contended_use(&client->contended, lock->name_hash);
    dblk_unlock_client(client);
    return turn;
}

/* Was it asked for, and another client had it? Not if the database could not be asked. */
static int is_others(const struct dblk_attempt *attempt)
{
    return !attempt->machine.terms.is_contended && attempt->machine.outage_us == 0;
}

enum dblk_turn dblk_queue_contend(
    struct dblk_queued *queued, uint64_t give_up_us, uint64_t *now_us)
{
    const struct dblock_lock *lock = queued->attempt->lock;
    dblock_client *client = queued->attempt->client;
    enum dblk_turn turn = DBLK_TURN_ASK;
    struct dblk_queue *queue;

    if (queued->queue != NULL) /* is the one that asks */
        return DBLK_TURN_ASK;
    dblk_lock_client(client);
    queue = find_queue(client, lock);
    if (queue == NULL && dblk_names_find(&client->names, lock) == NULL) {
        if (is_others(queued->attempt))
            dblk_contended_note(&client->contended, lock->name_hash);
        queue = make_queue(client, lock);
        if (queue != NULL) {
            queue->contender = queued;
            queued->queue = queue;
        }
    } else {
        turn = join(queued, queue, give_up_us, now_us);
    }
    dblk_unlock_client(client);
    return turn;
}

int dblk_queue_accept(struct dblk_queued *queued, uint64_t now_us)
{
    dblock_lock *lock = queued->attempt->lock;
    dblock_client *client = lock->client;
    int is_there;

    dblk_lock_client(client);
    if (lock->channel != NULL)
        is_there = dblk_channel_is_alive(client, lock->channel) &&
            now_us < atomic_load(&lock->channel->deadline_us);
    else if (lock->session != NULL)
        is_there = lock->session->state == DBLK_SESSION_ALIVE &&
            now_us < atomic_load(&lock->session->deadline_us);
    else
        is_there = now_us < atomic_load(&lock->own_deadline_us);
    if (!is_there) { /* with all that its connection or session held; the next take renews the id */
        lock->n_handed = 0;
        dblk_names_remove(&client->names, lock);
        dblk_queue_wake(lock);
        dblk_channel_put_locked(client, lock->channel);
        lock->channel = NULL;
    } else { /* needs it no more: nothing is left for dblk_queue_leave() */
        dblk_seat_put(client, queued->seat);
        queued->seat = NULL;
    }
    dblk_unlock_client(client);
    return is_there;
}

void dblk_queue_leave(struct dblk_queued *queued, int is_held)
{
    struct dblk_queue *queue = queued->queue;
    dblock_client *client = queued->attempt->client;

    dblk_lock_client(client);
    if (queue != NULL) {
        queue->contender = NULL;
        queued->queue = NULL;
        if (!is_held)
            promote(queue);
        tidy(client, queue);
    }
    if (queued->seat != NULL)
        dblk_seat_put(client, queued->seat);
    queued->seat = NULL;
    dblk_unlock_client(client);
}

static int is_session_fit(const dblock_lock *from, const struct dblk_wish *wish)
{
    const struct dblk_session *session = from->session;

    return session->state == DBLK_SESSION_ALIVE && wish->is_heartbeat &&
        session->ttl_us == wish->ttl_us && atomic_load(&from->deadline_us) == &session->deadline_us;
}

/* It ends a little sooner than one that `to` had taken itself. One that was ever extended may be
 * given another end yet, by an answer that was lost. */
static int is_timed_fit(const dblock_lock *from, const struct dblk_wish *wish, uint64_t now_us)
{
    return !wish->is_heartbeat && from->asked_ttl_us == wish->ttl_us && from->extend_round == 0 &&
        dblk_until(from->taken_us, now_us) <= wish->ttl_us / TIMED_PART;
}

static int is_row_fit(const dblock_lock *from, const struct dblk_wish *wish, uint64_t now_us)
{
    /* where nobody can be woken, others get their turn by luck alone: they are not to need more */
    if (!dblk_place_is_possible(from->client) || from->min_hold_us != 0 || from->n_extending != 0 ||
        dblk_hold_steps(from->client, from->strategy->id)->draw == NULL)
        return 0;
    return from->session != NULL ? is_session_fit(from, wish) : is_timed_fit(from, wish, now_us);
}

/* Would the grant be the same if `to` had taken it itself? */
static int is_fit(const dblock_lock *from, const struct dblk_attempt *to, uint64_t now_us)
{
    if (from->is_import || from->is_exported || from->n_drawing != 0 ||
        now_us >= dblk_lock_deadline(from) || strcmp(from->label, to->wish->label) != 0)
        return 0;
    return from->strategy->lives_in_connection
        ? from->channel != NULL && dblk_channel_is_alive(from->client, from->channel)
        : is_row_fit(from, to->wish, now_us);
}

uint64_t dblk_queue_since(const struct dblock_lock *lock)
{
    return lock->n_handed != 0 ? lock->handed_since_us : lock->granted_us;
}

static void move_grant(dblock_lock *from, dblock_lock *to)
{
    dblk_lock_unregister(to); /* its own takes were all answered: not granted */
    dblk_session_unref(to->client, to->session);
    if (from->is_registered) {
        dblk_lock_unregister(from);
        memcpy(to->owner, from->owner, sizeof to->owner);
        dblk_registry_add(&to->client->registry, to); /* room: one has just been taken out */
        to->is_registered = 1;
    }
    memcpy(to->owner, from->owner, sizeof to->owner);
    to->session = from->session;
    to->channel = from->channel;
    to->link_id = from->link_id;
    to->taken_us = from->taken_us;
    to->read_us = from->read_us;
    to->token = 0;
    to->n_handed = from->n_handed + 1;
    to->handed_since_us = dblk_queue_since(from);
    atomic_store(&to->own_deadline_us, atomic_load(&from->own_deadline_us)); /* if it is timed */
    atomic_store(&from->deadline_us, &from->own_deadline_us);
    atomic_store(&from->own_deadline_us, 0);
    from->session = NULL;
    from->channel = NULL;
    /* held from now on: who comes before its thread has woken waits here, too */
    dblk_names_remove(&from->client->names, from);
    dblk_names_add(&to->client->names, to);
}

struct dblk_seat *dblk_queue_hand_over(struct dblock_lock *lock, uint64_t now_us)
{
    dblock_client *client = lock->client;
    uint64_t since_us = dblk_queue_since(lock);
    struct dblk_queue *queue;
    struct dblk_queued *queued;

    queue = find_queue(client, lock);
    queued = queue != NULL && queue->contender == NULL ? queue->first : NULL;
    if (queued == NULL || lock->n_handed >= N_HANDED || now_us - since_us >= HANDED_US ||
        !is_fit(lock, queued->attempt, now_us))
        return NULL;
    take_out(queue, queued);
    queued->queue = NULL;
    tidy(client, queue);
    move_grant(lock, queued->attempt->lock);
    queued->turn = DBLK_TURN_GRANTED;
    dblk_seat_promise(queued->seat);
    return queued->seat;
}

void dblk_queues_rouse(dblock_client *client)
{
    const struct dblk_queue *queue;
    const struct dblk_queued *queued;

    for (queue = client->queues; queue != NULL; queue = queue->next)
        for (queued = queue->first; queued != NULL; queued = queued->next)
            dblk_seat_rouse(queued->seat);
}

void dblk_queue_wake(struct dblock_lock *lock)
{
    struct dblk_queue *queue;

    if (lock->client->queues == NULL)
        return;
    queue = find_queue(lock->client, lock);
    if (queue != NULL)
        promote(queue);
}
