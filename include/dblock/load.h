/* SPDX-License-Identifier: MIT */
/* load.h - find a driver at run time, by the scheme of a URL. For the command
 * and for bindings of other languages; a C program names its driver in code
 * and does not need this. Link with libdblock-load. */
#ifndef DBLOCK_LOAD_H
#define DBLOCK_LOAD_H

#include "dblock.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * dblock_driver_load - load the driver of a URL
 *
 * Parameters
 *   url         only its scheme is read: postgresql, postgres, mysql, mariadb, sqlite
 *   ret_driver  static; the library stays loaded until the process ends
 *
 * Returns
 *   DBLOCK_OK          `*ret_driver` is for dblock_open()
 *   DBLOCK_E_ARGUMENT  no scheme, or one of no driver; the hint lists them
 *   DBLOCK_E_SYSTEM    no file descriptor is left to load it with
 *   DBLOCK_E_DRIVER    not installed (the hint names the package), or of another release
 */
DBLOCK_API DBLOCK_MUST_CHECK dblock_status dblock_driver_load(
    const char *url, const dblock_driver **ret_driver, struct dblock_error *reterr);

#ifdef __cplusplus
}
#endif

#endif
