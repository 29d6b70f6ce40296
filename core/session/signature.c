/* SPDX-License-Identifier: Apache-2.0 */
/* From names to signatures: parsing, the canonical form, compilation once, bounded caches. */
#include <core/exec/evaluate.h>
#include <core/session/session_internal.h>
#include <stdlib.h>

#define ENTRIES_PER_SIGNATURE 4 /* orders of names that are kept for one signature, on average */

/* An endpoint of a call with its position there. */
typedef struct endpoint {
  tn_output output;
  uint32_t id, position;
} endpoint;

/* A call's names, parsed and put in order: n_feeds feeds, n_fetches distinct fetches, n_targets distinct targets. */
typedef struct parsed {
  endpoint *feeds, *fetches;
  tn_output *spec_feeds, *spec_fetches;
  tn_operation **targets;
  size_t n_feeds, n_fetches, n_targets;
  bool partial;
  uint32_t *key;
  size_t key_size;
  size_t room_feeds, room_fetches, room_targets;
} parsed;

/* ---- checks ---- */

static tn_status check_list(const char *const *names, size_t n, const char *what, tn_error *err)
{
  if (n > 0 && names == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "the list of %s is NULL", what);
  if (n >= UINT32_MAX) return tn_error_set(err, TN_INVALID_ARGUMENT, "%zu %s are too many", n, what);
  for (size_t i = 0; i < n; i++)
    if (names[i] == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "name %zu of the %s is NULL", i, what);
  return TN_OK;
}

tn_status tn__names_check(const tn__names *names, tn_error *err)
{
  tn_status st = check_list(names->feeds, names->n_feeds, "feeds", err);
  if (st == TN_OK) st = check_list(names->fetches, names->n_fetches, "fetches", err);
  if (st == TN_OK) st = check_list(names->targets, names->n_targets, "targets", err);
  return st;
}

/* ---- parsing ---- */

/* A target is a node; "k:0" is taken as node k (S-NAM-07). */
static tn_status parse_target(tn_graph *graph, const char *name, tn_operation **out, tn_error *err)
{
  if (name[0] == 0) return tn_error_set(err, TN_INVALID_ARGUMENT, "a target's name is empty");
  *out = tn_graph_find(graph, name);
  const char *colon = strrchr(name, ':');
  if (*out == NULL && colon != NULL && colon[1] != 0 && colon[1 + strspn(colon + 1, "0123456789")] == 0) {
    char *node = tn__strndup(name, (size_t)(colon - name));
    if (node == NULL) return tn__no_memory(err, "name", strlen(name));
    *out = tn_graph_find(graph, node);
    tn__strfree(node);
  }
  return *out != NULL ? TN_OK : tn_error_set(err, TN_NOT_FOUND, "target '%s': the graph has no such node", name);
}

static int by_endpoint(const void *a, const void *b)
{
  const endpoint *x = a, *y = b;
  if (x->id != y->id) return x->id < y->id ? -1 : 1;
  if (x->output.index != y->output.index) return x->output.index < y->output.index ? -1 : 1;
  return x->position < y->position ? -1 : x->position > y->position;
}

static int by_operation(const void *a, const void *b)
{
  uint32_t x = tn__operation_id(*(tn_operation *const *)a), y = tn__operation_id(*(tn_operation *const *)b);
  return x < y ? -1 : x > y;
}

static bool same_endpoint(const endpoint *a, const endpoint *b)
{
  return a->id == b->id && a->output.index == b->output.index;
}

static tn_status parse_list(tn_graph *graph, const char *const *names, size_t n, const char *what, endpoint *to,
                            tn_error *err)
{
  for (size_t i = 0; i < n; i++) {
    tn_status st = tn__graph_parse_output(graph, names[i], &to[i].output, err);
    if (st != TN_OK) {
      tn_error_prefix(err, "%s '%s'", what, names[i]);
      return st;
    }
    to[i].id = tn__operation_id(to[i].output.op);
    to[i].position = (uint32_t)i;
  }
  return TN_OK;
}

