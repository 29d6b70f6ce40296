/* SPDX-License-Identifier: Apache-2.0 */
/* tenon run --trace FILE.json: writes the steps in Chrome's trace format, for Perfetto and chrome://tracing. A device
 * is a process, a worker is a thread; a node that waited while others ran is an asynchronous slice. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <tools/run/trace.h>

/* A JSON string; jansson escapes it. */
static void add_string(tool_text *out, const char *text)
{
  json_t *value = tool_json_text(text);
  char *written = json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
  tool_text_printf(out, "%s", written != NULL ? written : "\"\"");
  free(written);
  json_decref(value);
}

static void add_key(tool_text *out, const char *key, const char *text)
{
  tool_text_printf(out, ", \"%s\": ", key);
  add_string(out, text);
}

/* Microseconds, independent of the locale. */
static void add_time(tool_text *out, const char *key, int64_t ns)
{
  tool_text_printf(out, ", \"%s\": %" PRId64 ".%03d", key, ns / 1000, (int)(ns % 1000));
}

static void begin_event(tool_text *out, const char *phase, uint32_t process, uint32_t thread)
{
  const char *last = out->length > 0 ? &out->data[out->length - 1] : "";
  tool_text_printf(out, "%s\n  {\"ph\": \"%s\", \"pid\": %" PRIu32 ", \"tid\": %" PRIu32, *last == '[' ? "" : ",",
                   phase, process, thread);
}

/* ---- processes and threads ---- */

static uint32_t process_of(const run_trace *t, const trace_node *node)
{
  for (uint32_t d = 0; tn_run_metadata_device(t->metadata, d) != NULL; d++)
    if (strcmp(tn_run_metadata_device(t->metadata, d), node->device) == 0) return d + 1;
  return 1;
}

static void add_name(tool_text *out, const char *what, uint32_t process, uint32_t thread, const char *name)
{
  begin_event(out, "M", process, thread);
  add_key(out, "name", what);
  tool_text_printf(out, ", \"args\": {\"name\": ");
  add_string(out, name);
  tool_text_printf(out, "}}");
}

static void add_thread(tool_text *out, uint32_t process, uint32_t thread)
{
  char name[32] = "step";
  if (thread != 0) snprintf(name, sizeof(name), "worker %" PRIu32, thread);
  add_name(out, "thread_name", process, thread, name);
}

static void add_names(const run_trace *t, tool_text *out)
{
  enum { MOST = 1024 };
  uint32_t seen[MOST][2], n = 0;
  const char *first = tn_run_metadata_device(t->metadata, 0);
  add_name(out, "process_name", 1, 0, first != NULL ? first : "no device");
  for (uint32_t d = 1; tn_run_metadata_device(t->metadata, d) != NULL; d++)
    add_name(out, "process_name", d + 1, 0, tn_run_metadata_device(t->metadata, d));
  add_thread(out, 1, 0);
  for (size_t i = 0; i < t->n_events && n < MOST; i++) {
    uint32_t process = process_of(t, &t->nodes[t->events[i].node]), thread = t->events[i].thread, k = 0;
    if (process == 1 && thread == 0) continue;
    while (k < n && (seen[k][0] != process || seen[k][1] != thread)) k++;
    if (k < n) continue;
    seen[n][0] = process;
    seen[n++][1] = thread;
    add_thread(out, process, thread);
  }
}

/* ---- events ---- */

static void add_args(const run_trace *t, const trace_event *e, tool_text *out)
{
  const trace_node *node = &t->nodes[e->node];
  tool_text_printf(out, ", \"args\": {\"step\": %" PRIu64, t->steps[e->step].number);
  add_key(out, "node", node->name);
  add_key(out, "op", node->op);
  if (node->kernel[0] != '\0') add_key(out, "kernel", node->kernel);
  if (node->outputs[0] != '\0') add_key(out, "outputs", node->outputs);
  tool_text_printf(out, ", \"bytes\": %" PRIu64 "}}", e->bytes);
}

static void add_half(const run_trace *t, const trace_event *e, size_t id, bool end, tool_text *out)
{
  const trace_node *node = &t->nodes[e->node];
  begin_event(out, end ? "e" : "b", process_of(t, node), e->thread);
  add_time(out, "ts", end ? e->start_ns + e->duration_ns : e->start_ns);
  tool_text_printf(out, ", \"id\": %zu", id);
  add_key(out, "name", node->name);
  add_key(out, "cat", node->op);
  if (end) tool_text_printf(out, "}");
  else add_args(t, e, out);
}

static void add_event(const run_trace *t, size_t i, tool_text *out)
{
  const trace_event *e = &t->events[i];
  const trace_node *node = &t->nodes[e->node];
  if (e->kind == TN_RECORD_EMPTY) return;
  if (e->waited) {
    add_half(t, e, i + 1, false, out);
    add_half(t, e, i + 1, true, out);
    return;
  }
  begin_event(out, "X", process_of(t, node), e->thread);
  add_time(out, "ts", e->start_ns);
  add_time(out, "dur", e->duration_ns);
  add_key(out, "name", node->name);
  add_key(out, "cat", node->op);
  add_args(t, e, out);
}

static void add_step(const trace_step *step, tool_text *out)
{
  begin_event(out, "X", 1, 0);
  add_time(out, "ts", step->start_ns);
  add_time(out, "dur", step->duration_ns);
  tool_text_printf(out, ", \"name\": \"step %" PRIu64 "\", \"cat\": \"step\", \"args\": {\"step\": %" PRIu64 "}}",
                   step->number, step->number);
}

void trace_json(const run_trace *t, tool_text *out)
{
  tool_text_printf(out, "{\"displayTimeUnit\": \"ns\", \"otherData\": {\"model\": ");
  add_string(out, t->model);
  tool_text_printf(out, "},\n\"traceEvents\": [");
  add_names(t, out);
  for (size_t i = 0; i < t->n_steps; i++) {
    size_t end = i + 1 < t->n_steps ? t->steps[i + 1].first : t->n_events;
    add_step(&t->steps[i], out);
    for (size_t k = t->steps[i].first; k < end; k++) add_event(t, k, out);
  }
  tool_text_printf(out, "\n]}\n");
}
