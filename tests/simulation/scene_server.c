/* SPDX-License-Identifier: MIT */
/* scene_server.c - the database does what a request asks, and beside it a second
 * account of the truth is kept, by which each of its answers is judged. */
#include <string.h>

#include "scene.h"

static struct sim_caller caller_of(const struct scene_request *request)
{
    struct sim_caller caller = { 1 + request->client * 16u + request->actor, "host", "label",
        (int64_t)request->client + 1 };

    return caller;
}

/* Everything written before is durable now: a lazy release too. */
static void flush(struct scene *scene)
{
    scene->n_lazy = 0;
}

/* The attempt whose owner id this text is, or SCENE_NOBODY. */
static uint32_t parse_owner(const struct scene *scene, const char *text)
{
    char expected[40];
    uint32_t index = 0;
    unsigned i;

    if (text[0] == 0)
        return SCENE_NOBODY;
    for (i = 0; i < 8; ++i)
        index = index << 4 |
            (uint32_t)(text[i] <= '9' ? text[i] - '0' : text[i] - 'a' + 10);
    if (index >= scene->n_attempts)
        return SCENE_NOBODY;
    dblock_id_text(scene->attempts[index].owner, expected);
    return strcmp(expected, text) == 0 ? index : SCENE_NOBODY;
}

static dblock_status answer_again(const struct scene *scene, struct scene_request *request)
{
    request->answer.outcome = DBLOCK_ANSWER_AGAIN;
    request->answer.now_us = scene_server_us(scene);
    return DBLOCK_OK;
}

/* ----------------------------------------------------------------- sessions */

static void serve_begin(struct scene *scene, struct scene_request *request)
{
    struct scene_session *session = &scene->sessions[request->session];
    struct sim_caller caller = caller_of(request);
    struct dblock_error error;

    request->status = sim_session_begin(&scene->world, scene_server_us(scene), &caller,
        session->id, session->ttl_us, &request->answer, &error);
    flush(scene);
    session->is_there = 1;
    session->expires_us = scene_server_us(scene) + (int64_t)session->ttl_us;
    session->basis_us = scene->now_us;
    session->basis_offset_us = scene->server_offset_us;
}

static struct sim_session *find_session(struct scene *scene, const unsigned char *id)
{
    struct sim_session *sessions = scene->world.sessions.items;
    size_t i;

    for (i = 0; i < scene->world.sessions.n_items; ++i)
        if (memcmp(sessions[i].id, id, DBLOCK_ID_SIZE) == 0)
            return &sessions[i];
    return NULL;
}

static void serve_renew(struct scene *scene, struct scene_request *request)
{
    struct scene_session *session = &scene->sessions[request->session];
    int64_t now_us = scene_server_us(scene);
    int is_alive = session->is_there && session->expires_us > now_us;
    struct dblock_error error;

    if (scene->mistake == SCENE_RENEWAL_REVIVES) {
        struct sim_session *row = find_session(scene, session->id);

        if (row != NULL && row->expires_us <= now_us)
            row->expires_us = now_us + 1;
    }
    request->status = sim_session_renew(
        &scene->world, now_us, session->id, session->ttl_us, &request->answer, &error);
    if ((request->answer.outcome == DBLOCK_ANSWER_YES) != is_alive)
        scene_violate(scene, "session %u: renewed %d although its life was %d",
            (unsigned)request->session, request->answer.outcome == DBLOCK_ANSWER_YES, is_alive);
    if (request->answer.outcome != DBLOCK_ANSWER_YES)
        return;
    flush(scene);
    session->expires_us = now_us + (int64_t)session->ttl_us;
    session->basis_us = scene->now_us;
    session->basis_offset_us = scene->server_offset_us;
}

static void serve_end(struct scene *scene, struct scene_request *request)
{
    struct scene_session *session = &scene->sessions[request->session];
    struct dblock_error error;

    request->status = sim_session_end(
        &scene->world, scene_server_us(scene), session->id, &request->answer, &error);
    flush(scene);
    session->is_there = 0;
}

struct listing {
    struct scene *scene;
    struct scene_request *request;
};