static tn_status parse_names(tn_graph *graph, const tn__names *names, parsed *p, tn_error *err)
{
  p->room_feeds = names->n_feeds + 1;
  p->room_fetches = names->n_fetches + 1;
  p->room_targets = names->n_targets + 1;
  p->feeds = tn__alloc_array(p->room_feeds, sizeof *p->feeds);
  p->fetches = tn__alloc_array(p->room_fetches, sizeof *p->fetches);
  p->spec_feeds = tn__alloc_array(p->room_feeds, sizeof *p->spec_feeds);
  p->spec_fetches = tn__alloc_array(p->room_fetches, sizeof *p->spec_fetches);
  p->targets = tn__alloc_array(p->room_targets, sizeof *p->targets);
  if (p->feeds == NULL || p->fetches == NULL || p->spec_feeds == NULL || p->spec_fetches == NULL || p->targets == NULL)
    return tn__no_memory(err, "signature", 0);
  tn__graph_read_lock(graph);
  tn_status st = parse_list(graph, names->feeds, names->n_feeds, "feed", p->feeds, err);
  if (st == TN_OK) st = parse_list(graph, names->fetches, names->n_fetches, "fetch", p->fetches, err);
  for (size_t i = 0; st == TN_OK && i < names->n_targets; i++)
    st = parse_target(graph, names->targets[i], &p->targets[i], err);
  tn__graph_unlock(graph);
  p->n_feeds = names->n_feeds;
  return st;
}

static void parsed_fini(parsed *p)
{
  tn__free(p->feeds, p->room_feeds * sizeof *p->feeds);
  tn__free(p->fetches, p->room_fetches * sizeof *p->fetches);
  tn__free(p->spec_feeds, p->room_feeds * sizeof *p->spec_feeds);
  tn__free(p->spec_fetches, p->room_fetches * sizeof *p->spec_fetches);
  tn__free(p->targets, p->room_targets * sizeof *p->targets);
  tn__free(p->key, p->key_size);
}

/* Puts an entry point's maps and the canonical order side by side. p's lists come in the caller's order. */
static tn_status order_names(parsed *p, const tn__names *names, tn__entry_point *e, tn_error *err)
{
  for (size_t i = 0; i < p->n_feeds; i++) e->feeds[i] = p->feeds[i].output;
  qsort(p->feeds, p->n_feeds, sizeof *p->feeds, by_endpoint);
  for (size_t i = 0; i < p->n_feeds; i++) {
    if (i > 0 && same_endpoint(&p->feeds[i - 1], &p->feeds[i])) /* S-RUN-09, S-NAM-03 */
      return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s' is fed more than once", names->feeds[p->feeds[i].position]);
    e->feed_map[p->feeds[i].position] = (uint32_t)i;
    p->spec_feeds[i] = p->feeds[i].output;
  }
  qsort(p->fetches, names->n_fetches, sizeof *p->fetches, by_endpoint);
  for (size_t i = 0; i < names->n_fetches; i++) {
    bool again = i > 0 && same_endpoint(&p->fetches[i - 1], &p->fetches[i]); /* S-RUN-03 */
    if (!again) {
      e->first[p->n_fetches] = p->fetches[i].position;
      p->spec_fetches[p->n_fetches++] = p->fetches[i].output;
    }
    e->fetch_map[p->fetches[i].position] = (uint32_t)p->n_fetches - 1;
  }
  qsort(p->targets, names->n_targets, sizeof *p->targets, by_operation);
  for (size_t i = 0; i < names->n_targets; i++)
    if (i == 0 || p->targets[i] != p->targets[p->n_targets - 1]) p->targets[p->n_targets++] = p->targets[i]; /* S-RUN-04 */
  return TN_OK;
}

static tn_status make_canonical_key(parsed *p, tn_error *err)
{
  size_t n = 3 + 2 * (p->n_feeds + p->n_fetches) + p->n_targets + p->partial, at = 0;
  p->key_size = n * sizeof *p->key;
  p->key = tn__alloc(p->key_size);
  if (p->key == NULL) return tn__no_memory(err, "signature", p->key_size);
  p->key[at++] = (uint32_t)p->n_feeds;
  p->key[at++] = (uint32_t)p->n_fetches;
  p->key[at++] = (uint32_t)p->n_targets;
  for (size_t i = 0; i < p->n_feeds; i++) {
    p->key[at++] = tn__operation_id(p->spec_feeds[i].op);
    p->key[at++] = (uint32_t)p->spec_feeds[i].index;
  }
  for (size_t i = 0; i < p->n_fetches; i++) {
    p->key[at++] = tn__operation_id(p->spec_fetches[i].op);
    p->key[at++] = (uint32_t)p->spec_fetches[i].index;
  }
  for (size_t i = 0; i < p->n_targets; i++) p->key[at++] = tn__operation_id(p->targets[i]);
  if (p->partial) p->key[at] = 1; /* of its own length, so no whole run has this key */
  return TN_OK;
}

