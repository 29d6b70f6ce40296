/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <tools/bench/roofline/roofline.h>
#include <tools/common/shares.h>

/* ---- nodes ---- */

static uint64_t hash(const char *text, size_t n)
{
  uint64_t h = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
  return h ^ h >> 29;
}

/* Finds the slot of a key, or the free slot for it. */
static uint32_t *place_of(const roof_nodes *t, const char *key, size_t size)
{
  size_t at = hash(key, size) & (t->n_places - 1);
  while (t->places[at] != 0 && strcmp(t->items[t->places[at] - 1].key, key) != 0) at = (at + 1) & (t->n_places - 1);
  return &t->places[at];
}

static void grow_places(roof_nodes *t)
{
  if (t->n * 2 < t->n_places) return;
  free(t->places);
  t->n_places = t->n_places == 0 ? 256 : t->n_places * 4;
  t->places = tool_alloc(t->n_places, sizeof(*t->places));
  for (size_t i = 0; i < t->n; i++) *place_of(t, t->items[i].key, strlen(t->items[i].key)) = (uint32_t)i + 1;
}

static uint32_t find_node(roof_nodes *t, const tn_node_record *r)
{
  tool_text key = { 0 };
  tool_text_printf(&key, "%s\n", r->node);
  size_t op = key.length;
  tool_text_printf(&key, "%s\n", r->op);
  size_t kernel = key.length;
  tool_text_printf(&key, "%s", r->kernel);
  grow_places(t);
  uint32_t *place = place_of(t, key.data, key.length);
  if (*place == 0) {
    t->items = tool_grow(t->items, t->n, &t->room, sizeof(*t->items));
    char *parts = tool_alloc(key.length + 1, 1);
    memcpy(parts, key.data, key.length);
    parts[op - 1] = parts[kernel - 1] = '\0';
    t->items[t->n] = (roof_node){ .key = key.data, .name = parts, .op = parts + op, .kernel = parts + kernel };
    *place = (uint32_t)++t->n;
    return *place - 1;
  }
  tool_text_fini(&key);
  return *place - 1;
}

/* ---- records ---- */

/* Reads state that is no constant of the plan. */
static bool reads_variable(const char *op)
{
  return strcmp(op, "ReadVariableOp") == 0 || strcmp(op, "_TnReadReference") == 0;
}

static bool is_on_cpu(const char *device)
{
  return strstr(device, "device:CPU:") != NULL || strstr(device, "device:") == NULL;
}

static tn_status check(const tn_node_record *r, tn_error *err)
{
  if (is_on_cpu(r->device)) return TN_OK;
  return tn_error_set(err, TN_UNIMPLEMENTED, "node '%s' ran on %s, but only the limits of CPUs are measured", r->node,
                      strstr(r->device, "device:") + 7);
}

static void add_cost(roof_nodes *t, uint32_t node, const tn_node_record *r)
{
  t->items[node].calls++;
  t->items[node].flops += r->flops;
  t->items[node].bytes += (double)r->moved_bytes;
  if (reads_variable(r->op)) t->variable_bytes += (double)r->output_bytes;
}

static void end_step(roof_nodes *t, const time_span *spans, size_t n)
{
  double *ns = tool_alloc(t->n + 1, sizeof(*ns));
  tool_share_time(spans, n, ns);
  for (size_t i = 0; i < t->n; i++) {
    roof_node *node = &t->items[i];
    if (ns[i] <= 0) continue;
    if (node->steps++ == 0 || ns[i] < node->best_ns) node->best_ns = ns[i];
  }
  t->steps++;
  free(ns);
}

tn_status roof_collect(roof_nodes *t, const tn_run_metadata *metadata, tn_error *err)
{
  tn_metadata_summary s = { .struct_size = sizeof(s) };
  tn_status status = tn_run_metadata_summary(metadata, &s, err);
  if (status != TN_OK) return status;
  time_span *spans = tool_alloc((size_t)s.records + 1, sizeof(*spans));
  size_t n = 0;
  t->variable_bytes = 0;
  for (size_t i = 0; i < s.records && status == TN_OK; i++) {
    tn_node_record r = { .struct_size = sizeof(r) };
    status = tn_run_metadata_record(metadata, i, &r, err);
    if (status == TN_OK) status = check(&r, err);
    if (status != TN_OK || r.kind == TN_RECORD_EMPTY) continue;
    uint32_t node = find_node(t, &r);
    if (r.kind == TN_RECORD_NODE) add_cost(t, node, &r);
    spans[n++] = (time_span){ r.start_ns, r.start_ns + r.duration_ns, r.thread, node, r.waited };
  }
  if (status == TN_OK && s.cut)
    status = tn_error_set(err, TN_RESOURCE_EXHAUSTED,
                          "the trace of a step is incomplete: memory ran out, or it has too many records");
  if (status == TN_OK) end_step(t, spans, n);
  if (s.threads > t->threads) t->threads = s.threads;
  t->records += s.records;
  free(spans);
  return status;
}

void roof_nodes_free(roof_nodes *t)
{
  for (size_t i = 0; i < t->n; i++) {
    free(t->items[i].key);
    free((char *)t->items[i].name); /* and the strings stored after it */
  }
  free(t->items);
  free(t->places);
}
