/* SPDX-License-Identifier: MIT */
/* bank_trouble.c - see bank_trouble.h. */
#include "bank_trouble.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bank_teller.h"
#include "tcp_proxy.h"
#include "test_wait.h"

enum {
    BEYOND_MS = 100,      /* more than the ttl */
    TRANSFERS = 30,       /* from one disturbance to the next, however long they take */
    START_MS = 20000,
    SLOW_MS = 3000,       /* who serves nobody for so long is not killed, but watched */
    STANDSTILL_MS = 30000 /* longer than any call may take */
};

/* --------------------------------------------------------------------- the network */

struct network {
    struct bank *bank;
    int orders[2];
};

/* A process of its own: the tellers, which are forked, would keep its connections open. */
static int be_network(void *context, int ready_fd)
{
    const struct network *network = context;
    const struct contract_database *database = network->bank->application->database;
    struct tcp_proxy *proxies[BANK_ROUTES];
    uint64_t random = 88172645463325252u;
    unsigned ports[BANK_ROUTES];
    int n = 0;
    int i;
    unsigned char order;

    (void)close(network->orders[1]);
    for (i = 0; i < BANK_ROUTES; ++i) {
        if (database->go_to_node != NULL)
            database->go_to_node((unsigned)i);
        if (n > 0 && database->port() == ports[0])
            break;
        ports[n] = database->port();
        proxies[n] = tcp_proxy_start(PROXY_WIRE_RAW, ports[n]);
        if (proxies[n] == NULL)
            return 1;
        process_ready(ready_fd, (unsigned char)(tcp_proxy_port(proxies[n]) >> 8));
        process_ready(ready_fd, (unsigned char)tcp_proxy_port(proxies[n]));
        process_ready(ready_fd, (unsigned char)(ports[n] >> 8));
        process_ready(ready_fd, (unsigned char)ports[n]);
        ++n;
    }
    (void)close(ready_fd);
    while (read(network->orders[0], &order, 1) == 1)
        (void)tcp_proxy_lose(proxies[bank_draw(&random, (unsigned)n)],
            bank_draw(&random, 100000), bank_draw(&random, 3) == 0 ? 0 : network->bank->ttl_ms);
    return 0;
}

/* -1: the network has told them all. */
static int read_port(struct test_process *network)
{
    int high = process_await(network, START_MS);

    return high < 0 ? -1 : high << 8 | process_await(network, START_MS);
}

const char *bank_trouble_start(struct bank_trouble *trouble, struct bank *bank)
{
    struct network network = { bank, { -1, -1 } };
    int port;

    *trouble = (struct bank_trouble){ .bank = bank, .orders_fd = -1,
        .random = UINT64_C(0x9E3779B97F4A7C15) * (test_now_ms() | 1) };
    bank->n_routes = 0;
    if (bank->application->database->port == NULL)
        return NULL;
    if (pipe(network.orders) != 0 || process_start(&trouble->network, be_network, &network) != 0)
        return "no process for the network";
    (void)close(network.orders[0]);
    trouble->orders_fd = network.orders[1];
    while (bank->n_routes < BANK_ROUTES && (port = read_port(&trouble->network)) > 0) {
        bank->routes[bank->n_routes].proxy = (unsigned)port;
        bank->routes[bank->n_routes++].server = (unsigned)read_port(&trouble->network);
    }
    return bank->n_routes > 0 ? NULL : "the network does not work";
}

/* --------------------------------------------------------------------- the tellers */

static const char *start_teller(struct bank_trouble *trouble, int which)
{
    struct bank *bank = trouble->bank;

    ++bank->seed;
    bank->teller = which;
    trouble->since_ms[which] = test_now_ms();
    return process_start(&trouble->tellers[which], bank_tell, bank) == 0 ? NULL
                                                                        : "no process for a teller";
}

static const char *await_teller(struct bank_trouble *trouble, int which)
{
    return process_await(&trouble->tellers[which], START_MS) == 1 ? NULL
                                                                  : "a teller does not start";
}

const char *bank_trouble_employ(struct bank_trouble *trouble)
{
    const char *problem = NULL;
    int i;

    for (i = 0; i < BANK_TELLERS && problem == NULL; ++i)
        problem = start_teller(trouble, i);
    for (i = 0; i < BANK_TELLERS && problem == NULL; ++i)
        problem = await_teller(trouble, i);
    return problem;
}

/* None ends by itself, and none stands still for good. */
static const char *watch_teller(struct bank_trouble *trouble, int which)
{
    unsigned served = trouble->bank->tally->n_served[which];
    siginfo_t info = { 0 };

    if (waitid(P_PID, (id_t)trouble->tellers[which].pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid != 0)
        return "a teller has ended by itself";
    if (served != trouble->served[which]) {
        trouble->served[which] = served;
        trouble->since_ms[which] = test_now_ms();
    }
    return test_now_ms() - trouble->since_ms[which] > STANDSTILL_MS ? "a teller stands still"
                                                                    : NULL;
}

/* ------------------------------------------------------------------------- trouble */

static int draw(struct bank_trouble *trouble)
{
    return (int)bank_draw(&trouble->random, BANK_TELLERS);
}

/* Who has stopped himself, or is stopped here wherever he is, is left alone for longer than the
 * ttl. */
const char *bank_trouble_make(struct bank_trouble *trouble)
{
    const struct contract_database *database = trouble->bank->application->database;
    const char *problem = NULL;
    unsigned n_transfers = trouble->bank->tally->n_transfers;
    int is_due = trouble->n_rounds++ == 0 || n_transfers - trouble->n_transfers >= TRANSFERS;
    int victim = draw(trouble);
    int i;

    if (is_due) {
        trouble->n_transfers = n_transfers;
        (void)kill(trouble->tellers[victim].pid, SIGSTOP);
        ++trouble->bank->tally->n_pauses;
    }
    if (is_due && trouble->orders_fd >= 0) {
        if (write(trouble->orders_fd, "", 1) != 1)
            return "the network is gone";
        ++trouble->n_losses;
        database->cut_one(bank_draw(&trouble->random, 100000));
        ++trouble->n_ends;
    }
    test_pass_ms(trouble->bank->ttl_ms + BEYOND_MS); /* that the ttl is over is what is tested */
    for (i = 0; i < BANK_TELLERS && problem == NULL; ++i) {
        (void)kill(trouble->tellers[i].pid, SIGCONT);
        problem = watch_teller(trouble, i);
    }
    if (problem != NULL || !is_due || draw(trouble) % 2 == 0)
        return problem;
    victim = draw(trouble);
    if (test_now_ms() - trouble->since_ms[victim] > SLOW_MS)
        return NULL;
    process_kill(&trouble->tellers[victim]);
    ++trouble->n_kills;
    return start_teller(trouble, victim);
}

void bank_trouble_end(struct bank_trouble *trouble)
{
    int i;

    for (i = 0; i < BANK_TELLERS; ++i)
        process_kill(&trouble->tellers[i]);
    if (trouble->orders_fd >= 0)
        (void)close(trouble->orders_fd);
    process_kill(&trouble->network);
    trouble->orders_fd = -1;
    trouble->bank->n_routes = 0;
}
