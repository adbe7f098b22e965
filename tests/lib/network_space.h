/* SPDX-License-Identifier: MIT */
/* network_space.h - a process in a network of its own, joined to this one by a cable that can be
 * cut: a network namespace with a pair of veth devices. Needs root and ip(8). All of it is gone
 * with the process. */
#ifndef DBLOCK_TEST_NETWORK_SPACE_H
#define DBLOCK_TEST_NETWORK_SPACE_H

#include <sys/types.h>

enum network_cut {
    NETWORK_DOWN,            /* the server's end of the cable is out */
    NETWORK_LOSES_ANSWERS,   /* what is sent to the process is dropped */
    NETWORK_LOSES_REQUESTS   /* what the process sends is dropped */
};

/* What all addresses of such cables begin with, for pg_hba.conf. */
#define NETWORK_SPACE_ALL "10.213.0.0/16"

/* Whether it can be had here; `*ret_why_not` says why it cannot. -1: this machine's kernel, or what
 * contains it, does not allow it. -2: not by this user, or something is not installed. */
int network_space_probe(const char **ret_why_not);

/* In the process itself, while it has one thread: 0, or not. */
int network_space_enter(void);
/* The cable to that process, after it has entered: 0, or not. */
int network_space_join(pid_t process);
/* Where the process finds this machine; static. */
const char *network_space_address(void);
void network_space_cut(enum network_cut cut);
void network_space_mend(enum network_cut cut);

#endif