/* ---- signatures ---- */

void tn__signature_unref(tn__signature *s)
{
  if (s == NULL || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1) return;
  tn_session *session = s->session;
  tn__opened_release(&session->on, s->executable);
  tn__plan_unref(s->plan);
  tn__free(s->feed_dtypes, (s->n_feeds + 1) * sizeof *s->feed_dtypes);
  tn__signature_assume_nothing(s);
  tn__free(s->key, s->key_size);
  tn__free(s, sizeof *s);
}

tn__signature_spec tn__spec_of(tn_session *session, const tn_output *feeds, size_t n_feeds, const tn_output *fetches,
                               size_t n_fetches, tn_operation *const *targets, size_t n_targets)
{
  return (tn__signature_spec){ feeds, n_feeds, fetches, n_fetches, targets, n_targets, session->on.level, session->on.max_layouts,
                               session->on.disabled_passes, tn__evaluate,
                               session->on.want_kernels ? tn__registry_want_kernels : NULL, session->on.want_kernels_always,
                               tn__call_kernel, .states = &session->states };
}

static void set_dtypes(tn__signature *s, const tn_output *feeds)
{
  for (size_t i = 0; i < s->n_feeds; i++) {
    const tn_output o = feeds[i];
    uint32_t value = s->plan->inputs[i];
    if (value != TN__NONE) s->feed_dtypes[i] = s->plan->values[value].dtype;
    else if ((size_t)o.index < tn_operation_n_outputs(o.op))
      s->feed_dtypes[i] = tn__dtype_base(tn_operation_output_dtype(o.op, (size_t)o.index));
  }
}

/* Nobody prepares the plan of a partial run: kernels are told here how many threads may work for a step. */
static void set_threads(const tn_session *session, tn_plan *plan)
{
  uint32_t threads = 1;
  size_t pools = session->threads.n_pools > 0 ? session->threads.n_pools : 1;
  if (session->on.slots->workers == NULL) return;
  for (size_t i = 0; i < pools; i++) {
    uint32_t n = tn_kit_workers_threads(tn__opened_workers(&session->on, (int32_t)i));
    if (n > threads) threads = n;
  }
  if (threads > 1) tn__plan_set_threads(plan, threads);
}

tn_status tn__signature_compile(tn_session *session, tn_graph *graph, const tn__signature_spec *spec, tn__signature **out,
                                tn_error *err)
{
  tn__signature *s = *out = tn__zalloc(sizeof *s);
  if (s == NULL) return tn__no_memory(err, "signature", sizeof *s);
  atomic_init(&s->refs, 1);
  s->session = session;
  s->n_feeds = spec->n_feeds;
  s->n_fetches = spec->n_fetches;
  s->feed_dtypes = tn__alloc_array(s->n_feeds + 1, sizeof *s->feed_dtypes);
  tn_status st = s->feed_dtypes == NULL ? tn__no_memory(err, "signature", s->n_feeds) : TN_OK;
  if (st == TN_OK) st = tn__plan_compile(graph, spec, &s->plan, err);
  if (st == TN_OK) set_dtypes(s, spec->feeds);
  if (st == TN_OK && spec->partial) set_threads(session, s->plan);
  else if (st == TN_OK) st = tn__opened_prepare(&session->on, s->plan, &s->executable, err);
  if (st == TN_OK) return TN_OK;
  tn__signature_unref(s);
  *out = NULL;
  return st;
}

static tn_status compile(tn_session *session, tn_graph *graph, parsed *p, tn__signature **out, tn_error *err)
{
  tn__signature_spec spec = tn__spec_of(session, p->spec_feeds, p->n_feeds, p->spec_fetches, p->n_fetches, p->targets, p->n_targets);
  spec.partial = p->partial;
  spec.unsure = p->partial || tn__feeds_unsettle_shapes(graph, p->spec_feeds, p->n_feeds);
  *out = NULL;
  atomic_store_explicit(&session->states.graph, graph, memory_order_release);
  tn_status st = tn__placement_for(session, graph, p->spec_feeds, p->n_feeds, p->spec_fetches, p->n_fetches, p->targets,
                                   p->n_targets, err);
  if (st == TN_OK) st = tn__signature_compile(session, graph, &spec, out, err);
  if (st == TN_OK) st = tn__signature_assume(*out, &spec, err);
  if (st != TN_OK) {
    tn__signature_unref(*out);
    *out = NULL;
    return st;
  }
  (*out)->key = (char *)p->key; /* moves */
  (*out)->key_size = p->key_size;
  p->key = NULL;
  return TN_OK;
}

