/* SPDX-License-Identifier: MIT */
/* worker.c - see worker.h: the end that asks. */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/lib/numbers.h"
#include "test_wait.h"

enum { READ = 0, WRITE = 1, PATIENCE_MS = 3000 };

/* Not for other children, or a worker would never come to the end of its input. */
static int make_pipe(int *ends)
{
    if (pipe(ends) != 0)
        return -1;
    (void)fcntl(ends[READ], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[WRITE], F_SETFD, FD_CLOEXEC);
    return 0;
}

static void become(const char *const *words, int in, int out)
{
    char **arguments;
    int n = 0;

    while (words[n] != NULL)
        ++n;
    arguments = calloc((size_t)n + 1, sizeof *arguments);
    if (arguments == NULL || dup2(in, 0) < 0 || dup2(out, 1) < 0)
        _exit(126);
    while (n-- > 0)
        arguments[n] = strdup(words[n]);
    (void)execvp(arguments[0], arguments);
    (void)printf("cannot %s: %s\n", words[0], strerror(errno));
    (void)fflush(stdout);
    _exit(127);
}

/* Text up to the end of the line. -1: there is none. */
static int read_about(struct worker *worker)
{
    char line[200];

    if (fgets(line, sizeof line, worker->from) == NULL) {
        (void)snprintf(worker->about, sizeof worker->about, "it said nothing");
        return -1;
    }
    line[strcspn(line, "\n")] = 0;
    if (strncmp(line, "ready ", 6) == 0) {
        (void)snprintf(worker->about, sizeof worker->about, "%.150s", line + 6);
        return 0;
    }
    (void)snprintf(worker->about, sizeof worker->about, "%.150s",
        strncmp(line, "cannot ", 7) == 0 ? line + 7 : line);
    return -1;
}

int worker_start(struct worker *worker, const char *const *words)
{
    int to[2], from[2];

    memset(worker, 0, sizeof *worker);
    if (make_pipe(to) != 0 || make_pipe(from) != 0) {
        (void)snprintf(worker->about, sizeof worker->about, "no pipe");
        return -1;
    }
    (void)fflush(stdout);
    worker->pid = fork();
    if (worker->pid == 0)
        become(words, to[READ], from[WRITE]);
    (void)close(to[READ]);
    (void)close(from[WRITE]);
    worker->to = fdopen(to[WRITE], "w");
    worker->from = fdopen(from[READ], "r");
    if (worker->pid > 0 && worker->to != NULL && worker->from != NULL && read_about(worker) == 0)
        return 0;
    worker_stop(worker);
    return -1;
}

static int keep(struct worker *worker, unsigned long duration_ns)
{
    uint32_t *larger;

    if (worker->n == worker->room) {
        worker->room = worker->room > 0 ? 2 * worker->room : 1 << 12;
        larger = realloc(worker->durations_ns, worker->room * sizeof *larger);
        if (larger == NULL)
            return -1;
        worker->durations_ns = larger;
    }
    worker->durations_ns[worker->n++] =
        duration_ns < UINT32_MAX ? (uint32_t)duration_ns : UINT32_MAX;
    return 0;
}

static int read_answer(struct worker *worker)
{
    unsigned long n, i, duration_ns;
    double cpu_us;

    if (fscanf(worker->from, "%lf %lu", &cpu_us, &n) != 2)
        return -1;
    worker->cpu_us += cpu_us;
    for (i = 0; i < n; ++i)
        if (fscanf(worker->from, "%lu", &duration_ns) != 1 || keep(worker, duration_ns) != 0)
            return -1;
    return 0;
}

int worker_turn(struct worker *worker, double seconds)
{
    if (worker->pid == 0)
        return -1;
    if (fprintf(worker->to, "%.4f\n", seconds) > 0 && fflush(worker->to) == 0 &&
        read_answer(worker) == 0)
        return 0;
    worker_stop(worker);
    worker->n = 0;
    (void)snprintf(worker->about, sizeof worker->about, "it failed while it was measured");
    return -1;
}

static int is_gone(void *context)
{
    const struct worker *worker = context;

    return waitpid(worker->pid, NULL, WNOHANG) != 0;
}

void worker_stop(struct worker *worker)
{
    if (worker->to != NULL)
        (void)fclose(worker->to);
    if (worker->from != NULL)
        (void)fclose(worker->from);
    worker->to = worker->from = NULL;
    if (worker->pid > 0 && !test_until(is_gone, worker, PATIENCE_MS)) {
        (void)kill(worker->pid, SIGKILL);
        (void)waitpid(worker->pid, NULL, 0);
    }
    worker->pid = 0;
}

static double quantile_us(const uint32_t *durations_ns, size_t n, double part)
{
    uint32_t *sorted = malloc((n + 1) * sizeof *sorted);
    double result = 0;

    if (sorted != NULL && n > 0) {
        memcpy(sorted, durations_ns, n * sizeof *sorted);
        result = bench_quantile_ns(sorted, n, part) / 1e3;
    }
    free(sorted);
    return result;
}

double worker_quantile_us(const struct worker *worker, double part)
{
    return quantile_us(worker->durations_ns, worker->n, part);
}

double worker_round_us(const struct worker *worker, int round)
{
    size_t from = worker->round_from[round];

    if (worker->n == 0)
        return 0;
    return quantile_us(worker->durations_ns + from, worker->round_from[round + 1] - from, 0.5);
}
