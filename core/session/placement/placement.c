/* SPDX-License-Identifier: Apache-2.0 */
/* The placement of nodes on devices: checked for the whole graph when it is set or extended, or,
 * with place_pruned_graph, for the nodes of a call before its signature is compiled. A placement is
 * kept; only its reason is worked out when a program asks for it. */
#include <core/formats/format.h>
#include <core/session/placement/log.h>
#include <core/session/session_internal.h>

#define MOVED (UINT32_C(1) << 31) /* in tn__placing.where: the node is not on the device that it names */
#define SHOWN_DEVICES 16          /* in an error */

/* The reason of a soft placement. Kept until the session is freed, since the program gets the text. */
struct tn__stand {
  uint32_t id; /* of the operation; the key in the map */
  char *reason;
};

/* Why a node cannot be on the device that it names: there is none; it is of another process; its
 * kernel is missing. */
typedef enum misfit { FITS = 0, ABSENT, ELSEWHERE, NO_KERNEL } misfit;

/* State of look-ups for many nodes. The last name is kept, since neighbours tend to have the same one. */
typedef struct finder {
  const tn__devices *devices;
  const char *text;      /* the last name, borrowed from its node; NULL: none */
  tn__device_name asked; /* that name, parsed */
  const char *wants_op, *wants_type; /* after NO_KERNEL: the kernel that a plugin could have */
} finder;

void tn__placement_init(tn_session *s)
{
  tn__mutex_init(&s->placing.mu, "placement", TN_RANK_PLACEMENT);
  tn__map_init(&s->placing.told);
}

/* Forgets all placements. The lock is held, or no other thread uses the session. */
static void forget(tn__placing *p)
{
  size_t place = 0;
  for (tn__map_entry *m; (m = tn__map_next(&p->told, &place)) != NULL;) {
    tn__stand *stand = m->value;
    tn__strfree(stand->reason);
    tn__free(stand, sizeof *stand);
  }
  tn__map_fini(&p->told);
  tn__map_init(&p->told);
  if (p->room > 0) memset(p->where, 0, p->room * sizeof *p->where);
  p->placed = 0;
}

void tn__placement_fini(tn_session *s)
{
  tn__placing *p = &s->placing;
  forget(p);
  tn__free(p->where, p->room * sizeof *p->where);
  tn__mutex_fini(&p->mu);
}

bool tn__placement_wanted(const tn_session *session, const tn_graph *graph)
{
  return session->placing.log || tn__graph_names_devices(graph);
}

/* ---- one node ---- */

/* Parses a device name into f->asked. */
static bool parse(finder *f, const char *text)
{
  if (f->text != NULL && strcmp(f->text, text) == 0) return true;
  f->text = NULL;
  if (!tn__device_parse(text, strlen(text), &f->asked)) return false; /* no graph has such a node: S-CFG-06 */
  f->text = text;
  return true;
}

/* Finds the device that the node names; *at: its number, or the client device if it does not fit.
 * An op without any kernel can be placed on any device: running it reports the error. */
static misfit find(finder *f, const tn_operation *op, size_t *at)
{
  const char *text = tn_operation_device(op);
  bool task = false, there = false, any;
  *at = f->devices->client;
  if (*text == 0) return FITS;
  if (!parse(f, text)) return ABSENT;
  for (size_t i = 0; i < f->devices->n; i++) {
    const tn__device *d = &f->devices->at[i];
    task |= tn__device_same_task(&f->asked, &d->parsed);
    if (!tn__device_matches(&f->asked, &d->parsed)) continue;
    there = true;
    *at = i;
    if (tn__kernels_exist(op, d->type, &any) || !any) return FITS;
    f->wants_op = tn_operation_type(op);
    f->wants_type = d->type;
  }
  *at = f->devices->client;
  if (there) return NO_KERNEL;
  return task ? ABSENT : ELSEWHERE;
}

