/* SPDX-License-Identifier: MIT */
/* version.h - the one place that holds the version; the build reads it here. */
#ifndef DBLOCK_VERSION_H
#define DBLOCK_VERSION_H

#define DBLOCK_VERSION_MAJOR 0
#define DBLOCK_VERSION_MINOR 1
#define DBLOCK_VERSION_PATCH 0
#define DBLOCK_VERSION_TEXT "0.1.0"

#endif
