/* SPDX-License-Identifier: MIT */
/* mysql_install.h - makes the tables, and says whether they are there. */
#ifndef DBLOCK_MYSQL_INSTALL_H
#define DBLOCK_MYSQL_INSTALL_H

#include <dblock/sys/driver.h>

dblock_status mysql_install(
    struct dblock_target *target, const struct dblock_call *call, struct dblock_error *reterr);

#endif