static int list_row(const struct dblock_grant *grant, void *context)
{
    struct listing *listing = context;
    uint32_t attempt = parse_owner(listing->scene, grant->owner);

    if (attempt == SCENE_NOBODY || listing->request->n_held == SCENE_HELD_MAX) {
        scene_violate(listing->scene, "a row names an owner that nobody ever sent");
        return 1;
    }
    listing->request->held[listing->request->n_held++] = attempt;
    return 0;
}

static void serve_holds(struct scene *scene, struct scene_request *request)
{
    struct listing listing = { scene, request };
    struct dblock_error error;

    request->status = sim_session_holds(&scene->world, scene_server_us(scene),
        scene->sessions[request->session].id, list_row, &listing, &request->answer, &error);
}

/* --------------------------------------------------------- lease and insert */

/* Who the database says holds the row; SCENE_NOBODY: nobody. */
static uint32_t recorded_holder(
    struct scene *scene, const struct scene_attempt *attempt, struct sim_row **ret_row)
{
    char text[40];
    struct sim_row *row =
        sim_hold_row(&scene->world, attempt->strategy, scene_name(attempt->name));

    *ret_row = row;
    if (row == NULL || !row->has_owner)
        return SCENE_NOBODY;
    dblock_id_text(row->owner, text);
    return parse_owner(scene, text);
}

/* What the mistakes make of a take. */
static void spoil_take(struct scene *scene, struct scene_request *request,
    const struct dblock_take *take, uint32_t holder)
{
    struct scene_attempt *attempt = &scene->attempts[request->attempt];
    const char *name = scene_name(attempt->name);
    struct sim_row *row;

    if (scene->mistake == SCENE_OWN_SESSION_UNCHECKED &&
        request->answer.outcome == DBLOCK_ANSWER_SESSION) {
        sim_hold_plant(&scene->world, scene_server_us(scene), attempt->strategy, name, take->owner,
            take->session);
        row = sim_hold_row(&scene->world, attempt->strategy, name);
        request->answer.outcome = DBLOCK_ANSWER_YES;
        request->answer.token = row->token;
    }
    if (scene->mistake == SCENE_REASK_IS_TAKE && request->is_again && holder == request->attempt &&
        request->answer.outcome == DBLOCK_ANSWER_BUSY) {
        /* an upsert whose condition says "or it is mine" */
        row = sim_hold_row(&scene->world, attempt->strategy, name);
        request->answer.outcome = DBLOCK_ANSWER_YES;
        request->answer.token = ++row->token;
    }
    if (scene->mistake == SCENE_TOKEN_BEFORE_WAIT &&
        request->answer.outcome == DBLOCK_ANSWER_YES) {
        row = sim_hold_row(&scene->world, attempt->strategy, name);
        row->token = request->early_token;
        request->answer.token = request->early_token;
    }
}

static void judge_grant(
    struct scene *scene, struct scene_request *request, int was_held, int has_session)
{
    struct scene_attempt *attempt = &scene->attempts[request->attempt];
    unsigned slot = scene_slot(attempt->strategy);
    int64_t *last_token = &scene->last_token[slot][attempt->name];
    uint32_t *holder = &scene->holder[slot][attempt->name];

