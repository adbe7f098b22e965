/* SPDX-License-Identifier: MIT */
/* driver_check.h - is this table of our release, and complete? */
#ifndef DBLK_DRIVER_CHECK_H
#define DBLK_DRIVER_CHECK_H

#include <dblock/sys/driver.h>

dblock_status dblk_driver_check(const dblock_driver *driver, struct dblock_error *reterr);

#endif
