/* SPDX-License-Identifier: MIT */
/* application_count.h - processes that count up one number, each by reading it and writing what
 * it has computed, in transactions that hold a joined lock. */
#ifndef DBLOCK_TEST_APPLICATION_COUNT_H
#define DBLOCK_TEST_APPLICATION_COUNT_H

#include "application.h"

/* `n_processes` of them add 1 to the balance of the account (application_set_account) `n_times`
 * each. 0, or what the first that failed says. */
int application_count(const struct application *application, int strategy, const char *name,
    int n_processes, int n_times);

#endif