/* Appends the reason to a text. */
static void describe(misfit m, const tn_operation *op, tn__text *t)
{
  const char *asked = tn_operation_device(op);
  if (m == NO_KERNEL) tn__text_printf(t, "op '%s' has no kernel for device '%s'", tn_operation_type(op), asked);
  else if (m == ELSEWHERE) tn__text_printf(t, "device '%s' is of another job, replica or task", asked);
  else tn__text_printf(t, "the session has no device '%s'", asked);
}

/* The error for a node that cannot be placed: the reason, and the devices that there are. */
static tn_status refuse(const finder *f, misfit m, const tn_operation *op, tn_error *err)
{
  tn__text t;
  tn__text_init(&t, 1 << 16);
  describe(m, op, &t);
  tn__text_puts(&t, "; it has");
  for (size_t i = 0; i < f->devices->n && i < SHOWN_DEVICES; i++)
    tn__text_printf(&t, "%s %s", i > 0 ? "," : "", f->devices->at[i].name);
  if (f->devices->n > SHOWN_DEVICES) tn__text_printf(&t, " and %zu more", f->devices->n - SHOWN_DEVICES);
  tn_error_set(err, TN_INVALID_ARGUMENT, "node '%s' asks for device '%s': %s", tn_operation_name(op),
               tn_operation_device(op), tn__text_get(&t));
  tn_error_set_node(err, tn_operation_name(op));
  tn__text_fini(&t);
  return TN_INVALID_ARGUMENT;
}

/* Places one node. *to: as in `where`. S-CFG-02, S-CFG-03. Soft placement does not lead to another
 * process: a node that names a device of one is refused. */
static tn_status place(const tn_session *s, finder *f, const tn_operation *op, uint32_t *to, tn_error *err)
{
  size_t at;
  *to = 0;
  if (tn_operation_schema(op) == NULL) return TN_OK; /* S-CFG-04 */
  misfit m = find(f, op, &at);
  if (m != FITS && (!s->placing.soft || m == ELSEWHERE)) return refuse(f, m, op, err);
  *to = (uint32_t)at + 1 + (m != FITS ? MOVED : 0);
  return TN_OK;
}

/* ---- many nodes ---- */

/* Makes room in `where` for n operations; new places are 0. */
static tn_status reserve(tn__placing *p, size_t n, tn_error *err)
{
  size_t room = p->room;
  if (!tn__grow((void **)&p->where, &p->room, n, sizeof *p->where)) return tn__no_memory(err, "placement", n);
  memset(p->where + room, 0, (p->room - room) * sizeof *p->where);
  return TN_OK;
}

/* The device of a node that names none: the runtime's choice, or the first CPU. */
static const char *chosen_device(const tn_session *s, const tn__devices *devices, const tn_operation *op,
                                 const char **reason)
{
  const char *first = devices->at[devices->client].name, *name = NULL;
  *reason = "";
  if (s->on.slots->node_device != NULL) {
    tn__plugin_call calling = tn__session_base_call(&s->on, "its node_device");
    tn__plugin_call_enter(&calling);
    name = s->on.slots->node_device(s->on.self, s->on.runtime, op, reason);
    tn__plugin_call_leave(&calling);
  }
  if (*reason == NULL) *reason = "";
  if (name == NULL) return first;
  for (size_t i = 0; i < devices->n; i++)
    if (strcmp(devices->at[i].name, name) == 0) return devices->at[i].name;
  return first; /* the device is hidden by filters */
}

/* Writes a node's line if placements are logged. Placing comes first, so that a failed placement
 * logs nothing. */
static void log_node(const tn_session *s, const finder *f, const tn_operation *op)
{
  uint32_t to = s->placing.where[tn__operation_id(op)];
  const char *reason;
  if (!s->placing.log || to == 0) return;
  const char *device = *tn_operation_device(op) == 0 ? chosen_device(s, f->devices, op, &reason)
                                                     : f->devices->at[(to & ~MOVED) - 1].name;
  tn__placement_line(tn_operation_name(op), tn_operation_type(op), device);
}

