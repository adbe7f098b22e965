/* SPDX-License-Identifier: MIT */
/* life.h - the life of a client of the simulated database: all that it can be asked, one after
 * the other, with a rival beside it. For tests in which something fails on the way. */
#ifndef DBLOCK_TEST_LIFE_H
#define DBLOCK_TEST_LIFE_H

#include <dblock/dblock.h>

struct life {
    const char *world;
    const dblock_driver *driver;
    const char *fault; /* what goes wrong, for the message */
    unsigned long n;   /* where */
    int n_wrong;       /* answers that must not be given: a failure without a reason, two holders */
    unsigned n_rows; /* names that are used up */
    dblock_client *client;
    dblock_client *rival;
};

/* The rival is there before anything fails, and the tables are. */
void life_begin(struct life *life, const char *world);
void life_run(struct life *life);
/* All names can be had by the rival, soon. 0: they cannot. */
int life_is_over(struct life *life);
void life_end(struct life *life);

/* What a life is lived with by default: the simulated driver, and a check. */
const dblock_driver *life_driver(void);
/* One that lacks all that a driver may lack: lines, several names in one step, ... */
const dblock_driver *life_plain_driver(void);

int life_count_descriptors(void);

#endif