/* Takes the signature that was not used for longest out of the map, when there are too many; the caller gives it up. */
static tn__signature *evict_signature_locked(tn_session *session)
{
  if (session->signatures.count <= session->on.max_signatures) return NULL;
  tn__signature *oldest = NULL;
  size_t place = 0;
  for (tn__map_entry *e; (e = tn__map_next(&session->signatures, &place)) != NULL;) {
    tn__signature *s = e->value;
    if (oldest == NULL || s->used < oldest->used) oldest = s;
  }
  tn__map_remove(&session->signatures, oldest->key, oldest->key_size);
  return oldest;
}

/* The entry points of a signature that is kept no longer: they would keep it alive. A chain, for the caller to give up. */
static tn__entry_point *evict_entries_locked(tn_session *session, const tn__signature *s)
{
  tn__entry_point *chain = NULL;
  for (;;) { /* what a removal moves to another place is found on the next walk */
    tn__entry_point *found = NULL;
    size_t place = 0;
    for (tn__map_entry *m; found == NULL && (m = tn__map_next(&session->entries, &place)) != NULL;)
      if (((tn__entry_point *)m->value)->signature == s) found = m->value;
    if (found == NULL) return chain;
    tn__map_remove(&session->entries, found->key, found->key_size);
    found->next_evicted = chain;
    chain = found;
  }
}

#define LOOK_NS 10000000 /* how often a call that waits looks whether it has to end */

/* For the thread that compiles; mu is held. */
static tn_status wait_for_another(tn_session *session, tn_error *err)
{
  tn__cond_wait_until(&session->compiled_one, &session->mu, tn__now_ns() + LOOK_NS);
  return tn__prepare_check(NULL, err);
}

/* The signature of the canonical key, held for the caller: found, or compiled by one thread while others wait. */
static tn_status signature_get(tn_session *session, tn_graph *graph, parsed *p, tn__signature **out, tn_error *err)
{
  tn_status st = TN_OK;
  tn__mutex_lock(&session->mu);
  for (;;) {
    *out = tn__map_get(&session->signatures, (const char *)p->key, p->key_size);
    if (*out != NULL || !session->compiling) break;
    st = wait_for_another(session, err);
    if (st == TN_OK) continue;
    tn__mutex_unlock(&session->mu);
    return st;
  }
  if (*out != NULL) {
    atomic_fetch_add_explicit(&(*out)->refs, 1, memory_order_relaxed);
    (*out)->used = ++session->clock;
  }
  bool refused = *out == NULL && session->finalized;
  bool mine = *out == NULL && !refused;
  if (mine) session->compiling = true;
  tn__mutex_unlock(&session->mu);
  if (refused)
    return tn_error_set(err, TN_FAILED_PRECONDITION, "the session was finalized: no new signature can be compiled");
  if (!mine) return TN_OK;

  tn__signature *evicted = NULL;
  tn__entry_point *entries = NULL;
  st = compile(session, graph, p, out, err);
  tn__mutex_lock(&session->mu);
  session->compiling = false;
  if (st == TN_OK) {
    session->compiled++;
    (*out)->used = ++session->clock;
    if (tn__map_put(&session->signatures, (*out)->key, (*out)->key_size, *out, NULL)) {
      atomic_fetch_add_explicit(&(*out)->refs, 1, memory_order_relaxed);
      evicted = evict_signature_locked(session);
      if (evicted != NULL) entries = evict_entries_locked(session, evicted);
    } /* without memory for the map it is used once and compiled again next time */
  }
  tn__cond_broadcast(&session->compiled_one);
  tn__mutex_unlock(&session->mu);
  while (entries != NULL) {
    tn__entry_point *next = entries->next_evicted;
    tn__entry_unref(entries);
    entries = next;
  }
  tn__signature_unref(evicted);
  return st;
}

/* ---- entry points ---- */