    ++scene->counts.grants;
    if (was_held)
        scene_violate(scene, "two holders recorded: \"%s\" was granted to attempt %u while attempt "
            "%u is in force", scene_name(attempt->name), (unsigned)request->attempt,
            (unsigned)*holder);
    if (attempt->is_granted)
        scene_violate(
            scene, "attempt %u: one owner id was granted twice", (unsigned)request->attempt);
    if (!has_session)
        scene_violate(scene, "attempt %u: granted to a session that is over",
            (unsigned)request->attempt);
    if (request->answer.token <= *last_token)
        scene_violate(scene, "\"%s\": token %lld after %lld", scene_name(attempt->name),
            (long long)request->answer.token, (long long)*last_token);
    /* only a clock that went back behind not_after can make this happen */
    if (attempt->is_denied && scene->n_back > attempt->n_back &&
        scene_server_us(scene) <= request->not_after_us)
        ++scene->counts.excused_back;
    else if (attempt->is_denied && request->is_judged)
        ++scene->counts.excused_lag;
    else if (attempt->is_denied)
        scene_violate(scene, "attempt %u was granted after its caller had been told no",
            (unsigned)request->attempt);
    if (*holder != SCENE_NOBODY && !scene->attempts[*holder].is_over) {
        scene->attempts[*holder].is_over = 1;
        scene->attempts[*holder].over_us = scene->now_us;
        scene->attempts[*holder].over_offset_us = scene->server_offset_us;
    }
    *holder = request->attempt;
    *last_token = request->answer.token;
    attempt->is_granted = 1;
    attempt->is_slow = request->is_judged;
    attempt->true_token = request->answer.token;
    attempt->true_session = attempt->session;
    attempt->expires_us = scene_server_us(scene) + (int64_t)attempt->ttl_us;
    attempt->basis_us = scene->now_us;
    attempt->basis_ttl_us = attempt->ttl_us;
    attempt->basis_offset_us = scene->server_offset_us;
    attempt->granted_true_us = scene->now_us;
    scene_note(scene, "granted", request->client, request->actor, request->attempt,
        request->answer.token);
}

/* An expired session that stands in the way of a take is ended, whatever becomes of the take. */
static void end_expired_session(struct scene *scene, const struct scene_attempt *holder)
{
    struct scene_session *session;

    if (holder->is_over || holder->true_session == SCENE_NOBODY)
        return;
    session = &scene->sessions[holder->true_session];
    if (!session->is_there || session->expires_us > scene_server_us(scene))
        return;
    session->is_there = 0;
    session->over_us = scene->now_us;
    session->over_offset_us = scene->server_offset_us;
}

int scene_would_grant(struct scene *scene, const struct scene_request *request)
{
    const struct scene_attempt *attempt;
    const struct scene_session *session;
    struct sim_row *row;
    uint32_t holder;
    unsigned slot;

    if (request->kind != SCENE_TAKE)
        return 0;
    attempt = &scene->attempts[request->attempt];
    slot = scene_slot(attempt->strategy);
    if (scene->is_committing[slot][attempt->name] ||
        scene_server_us(scene) > request->not_after_us)
        return 0;
    holder = recorded_holder(scene, attempt, &row);
    if ((holder != SCENE_NOBODY && scene_is_in_force(scene, &scene->attempts[holder])) ||
        (row != NULL && row->n_guards > 0))
        return 0;
    session = attempt->session == SCENE_NOBODY ? NULL : &scene->sessions[attempt->session];
    return session == NULL ||
        (session->is_there && session->expires_us > scene_server_us(scene));
}

static void serve_take(struct scene *scene, struct scene_request *request)
{
    struct scene_attempt *attempt = &scene->attempts[request->attempt];
    int64_t now_us = scene_server_us(scene);
    uint32_t holder = scene->holder[scene_slot(attempt->strategy)][attempt->name];
    int was_held = holder != SCENE_NOBODY && scene_is_in_force(scene, &scene->attempts[holder]);
    struct scene_session *session =
        attempt->session == SCENE_NOBODY ? NULL : &scene->sessions[attempt->session];
    int has_session = session == NULL || (session->is_there && session->expires_us > now_us);
    struct sim_caller caller = caller_of(request);
    struct dblock_take take;
    struct dblock_error error;

    memset(&take, 0, sizeof take);
    take.subject.name = scene_name(attempt->name);
    take.subject.name_size = strlen(take.subject.name);
    take.owner = attempt->owner;
    take.session = session != NULL ? session->id : NULL;
    take.ttl_us = attempt->ttl_us;
    take.not_after_us =
        scene->mistake == SCENE_NOT_AFTER_IGNORED ? INT64_MAX : request->not_after_us;
    take.label = "";
    if (request->is_judged) {
        scene->is_committing[scene_slot(attempt->strategy)][attempt->name] = 0;
        take.not_after_us = INT64_MAX; /* was judged when the commit began */
    } else if (!was_held && scene->is_committing[scene_slot(attempt->strategy)][attempt->name]) {
        request->status = answer_again(scene, request); /* the row is locked: it is skipped */
        return;
    }
    request->status = sim_hold_take(&scene->world, now_us, &caller, attempt->strategy, &take, NULL,
        &request->answer, &error);
    spoil_take(scene, request, &take, holder);
    if (request->answer.outcome == DBLOCK_ANSWER_LATE)
        ++scene->counts.late_refused;
    if (request->answer.outcome != DBLOCK_ANSWER_BUSY) {
        if (holder != SCENE_NOBODY && !was_held)
            end_expired_session(scene, &scene->attempts[holder]);
        flush(scene);
    }
    if (request->answer.outcome == DBLOCK_ANSWER_YES)
        judge_grant(scene, request,
            was_held && !(request->is_again && holder == request->attempt), has_session);
    else if (was_held && request->answer.outcome != DBLOCK_ANSWER_BUSY)
        scene_violate(scene, "\"%s\" is held, and a take was answered %d",
            take.subject.name, (int)request->answer.outcome);
}

