/* SPDX-License-Identifier: MIT */
/* table.h - what the workers have measured, in tables. They are by place in peers_contenders;
 * one that has no pairs says in `about` why. */
#ifndef DBLOCK_BENCH_TABLE_H
#define DBLOCK_BENCH_TABLE_H

#include "bench/lib/report.h"
#include "worker.h"

void table_print(const struct worker *workers);
void table_judge(const struct worker *workers, int n_rounds, struct report *report);
/* 0, or -1 and said why. */
int table_write_markdown(
    const struct worker *workers, int n_rounds, const char *load, const char *path);

#endif
