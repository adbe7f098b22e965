/* SPDX-License-Identifier: MIT */
/* stage.h - what the processes of one turn share: when to begin and to stop, who holds the
 * name, and what was counted. Exclusion and tokens are checked here at each grant. */
#ifndef DBLOCK_BENCH_STAGE_H
#define DBLOCK_BENCH_STAGE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { N_WORKERS_MAX = 128, N_SAMPLES_MAX = 1 << 19 };

enum { PHASE_WARM = 0, PHASE_MEASURE, PHASE_STOP };

/* All zero at first. Times are of the clock that all processes share. */
struct stage {
    _Atomic int phase;
    _Atomic int holder; /* its number + 1; 0 nobody, as far as the holders have said */
    _Atomic int last_owner;
    _Atomic int64_t last_token;
    _Atomic uint64_t released_ns; /* before the last release was called */
    _Atomic uint64_t granted_ns;  /* after the last acquire had returned */
    _Atomic uint64_t n_grants;    /* from the beginning */
    _Atomic uint64_t n_changes;   /* grants to another than before; while it is measured */
    _Atomic uint64_t n_statements; /* of SQLite, by all processes */
    _Atomic uint64_t n_violations, n_regressions, n_errors;
    _Atomic int is_error_told;
    char error[700];
    _Atomic uint64_t n_served[N_WORKERS_MAX]; /* while it is measured */
    _Atomic uint32_t n_samples;
    uint32_t samples_ns[N_SAMPLES_MAX];
};

/* In memory that children share. NULL: there is none, and said why. */
struct stage *stage_make(void);
void stage_clear(struct stage *stage);
void stage_free(struct stage *stage);

void stage_granted(struct stage *stage, int worker, int64_t token);
void stage_releases(struct stage *stage, int worker);
/* Whoever held the name has been killed, or will be at once. */
void stage_forgets_holder(struct stage *stage);
void stage_failed(struct stage *stage, const char *why);
void stage_sample(struct stage *stage, uint64_t duration_ns);

#endif
