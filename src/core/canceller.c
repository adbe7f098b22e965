/* SPDX-License-Identifier: MIT */
/* canceller.c - one flag and one descriptor. Raising it is a store and a write,
 * both async-signal-safe. */
#include <dblock/sys/driver.h>

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "core/environment.h"
#include "core/event.h"

struct dblock_canceller {
    atomic_int is_raised;
    int fd;
};

dblock_status dblock_canceller_new(dblock_canceller **ret_canceller, struct dblock_error *reterr)
{
    dblock_canceller *canceller;
    dblock_status status;
    int fault;

    if (ret_canceller == NULL)
        return dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL, "ret_canceller: NULL");
    canceller = dblk_allocate(sizeof *canceller);
    if (canceller == NULL)
        return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "out of memory");
    atomic_init(&canceller->is_raised, 0);
    fault = dblk_signal_fd_new(&canceller->fd);
    if (fault != 0) {
        dblk_release(canceller);
        status = dblock_error_set(reterr, DBLOCK_E_SYSTEM, "raise the limit of open files",
            "cannot make a descriptor for a canceller: %s", strerror(fault));
        dblock_error_native(reterr, fault, NULL, 1);
        return status;
    }
    *ret_canceller = canceller;
    return DBLOCK_OK;
}

void dblock_cancel(dblock_canceller *canceller)
{
    if (canceller == NULL)
        return;
    atomic_store(&canceller->is_raised, 1);
    dblk_signal_fd_raise(canceller->fd);
}

int dblock_canceller_is_raised(const dblock_canceller *canceller)
{
    return canceller != NULL && atomic_load(&canceller->is_raised);
}

int dblock_canceller_fd(const dblock_canceller *canceller)
{
    return canceller != NULL ? canceller->fd : -1;
}

void dblock_canceller_reset(dblock_canceller *canceller)
{
    if (canceller == NULL)
        return;
    atomic_store(&canceller->is_raised, 0);
    dblk_signal_fd_lower(canceller->fd);
}

void dblock_canceller_free(dblock_canceller *canceller)
{
    if (canceller == NULL)
        return;
    (void)close(canceller->fd);
    dblk_release(canceller);
}
