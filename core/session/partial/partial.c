/* SPDX-License-Identifier: Apache-2.0 */
/* Partial runs by names. All feeds and fetches of a call are checked before any of it takes effect. */
#include <core/session/entry.h>
#include <core/session/feeds.h>
#include <core/session/partial/partial.h>
#include <core/session/step.h>

/* One call, by the numbers of feeds and fetches in the signature. */
typedef struct call {
  tn__partial_run *run;
  const tn__names *names;
  tn_tensor *const *feeds;
  uint32_t *fed, *fetched; /* by position */
  uint32_t *wanted;        /* distinct fetches */
  size_t n_wanted;
  tn_tensor **copies;      /* of feeds, by position */
  tn_tensor **taken;       /* by the first position that names a fetch */
} call;

/* ---- names ---- */

/* The canonical order of feeds and fetches in a signature: by operation, then by output. */
static int compare(tn_output a, tn_output b)
{
  uint32_t x = tn__operation_id(a.op), y = tn__operation_id(b.op);
  if (x != y) return x < y ? -1 : 1;
  return (a.index > b.index) - (a.index < b.index);
}

/* Binary search in a list in canonical order. */
static bool find(const tn_output *list, size_t n, tn_output wanted, uint32_t *out)
{
  size_t begin = 0, end = n;
  while (begin < end) {
    size_t middle = begin + (end - begin) / 2;
    if (compare(list[middle], wanted) < 0) begin = middle + 1;
    else end = middle;
  }
  *out = (uint32_t)begin;
  return begin < n && compare(list[begin], wanted) == 0;
}

static tn_status refuse_name(const call *c, const char *what, const char *name, const char *why, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "partial run %#llx: %s '%s' %s", (unsigned long long)c->run->id, what,
                      name, why);
}

/* The number of a name among the declared feeds or fetches. The graph may be extended meanwhile, so
 * it is locked. */
static tn_status find_name(const call *c, const char *what, const char *name, const tn_output *list, size_t n,
                           uint32_t *out, tn_error *err)
{
  tn_output o;
  tn_graph *graph = atomic_load(&c->run->session->graph);
  tn__graph_read_lock(graph);
  tn_status st = tn__graph_parse_output(graph, name, &o, NULL);
  tn__graph_unlock(graph);
  if (st == TN_OK && find(list, n, o, out)) return TN_OK;
  return refuse_name(c, what, name, "was not declared when the run was set up", err); /* S-PR-11 */
}

/* Checks feed i of the call and marks it as used in this call. */
static tn_status check_feed(const call *c, size_t i, tn_error *err)
{
  const tn__signature *s = c->run->entry->signature;
  const char *name = c->names->feeds[i];
  tn_status st = find_name(c, "feed", name, c->run->feeds, s->n_feeds, &c->fed[i], err);
  if (st != TN_OK) return st;
  uint8_t *state = &c->run->fed[c->fed[i]];
  if (*state == TN__USED) return refuse_name(c, "feed", name, "was fed in an earlier call", err); /* S-PR-12 */
  if (*state == TN__IN_THIS_CALL) return refuse_name(c, "feed", name, "is fed more than once", err); /* S-PR-15 */
  *state = TN__IN_THIS_CALL;
  return tn__feed_check(s, c->fed[i], c->run->feeds[c->fed[i]], name, c->feeds[i], err); /* S-PR-25 */
}

/* Checks fetch i of the call and marks it; the first position of each fetch adds it to `wanted`. */
static tn_status check_fetch(call *c, size_t i, tn_error *err)
{
  const tn__signature *s = c->run->entry->signature;
  const char *name = c->names->fetches[i];
  tn_status st = find_name(c, "fetch", name, s->plan->asked, s->n_fetches, &c->fetched[i], err);
  if (st != TN_OK) return st;
  uint8_t *state = &c->run->fetched[c->fetched[i]];
  if (*state == TN__USED) return refuse_name(c, "fetch", name, "was fetched in an earlier call", err);
  if (*state == TN__OPEN) { /* otherwise it is a further position of the fetch: S-PR-16 */
    c->wanted[c->n_wanted++] = c->fetched[i];
    c->run->first[c->fetched[i]] = (uint32_t)i;
  }
  *state = TN__IN_THIS_CALL;
  return TN_OK;
}

