/* SPDX-License-Identifier: MIT */
/* bench_json.c - the figures for programs: the "bench" of dblock.schema.json. */
#include "bench.h"

#include "bench_text.h"
#include "json_output.h"

#include <stdio.h>

static void set_count(json_t *object, const char *key, uint64_t number)
{
    (void)json_object_set_new(object, key, json_integer((json_int_t)number));
}

static void set_real(json_t *object, const char *key, double number)
{
    (void)json_object_set_new(object, key, json_real(number));
}

/* Of no durations there is no median. */
static json_t *latency_json(const struct latency *latency)
{
    json_t *object = json_object();

    set_count(object, "count", latency->n);
    json_set_number(object, "p50_ns", (int64_t)latency_at(latency, 0.5));
    json_set_number(object, "p90_ns", (int64_t)latency_at(latency, 0.9));
    json_set_number(object, "p99_ns", (int64_t)latency_at(latency, 0.99));
    json_set_number(object, "max_ns", (int64_t)latency->max_ns);
    return object;
}

static void set_latency(json_t *object, const char *key, const struct latency *latency)
{
    (void)json_object_set_new(object, key, latency_json(latency));
}

static json_t *alone_json(const struct bench_result *result)
{
    json_t *object = json_object();

    set_real(object, "pairs_per_s", bench_rate(result->alone.n, result->alone_ns));
    set_latency(object, "pair", &result->alone);
    return object;
}

static json_t *contention_json(const struct bench_plan *plan, const struct bench_result *result)
{
    uint64_t elapsed_ns = plan->part_ms * 1000000;
    json_t *object = json_object();

    set_count(object, "clients", plan->arguments->n_clients);
    set_count(object, "grants", result->contention.n_grants);
    set_real(object, "grants_per_s", bench_rate(result->contention.n_grants, elapsed_ns));
    set_count(object, "changes", result->contention.n_changes);
    set_real(object, "changes_per_s", bench_rate(result->contention.n_changes, elapsed_ns));
    set_real(object, "jain", result->contention.jain);
    set_count(object, "least", result->contention.least);
    set_count(object, "most", result->contention.most);
    set_latency(object, "wait", &result->contention.waits);
    return object;
}

static json_t *hand_overs_json(const struct bench_plan *plan, const struct bench_result *result)
{
    json_t *list = json_array();
    unsigned i;

    for (i = 0; i < plan->n_hand_overs; i++) {
        json_t *object = json_object();

        set_count(object, "waiters", plan->n_waiters[i]);
        set_count(object, "missed", result->hand_over[i].n_missed);
        set_latency(object, "latency", &result->hand_over[i].latency);
        (void)json_array_append_new(list, object);
    }
    return list;
}

static json_t *heartbeat_json(const struct bench_result *result)
{
    json_t *object;

    if (result->heartbeat.n_leases == 0)
        return json_null();
    object = json_object();
    set_count(object, "leases", result->heartbeat.n_leases);
    set_count(object, "ttl_ms", BENCH_HEARTBEAT_TTL_MS);
    set_real(object, "heartbeats_per_s",
        bench_rate(result->heartbeat.latency.n, result->heartbeat.elapsed_ns));
    set_count(object, "late", result->heartbeat.n_late);
    set_latency(object, "heartbeat", &result->heartbeat.latency);
    return object;
}

static json_t *result_json(const struct bench_plan *plan, const struct bench_result *result)
{
    json_t *object = json_object();
    bool is_measured = !result->is_left_out;

    json_set_text(object, "strategy", dblock_strategy_name(result->strategy));
    (void)json_object_set_new(
        object, "left_out", json_error(is_measured ? NULL : &result->error));
    (void)json_object_set_new(object, "alone", is_measured ? alone_json(result) : json_null());
    (void)json_object_set_new(
        object, "contention", is_measured ? contention_json(plan, result) : json_null());
    (void)json_object_set_new(
        object, "hand_over", is_measured ? hand_overs_json(plan, result) : json_array());
    (void)json_object_set_new(object, "heartbeat", heartbeat_json(result));
    set_count(object, "lost", result->n_lost);
    set_count(object, "violations", result->n_violations);
    return object;
}

int bench_print_json(const struct bench_report *report)
{
    const struct bench_plan *plan = report->plan;
    json_t *document = json_document("bench");
    json_t *results = json_array();
    unsigned i;

    for (i = 0; i < report->n_results; i++)
        (void)json_array_append_new(results, result_json(plan, &report->results[i]));
    json_set_text(document, "database", dblock_driver_scheme(plan->database->driver));
    json_set_text(document, "version", dblock_version());
    json_set_text(document, "prefix", plan->prefix);
    set_count(document, "part_ms", plan->part_ms);
    (void)json_object_set_new(document, "fair", json_boolean(plan->arguments->is_fair));
    set_count(document, "violations", bench_violations(report));
    (void)json_object_set_new(document, "strategies", results);
    return json_print(document, stdout);
}
