/* SPDX-License-Identifier: Apache-2.0 */
/* tenon run: collects a trace of the steps from their metadata. */
#include <stdlib.h>
#include <string.h>

#include <tools/common/shares.h>
#include <tools/picture/picture.h>
#include <tools/run/trace.h>

enum { MOST_EVENTS = 400000 }; /* maximum kept; the profile counts all */

/* ---- nodes ---- */

static uint64_t hash(const char *text, size_t n)
{
  uint64_t h = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
  return h ^ h >> 29;
}

/* Finds the slot of a key, or the free slot for it. */
static uint32_t *place_of(const run_trace *t, const char *key, size_t size)
{
  size_t at = hash(key, size) & (t->n_places - 1);
  while (t->places[at] != 0 && strcmp(t->nodes[t->places[at] - 1].key, key) != 0) at = (at + 1) & (t->n_places - 1);
  return &t->places[at];
}

static void grow_places(run_trace *t)
{
  if (t->n_nodes * 2 < t->n_places) return;
  free(t->places);
  t->n_places = t->n_places == 0 ? 256 : t->n_places * 4;
  t->places = tool_alloc(t->n_places, sizeof(*t->places));
  for (size_t i = 0; i < t->n_nodes; i++) *place_of(t, t->nodes[i].key, strlen(t->nodes[i].key)) = (uint32_t)i + 1;
}

/* Appends "float32 [1, 10], int64 []". */
static void add_outputs(const tn_run_metadata *metadata, size_t i, uint32_t n, tool_text *text)
{
  enum { MOST = 8 };
  for (uint32_t k = 0; k < n && k < MOST; k++) {
    tn_output_record o = { .struct_size = sizeof(o) };
    if (tn_run_metadata_output(metadata, i, k, &o, NULL) != TN_OK) return;
    if (k > 0) tool_text_add(text, ", ", 2);
    tool_text_printf(text, "%s ", o.dtype == TN_DTYPE_INVALID ? "nothing" : tn_dtype_name(o.dtype));
    tool_text_shape(text, o.dims, o.rank);
  }
  if (n > MOST) tool_text_printf(text, ", ...");
}

static uint32_t find_node(run_trace *t, size_t i, const tn_node_record *r)
{
  size_t ends[4];
  tool_text key = { 0 };
  tool_text_printf(&key, "%s\n", r->node);
  ends[0] = key.length;
  tool_text_printf(&key, "%s\n", r->op);
  ends[1] = key.length;
  tool_text_printf(&key, "%s\n", r->kernel);
  ends[2] = key.length;
  tool_text_printf(&key, "%s\n", r->device);
  ends[3] = key.length;
  add_outputs(t->metadata, i, r->n_outputs, &key);
  grow_places(t);
  uint32_t *place = place_of(t, key.data, key.length);
  if (*place != 0) {
    tool_text_fini(&key);
    return *place - 1;
  }
  t->nodes = tool_grow(t->nodes, t->n_nodes, &t->node_room, sizeof(*t->nodes));
  char *parts = tool_alloc(key.length + 1, 1);
  memcpy(parts, key.data, key.length);
  for (size_t k = 0; k < 4; k++) parts[ends[k] - 1] = '\0';
  t->nodes[t->n_nodes] = (trace_node){ .key = key.data, .name = parts, .op = parts + ends[0], .kernel = parts + ends[1],
                                       .device = parts + ends[2], .outputs = parts + ends[3] };
  *place = (uint32_t)++t->n_nodes;
  return *place - 1;
}

/* ---- time of nodes, without that of nested nodes ---- */

static void add_costs(run_trace *t, const trace_event *events, size_t n)
{
  time_span *spans = tool_alloc(n + 1, sizeof(*spans));
  double *ns = tool_alloc(t->n_nodes + 1, sizeof(*ns));
  size_t count = 0;
  for (size_t i = 0; i < n; i++) {
    const trace_event *e = &events[i];
    if (e->kind == TN_RECORD_NODE) t->nodes[e->node].calls++;
    if (e->kind != TN_RECORD_NODE || e->thread != 0) continue;
    spans[count++] = (time_span){ e->start_ns, e->start_ns + e->duration_ns, 0, e->node, e->waited };
  }
  tool_share_time(spans, count, ns);
  for (size_t i = 0; i < t->n_nodes; i++) t->nodes[i].self_ns += (uint64_t)ns[i];
  free(ns);
  free(spans);
}

/* ---- steps ---- */

bool trace_wants_protobuf(const run_trace *t)
{
  size_t n = t->file == NULL ? 0 : strlen(t->file);
  return n > 3 && strcmp(t->file + n - 3, ".pb") == 0;
}

static bool ends_in(const char *file, const char *end)
{
  size_t n = strlen(file), m = strlen(end);
  return n > m && strcmp(file + n - m, end) == 0;
}

