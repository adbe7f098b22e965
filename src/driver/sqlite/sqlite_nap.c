/* SPDX-License-Identifier: MIT */
/* sqlite_nap.c - see sqlite_nap.h. Most waits of a busy name are over before it would
 * pay to have the cancel watched. */
#include "sqlite_nap.h"

#include <dblock/sys/driver.h>

#include <errno.h>

#define SHORT_US 2000

struct sqlite_nap sqlite_nap_begin(uint64_t until_us, int cancel_fd)
{
    return (struct sqlite_nap){until_us, cancel_fd, dblock_clock_us(), 0};
}

int sqlite_nap_is_cancelled(const struct sqlite_nap *nap, const struct sqlite_helper *helper)
{
    return nap->is_long && nap->cancel_fd >= 0 && sqlite_helper_is_cancelled(helper);
}

int sqlite_nap(struct sqlite_nap *nap, struct sqlite_helper **helper, struct sqlite_bell bell,
    uint32_t heard, uint64_t longest_us)
{
    uint64_t now_us = dblock_clock_us();
    uint64_t sleep_us = longest_us;

    if (!nap->is_long && now_us - nap->begun_us >= SHORT_US) {
        int number = nap->cancel_fd >= 0 ? sqlite_helper_watch(helper, nap->cancel_fd, bell) : 0;
        nap->is_long = number == 0;
        return number; /* the caller may want to do something about it too */
    }
    if (sqlite_nap_is_cancelled(nap, *helper))
        return ECANCELED;
    if (now_us >= nap->until_us)
        return EAGAIN;
    if (!nap->is_long)
        sleep_us = SHORT_US - (now_us - nap->begun_us);
    if (sleep_us > nap->until_us - now_us)
        sleep_us = nap->until_us - now_us;
    sqlite_bell_sleep(bell, heard, sleep_us);
    return 0;
}

void sqlite_nap_end(struct sqlite_nap *nap, struct sqlite_helper *helper)
{
    if (nap->is_long && nap->cancel_fd >= 0)
        sqlite_helper_unwatch(helper);
    nap->is_long = 0;
}
