/* SPDX-License-Identifier: MIT */
/* observe.c - looking at grants and ending those of others: dblock_list(),
 * dblock_inspect(), dblock_break(). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/breaking.h"
#include "core/link.h"
#include "core/name.h"
#include "strategy/strategy.h"

enum { PAGE_SIZE = 128 };

struct page_request {
    struct dblock_page page;
    struct dblock_grant *grants; /* PAGE_SIZE */
    size_t n_grants;
    char after[DBLOCK_NAME_MAX + 1]; /* where the next page begins */
};

static int keep_grant(const struct dblock_grant *grant, void *context)
{
    struct page_request *request = context;

    if (request->n_grants == PAGE_SIZE)
        return 1;
    request->grants[request->n_grants++] = *grant;
    return 0;
}

static dblock_status read_page(dblock_client *client, struct dblk_link *link,
    const struct dblock_call *call, void *context, struct dblock_answer *answer,
    struct dblock_error *error)
{
    struct page_request *request = context;

    request->n_grants = 0;
    return client->driver->observe.list(
        link->connection, call, &request->page, keep_grant, request, answer, error);
}

/* Calls `fn` for one strategy; its non-zero result goes to `*ret_stopped`. */
static dblock_status list_strategy(dblock_client *client, struct page_request *request,
    uint64_t *left, dblock_grant_fn fn, void *context, int *ret_stopped,
    struct dblock_error *error)
{
    struct dblk_short_result result;
    dblock_status status;
    size_t i;

    request->page.after = NULL;
    do {
        request->page.limit = PAGE_SIZE;
        status = dblk_short(client, 0, 0, read_page, request, &result, error);
        if (status != DBLOCK_OK)
            return status;
        for (i = 0; i < request->n_grants && !*ret_stopped; ++i) {
            if (*left == 0)
                return DBLOCK_OK;
            --*left;
            *ret_stopped = fn(&request->grants[i], context) != 0;
        }
        if (request->n_grants > 0) {
            memcpy(request->after, request->grants[request->n_grants - 1].name,
                sizeof request->after);
            request->page.after = request->after;
        }
    } while (request->n_grants == PAGE_SIZE && request->page.name == NULL && !*ret_stopped);
    return DBLOCK_OK;
}

/* An advisory lock that was taken by its number is shown as "#NUMBER", and found and ended by that.
 * A name may read so as well, and goes first: it is looked at when nobody holds the name. */
static int is_number(const char *name, int64_t *ret_id)
{
    char text[24];

    *ret_id = name[0] == '#' ? strtoll(name + 1, NULL, 10) : 0;
    (void)snprintf(text, sizeof text, "#%" PRId64, *ret_id);
    return strcmp(name, text) == 0;
}

static dblock_status list_all(dblock_client *client, const struct dblock_filter *filter,
    dblock_grant_fn fn, void *context, struct dblock_error *error)
{
    struct page_request request;
    uint64_t left = filter->limit != 0 ? filter->limit : UINT64_MAX;
    uint64_t left_before;
    int32_t strategy;
    int is_stopped = 0;
    int is_read = 0;
    dblock_status status = DBLOCK_OK;

    memset(&request, 0, sizeof request);
    request.grants = dblk_allocate(PAGE_SIZE * sizeof *request.grants);
    if (request.grants == NULL)
        return dblock_error_set(error, DBLOCK_E_MEMORY, NULL, "out of memory");
    for (strategy = DBLOCK_LEASE;
         status == DBLOCK_OK && strategy <= DBLOCK_ADVISORY && !is_stopped && left > 0;
         ++strategy) {
        if (filter->strategy != 0 && filter->strategy != strategy)
            continue;
        request.page.strategy = strategy;
        request.page.is_idle = filter->is_idle;
        request.page.name = filter->name;
        request.page.prefix = filter->prefix;
        left_before = left;
        status = list_strategy(client, &request, &left, fn, context, &is_stopped, error);
        if (status == DBLOCK_OK && strategy == DBLOCK_ADVISORY && left == left_before &&
            filter->name != NULL && is_number(filter->name, &request.page.advisory_id)) {
            request.page.has_advisory_id = 1;
            status = list_strategy(client, &request, &left, fn, context, &is_stopped, error);
        }
        is_read = is_read || status == DBLOCK_OK;
        /* asked for all of them: one that this database cannot do is simply not there; if it can do
         * none, it is the database that is of no use, and "nobody" would be a lie */
        if (status == DBLOCK_E_UNSUPPORTED && filter->strategy == 0 &&
            (is_read || strategy < DBLOCK_ADVISORY))
            status = DBLOCK_OK;
    }
    dblk_release(request.grants);
    return status;
}

static dblock_status check_filter(const struct dblock_filter *filter, struct dblock_error *error)
{
    if (filter->strategy != 0 && dblk_strategy_of(filter->strategy) == NULL)
        return dblock_error_set(error, DBLOCK_E_ARGUMENT, NULL,
            "filter.strategy: %d is no strategy", (int)filter->strategy);
    if (filter->name != NULL && dblk_name_check(filter->name, error) != DBLOCK_OK)
        return DBLOCK_E_ARGUMENT;
    if (filter->prefix != NULL && strlen(filter->prefix) > DBLOCK_NAME_MAX)
        return dblock_error_set(error, DBLOCK_E_ARGUMENT, NULL,
            "filter.prefix: longer than %d bytes", DBLOCK_NAME_MAX);
    return DBLOCK_OK;
}