int trace_check(const run_trace *t)
{
  tn_error err = TN_ERROR_INIT;
  if (t->file != NULL && !ends_in(t->file, ".json") && !ends_in(t->file, ".pb"))
    return tool_usage("run", "--trace '%s': the file name must end in .json or .pb", t->file);
  if (t->timeline != NULL && !ends_in(t->timeline, ".svg"))
    return tool_usage("run", "--timeline '%s': the file name must end in .svg", t->timeline);
  if (t->file != NULL && picture_check_place(t->file, &err) != TN_OK) return tool_fail(&err);
  if (t->timeline != NULL && picture_check_place(t->timeline, &err) != TN_OK) return tool_fail(&err);
  return TOOL_OK;
}

tn_status trace_begin(run_trace *t, tn_error *err)
{
  return trace_wanted(t) && t->metadata == NULL ? tn_run_metadata_create(&t->metadata, err) : TN_OK;
}

static trace_event read_event(run_trace *t, size_t i, int64_t began)
{
  tn_node_record r = { .struct_size = sizeof(r) };
  tn_run_metadata_record(t->metadata, i, &r, NULL);
  return (trace_event){ .node = find_node(t, i, &r),
                        .step = (uint32_t)t->n_steps,
                        .thread = r.thread,
                        .kind = (uint8_t)r.kind,
                        .waited = r.waited,
                        .start_ns = began + r.start_ns,
                        .duration_ns = r.duration_ns,
                        .bytes = r.output_bytes };
}

/* The first step also creates layouts and packs constants, so it counts only if it is the only one. */
static void forget_costs(run_trace *t)
{
  t->costed_steps = 0;
  t->costed_ns = 0;
  for (size_t i = 0; i < t->n_nodes; i++) t->nodes[i].calls = t->nodes[i].self_ns = 0;
}

void trace_take(run_trace *t, uint64_t step, uint64_t began_ns)
{
  tn_metadata_summary s = { .struct_size = sizeof(s) };
  if (t->metadata == NULL || tn_run_metadata_summary(t->metadata, &s, NULL) != TN_OK) return;
  if (t->all_steps++ == 0) t->began_ns = began_ns;
  int64_t began = (int64_t)(began_ns - t->began_ns);
  if (t->all_steps == 2) forget_costs(t);
  t->costed_steps++;
  t->costed_ns += s.duration_ns;
  t->cut |= s.cut;
  trace_event *events = tool_alloc((size_t)s.records + 1, sizeof(*events));
  for (size_t i = 0; i < s.records; i++) events[i] = read_event(t, i, began);
  if (t->profile) add_costs(t, events, (size_t)s.records);
  bool kept = t->n_steps + 1 == t->all_steps && (t->file != NULL || t->timeline != NULL) &&
              (t->n_events + s.records <= MOST_EVENTS || t->n_steps == 0);
  if (kept) {
    t->steps = tool_grow(t->steps, t->n_steps, &t->step_room, sizeof(*t->steps));
    t->steps[t->n_steps++] = (trace_step){ step, began, s.duration_ns, t->n_events };
    for (size_t i = 0; i < s.records; i++) {
      t->events = tool_grow(t->events, t->n_events, &t->event_room, sizeof(*t->events));
      t->events[t->n_events++] = events[i];
    }
  }
  free(events);
}

/* ---- the end ---- */

static tn_status save(const run_trace *t, const char *file, void (*make)(const run_trace *t, tool_text *out),
                      tn_error *err)
{
  tool_text text = { 0 };
  make(t, &text);
  tn_status status = picture_save(file, text.data, text.length, err);
  tool_text_fini(&text);
  return status;
}

tn_status trace_finish(run_trace *t, tn_error *err)
{
  tn_status status = TN_OK;
  if (t->metadata == NULL) return TN_OK;
  if (t->file != NULL && trace_wants_protobuf(t)) status = tn_run_metadata_save(t->metadata, t->file, err);
  else if (t->file != NULL) status = save(t, t->file, trace_json, err);
  if (status == TN_OK && t->timeline != NULL) status = save(t, t->timeline, trace_timeline, err);
  if (status != TN_OK) return status;
  if (t->n_steps < t->all_steps && (t->file != NULL || t->timeline != NULL) && !trace_wants_protobuf(t))
    fprintf(stderr, "the trace contains only the first %zu of %llu steps: too many events\n", t->n_steps,
            (unsigned long long)t->all_steps);
  if (t->cut) fputs("the trace is incomplete: memory ran out, or there were too many records\n", stderr);
  if (t->profile) trace_profile(t, stderr);
  return TN_OK;
}

void trace_free(run_trace *t)
{
  for (size_t i = 0; i < t->n_nodes; i++) {
    free(t->nodes[i].key);
    free((char *)t->nodes[i].name); /* and the strings stored after it */
  }
  free(t->nodes);
  free(t->places);
  free(t->events);
  free(t->steps);
  tn_run_metadata_destroy(t->metadata);
  t->metadata = NULL;
}