/* S-PR-13: the feeds that a fetch needs are known before anything runs. */
static tn_status check_needs(const call *c, size_t i, bool *lacks, tn_error *err)
{
  const tn__signature *s = c->run->entry->signature;
  const tn__partial_plan *p = s->plan->partial;
  const uint64_t *needs = tn__partial_needs(p, c->fetched[i]);
  for (uint32_t w = 0; w < p->n_words; w++)
    for (uint64_t left = needs[w]; left != 0; left &= left - 1) {
      uint32_t f = 64 * w + (uint32_t)__builtin_ctzll(left);
      *lacks |= f >= s->n_feeds;
      if (f >= s->n_feeds || c->run->fed[f] != TN__OPEN) continue;
      const tn_output o = c->run->feeds[f];
      return tn_error_set(err, TN_INVALID_ARGUMENT,
                          "partial run %#llx: fetch '%s' needs feed '%s:%d', which was not fed yet",
                          (unsigned long long)c->run->id, c->names->fetches[i], tn_operation_name(o.op), (int)o.index);
    }
  return TN_OK;
}

/* S-PR-26: a fetch depends on a placeholder that was not declared as a feed. */
static tn_status lacking(const call *c, tn_error *err)
{
  const tn__signature *s = c->run->entry->signature;
  const tn__partial_plan *p = s->plan->partial;
  for (size_t i = 0; i < c->names->n_fetches; i++)
    for (uint32_t f = (uint32_t)s->n_feeds; f < s->n_feeds + p->n_missing; f++)
      if (tn__partial_needs(p, c->fetched[i])[f / 64] >> f % 64 & 1)
        return tn__placeholder_missing(p->missing[f - s->n_feeds], "declared as a feed", err);
  return TN_OK;
}

/* Sets the state of the feeds and fetches of this call: open again (S-PR-14), or used. */
static void note(const call *c, uint8_t state)
{
  tn__partial_run *r = c->run;
  for (size_t f = 0; f < r->entry->signature->n_feeds; f++)
    if (r->fed[f] == TN__IN_THIS_CALL) r->fed[f] = state;
  for (size_t o = 0; o < r->entry->signature->n_fetches; o++)
    if (r->fetched[o] == TN__IN_THIS_CALL) r->fetched[o] = state;
}

/* ---- a call ---- */

/* The lists of a call; release frees them, also after a failure. */
static tn_status allocate(call *c, tn_error *err)
{
  size_t n_feeds = c->names->n_feeds, n_fetches = c->names->n_fetches;
  c->fed = tn__alloc_array(n_feeds + 1, sizeof *c->fed);
  c->fetched = tn__alloc_array(2 * n_fetches + 1, sizeof *c->fetched);
  c->copies = tn__alloc_array(n_feeds + 1, sizeof *c->copies);
  c->taken = tn__alloc_array(n_fetches + 1, sizeof *c->taken);
  if (c->fed == NULL || c->fetched == NULL || c->copies == NULL || c->taken == NULL)
    return tn__no_memory(err, "feeds and fetches of a step", n_feeds + n_fetches);
  c->wanted = c->fetched + n_fetches;
  return TN_OK;
}

static void release(call *c)
{
  size_t n_feeds = c->names->n_feeds, n_fetches = c->names->n_fetches;
  for (size_t i = 0; c->copies != NULL && i < n_feeds; i++) tn_tensor_unref(c->copies[i]);
  for (size_t i = 0; c->taken != NULL && i < n_fetches; i++) tn_tensor_unref(c->taken[i]);
  if (c->fed != NULL) tn__free(c->fed, (n_feeds + 1) * sizeof *c->fed);
  if (c->fetched != NULL) tn__free(c->fetched, (2 * n_fetches + 1) * sizeof *c->fetched);
  if (c->copies != NULL) tn__free(c->copies, (n_feeds + 1) * sizeof *c->copies);
  if (c->taken != NULL) tn__free(c->taken, (n_fetches + 1) * sizeof *c->taken);
}

/* All checks of a call. After an error the caller opens the marked feeds and fetches again. */
static tn_status check(call *c, bool *lacks, tn_error *err)
{
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < c->names->n_feeds; i++) st = check_feed(c, i, err);
  for (size_t i = 0; st == TN_OK && i < c->names->n_fetches; i++) st = check_fetch(c, i, err);
  for (size_t i = 0; st == TN_OK && i < c->names->n_fetches; i++) st = check_needs(c, i, lacks, err);
  return st;
}

/* Feeds are copied: the step continues after the call has returned, and the program may write to its tensors by
 * then. */
