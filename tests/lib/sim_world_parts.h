/* SPDX-License-Identifier: MIT */
/* sim_world_parts.h - what the two files of the simulated world share. */
#ifndef DBLOCK_TEST_SIM_WORLD_PARTS_H
#define DBLOCK_TEST_SIM_WORLD_PARTS_H

#include "sim_world.h"

/* A new item, zeroed; pointers to older ones are no longer valid. */
void *sim_array_add(struct sim_array *array, size_t item_size);
void sim_array_remove(struct sim_array *array, size_t item_size, size_t index);

/* Why this world refuses a step, or DBLOCK_OK. */
dblock_status sim_refusal(const struct sim_world *world, int is_write, struct dblock_error *reterr);
/* DBLOCK_OK, with the outcome and the clock in the answer. */
dblock_status sim_say(struct dblock_answer *answer, int64_t now_us, int32_t outcome);
int64_t sim_next_token(const struct sim_world *world, int64_t last, int64_t now_us);

int sim_row_is_in_force(const struct sim_world *world, int64_t now_us, const struct sim_row *row);
void sim_row_grant(const struct sim_world *world, int64_t now_us, const struct sim_row *row,
    struct dblock_grant *grant);
dblock_status sim_row_end(struct sim_world *world, int64_t now_us, int32_t strategy,
    const char *name, int64_t token, struct dblock_answer *answer);
/* Removes dead sessions and rows that have been free since before then; how many. */
uint64_t sim_rows_purge(struct sim_world *world, int64_t now_us, int64_t before_us, uint64_t limit);

#endif