static void remember_lazy(struct scene *scene, const struct sim_row *row, uint32_t attempt)
{
    if (scene->n_lazy == SCENE_LAZY_MAX)
        flush(scene);
    scene->lazy[scene->n_lazy].row = *row;
    scene->lazy[scene->n_lazy++].attempt = attempt;
}

/* Drop and extend: only the grant itself may be changed by them, and only while in force. */
static void serve_change(struct scene *scene, struct scene_request *request)
{
    struct scene_attempt *attempt = &scene->attempts[request->attempt];
    const char *name = scene_name(attempt->name);
    int64_t now_us = scene_server_us(scene);
    struct sim_row *row;
    struct sim_row before;
    uint32_t holder = recorded_holder(scene, attempt, &row);
    int is_mine = attempt->is_granted && scene_is_in_force(scene, attempt);
    const unsigned char *owner = attempt->owner;
    struct dblock_error error;

    if (row != NULL)
        before = *row;
    if (scene->mistake == SCENE_DROP_BY_NAME && holder != SCENE_NOBODY)
        owner = scene->attempts[holder].owner;
    if (request->kind == SCENE_DROP)
        request->status = sim_hold_drop(&scene->world, now_us, attempt->strategy, name, owner,
            request->keep_us, &request->answer, &error);
    else
        request->status = sim_hold_extend(&scene->world, now_us, attempt->strategy, name, owner,
            request->ttl_us, &request->answer, &error);
    if (!is_mine) {
        struct sim_row *after = sim_hold_row(&scene->world, attempt->strategy, name);

        if (request->answer.outcome == DBLOCK_ANSWER_YES ||
            (row != NULL && (after == NULL || memcmp(after, &before, sizeof before) != 0)))
            scene_violate(scene, "attempt %u is not in force, and its %s changed \"%s\"",
                (unsigned)request->attempt, request->kind == SCENE_DROP ? "release" : "extend",
                name);
        return;
    }
    if (request->answer.outcome != DBLOCK_ANSWER_YES) {
        if (request->answer.outcome != DBLOCK_ANSWER_PINNED)
            scene_violate(scene, "attempt %u is in force, and its %s was refused",
                (unsigned)request->attempt, request->kind == SCENE_DROP ? "release" : "extend");
        return;
    }
    if (request->kind == SCENE_DROP && request->keep_us == 0) {
        attempt->is_over = 1;
        remember_lazy(scene, &before, request->attempt);
        return;
    }
    flush(scene);
    attempt->true_session = SCENE_NOBODY;
    attempt->basis_us = scene->now_us;
    attempt->basis_ttl_us = request->kind == SCENE_DROP ? request->keep_us : request->ttl_us;
    attempt->basis_offset_us = scene->server_offset_us;
    attempt->expires_us = now_us + (int64_t)attempt->basis_ttl_us;
}