/* Places nodes from `placed` on. If one cannot be placed, none is. */
static tn_status place_range(tn_session *s, finder *f, tn_graph *graph, tn_error *err)
{
  tn__placing *p = &s->placing;
  tn__assert_held(&p->mu);
  size_t n = tn_graph_n_operations(graph);
  if (p->graph != graph) forget(p); /* the graph of another thread, which was not the first to set one */
  p->graph = graph;
  tn_status st = reserve(p, n, err);
  for (size_t i = p->placed; i < n && st == TN_OK; i++)
    st = place(s, f, tn_graph_operation(graph, i), &p->where[i], err);
  if (st != TN_OK && p->room > p->placed) memset(p->where + p->placed, 0, (p->room - p->placed) * sizeof *p->where);
  if (st != TN_OK) return st;
  for (size_t i = p->placed; i < n && p->log; i++)
    log_node(s, f, tn_graph_operation(graph, i)); /* S-CFG-07, S-CFG-08 */
  if (n > p->placed) p->placed = n;
  return TN_OK;
}

/* Loads the plugins that could have the missing kernel. True if it is worth trying again. */
static bool bring_kernel(const tn_session *s, finder *f, const char **before)
{
  if (f->wants_op == NULL || !s->on.want_kernels || (*before != NULL && strcmp(*before, f->wants_op) == 0))
    return false;
  *before = f->wants_op;
  tn__registry_want_kernels(before, 1, f->wants_type);
  f->wants_op = NULL;
  return true;
}

/* If a kernel is missing, plugins that may have it are loaded, without the lock, and placing is
 * tried again. */
tn_status tn__placement_all(tn_session *s, tn_graph *graph, tn_error *err)
{
  finder f = { 0 };
  const char *before = NULL;
  tn_status st = tn__devices_get(s, &f.devices, err);
  if (st != TN_OK) return st;
  do {
    f.text = NULL;
    tn__mutex_lock(&s->placing.mu);
    st = place_range(s, &f, graph, err);
    tn__mutex_unlock(&s->placing.mu);
  } while (st == TN_INVALID_ARGUMENT && bring_kernel(s, &f, &before));
  return st;
}

/* ---- the nodes of one call ---- */

enum { SEEN = 1, FED = 2 };

/* The nodes that a call needs: a walk from its fetches and targets back to its feeds. */
typedef struct walk {
  tn_graph *graph;
  const tn_output *feeds;
  size_t n_feeds;
  uint8_t *marks; /* by operation: SEEN and FED */
  tn_operation **found; /* the nodes found so far; the walk continues at `next` */
  size_t n_ops, n, next;
} walk;

static void want(walk *w, tn_operation *op)
{
  uint32_t id = tn__operation_id(op);
  if (id >= w->n_ops || (w->marks[id] & SEEN) != 0) return;
  w->marks[id] |= SEEN;
  w->found[w->n++] = op;
}

/* Adds the operation of an output, unless the output is fed. */
static void want_output(walk *w, tn_output o)
{
  uint32_t id = tn__operation_id(o.op);
  if (id < w->n_ops && (w->marks[id] & FED) != 0)
    for (size_t i = 0; i < w->n_feeds; i++)
      if (w->feeds[i].op == o.op && w->feeds[i].index == o.index) return;
  want(w, o.op);
}

/* Adds all nodes that those found so far depend on. The graph is locked. */
static void walk_back(walk *w)
{
  for (; w->next < w->n; w->next++) {
    size_t n;
    const tn_output *inputs = tn__operation_inputs(w->found[w->next], &n);
    for (size_t i = 0; i < n; i++) want_output(w, inputs[i]);
    tn_operation *const *controls = tn__operation_control_inputs(w->found[w->next], &n);
    for (size_t i = 0; i < n; i++) want(w, controls[i]);
  }
}

