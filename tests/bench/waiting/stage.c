/* SPDX-License-Identifier: MIT */
/* stage.c - see stage.h. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */

#include "stage.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/lib/numbers.h"

struct stage *stage_make(void)
{
    void *memory =
        mmap(NULL, sizeof(struct stage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory != MAP_FAILED)
        return memory;
    perror("shared memory");
    return NULL;
}

void stage_clear(struct stage *stage)
{
    memset(stage, 0, offsetof(struct stage, samples_ns));
}

void stage_free(struct stage *stage)
{
    if (stage != NULL)
        (void)munmap(stage, sizeof *stage);
}

void stage_sample(struct stage *stage, uint64_t duration_ns)
{
    uint32_t place = atomic_load(&stage->n_samples);

    if (place >= N_SAMPLES_MAX || (place = atomic_fetch_add(&stage->n_samples, 1)) >= N_SAMPLES_MAX)
        return;
    stage->samples_ns[place] = duration_ns < UINT32_MAX ? (uint32_t)duration_ns : UINT32_MAX;
}

void stage_granted(struct stage *stage, int worker, int64_t token)
{
    uint64_t now_ns = bench_now_ns();
    uint64_t released_ns = atomic_load(&stage->released_ns);
    int is_change = atomic_exchange(&stage->last_owner, worker + 1) != worker + 1;

    if (atomic_exchange(&stage->holder, worker + 1) != 0)
        atomic_fetch_add(&stage->n_violations, 1);
    if (token != 0 && atomic_exchange(&stage->last_token, token) >= token)
        atomic_fetch_add(&stage->n_regressions, 1);
    if (atomic_load(&stage->phase) == PHASE_MEASURE) {
        atomic_fetch_add(&stage->n_served[worker], 1);
        if (is_change) {
            atomic_fetch_add(&stage->n_changes, 1);
            if (released_ns != 0)
                stage_sample(stage, now_ns - released_ns);
        }
    }
    atomic_store(&stage->granted_ns, now_ns);
    atomic_fetch_add(&stage->n_grants, 1);
}

void stage_releases(struct stage *stage, int worker)
{
    if (atomic_exchange(&stage->holder, 0) != worker + 1)
        atomic_fetch_add(&stage->n_violations, 1);
    atomic_store(&stage->released_ns, bench_now_ns());
}

void stage_forgets_holder(struct stage *stage)
{
    atomic_store(&stage->holder, 0);
}

void stage_failed(struct stage *stage, const char *why)
{
    if (atomic_fetch_add(&stage->n_errors, 1) == 0) {
        (void)snprintf(stage->error, sizeof stage->error, "%s", why);
        atomic_store(&stage->is_error_told, 1);
    }
}
