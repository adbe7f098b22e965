/* SPDX-License-Identifier: MIT */
/* crew.c - see crew.h. */
#include "crew.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/lib/numbers.h"
#include "place.h"
#include "process_cpu.h"
#include "test_wait.h"

enum { OPEN_MS = 30000, END_MS = 40000, N_ERRORS_MAX = 20 };

struct worker {
    struct crew *crew;
    void *hand;
    pthread_t thread;
    int number;
};

struct start { /* what a child is given */
    struct crew *crew;
    int index;
    int gate_fds[2];
};

static int is_stopping(const struct crew *crew)
{
    return atomic_load(&crew->stage->phase) == PHASE_STOP;
}

static void pass_us(uint64_t duration_us)
{
    struct timespec pause = { (time_t)(duration_us / 1000000),
        (long)(duration_us % 1000000) * 1000 };

    if (duration_us > 0)
        (void)nanosleep(&pause, NULL);
}

static void hold(const struct crew *crew)
{
    if (crew->plan.hold_us != HOLD_TO_THE_END)
        pass_us(crew->plan.hold_us);
    else
        while (!is_stopping(crew))
            test_pass_ms(10);
}

static void work(const struct worker *worker)
{
    const struct crew *crew = worker->crew;
    const struct mechanism *mechanism = crew->plan.mechanism;
    struct stage *stage = crew->stage;
    int is_checked = !crew->plan.has_names && !crew->plan.is_pairs;
    int n_errors = 0;

    while (!is_stopping(crew) && n_errors < N_ERRORS_MAX) {
        uint64_t before_ns = crew->plan.is_pairs ? bench_now_ns() : 0;
        int64_t token = 0;
        int answer = mechanism->acquire(worker->hand, &token);

        if (answer == ENDED)
            return;
        if (answer == FAILED) {
            stage_failed(stage, complaint());
            ++n_errors;
            continue;
        }
        if (is_checked)
            stage_granted(stage, worker->number, token);
        else
            atomic_fetch_add(&stage->n_grants, 1);
        hold(crew);
        if (is_checked)
            stage_releases(stage, worker->number);
        if (mechanism->release(worker->hand) != 0) {
            stage_failed(stage, complaint());
            ++n_errors;
        }
        pass_us(crew->plan.rest_us);
        if (crew->plan.is_pairs && atomic_load(&stage->phase) == PHASE_MEASURE)
            stage_sample(stage, bench_now_ns() - before_ns);
    }
}

static void *run_thread(void *context)
{
    work(context);
    return NULL;
}

static void name_of(const struct crew *crew, int index, char *ret_name, size_t size)
{
    if (crew->plan.has_names)
        (void)snprintf(ret_name, size, "%.80s-%d", crew->plan.opening.name, index);
    else
        (void)snprintf(ret_name, size, "%s", crew->plan.opening.name);
}

/* Until the parent closes its end. */
static void await_start(const int *gate_fds)
{
    char byte;

    (void)close(gate_fds[1]);
    while (read(gate_fds[0], &byte, 1) > 0)
        ;
}

static int run_threads(struct crew *crew, void *first, const int *gate_fds, int ready_fd)
{
    struct worker workers[N_WORKERS_MAX];
    const struct mechanism *mechanism = crew->plan.mechanism;
    char name[96];
    int n, i;

    workers[0] = (struct worker){ .crew = crew, .hand = first, .number = crew->plan.first };
    for (n = 1; n < crew->plan.n; ++n) {
        name_of(crew, n, name, sizeof name);
        workers[n] = (struct worker){ .crew = crew,
            .hand = mechanism->share(first, name),
            .number = crew->plan.first + n };
        if (workers[n].hand == NULL)
            return 1;
    }
    process_ready(ready_fd, 1);
    await_start(gate_fds);
    for (i = 0; i < n; ++i)
        if (pthread_create(&workers[i].thread, NULL, run_thread, &workers[i]) != 0) {
            stage_failed(crew->stage, "no more threads");
            _exit(1); /* those that run wait for locks: not to be joined */
        }
    for (i = 0; i < n; ++i)
        (void)pthread_join(workers[i].thread, NULL);
    for (i = 1; i < n; ++i)
        mechanism->close(workers[i].hand);
    return 0;
}

