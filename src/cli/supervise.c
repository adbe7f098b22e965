/* SPDX-License-Identifier: MIT */
/* supervise.c - one loop over three sources: signals to dblock (among them CHLD),
 * events of the lock, and time.
 *
 * Losing a lock: EXPIRING comes early enough that the first signal goes out one
 * grace before others may begin, and KILL at that very moment. A lock that is gone
 * without warning (a break, a dead connection) leaves no such time: the grace then
 * runs while others may begin. */
#include "supervise.h"

#include "clock.h"
#include "descendants.h"
#include "duration.h"
#include "exit_code.h"
#include "message.h"
#include "signal_name.h"
#include "signals.h"
#include "text.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define NEVER UINT64_MAX

/* After KILL: how long for the kernel to clear up, and how often to look, as a
 * process that is reparented to us sends no signal. */
#define CLEAR_UP_MS UINT64_C(5000)
#define LOOK_AGAIN_MS UINT64_C(20)

/* A guardian costs as much as starting a short COMMAND, and is of no use to one that
 * has no children yet: those that end at once do without. */
#define GUARDIAN_AFTER_MS UINT64_C(5)

/* Between two guardians, where somebody ends them or no process can be had. */
#define GUARDIAN_AGAIN_MS UINT64_C(1000)

enum winding_up { RUNNING, TOLD, KILLED };

struct loop {
    struct supervision *supervision;
    enum winding_up state;
    uint64_t tell_at_ms;     /* NEVER, or when the first signal is due */
    uint64_t kill_at_ms;     /* NEVER, or when KILL is */
    uint64_t give_up_at_ms;  /* once KILLED */
    uint64_t guardian_at_ms; /* NEVER, or when it is to be started */
    uint64_t guardian_since_ms;
    bool is_guardian_missed; /* has been said */
    bool is_child_over;
    char name[ESCAPED_SIZE(DBLOCK_NAME_MAX)];
};

static bool is_foreground(const struct loop *loop)
{
    return loop->supervision->arguments->is_foreground;
}

/* COMMAND's group, or COMMAND alone if it shares dblock's. */
static void send_signal(const struct loop *loop, int number)
{
    pid_t child = loop->supervision->child;

    if (is_foreground(loop)) {
        if (!loop->is_child_over) /* its number may be another's by now */
            (void)kill(child, number);
    } else {
        (void)kill(-child, number);
    }
}

static void tell(struct loop *loop)
{
    loop->state = TOLD;
    loop->tell_at_ms = NEVER;
    loop->supervision->is_lost = true;
    send_signal(loop, loop->supervision->arguments->first_signal);
    /* One that is stopped would not notice. */
    send_signal(loop, SIGCONT);
}

static void end_all(struct loop *loop)
{
    if (loop->state != KILLED)
        loop->give_up_at_ms = clock_ms() + CLEAR_UP_MS;
    loop->state = KILLED;
    loop->kill_at_ms = NEVER;
    loop->tell_at_ms = NEVER;
    loop->supervision->is_lost = true;
    send_signal(loop, SIGKILL);
    descendants_kill(loop->supervision->guardian.pid);
}

static const char *cause_text(int cause)
{
    switch (cause) {
    case DBLOCK_CAUSE_DEADLINE:
        return "no heartbeat got through in time";
    case DBLOCK_CAUSE_BROKEN:
        return "somebody has broken it";
    case DBLOCK_CAUSE_CONNECTION:
        return "its connection ended";
    case DBLOCK_CAUSE_SERVER:
        return "the database does not know it any more";
    default:
        return "it ended";
    }
}

/* "lost: no heartbeat got through in time (connection refused); TERM to group 4712,
 * KILL in 10 s" */
static void announce(const struct loop *loop, const char *what, const struct dblock_event *event,
    uint64_t tell_in_ms)
{
    const struct supervision *supervision = loop->supervision;
    bool has_error = event->error.message[0] != '\0';
    char first[SIGNAL_TEXT_SIZE];
    char delay[DURATION_TEXT_SIZE];
    char grace[DURATION_TEXT_SIZE];
    char action[160] = "";

    if (loop->is_child_over)
        (void)snprintf(action, sizeof action, "; COMMAND has just ended");
    else if (supervision->arguments->on_lost == ON_LOST_WARN)
        (void)snprintf(action, sizeof action, "; COMMAND runs on (--on-lost=warn)");
    else if (loop->state == RUNNING && supervision->kill_after_ms == 0)
        (void)snprintf(action, sizeof action, "; KILL to %s %ld",
            is_foreground(loop) ? "process" : "group", (long)supervision->child);
    else if (loop->state == RUNNING)
        (void)snprintf(action, sizeof action, "; %s to %s %ld%s%s, KILL %s later",
            signal_text(supervision->arguments->first_signal, first),
            is_foreground(loop) ? "process" : "group", (long)supervision->child,
            tell_in_ms > 0 ? " in " : "", tell_in_ms > 0 ? duration_text(tell_in_ms, delay) : "",
            duration_text(supervision->kill_after_ms, grace));
    message_failure("\"%s\" %s: %s%s%s%s%s", loop->name, what, cause_text(event->cause),
        has_error ? " (" : "", event->error.message, has_error ? ")" : "", action);
}

