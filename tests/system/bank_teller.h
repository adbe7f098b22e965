/* SPDX-License-Identifier: MIT */
/* bank_teller.h - who moves money between the accounts of a bank: a process of its own that
 * reads both balances under both locks, may be stopped by then, and writes what it computed. */
#ifndef DBLOCK_TEST_BANK_TELLER_H
#define DBLOCK_TEST_BANK_TELLER_H

enum { /* exit status of a staged teller */
    BANK_IS_REFUSED = 3 /* it held both locks, and wrote nothing */
};

/* Each runs in a child (processes.h) with a bank as its context. */

/* Transfers until it is killed; now and then it stops itself (SIGSTOP). */
int bank_tell(void *bank, int ready_fd);
/* One transfer between the staged accounts, before whose writing it stops itself. */
int bank_tell_late(void *bank, int ready_fd);
/* The same transfer without that, tried until it is done. */
int bank_tell_meanwhile(void *bank, int ready_fd);

#endif
