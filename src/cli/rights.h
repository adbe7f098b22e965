/* SPDX-License-Identifier: MIT */
/* rights.h - the statements that give a role what dblock needs. */
#ifndef CLI_RIGHTS_H
#define CLI_RIGHTS_H

/* For the driver of `scheme`; `role` is quoted. Malloced; NULL if that database has
 * no roles, or there is no memory. */
char *rights_text(const char *scheme, const char *role);

#endif
