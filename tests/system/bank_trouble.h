/* SPDX-License-Identifier: MIT */
/* bank_trouble.h - what happens to the tellers of a bank while they work: they are stopped beyond
 * the ttl and killed, the network loses their connections, the server ends them. */
#ifndef DBLOCK_TEST_BANK_TROUBLE_H
#define DBLOCK_TEST_BANK_TROUBLE_H

#include "bank.h"
#include "processes.h"

struct bank_trouble {
    struct bank *bank;
    struct test_process network;
    int orders_fd; /* to the network; -1: there is none */
    struct test_process tellers[BANK_TELLERS];
    unsigned served[BANK_TELLERS]; /* when last looked at */
    uint64_t since_ms[BANK_TELLERS]; /* it has not served more */
    uint64_t random;
    unsigned n_rounds;
    unsigned n_transfers; /* when there was trouble last */
    unsigned n_kills;
    unsigned n_losses; /* of connections, by the network */
    unsigned n_ends;   /* by the server */
};

/* Puts a network before the servers, and tells the bank. NULL, or what went wrong. */
const char *bank_trouble_start(struct bank_trouble *trouble, struct bank *bank);
const char *bank_trouble_employ(struct bank_trouble *trouble); /* all tellers */
/* One round: longer than the ttl. */
const char *bank_trouble_make(struct bank_trouble *trouble);
/* Everybody is killed. */
void bank_trouble_end(struct bank_trouble *trouble);

#endif