void tn__entry_unref(tn__entry_point *e)
{
  if (e == NULL || atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) != 1) return;
  tn__signature_unref(e->signature);
  tn_cancellation_unref(e->options.cancellation);
  tn__free(e->feed_map, (e->n_feeds + 1) * sizeof *e->feed_map);
  tn__free(e->feeds, (e->n_feeds + 1) * sizeof *e->feeds);
  tn__free(e->fetch_map, (e->n_fetches + 1) * sizeof *e->fetch_map);
  tn__free(e->first, (e->n_fetches + 1) * sizeof *e->first);
  tn__free(e->key, e->key_size);
  tn__free(e, sizeof *e);
}

static tn_status entry_new(const tn__names *names, tn__entry_point **out, tn_error *err)
{
  tn__entry_point *e = tn__zalloc(sizeof *e);
  *out = e;
  if (e == NULL) return tn__no_memory(err, "signature", sizeof *e);
  atomic_init(&e->refs, 1);
  e->n_feeds = names->n_feeds;
  e->n_fetches = names->n_fetches;
  e->feed_map = tn__alloc_array(e->n_feeds + 1, sizeof *e->feed_map);
  e->feeds = tn__alloc_array(e->n_feeds + 1, sizeof *e->feeds);
  e->fetch_map = tn__alloc_array(e->n_fetches + 1, sizeof *e->fetch_map);
  e->first = tn__alloc_array(e->n_fetches + 1, sizeof *e->first);
  if (e->feed_map == NULL || e->feeds == NULL || e->fetch_map == NULL || e->first == NULL)
    return tn__no_memory(err, "signature", e->n_feeds + e->n_fetches);
  return TN_OK;
}

static tn_status wrong_type(const char *name, tn_dtype wanted, tn_dtype found, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "feed '%s' has type %s, the graph wants %s", name, tn_dtype_name(found),
                      tn_dtype_name(wanted));
}

/* Declared types, before anything is compiled (S-ERR-03). */
static tn_status check_declared(const tn__entry_point *e, const tn__names *names, tn_tensor *const *feeds, tn_error *err)
{
  for (size_t i = 0; feeds != NULL && i < e->n_feeds; i++) {
    tn_output o = e->feeds[i];
    if ((size_t)o.index >= tn_operation_n_outputs(o.op)) continue;
    tn_dtype wanted = tn__dtype_base(tn_operation_output_dtype(o.op, (size_t)o.index));
    if (wanted != TN_DTYPE_INVALID && wanted != feeds[i]->dtype) return wrong_type(names->feeds[i], wanted, feeds[i]->dtype, err);
  }
  return TN_OK;
}

tn_status tn__feed_check(const tn__signature *s, uint32_t feed, tn_output output, const char *name, const tn_tensor *t,
                         tn_error *err)
{
  tn_dtype wanted = s->feed_dtypes[feed];
  if (wanted != t->dtype && wanted != TN_DTYPE_INVALID) return wrong_type(name, wanted, t->dtype, err);
  /* What the plan takes for certain a step compares anyway, and refuses then. */
  return s->session->strict_shapes && s->assumed == NULL ? tn__feed_check_shape(output, t, err) : TN_OK;
}

tn_status tn__feeds_check(const tn__entry_point *e, const char *const *names, tn_tensor *const *feeds, tn_error *err)
{
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < e->n_feeds; i++) {
    const char *name = names != NULL ? names[i] : tn_operation_name(e->feeds[i].op);
    st = tn__feed_check(e->signature, e->feed_map[i], e->feeds[i], name, feeds[i], err);
  }
  return st;
}

/* S-PR-09 */
static tn_status check_apart(const parsed *p, tn_error *err)
{
  for (size_t i = 0, k = 0; i < p->n_feeds && k < p->n_fetches;) {
    const tn_output a = p->spec_feeds[i], b = p->spec_fetches[k];
    if (a.op == b.op && a.index == b.index)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s:%d' is both fed and fetched", tn_operation_name(a.op),
                          (int)a.index);
    uint32_t x = tn__operation_id(a.op), y = tn__operation_id(b.op);
    if (x < y || (x == y && a.index < b.index)) i++;
    else k++;
  }
  return TN_OK;
}