dblock_status dblock_list(dblock_client *client, const struct dblock_filter *filter,
    dblock_grant_fn fn, void *context, struct dblock_error *reterr)
{
    struct dblock_filter given = DBLOCK_FILTER_INIT;
    dblock_status status = dblk_client_enter(client, reterr);

    if (status != DBLOCK_OK)
        return status;
    if (fn == NULL)
        status = dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL, "fn: NULL");
    if (status == DBLOCK_OK && filter != NULL)
        status = dblk_struct_read(filter, &given, sizeof given, "filter", reterr);
    if (status == DBLOCK_OK)
        status = check_filter(&given, reterr);
    if (status == DBLOCK_OK)
        status = list_all(client, &given, fn, context, reterr);
    dblk_client_leave(client);
    return status;
}

struct finding {
    struct dblock_grant grant;
    int is_found;
};

static int keep_first(const struct dblock_grant *grant, void *context)
{
    struct finding *finding = context;

    finding->grant = *grant;
    finding->is_found = 1;
    return 1;
}

dblock_status dblock_inspect(dblock_client *client, const char *name, int strategy,
    struct dblock_grant *ret_grant, struct dblock_error *reterr)
{
    struct dblock_filter filter = DBLOCK_FILTER_INIT;
    struct finding finding;
    dblock_status status = dblk_client_enter(client, reterr);

    if (status != DBLOCK_OK)
        return status;
    finding.is_found = 0;
    filter.strategy = strategy;
    filter.name = name;
    if (ret_grant == NULL)
        status = dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL, "ret_grant: NULL");
    if (status == DBLOCK_OK)
        status = dblk_name_check(name, reterr);
    if (status == DBLOCK_OK && strategy != 0 && dblk_strategy_of(strategy) == NULL)
        status = dblock_error_set(reterr, DBLOCK_E_ARGUMENT, "0 looks at all four",
            "strategy: %d is no strategy", strategy);
    if (status == DBLOCK_OK)
        status = list_all(client, &filter, keep_first, &finding, reterr);
    if (status == DBLOCK_OK)
        status = finding.is_found ? dblk_struct_write(ret_grant, &finding.grant,
                                        sizeof finding.grant, "ret_grant", reterr)
                                  : DBLOCK_NOT_HELD;
    dblk_client_leave(client);
    return status;
}

struct end_request {
    int strategy;
    struct dblock_subject subject;
    int64_t token;
    int is_token_left; /* the grant has been ended, and its token not yet */
};

static dblock_status end_grant(dblock_client *client, struct dblk_link *link,
    const struct dblock_call *call, void *context, struct dblock_answer *answer,
    struct dblock_error *error)
{
    struct end_request *request = context;
    dblock_status status = (request->is_token_left ? client->driver->observe.end_token
                                                   : client->driver->observe.end)(link->connection,
        call, request->strategy, &request->subject, request->token, answer, error);

    if (status == DBLOCK_OK && answer->outcome == DBLOCK_ANSWER_PINNED && answer->token != 0) {
        request->token = answer->token;
        request->is_token_left = 1;
    }
    return status;
}

/* A guarded transaction stands on it: from now on it is the keeper's. Of a grant that was not
 * named by its token (nor by the answer) that is needed first, or a later one would be ended. */
static dblock_status go_on(
    dblock_client *client, const struct end_request *request, struct dblock_error *reterr)
{
    struct dblock_filter filter = DBLOCK_FILTER_INIT;
    struct finding finding;
    dblock_status status = DBLOCK_OK;
    int64_t token = request->token;

    if (token == 0) {
        finding.is_found = 0;
        filter.strategy = request->strategy;
        filter.name = request->subject.name;
        status = list_all(client, &filter, keep_first, &finding, reterr);
        if (status != DBLOCK_OK)
            return status;
        if (!finding.is_found || finding.grant.token == 0)
            return DBLOCK_NOT_HELD;
        token = finding.grant.token;
    }
    if (dblk_breaking_add(
            client, &request->subject, request->strategy, token, request->is_token_left) != 0)
        return dblock_error_set(reterr, DBLOCK_E_MEMORY, NULL, "out of memory or threads");
    return DBLOCK_PENDING;
}

dblock_status dblock_break(dblock_client *client, const char *name, int strategy, int64_t token,
    struct dblock_error *reterr)
{
    struct end_request request;
    struct dblk_short_result result;
    dblock_status status = dblk_client_enter(client, reterr);

    if (status != DBLOCK_OK)
        return status;
    status = dblk_name_check(name, reterr);
    if (status == DBLOCK_OK && dblk_strategy_of(strategy) == NULL)
        status = dblock_error_set(reterr, DBLOCK_E_ARGUMENT,
            "say which: the strategies do not know of each other", "strategy: %d is no strategy",
            strategy);
    if (status == DBLOCK_OK && token < 0)
        status = dblock_error_set(reterr, DBLOCK_E_ARGUMENT, NULL, "token: below 0");
    if (status == DBLOCK_OK) {
        memset(&request, 0, sizeof request);
        request.strategy = strategy;
        request.subject.name = name;
        request.subject.name_size = strlen(name);
        request.token = token;
        status = dblk_short(client, 0, 0, end_grant, &request, &result, reterr);
        if (status == DBLOCK_OK && result.answer.outcome == DBLOCK_ANSWER_NO &&
            !result.was_uncertain && strategy == DBLOCK_ADVISORY &&
            is_number(name, &request.subject.advisory_id)) {
            request.subject.has_advisory_id = 1;
            status = dblk_short(client, 0, 0, end_grant, &request, &result, reterr);
        }
        if (status == DBLOCK_OK && result.answer.outcome == DBLOCK_ANSWER_PINNED)
            status = go_on(client, &request, reterr);
        /* after a lost answer "nobody holds it" is most likely its own work */
        else if (status == DBLOCK_OK && result.answer.outcome != DBLOCK_ANSWER_YES &&
            !result.was_uncertain)
            status = DBLOCK_NOT_HELD;
    }
    dblk_client_leave(client);
    return status;
}