/* Places the nodes of a walk: first only checks all, so that none is placed if one cannot be. */
static tn_status place_found(tn_session *s, finder *f, const walk *w, tn_error *err)
{
  tn__placing *p = &s->placing;
  tn__assert_held(&p->mu);
  tn_status st = reserve(p, w->n_ops, err);
  uint32_t to;
  for (size_t i = 0; i < w->n && st == TN_OK; i++) st = place(s, f, w->found[i], &to, err);
  for (size_t i = 0; i < w->n && st == TN_OK; i++) {
    uint32_t *where = &p->where[tn__operation_id(w->found[i])];
    if (*where != 0) continue; /* a node that is placed stays there */
    st = place(s, f, w->found[i], where, err);
    log_node(s, f, w->found[i]);
  }
  return st;
}

static tn_status place_walk(tn_session *s, const walk *w, tn_error *err)
{
  finder f = { 0 };
  const char *before = NULL;
  tn_status st = tn__devices_get(s, &f.devices, err);
  if (st != TN_OK) return st;
  do {
    tn__mutex_lock(&s->placing.mu);
    st = place_found(s, &f, w, err);
    tn__mutex_unlock(&s->placing.mu);
  } while (st == TN_INVALID_ARGUMENT && bring_kernel(s, &f, &before));
  return st;
}

tn_status tn__placement_for(tn_session *s, tn_graph *graph, const tn_output *feeds, size_t n_feeds,
                            const tn_output *fetches, size_t n_fetches, tn_operation *const *targets, size_t n_targets,
                            tn_error *err)
{
  if (!tn__placement_wanted(s, graph)) return TN_OK;
  if (!s->placing.pruned) return tn__placement_all(s, graph, err);
  walk w = { .graph = graph, .feeds = feeds, .n_feeds = n_feeds, .n_ops = tn_graph_n_operations(graph) };
  w.marks = tn__zalloc(w.n_ops + 1);
  w.found = tn__alloc_array(w.n_ops + 1, sizeof *w.found);
  tn_status st = w.marks == NULL || w.found == NULL ? tn__no_memory(err, "placement", w.n_ops) : TN_OK;
  for (size_t i = 0; i < n_feeds && st == TN_OK; i++)
    if (tn__operation_id(feeds[i].op) < w.n_ops) w.marks[tn__operation_id(feeds[i].op)] = FED;
  for (size_t i = 0; i < n_fetches && st == TN_OK; i++) want_output(&w, fetches[i]);
  for (size_t i = 0; i < n_targets && st == TN_OK; i++) want(&w, targets[i]);
  if (st == TN_OK) {
    tn__graph_read_lock(graph);
    walk_back(&w);
    tn__graph_unlock(graph);
    st = place_walk(s, &w, err);
  }
  tn__free(w.marks, w.n_ops + 1);
  tn__free(w.found, (w.n_ops + 1) * sizeof *w.found);
  return st;
}

/* ---- an extension ---- */

/* The argument of check_node, which the import calls for each new node before it changes the graph. */
typedef struct check {
  tn_session *session;
  finder f;
} check;

/* The node is not in the graph yet, and is freed if it is refused. */
static tn_status check_node(void *user, const tn_operation *op, tn_error *err)
{
  check *c = user;
  uint32_t to;
  tn_status st = place(c->session, &c->f, op, &to, err);
  if (st == TN_OK) c->f.wants_op = NULL;
  else c->f.text = NULL; /* the text is freed with the node */
  return st;
}

tn_status tn__placement_import(tn_session *s, tn_graph *graph, const void *graph_def, size_t size, tn_error *err)
{
  if (s->placing.pruned) return tn_graph_import(graph, graph_def, size, NULL, err);
  check c = { .session = s };
  const char *before = NULL;
  tn_status st = tn__devices_get(s, &c.f.devices, err);
  if (st != TN_OK) return st;
  const tn__import_check each = { check_node, &c };
  do {
    c.f.text = NULL;
    tn__error_reset(err);
    st = tn__graph_import_checked(graph, graph_def, size, &each, err);
  } while (st == TN_INVALID_ARGUMENT && bring_kernel(s, &c.f, &before));
  if (st == TN_OK && tn__placement_wanted(s, graph)) st = tn__placement_all(s, graph, err);
  return st;
}

/* ---- placements for programs ---- */

/* The reason of a soft placement, made at the first request. The session owns the text. NULL if
 * memory ran out. */