static tn_status make_entry(tn_session *session, const tn__names *names, tn_tensor *const *feeds, bool partial,
                            tn__entry_point **out, tn_error *err)
{
  *out = NULL;
  tn_graph *graph;
  tn_status st = tn__session_need_graph(session, &graph, err);
  if (st != TN_OK) return st;
  parsed p = { .partial = partial };
  tn__entry_point *e = NULL;
  st = parse_names(graph, names, &p, err);
  if (st == TN_OK) st = entry_new(names, &e, err);
  if (st == TN_OK) st = order_names(&p, names, e, err);
  if (st == TN_OK && partial) st = check_apart(&p, err);
  if (st == TN_OK) st = check_declared(e, names, feeds, err);
  if (st == TN_OK && names->n_fetches == 0 && names->n_targets == 0) /* S-RUN-05 */
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "nothing is asked: neither a fetch nor a target");
  if (st == TN_OK) st = make_canonical_key(&p, err);
  if (st == TN_OK) st = signature_get(session, graph, &p, &e->signature, err);
  parsed_fini(&p);
  if (st != TN_OK) tn__entry_unref(e);
  else *out = e;
  return st;
}

tn_status tn__entry_make(tn_session *session, const tn__names *names, tn_tensor *const *feeds, tn__entry_point **out,
                         tn_error *err)
{
  return make_entry(session, names, feeds, false, out, err);
}

tn_status tn__entry_make_partial(tn_session *session, const tn__names *names, tn__entry_point **out, tn_error *err)
{
  return make_entry(session, names, NULL, true, out, err);
}

void tn__signatures_fini(tn_session *session)
{
  size_t place = 0;
  for (tn__map_entry *m; (m = tn__map_next(&session->entries, &place)) != NULL;) tn__entry_unref(m->value);
  tn__map_fini(&session->entries);
  place = 0;
  for (tn__map_entry *m; (m = tn__map_next(&session->signatures, &place)) != NULL;) tn__signature_unref(m->value);
  tn__map_fini(&session->signatures);
}

/* ---- the cache of names ---- */

size_t tn__names_key(const tn__names *names, char *to, size_t room)
{
  const char *const *lists[] = { names->feeds, names->fetches, names->targets };
  const size_t counts[] = { names->n_feeds, names->n_fetches, names->n_targets };
  size_t at = sizeof counts;
  if (room >= at) memcpy(to, counts, at);
  for (int l = 0; l < 3; l++)
    for (size_t i = 0; i < counts[l]; i++) {
      size_t n = strlen(lists[l][i]) + 1;
      if (at + n <= room) memcpy(to + at, lists[l][i], n);
      at += n;
    }
  return at;
}

tn__entry_point *tn__entry_find(tn_session *session, const char *key, size_t size)
{
  tn__mutex_lock(&session->mu);
  tn__entry_point *e = tn__map_get(&session->entries, key, size);
  if (e != NULL) {
    atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
    e->used = e->signature->used = ++session->clock;
  }
  tn__mutex_unlock(&session->mu);
  return e;
}

/* An entry point to give up: the one not used for longest. */
static tn__entry_point *evict_entry_locked(tn_session *session, const tn__entry_point *keep)
{
  if (session->entries.count <= session->on.max_signatures * ENTRIES_PER_SIGNATURE) return NULL;
  tn__entry_point *oldest = NULL;
  size_t place = 0;
  for (tn__map_entry *m; (m = tn__map_next(&session->entries, &place)) != NULL;) {
    tn__entry_point *e = m->value;
    if (e != keep && (oldest == NULL || e->used < oldest->used)) oldest = e;
  }
  if (oldest != NULL) tn__map_remove(&session->entries, oldest->key, oldest->key_size);
  return oldest;
}

void tn__entry_keep(tn_session *session, tn__entry_point *e, const char *key, size_t size)
{
  char *copy = tn__alloc(size);
  if (copy == NULL) return; /* it is made again next time */
  memcpy(copy, key, size);
  tn__entry_point *old = NULL, *evicted = NULL;
  tn__mutex_lock(&session->mu);
  bool kept = tn__map_get(&session->signatures, e->signature->key, e->signature->key_size) == e->signature;
  if (kept && tn__map_get(&session->entries, key, size) == NULL && e->key == NULL) {
    e->key = copy;
    e->key_size = size;
    e->used = ++session->clock;
    if (tn__map_put(&session->entries, e->key, size, e, (void **)&old)) {
      atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
      evicted = evict_entry_locked(session, e);
    }
    copy = NULL;
  }
  tn__mutex_unlock(&session->mu);
  tn__free(copy, size);
  tn__entry_unref(evicted);
}
