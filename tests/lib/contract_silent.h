/* SPDX-License-Identifier: MIT */
/* contract_silent.h - a server that takes connections and never says a word. */
#ifndef DBLOCK_TEST_CONTRACT_SILENT_H
#define DBLOCK_TEST_CONTRACT_SILENT_H

/* Its port on 127.0.0.1; opened by the first call, and closed by the process's end. */
int contract_silent_port(void);

#endif