static tn_status copy_feeds(call *c, tn_error *err)
{
  const tn_plan *plan = c->run->entry->signature->plan;
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < c->names->n_feeds; i++)
    if (plan->inputs[c->fed[i]] != TN__NONE) st = tn_tensor_copy(c->feeds[i], &c->copies[i], err);
  return st;
}

/* Moves the copies to the step, which owns them from now on. */
static void give_feeds(call *c)
{
  for (size_t i = 0; i < c->names->n_feeds; i++) {
    c->run->step.inputs[c->fed[i]] = c->copies[i];
    c->copies[i] = NULL;
  }
}

/* Marks all feeds and fetches of the call as used. Returns whether this is the last call. */
static bool use(call *c)
{
  tn__partial_run *r = c->run;
  note(c, TN__USED);
  r->n_unfed -= c->names->n_feeds;
  r->n_unfetched -= c->n_wanted;
  return r->n_unfed == 0 && r->n_unfetched == 0;
}

/* Continues the step until the wanted fetches have values, and takes them. */
static tn_status go(call *c, bool last)
{
  tn__partial *step = &c->run->step;
  tn_status st = tn__partial_go(step, c->wanted, c->n_wanted, last); /* S-PR-21 */
  if (st == TN_PENDING) st = TN_OK;
  for (size_t k = 0; st == TN_OK && k < c->n_wanted; k++) {
    uint32_t fetch = c->wanted[k];
    st = tn__partial_take(step, fetch, &c->taken[c->run->first[fetch]]);
    if (st != TN_OK) tn__partial_fail(step, st);
  }
  return st;
}

/* Moves the values to the caller's positions; further positions of a fetch get copies. After an
 * error none is left. */
static tn_status hand_out(call *c, tn_tensor **fetched, tn_error *err)
{
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < c->names->n_fetches; i++) {
    fetched[i] = c->taken[i];
    c->taken[i] = NULL;
    if (fetched[i] == NULL) st = tn_tensor_copy(fetched[c->run->first[c->fetched[i]]], &fetched[i], err);
  }
  for (size_t i = 0; i < c->names->n_fetches; i++) {
    if (st == TN_OK) tn__tensor_leave_account(fetched[i]);
    else tn_tensor_unref(fetched[i]);
    if (st != TN_OK) fetched[i] = NULL;
  }
  return st;
}

/* The caller has the turn. *ends: the run takes no further call. */
static tn_status run_checked(call *c, tn_tensor **fetched, bool *ends, tn_error *err)
{
  bool lacks = false;
  tn_status st = check(c, &lacks, err);
  if (st == TN_OK && !lacks) st = copy_feeds(c, err);
  if (st != TN_OK) return st;
  *ends = true;
  if (lacks) {
    st = lacking(c, err);
    tn__partial_fail(&c->run->step, st);
    return st;
  }
  give_feeds(c);
  bool last = use(c);
  st = go(c, last);
  if (st != TN_OK) {
    tn_error_copy(err, &c->run->step.err);
    for (size_t i = 0; st == TN_INVALID_ARGUMENT && i < c->names->n_feeds; i++)
      tn__feed_explain(c->run->feeds[c->fed[i]], c->feeds[i], err);
    return st;
  }
  st = hand_out(c, fetched, err);
  *ends = st != TN_OK || last; /* S-PR-20, S-PR-23 */
  return st;
}

/* One call, in the session's memory account. The caller has the turn. */
static tn_status run_call(tn__partial_run *r, const tn__names *names, tn_tensor *const *feeds, tn_tensor **fetched,
                          tn_error *err)
{
  bool ends = false;
  call c = { .run = r, .names = names, .feeds = feeds };
  tn__account *around = tn__account_now;
  tn__account_now = r->session->on.account;
  tn_status st = allocate(&c, err);
  if (st == TN_OK) st = run_checked(&c, fetched, &ends, err);
  if (!ends) note(&c, TN__OPEN); /* the call was refused */
  release(&c);
  tn__account_now = around;
  if (ends) tn__partial_finish(r);
  return st;
}

static tn_status check_arguments(const tn_session *session, const tn__names *names, tn_tensor *const *feeds,
                                 tn_tensor **fetched, tn_error *err)
{
  if (session == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_session_partial_run: session is NULL");
  tn_status st = tn__names_check(names, err);
  if (st != TN_OK) return st;
  if (names->n_fetches > 0 && fetched == NULL) /* S-PR-30 */
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_session_partial_run: fetched is NULL but n_fetches is %zu",
                        names->n_fetches);
  if (names->n_feeds > 0 && feeds == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_session_partial_run: feeds is NULL");
  for (size_t i = 0; i < names->n_feeds; i++)
    if (feeds[i] == NULL)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "the tensor for feed '%s' is NULL", names->feeds[i]);
  return TN_OK;
}

