/* SPDX-License-Identifier: MIT */
/* server_process.h - what is done to a server of ci/services: it stands still, by SIGSTOP and
 * SIGCONT for it and for the processes it has made, or whatever that script knows. */
#ifndef DBLOCK_TEST_SERVER_PROCESS_H
#define DBLOCK_TEST_SERVER_PROCESS_H

/* `pidfile`: the variable that names the file with its pid. */
void server_stop(const char *pidfile);
void server_continue(const char *pidfile);

/* Runs DBLOCK_TEST_SERVICES with these words, of which NULL is the last: its exit status, or -1. */
int server_services(const char *const *words);

#endif