static void on_expiring(struct loop *loop, const struct dblock_event *event)
{
    const struct supervision *supervision = loop->supervision;
    uint64_t grace_ms = supervision->kill_after_ms;
    uint64_t early_ms = event->remaining_ms > grace_ms ? event->remaining_ms - grace_ms : 0;

    loop->supervision->is_out_of_reach = true;
    if (loop->state != RUNNING || loop->is_child_over)
        return;
    if (supervision->arguments->on_lost == ON_LOST_WARN) {
        message_detail("\"%s\" is about to be lost", loop->name);
        return;
    }
    announce(loop, "is about to be lost", event, early_ms);
    /* The library rounds a ttl down: what was asked for can be more than the grace
     * that is left of it. */
    loop->tell_at_ms = clock_ms() + early_ms;
    loop->kill_at_ms = clock_ms() + event->remaining_ms;
}

static void on_restored(struct loop *loop)
{
    loop->supervision->is_out_of_reach = false;
    if (loop->state != RUNNING)
        return; /* it has been told to end: there is no way back */
    if (loop->tell_at_ms != NEVER)
        message_warning("\"%s\" is safe again", loop->name);
    loop->tell_at_ms = NEVER;
    loop->kill_at_ms = NEVER;
}

static void on_lost(struct loop *loop, const struct dblock_event *event)
{
    const struct supervision *supervision = loop->supervision;
    uint64_t kill_at_ms = clock_ms() + supervision->kill_after_ms;

    loop->supervision->is_lost = true;
    loop->supervision->is_out_of_reach =
        event->cause != DBLOCK_CAUSE_BROKEN && event->cause != DBLOCK_CAUSE_SERVER;
    announce(loop, "is lost", event, 0);
    if (supervision->arguments->on_lost == ON_LOST_WARN || loop->state == KILLED ||
        loop->is_child_over)
        return;
    if (supervision->kill_after_ms == 0) {
        end_all(loop);
    } else if (loop->state == RUNNING) {
        tell(loop);
        loop->kill_at_ms = kill_at_ms;
    } else if (kill_at_ms < loop->kill_at_ms) {
        loop->kill_at_ms = kill_at_ms;
    }
}

static void look_at_events(struct loop *loop)
{
    struct dblock_event event = DBLOCK_EVENT_INIT;

    while (dblock_client_next_event(loop->supervision->client, &event) == DBLOCK_OK)
        switch (event.kind) {
        case DBLOCK_EVENT_EXPIRING:
            on_expiring(loop, &event);
            break;
        case DBLOCK_EVENT_RESTORED:
            on_restored(loop);
            break;
        case DBLOCK_EVENT_LOST:
            on_lost(loop, &event);
            break;
        default: /* of a later library */
            break;
        }
}

/* COMMAND was stopped. As a shell does: lend the terminal to a background process
 * that wanted to use it, else stop as well, so that our own shell takes over. */
static void on_stopped(struct loop *loop, int number)
{
    struct supervision *supervision = loop->supervision;
    struct terminal *terminal = supervision->terminal;

    if (terminal->descriptor < 0 || is_foreground(loop) || loop->state != RUNNING)
        return;
    if ((number == SIGTTIN || number == SIGTTOU) &&
        (terminal_is_ours(terminal) || terminal_is_with(terminal, supervision->child))) {
        terminal_lend(terminal, supervision->child);
        send_signal(loop, SIGCONT);
        return;
    }
    terminal_take_back(terminal, supervision->child);
    if (!signals_stop_self())
        return; /* nobody could continue us: whoever stopped COMMAND is to continue it */
    if (terminal_is_ours(terminal))
        terminal_lend(terminal, supervision->child);
    send_signal(loop, SIGCONT);
}

/* Without a guardian, a dblock that is killed leaves the rest of COMMAND's group behind. */
static void miss_guardian(struct loop *loop, const char *cause)
{
    if (!loop->is_guardian_missed)
        message_warning("dblock-guardian, which would end COMMAND's group if dblock is killed, is "
                        "missing (%s); starting another",
            cause);
    loop->is_guardian_missed = true;
    loop->guardian_at_ms = loop->guardian_since_ms + GUARDIAN_AGAIN_MS;
}

static void start_guardian(struct loop *loop)
{
    loop->guardian_at_ms = NEVER;
    loop->guardian_since_ms = clock_ms();
    if (loop->is_child_over)
        return;
    if (!guardian_start(&loop->supervision->guardian, loop->supervision->child))
        miss_guardian(loop, strerror(errno));
}

