/* SPDX-License-Identifier: MIT */
/* many.h - several names at once. In libdblock. */
#ifndef DBLOCK_MANY_H
#define DBLOCK_MANY_H

#include "dblock.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DBLOCK_MANY_MAX 64 /* names of one call */

/**
 * dblock_acquire_many - take several names at once: all of them, or none
 *
 * One or two round trips, whatever their number. Callers of this do not deadlock, in
 * whatever order each of them has the names: whoever waits holds none of them, and takes all
 * anew when the one that was in his way is released. So he who wants many names waits longer
 * than he who wants one of them; there is no order of arrival.
 *
 * What comes of it is a lock object for each name, with a token, an owner and events of its
 * own: dblock_extend(), the guard, export and the rest are for each, and one that is lost
 * leaves the others as they are. Heartbeats are one for all, as for all locks of a client.
 *
 * Parameters
 *   names      1 to DBLOCK_MANY_MAX, each once, in any order
 *   options    as of dblock_acquire(), for each of them; lease or insert; without DBLOCK_FAIR.
 *              `busy` gets the holder of one of those that were in the way
 *   ret_locks  room for n_names objects, in the order of `names`; yours on OK
 *
 * Returns
 *   DBLOCK_OK             all are held
 *   DBLOCK_BUSY           not all were free at once until wait_ms was over; none is held
 *   DBLOCK_CANCELLED      none is held, nothing is left behind
 *   DBLOCK_E_ARGUMENT     no name, too many, or one of them twice
 *   DBLOCK_E_UNSUPPORTED  row or advisory, or DBLOCK_FAIR
 *   DBLOCK_E_UNCERTAIN    as of dblock_acquire(): the keeper finds out and gives back
 *   others                as dblock_acquire(); none is held
 */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_acquire_many(dblock_client *client,
    const char *const *names, size_t n_names, const struct dblock_options *options,
    dblock_lock **ret_locks, struct dblock_error *reterr);

/**
 * dblock_acquire_some - take as many of several names as are free
 *
 * For work of which there is plenty: a worker names what there is to do and gets what nobody
 * else is at. One round trip if all are free, two or so if not, whatever their number.
 *
 * Parameters
 *   names          as of dblock_acquire_many()
 *   options        as there; wait_ms is 0. `busy` gets the holder of one of those that were not
 *                  free. DBLOCK_QUIET_OK: OK also if none was
 *   ret_locks      room for n_names objects, in the order of `names`; NULL for those that were not
 *                  free, and for all on anything but OK. Yours on OK
 *   ret_n_granted  how many are there; may be NULL
 *
 * Returns
 *   DBLOCK_OK    at least one is held
 *   DBLOCK_BUSY  none was free
 *   others       as dblock_acquire_many(); none is held
 */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_acquire_some(dblock_client *client,
    const char *const *names, size_t n_names, const struct dblock_options *options,
    dblock_lock **ret_locks, size_t *ret_n_granted, struct dblock_error *reterr);

/**
 * dblock_release_many - dblock_release() for each, in one round trip where that is possible
 *
 * For what dblock_acquire_many() and _some() gave; others of the same client and strategy go along,
 * and whatever cannot goes by itself. The objects stay, to be freed one by one. An entry may be
 * NULL, and each object is there once.
 *
 * Returns
 *   DBLOCK_OK        all were held until now, and are free for others
 *   below zero       a failure of at least one of them, as of dblock_release(): not yours any
 *                    more, free for others within the ttl, the keeper goes on trying
 *   DBLOCK_LOST      else: at least one had ended before (dblock_lock_cause() tells which)
 *   DBLOCK_PENDING   else: at least one ends when the transaction that pins it does
 *   DBLOCK_NOT_HELD  else: at least one had been released before
 */
DBLOCK_API dblock_status dblock_release_many(
    dblock_lock *const *locks, size_t n_locks, struct dblock_error *reterr);

#ifdef __cplusplus
}
#endif

#endif
