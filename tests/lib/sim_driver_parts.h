/* SPDX-License-Identifier: MIT */
/* sim_driver_parts.h - what the files of the simulated driver share: the
 * worlds with their clocks, faults and connections. */
#ifndef DBLOCK_TEST_SIM_DRIVER_PARTS_H
#define DBLOCK_TEST_SIM_DRIVER_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "sim_driver.h"

struct sim_pending_fault {
    enum sim_step step;
    unsigned n_left;
    enum sim_fault fault;
    uint64_t delay_us;
    int32_t result; /* of ANSWER and FAIL */
};

struct sim_site {
    struct sim_site *next;
    char name[64];
    pthread_mutex_t mutex;
    struct sim_world world;
    int64_t clock_offset_us; /* to add to CLOCK_BOOTTIME */
    int is_down;
    int is_silent;
    char password[64];
    char stranded[128]; /* label of clients that nothing gets through of; "" none */
    uint64_t last_connection;
    uint64_t n_steps[SIM_N_STEPS];
    struct sim_pending_fault faults[128];
    size_t n_faults;
    struct dblock_connection *connections;
};

struct dblock_target {
    struct sim_site *site;
    char password[64];
    char host[256];
    char label[128];
    int64_t pid;
};

struct dblock_connection {
    struct dblock_connection *next;
    const struct dblock_target *target;
    struct sim_caller caller;
    int fd;
    atomic_int is_dead; /* asked for without the site's mutex: the caller may hold one of its own */
    int line_strategy; /* of the line that it stands in, or stood in last */
    char line_name[256];
    int is_rung;
};

/* Made if it is not there yet. */
struct sim_site *sim_site_find(const char *name);
int64_t sim_site_now(const struct sim_site *site);
/* The server ends it: what lived in it is gone, and the client can see that on its socket. The
 * site's mutex is held. */
void sim_site_end_connection(struct sim_site *site, struct dblock_connection *connection);

/* One step: between sim_enter() and sim_leave(), if `is_inside`, the world's mutex is held and the
 * work is to be done. */
struct sim_visit {
    struct dblock_connection *connection;
    struct sim_world *world;
    int64_t now_us;
    dblock_status status;
    int is_inside;
    int is_lost; /* the answer does not arrive */
};

struct sim_visit sim_enter(struct dblock_connection *connection, enum sim_step step,
    const struct dblock_call *call, struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status sim_leave(struct sim_visit *visit, struct dblock_error *reterr);

/* Stands in the queue of a lock, with the mutex held on entry and on return. */
dblock_status sim_wait_in_queue(struct dblock_connection *connection, int32_t strategy,
    const struct dblock_call *call, const struct dblock_take *take, struct dblock_answer *answer);

/* Of the line of a name, the mutex held: has it a first, and wake him. */
int sim_line_has_first(
    struct dblock_connection *connection, int strategy, const struct dblock_subject *subject);
void sim_line_ring(
    struct dblock_connection *connection, int strategy, const struct dblock_subject *subject);

/* Of lease or insert. */
dblock_status sim_take_many(struct dblock_connection *connection, int32_t strategy,
    const struct dblock_call *call, const struct dblock_take *terms,
    const struct dblock_many *many, size_t *ret_place, struct dblock_grant *holder,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status sim_drop_many(struct dblock_connection *connection, int32_t strategy,
    const struct dblock_call *call, const struct dblock_many *many, struct dblock_answer *answer,
    struct dblock_error *reterr);

/* Entries of the driver table. */
dblock_status sim_line_stand(struct dblock_connection *connection, const struct dblock_call *call,
    int strategy, const struct dblock_subject *subject, uint64_t wait_us, int is_fair,
    struct dblock_answer *answer, struct dblock_error *reterr);
dblock_status sim_line_rest(struct dblock_connection *connection, const struct dblock_call *call,
    const char *owner, struct dblock_answer *answer, struct dblock_error *reterr);
void sim_line_leave(struct dblock_connection *connection);
dblock_status sim_target_open(const struct dblock_target_config *config,
    struct dblock_target **ret_target, struct dblock_error *reterr);
void sim_target_close(struct dblock_target *target);
dblock_status sim_install(
    struct dblock_target *target, const struct dblock_call *call, struct dblock_error *reterr);
dblock_status sim_connection_open(struct dblock_target *target, int role,
    const struct dblock_call *call, struct dblock_connection **ret_connection,
    struct dblock_answer *answer, struct dblock_error *reterr);
void sim_connection_close(struct dblock_connection *connection, int how);
int sim_connection_is_alive(const struct dblock_connection *connection);
int sim_connection_fd(const struct dblock_connection *connection);

#endif
