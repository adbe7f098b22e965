/* SPDX-License-Identifier: MIT */
/* export.h - how a function leaves the shared library, and how a result that
 * must not be dropped is marked. Nothing else. */
#ifndef DBLOCK_EXPORT_H
#define DBLOCK_EXPORT_H

#if defined(DBLOCK_STATIC)
#define DBLOCK_API
#elif defined(__GNUC__)
#define DBLOCK_API __attribute__((visibility("default")))
#else
#define DBLOCK_API
#endif

#if defined(__GNUC__)
#define DBLOCK_MUST_CHECK __attribute__((warn_unused_result))
#else
#define DBLOCK_MUST_CHECK
#endif

#endif