static const char *tell_reason(tn__placing *p, const tn__devices *devices, const tn_operation *op)
{
  tn__assert_held(&p->mu);
  uint32_t id = tn__operation_id(op);
  tn__stand *stand = tn__map_get(&p->told, (const char *)&id, sizeof id);
  if (stand != NULL) return stand->reason;
  finder f = { .devices = devices };
  size_t at;
  misfit m = find(&f, op, &at);
  tn__text t;
  tn__text_init(&t, 1 << 16);
  describe(m == FITS ? NO_KERNEL : m, op, &t); /* a kernel may have been registered since */
  stand = tn__zalloc(sizeof *stand);
  if (stand != NULL) *stand = (tn__stand){ id, tn__strdup(tn__text_get(&t)) };
  tn__text_fini(&t);
  if (stand != NULL && stand->reason != NULL && tn__map_put(&p->told, (const char *)&stand->id, sizeof id, stand, NULL))
    return stand->reason;
  if (stand != NULL) tn__strfree(stand->reason);
  tn__free(stand, sizeof *stand);
  return NULL;
}

/* Fills in the placement of a node that names a device, or was moved. */
static tn_status fill(tn_session *s, const tn_operation *op, const tn__devices *devices, tn_placement *full,
                      tn_error *err)
{
  tn__placing *p = &s->placing;
  uint32_t id = tn__operation_id(op);
  tn_status st = TN_OK;
  tn__mutex_lock(&p->mu);
  uint32_t to = id < p->room ? p->where[id] : 0;
  if (to == 0)
    st = tn_error_set(err, TN_FAILED_PRECONDITION, "node '%s' has not been placed: no call has needed it yet",
                      tn_operation_name(op));
  else if (*full->asked != 0)
    full->device = devices->at[(to & ~MOVED) - 1].name;
  if ((to & MOVED) != 0) {
    full->reason = tell_reason(p, devices, op);
    if (full->reason == NULL) st = tn__no_memory(err, "placement", 0);
  }
  tn__mutex_unlock(&p->mu);
  return st;
}

static tn_status device_of(tn_session *s, const char *node, tn_placement *full, tn_error *err)
{
  tn_graph *graph;
  const tn__devices *devices;
  tn_status st = tn__session_need_graph(s, &graph, err);
  if (st != TN_OK) return st;
  tn_operation *op = tn_graph_find(graph, node);
  if (op == NULL) return tn_error_set(err, TN_NOT_FOUND, "the graph has no node '%s'", node);
  if (tn_operation_schema(op) == NULL)
    return tn_error_set(err, TN_FAILED_PRECONDITION, "node '%s' is not placed: op '%s' is not registered", node,
                        tn_operation_type(op));
  st = tn__devices_get(s, &devices, err);
  if (st != TN_OK) return st;
  full->asked = tn_operation_device(op);
  full->device = devices->at[devices->client].name;
  if (*full->asked == 0) full->device = chosen_device(s, devices, op, &full->reason);
  if (!tn__placement_wanted(s, graph)) return TN_OK;
  if (!s->placing.pruned) st = tn__placement_all(s, graph, err); /* nodes may have been added since */
  return st == TN_OK ? fill(s, op, devices, full, err) : st;
}

tn_status tn_session_device_of(tn_session *session, const char *node, tn_placement *out, tn_error *err)
{
  tn__error_reset(err);
  if (session == NULL || node == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_session_device_of: %s is NULL",
                        session == NULL ? "session" : "node");
  if (out == NULL || out->struct_size < sizeof out->struct_size)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_session_device_of: out is NULL or its struct_size is not set");
  if (tn__forked()) return tn__session_forked(err);
  tn_placement full = { .struct_size = out->struct_size, .device = "", .asked = "", .reason = "" };
  tn_status st = device_of(session, node, &full, err);
  if (st != TN_OK) return st;
  size_t room = out->struct_size, n = room < sizeof full ? room : sizeof full; /* rule P-26 */
  memset(out, 0, room);
  memcpy(out, &full, n);
  return TN_OK;
}