tn_status tn_session_partial_run(tn_session *session, tn_partial_run run, const char *const *feed_names,
                                 tn_tensor *const *feeds, size_t n_feeds, const char *const *fetch_names,
                                 tn_tensor **fetched, size_t n_fetches, tn_error *err)
{
  tn__error_reset(err);
  const tn__names names = { feed_names, fetch_names, NULL, n_feeds, n_fetches, 0 };
  for (size_t i = 0; fetched != NULL && i < n_fetches; i++) fetched[i] = NULL;
  tn_status st = check_arguments(session, &names, feeds, fetched, err);
  if (st == TN_OK) st = tn__session_enter(session, err);
  if (st != TN_OK) return st;
  tn__partial_run *r;
  st = tn__partial_find(session, run, &r, err);
  if (st == TN_OK) {
    st = tn__partial_take_turn(r, err);
    if (st == TN_OK) {
      st = run_call(r, &names, feeds, fetched, err);
      tn__partial_leave(r);
    }
    tn__partial_unref(r);
  }
  tn__session_leave(session);
  return st;
}

/* ---- setup and release ---- */

/* Whether the runtime allows partial runs. The library runs their steps itself, on the host. */
static tn_status allows(tn_session *s, tn_error *err)
{
  if (s->on.slots->partial_runs == NULL) return TN_OK;
  tn__plugin_call calling = tn__session_base_call(&s->on, "its partial_runs");
  tn__plugin_call_enter(&calling);
  tn_status st = s->on.slots->partial_runs(s->on.self, s->on.runtime, err); /* S-PR-33 */
  tn__plugin_call_leave(&calling);
  return st == TN_OK ? st : tn__factory_status(s->on.factory, "partial_runs", st, err);
}

/* Operations that need no feed run at once (S-PR-04). If one fails, the first call returns the error. */
static void start(tn__partial_run *r)
{
  tn__account *around = tn__account_now;
  tn__account_now = r->session->on.account;
  tn__partial_go(&r->step, NULL, 0, false);
  tn__account_now = around;
}

tn_status tn_session_partial_setup(tn_session *session, const tn_run_options *options, const char *const *feed_names,
                                   size_t n_feeds, const char *const *fetch_names, size_t n_fetches,
                                   const char *const *targets, size_t n_targets, tn_partial_run *out, tn_error *err)
{
  tn__error_reset(err);
  if (out != NULL) out->id = 0;
  if (session == NULL || out == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_session_partial_setup: %s is NULL",
                        out == NULL ? "out" : "session");
  const tn__names names = { feed_names, fetch_names, targets, n_feeds, n_fetches, n_targets };
  tn_status st = tn__names_check(&names, err);
  if (st == TN_OK) st = tn__session_enter(session, err);
  if (st != TN_OK) return st;
  tn__entry_point *e = NULL;
  st = allows(session, err);
  tn__stop limits = tn__call_limits(session, options, tn__call_deadline(session, options));
  const tn__stop *around = tn__stop_now;
  /* If the token is cancelled already, the first call of the run returns that error. */
  if (limits.cancelled != NULL && atomic_load(limits.cancelled) != 0) limits.cancelled = NULL;
  tn__stop_now = &limits;
  if (st == TN_OK) st = tn__entry_make_partial(session, &names, &e, err);
  tn__stop_now = around;
  if (st == TN_OK) st = tn__run_options_check(session, options, err);
  if (st == TN_OK) {
    tn__partial_run *r;
    st = tn__partial_open(session, e, options, &r, err);
    if (st == TN_OK) start(r);
    if (st == TN_OK) out->id = r->id;
    if (r != NULL) {
      tn__partial_leave(r);
      tn__partial_unref(r);
    }
  } else {
    tn__entry_unref(e);
  }
  tn__session_leave(session);
  return st;
}

tn_status tn_session_partial_release(tn_session *session, tn_partial_run run, tn_error *err)
{
  tn__error_reset(err);
  if (session == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_session_partial_release: session is NULL");
  if (tn__forked()) return tn__session_forked(err);
  tn__partial_run *r;
  tn_status st = tn__partial_find(session, run, &r, err);
  if (st != TN_OK) return st;
  st = tn__partial_end_early(r, err);
  tn__partial_unref(r);
  return st;
}