static void serve_look(struct scene *scene, struct scene_request *request)
{
    struct scene_attempt *attempt = &scene->attempts[request->attempt];
    struct dblock_grant grant;
    struct dblock_error error;

    memset(&grant, 0, sizeof grant);
    request->owner = SCENE_NOBODY;
    request->status = sim_hold_look(&scene->world, scene_server_us(scene), attempt->strategy,
        scene_name(attempt->name), &grant, &request->answer, &error);
    if (request->answer.outcome != DBLOCK_ANSWER_YES)
        return;
    request->owner = parse_owner(scene, grant.owner);
    request->answer.token = grant.token;
    if (request->owner != request->attempt || attempt->true_session != SCENE_NOBODY ||
        scene->now_us + request->answer.remaining_us <= attempt->basis_us + attempt->basis_ttl_us)
        return;
    /* what remains is told, and believed; it is more if the clock was set back meanwhile */
    attempt->basis_us = scene->now_us;
    attempt->basis_ttl_us = request->answer.remaining_us;
    attempt->basis_offset_us = scene->server_offset_us;
}

void scene_serve(struct scene *scene, struct scene_request *request)
{
    memset(&request->answer, 0, sizeof request->answer);
    if (request->kind != SCENE_OPEN && request->kind != SCENE_BEGIN && !request->is_judged &&
        scene_chance(scene, scene->plan.n_conflicts)) {
        request->status = answer_again(scene, request); /* a deadlock's victim */
        return;
    }
    switch (request->kind) {
    case SCENE_OPEN:
        request->status = DBLOCK_OK;
        request->answer.now_us = scene_server_us(scene);
        break;
    case SCENE_BEGIN:
        serve_begin(scene, request);
        break;
    case SCENE_RENEW:
        serve_renew(scene, request);
        break;
    case SCENE_END_SESSION:
        serve_end(scene, request);
        break;
    case SCENE_HOLDS:
        serve_holds(scene, request);
        break;
    case SCENE_TAKE:
        serve_take(scene, request);
        break;
    case SCENE_LOOK:
        serve_look(scene, request);
        break;
    default: /* DROP, EXTEND */
        serve_change(scene, request);
        break;
    }
}

/* --------------------------------------------------------------- misfortunes */

void scene_server_restart(struct scene *scene)
{
    struct sim_row *rows = scene->world.rows.items;
    unsigned i;

    ++scene->server_life;
    scene->is_server_up = 0;
    memset(scene->is_committing, 0, sizeof scene->is_committing); /* rolled back */
    for (i = 0; i < scene->world.rows.n_items; ++i)
        rows[i].n_guards = 0; /* their transactions are rolled back */
    for (i = 0; i < scene->n_lazy; ++i) {
        const struct scene_lazy *lazy = &scene->lazy[i];
        struct scene_attempt *attempt = &scene->attempts[lazy->attempt];
        struct sim_row *row;

        sim_hold_plant(&scene->world, scene_server_us(scene), attempt->strategy, lazy->row.name,
            lazy->row.owner, lazy->row.session);
        row = sim_hold_row(&scene->world, attempt->strategy, lazy->row.name);
        *row = lazy->row;
        row->n_guards = 0;
        attempt->is_over = 0;
        attempt->is_restored = 1;
        ++scene->counts.restored;
        scene_note(scene, "a release is undone", attempt->client, 0, lazy->attempt, 0);
    }
    flush(scene);
}

void scene_break(struct scene *scene, unsigned name, int32_t strategy)
{
    uint32_t holder = scene->holder[scene_slot(strategy)][name];
    struct dblock_subject subject = { scene_name(name), strlen(scene_name(name)), 0, 0 };
    struct dblock_answer answer;
    struct dblock_error error;

    memset(&answer, 0, sizeof answer);
    (void)sim_end(&scene->world, scene_server_us(scene), strategy, &subject, 0, &answer, &error);
    if (answer.outcome != DBLOCK_ANSWER_YES || holder == SCENE_NOBODY)
        return;
    flush(scene);
    scene->attempts[holder].is_broken = 1;
    scene->attempts[holder].is_over = 1;
    scene_note(scene, "broken", scene->attempts[holder].client, 0, holder, 0);
}
