/* SPDX-License-Identifier: MIT */
/* server_process.h - a server of ci/services that stands still: SIGSTOP and SIGCONT for it and for
 * the processes it has made. */
#ifndef DBLOCK_TEST_SERVER_PROCESS_H
#define DBLOCK_TEST_SERVER_PROCESS_H

/* `pidfile`: the variable that names the file with its pid. */
void server_stop(const char *pidfile);
void server_continue(const char *pidfile);

#endif
