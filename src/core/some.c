/* SPDX-License-Identifier: MIT */
/* some.c - dblock_acquire_some(): as many of the names as are free. It takes all of them or none; if
 * some were in the way, the others. So there is never a part to be sorted out after a failure. */
#include <dblock/many.h>
#include <string.h>

#include "core/error.h"
#include "core/keeper.h"
#include "core/many.h"

/* So often nobody was in the way and the database let others go first all the same. */
enum { N_VAIN = 3 };

/* Leaves out those that were in the way. The number of the others. */
static size_t leave_out(struct dblk_wanted *wanted, size_t n_names, const int *is_in_way)
{
    size_t n_left = 0;
    size_t i;

    for (i = 0; i < n_names; ++i)
        if (!is_in_way[i])
            wanted[n_left++] = wanted[i];
    return n_left;
}

static dblock_status acquire(dblock_client *client, struct dblk_wanted *wanted, size_t n_names,
    const struct dblk_wish *wish, dblock_lock **ret_locks, size_t *ret_n_granted,
    struct dblock_error *reterr)
{
    int is_in_way[DBLOCK_MANY_MAX];
    int n_vain = 0;

    for (;;) {
        size_t n_left;
        dblock_status status =
            dblk_many_acquire(client, wanted, n_names, wish, ret_locks, is_in_way, reterr);

        if (status == DBLOCK_OK)
            *ret_n_granted = n_names;
        if (status != DBLOCK_BUSY)
            return status;
        n_left = leave_out(wanted, n_names, is_in_way);
        if (n_left == 0 || (n_left == n_names && ++n_vain == N_VAIN))
            return status;
        n_names = n_left;
    }
}

/* DBLOCK_QUIET_OK is of this function alone: it is taken out of the options. */
static dblock_status read_options(const struct dblock_options *options,
    struct dblock_options *ret_options, int *ret_is_quiet, struct dblock_error *reterr)
{
    const struct dblock_options none = DBLOCK_OPTIONS_INIT;
    dblock_status status = DBLOCK_OK;

    *ret_options = none;
    if (options != NULL)
        status = dblk_struct_read(options, ret_options, sizeof *ret_options, "options", reterr);
    if (status == DBLOCK_OK && ret_options->wait_ms != 0)
        status = dblock_error_set(reterr, DBLOCK_E_ARGUMENT, "leave it 0, or dblock_acquire_many()",
            "options.wait_ms: nothing is waited for where some of the names will do");
    *ret_is_quiet = (ret_options->flags & DBLOCK_QUIET_OK) != 0;
    ret_options->flags &= ~(uint32_t)DBLOCK_QUIET_OK;
    return status;
}

dblock_status dblock_acquire_some(dblock_client *client, const char *const *names, size_t n_names,
    const struct dblock_options *options, dblock_lock **ret_locks, size_t *ret_n_granted,
    struct dblock_error *reterr)
{
    struct dblk_wanted wanted[DBLOCK_MANY_MAX];
    struct dblock_options given;
    struct dblk_wish wish;
    size_t n_granted = 0;
    int is_quiet = 0;
    dblock_status status;

    if (ret_locks != NULL && n_names <= DBLOCK_MANY_MAX)
        memset(ret_locks, 0, n_names * sizeof *ret_locks);
    if (ret_n_granted != NULL)
        *ret_n_granted = 0;
    status = dblk_client_enter(client, reterr);
    if (status != DBLOCK_OK)
        return status;
    status = read_options(options, &given, &is_quiet, reterr);
    if (status == DBLOCK_OK)
        status =
            dblk_many_check(client, names, n_names, &given, ret_locks, wanted, &wish, reterr);
    if (status == DBLOCK_OK)
        status = dblk_keeper_ensure(client, reterr);
    if (status == DBLOCK_OK)
        status = acquire(client, wanted, n_names, &wish, ret_locks, &n_granted, reterr);
    if (ret_n_granted != NULL)
        *ret_n_granted = n_granted;
    dblk_client_leave(client);
    return status == DBLOCK_BUSY && is_quiet ? DBLOCK_OK : status;
}