static int run_child(void *context, int ready_fd)
{
    const struct start *start = context;
    struct crew *crew = start->crew;
    struct opening opening = crew->plan.opening;
    struct worker worker = { .crew = crew, .number = crew->plan.first + start->index };
    int result = 0;

    name_of(crew, start->index, opening.name, sizeof opening.name);
    if (opening.place->begin_child != NULL)
        opening.place->begin_child(crew->stage);
    if (crew->plan.mechanism->strategy != 0 && hand_end_by_signal() != 0)
        return 1;
    worker.hand = crew->plan.mechanism->open(crew->plan.mechanism, &opening);
    if (worker.hand == NULL) {
        stage_failed(crew->stage, complaint());
        return 1;
    }
    if (crew->plan.is_threads) {
        result = run_threads(crew, worker.hand, start->gate_fds, ready_fd);
    } else {
        process_ready(ready_fd, 1);
        await_start(start->gate_fds);
        work(&worker);
    }
    crew->plan.mechanism->close(worker.hand);
    return result;
}

static void kill_all(struct crew *crew)
{
    int i;

    for (i = 0; i < crew->n_processes; ++i)
        process_kill(&crew->processes[i]);
    crew->n_processes = 0;
    crew_go(crew);
}

int crew_start(struct crew *crew, const struct plan *plan, struct stage *stage)
{
    struct start start = { .crew = crew };
    int n = plan->is_threads ? 1 : plan->n;
    uint64_t end_ms = test_now_ms() + OPEN_MS;
    int i;

    memset(crew, 0, sizeof *crew);
    crew->plan = *plan;
    crew->stage = stage;
    crew->start_fd = -1;
    if (plan->n > N_WORKERS_MAX - plan->first || pipe(start.gate_fds) != 0)
        return -1;
    crew->start_fd = start.gate_fds[1];
    for (i = 0; i < n; ++i) {
        start.index = i;
        if (process_start(&crew->processes[i], run_child, &start) != 0)
            break;
        ++crew->n_processes;
    }
    (void)close(start.gate_fds[0]);
    for (i = 0; i < crew->n_processes; ++i) {
        uint64_t now_ms = test_now_ms();

        if (process_await(&crew->processes[i], now_ms < end_ms ? end_ms - now_ms : 0) != 1)
            break;
    }
    if (i == n)
        return 0;
    (void)fprintf(stderr, "waiting: %s: %d of %d are connected: %s\n", plan->mechanism->name, i, n,
        stage->is_error_told ? stage->error : "out of time");
    kill_all(crew);
    return -1;
}

void crew_go(struct crew *crew)
{
    if (crew->start_fd >= 0)
        (void)close(crew->start_fd);
    crew->start_fd = -1;
}

struct awaited {
    const struct stage *stage;
    uint64_t n;
};

static int has_grants(void *context)
{
    const struct awaited *awaited = context;

    return atomic_load(&awaited->stage->n_grants) >= awaited->n;
}

int crew_await_grants(struct crew *crew, uint64_t n, uint64_t within_ms)
{
    struct awaited awaited = { crew->stage, n };

    if (test_until(has_grants, &awaited, within_ms))
        return 0;
    (void)fprintf(stderr, "waiting: %s: %llu of %llu grants came within %llu ms: %s\n",
        crew->plan.mechanism->name, (unsigned long long)atomic_load(&crew->stage->n_grants),
        (unsigned long long)n, (unsigned long long)within_ms,
        crew->stage->is_error_told ? crew->stage->error : "no error");
    return -1;
}

void crew_end_waits(struct crew *crew)
{
    int i;

    for (i = 0; i < crew->n_processes; ++i)
        if (crew->processes[i].pid > 0)
            (void)kill(crew->processes[i].pid, SIGTERM);
}

void crew_end(struct crew *crew)
{
    uint64_t end_ms = test_now_ms() + END_MS;
    int i;

    atomic_store(&crew->stage->phase, PHASE_STOP);
    crew_go(crew);
    for (i = 0; i < crew->n_processes; ++i) {
        uint64_t now_ms = test_now_ms();
        int status;

        if (crew->processes[i].pid == 0)
            continue;
        status = process_wait(&crew->processes[i], now_ms < end_ms ? end_ms - now_ms : 1);
        if (status != 0)
            stage_failed(crew->stage,
                status < 0 ? "a process did not end in time" : "a process ended otherwise");
    }
    crew->n_processes = 0;
}

double crew_cpu_ms(const struct crew *crew)
{
    double sum = 0;
    int i;

    for (i = 0; i < crew->n_processes; ++i)
        sum += process_cpu_ms(crew->processes[i].pid);
    return sum;
}