static void look_at_children(struct loop *loop)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        if (pid == loop->supervision->guardian.pid && !WIFSTOPPED(status)) {
            loop->supervision->guardian.pid = -1;
            miss_guardian(loop, "it was ended");
        }
        if (pid != loop->supervision->child)
            continue; /* the guardian, or an orphan that we were given */
        if (WIFSTOPPED(status)) {
            on_stopped(loop, WSTOPSIG(status));
        } else {
            loop->is_child_over = true;
            loop->supervision->child_status = status;
        }
    }
}

static void look_at_signals(struct loop *loop)
{
    struct signal_notice notice;

    while (signals_next(&notice))
        switch (notice.number) {
        case SIGCHLD:
            look_at_children(loop);
            break;
        case SIGCONT:
            break;
        default:
            /* What was typed has reached COMMAND already if it is in our group. */
            if (!is_foreground(loop) || !notice.is_from_terminal)
                send_signal(loop, notice.number);
            /* A stopped process would end only when somebody continues it. */
            if (notice.number == SIGTERM || notice.number == SIGHUP || notice.number == SIGINT ||
                notice.number == SIGQUIT)
                send_signal(loop, SIGCONT);
            break;
        }
}

static void look_at_clock(struct loop *loop)
{
    uint64_t now_ms = clock_ms();

    if (loop->guardian_at_ms <= now_ms)
        start_guardian(loop);
    if (loop->kill_at_ms <= now_ms) {
        message_warning("\"%s\": the grace is over; KILL", loop->name);
        end_all(loop);
    } else if (loop->tell_at_ms <= now_ms) {
        tell(loop);
    } else if (loop->state == KILLED) {
        end_all(loop);
    }
}

static bool is_over(const struct loop *loop)
{
    if (!loop->is_child_over)
        return false;
    if (loop->state == RUNNING)
        return true;
    if (loop->state == KILLED && clock_ms() >= loop->give_up_at_ms)
        return true;
    /* The lock is lost: nothing that came from COMMAND is to go on. */
    if (!is_foreground(loop) && kill(-loop->supervision->child, 0) == 0)
        return false;
    return !descendants_exist(loop->supervision->guardian.pid);
}

static int poll_timeout(const struct loop *loop)
{
    uint64_t now_ms = clock_ms();
    uint64_t next_ms = loop->kill_at_ms < loop->tell_at_ms ? loop->kill_at_ms : loop->tell_at_ms;

    if (loop->guardian_at_ms < next_ms)
        next_ms = loop->guardian_at_ms;
    if (loop->state == KILLED)
        return (int)LOOK_AGAIN_MS;
    if (next_ms == NEVER)
        return -1;
    if (next_ms <= now_ms)
        return 0;
    return next_ms - now_ms > 60000 ? 60000 : (int)(next_ms - now_ms);
}

int supervise_prepare(struct supervision *supervision)
{
    struct dblock_error error;
    dblock_status status;

    supervision->guardian = GUARDIAN_NONE;
    status = dblock_client_fd(supervision->client, &supervision->events_fd, &error);
    if (status != DBLOCK_OK) {
        message_error(&error, "not run");
        return exit_code_of(status);
    }
    if ((!supervision->arguments->is_foreground && guardian_prepare(&supervision->guardian) != 0) ||
        descendants_prepare() != 0) {
        message_failure("cannot make a descriptor: %s; not run; raise the limit of open files "
                        "(ulimit -n), or close some",
            strerror(errno));
        return EXIT_CODE_MACHINE;
    }
    return -1;
}

void supervise(struct supervision *supervision)
{
    struct loop loop = {
        .supervision = supervision,
        .tell_at_ms = NEVER,
        .kill_at_ms = NEVER,
        .guardian_at_ms = NEVER,
    };
    struct pollfd sources[2] = {
        {.fd = signals_fd(), .events = POLLIN},
        {.fd = supervision->events_fd, .events = POLLIN},
    };

    (void)text_escape(supervision->arguments->operand, loop.name, sizeof loop.name);
    supervision->is_lost = false;
    supervision->is_out_of_reach = false;
    if (!supervision->arguments->is_foreground)
        loop.guardian_at_ms = clock_ms() + GUARDIAN_AFTER_MS;
    /* COMMAND may have ended before its signal was caught. */
    look_at_children(&loop);
    while (!is_over(&loop)) {
        if (poll(sources, 2, poll_timeout(&loop)) < 0 && errno != EINTR)
            message_failure("cannot wait: %s", strerror(errno));
        look_at_signals(&loop);
        look_at_events(&loop);
        look_at_clock(&loop);
    }
    /* An event that came together with the end of COMMAND counts. */
    look_at_events(&loop);
    terminal_take_back(supervision->terminal, supervision->child);
    guardian_stop(&supervision->guardian);
}
