/* SPDX-License-Identifier: MIT */
/* bench_team.c - see bench_team.h.
 *
 * The process that measures has no client while it forks, so a member begins without
 * connections and threads that are another's. A pipe that nobody writes to holds them
 * back: they begin when it is closed. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "bench_team.h"

#include "bench_progress.h"
#include "bench_work.h"
#include "clock.h"
#include "duration.h"
#include "exit_code.h"
#include "message.h"
#include "signals.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_EVERY_MS 20

/* Members that were told to end have this long to give back what they hold; it is a part of the
 * limit that was announced. */
#define GRACE_MS 10000

static size_t shared_size(const struct bench_team *team)
{
    return sizeof *team->shared + team->n_members * sizeof team->shared->members[0];
}

int bench_team_open(struct bench_team *team)
{
    void *memory = mmap(
        NULL, shared_size(team), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    team->shared = memory != MAP_FAILED ? memory : NULL;
    if (team->shared != NULL)
        return -1;
    message_failure("no memory to share with other processes: %s", strerror(errno));
    return EXIT_CODE_MACHINE;
}

void bench_team_close(struct bench_team *team)
{
    if (team->shared != NULL)
        (void)munmap(team->shared, shared_size(team));
    team->shared = NULL;
}

/* ------------------------------------------------------------------ a member */

/* Until the others are ready too. False if there is nothing to begin with. */
static bool await_begin(const struct bench_seat *seat, int begin_fd)
{
    struct pollfd events[2] = {{.fd = begin_fd, .events = POLLIN},
        {.fd = dblock_canceller_fd(signals_canceller()), .events = POLLIN}};

    (void)atomic_fetch_add(&seat->shared->n_ready, 1);
    while (poll(events, 2, -1) < 0)
        if (errno != EINTR)
            return false;
    return events[1].revents == 0 && atomic_load(&seat->shared->is_begun);
}

static void work(struct bench_seat *seat, int begin_fd)
{
    const struct database *database = seat->plan->database;
    struct dblock_config config = DBLOCK_CONFIG_INIT;

    bench_work_configure(seat, &config);
    if (dblock_open(database->driver, database->url, &config, &seat->client,
            &seat->member->error) != DBLOCK_OK)
        return;
    if (bench_work_prepare(seat) && await_begin(seat, begin_fd))
        bench_work_perform(seat);
    dblock_close(seat->client);
    bench_work_clear(seat);
}

/* In the child; does not return. */
static void be_member(struct bench_seat *seat, const int begin_pipe[2], pid_t parent)
{
    static const sigset_t nothing;

    /* Whatever ends the parent ends its members, and they give back what they hold. */
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    (void)close(begin_pipe[1]);
    if (getppid() != parent || signals_renew() != -1)
        _exit(EXIT_CODE_MACHINE);
    signals_restore_mask(&nothing);
    work(seat, begin_pipe[0]);
    _exit(seat->member->error.status == DBLOCK_OK ? EXIT_CODE_DONE : EXIT_CODE_DATABASE);
}

/* ------------------------------------------------------------ who leads them */

struct course {
    struct bench_team *team;
    pid_t *pids; /* 0: has ended */
    unsigned n_left;
    int begin_fd; /* -1: they have begun */
    uint64_t limit_ms;
    uint64_t told_ms; /* to end; 0 */
    int signal;       /* that came; 0 */
    bool is_late;
    bool has_died; /* a member, in another way than by its own end */
};

static int start(struct course *course)
{
    struct bench_team *team = course->team;
    pid_t parent = getpid();
    int begin_pipe[2];
    unsigned i;

    if (pipe(begin_pipe) != 0) {
        message_failure("cannot make a pipe: %s", strerror(errno));
        return EXIT_CODE_MACHINE;
    }
    course->begin_fd = begin_pipe[1];
    for (i = 0; i < team->n_members; i++) {
        struct bench_seat seat = {.plan = team->plan,
            .shared = team->shared,
            .member = &team->shared->members[i],
            .number = i,
            .n_members = team->n_members,
            .strategy = team->strategy,
            .part = team->part};
        sigset_t mask;
        pid_t pid;

        signals_block_all(&mask);
        pid = fork();
        if (pid == 0)
            be_member(&seat, begin_pipe, parent);
        signals_restore_mask(&mask);
        if (pid < 0) {
            message_failure("cannot start process %u of %u: %s", i + 1, team->n_members,
                strerror(errno));
            break;
        }
        course->pids[i] = pid;
        course->n_left++;
    }
    (void)close(begin_pipe[0]);
    return i == team->n_members ? -1 : EXIT_CODE_MACHINE;
}

static void begin(struct course *course)
{
    struct bench_shared *shared = course->team->shared;

    shared->begun_ns = bench_now_ns();
    shared->end_ns = shared->begun_ns + course->team->plan->part_ms * 1000000;
    atomic_store(&shared->is_begun, true);
    (void)close(course->begin_fd);
    course->begin_fd = -1;
}

static void send_all(const struct course *course, int number)
{
    unsigned i;

    for (i = 0; i < course->team->n_members; i++)
        if (course->pids[i] > 0)
            (void)kill(course->pids[i], number);
}

static void tell_to_end(struct course *course)
{
    atomic_store(&course->team->shared->is_over, true);
    send_all(course, SIGTERM);
    course->told_ms = clock_ms();
}

static bool has_failed(const struct bench_team *team)
{
    unsigned i;

    for (i = 0; i < team->n_members; i++)
        if (team->shared->members[i].error.status != DBLOCK_OK)
            return true;
    return false;
}

static void collect(struct course *course)
{
    unsigned i;
    int status;

    for (i = 0; i < course->team->n_members; i++)
        if (course->pids[i] > 0 && waitpid(course->pids[i], &status, WNOHANG) == course->pids[i]) {
            if (!WIFEXITED(status))
                course->has_died = true;
            course->pids[i] = 0;
            course->n_left--;
        }
}

static void look(struct course *course)
{
    struct signal_notice notice;

    collect(course);
    if (signals_next(&notice))
        course->signal = notice.number;
    if (clock_ms() >= course->limit_ms)
        course->is_late = true;
    if (course->told_ms == 0 && (course->signal != 0 || course->is_late || course->has_died ||
                                    has_failed(course->team)))
        tell_to_end(course);
    else if (course->told_ms != 0 && clock_ms() > course->told_ms + GRACE_MS / 2)
        send_all(course, SIGKILL);
    else if (course->begin_fd >= 0 &&
             atomic_load(&course->team->shared->n_ready) == course->team->n_members)
        begin(course);
}

static void lead(struct course *course)
{
    struct pollfd event = {.fd = signals_fd(), .events = POLLIN};

    while (course->n_left > 0) {
        bench_progress(course->team->plan, course->team->strategy, course->team->title);
        (void)poll(&event, 1, LOOK_EVERY_MS);
        look(course);
    }
    if (course->begin_fd >= 0)
        (void)close(course->begin_fd);
}

static int conclude(const struct course *course, struct dblock_error *ret_error)
{
    const struct bench_team *team = course->team;
    char text[DURATION_TEXT_SIZE];
    unsigned i;

    bench_progress_clear();
    if (course->signal != 0)
        return EXIT_CODE_SIGNAL + course->signal;
    for (i = 0; i < team->n_members; i++) {
        *ret_error = team->shared->members[i].error;
        if (ret_error->status == DBLOCK_OK)
            continue;
        if (ret_error->status != DBLOCK_E_UNSUPPORTED)
            message_error(ret_error, "nothing is measured any more");
        return exit_code_of(ret_error->status);
    }
    if (course->is_late) {
        message_failure("not done within %s; the database is too slow, or hangs",
            duration_text(team->plan->limit_ms, text));
        return EXIT_CODE_DATABASE;
    }
    if (course->has_died || !atomic_load(&team->shared->is_begun)) {
        message_failure("a process of %s ended before its time", team->title);
        return EXIT_CODE_MACHINE;
    }
    return -1;
}

int bench_team_run(struct bench_team *team, struct dblock_error *ret_error)
{
    struct course course = {.team = team, .begin_fd = -1};
    int result;

    course.limit_ms = team->plan->begun_ms + team->plan->limit_ms - GRACE_MS;
    course.pids = calloc(team->n_members, sizeof *course.pids);
    if (course.pids == NULL) {
        message_failure("out of memory");
        return EXIT_CODE_MACHINE;
    }
    result = start(&course);
    if (result != -1)
        tell_to_end(&course);
    lead(&course);
    if (result == -1)
        result = conclude(&course, ret_error);
    free(course.pids);
    return result;
}
