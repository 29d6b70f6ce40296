/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the trace of a step to metadata that needs neither plan nor session: names (each once), texts and shapes. */
#include <core/graph/function_instance.h>
#include <core/session/metadata/metadata.h>

#include <stdlib.h>

#define MOST_INPUTS 64 /* in a label */

/* The state of copying one trace. The maps borrow their keys and values from the metadata's arena. */
typedef struct filling {
  tn_run_metadata *m;
  tn_session *session;
  const tn__trace *trace;
  tn__map nodes;   /* (scope, op) -> tn__metadata_node */
  tn__map kernels; /* kernel -> its name */
  size_t n;
} filling;

/* A record of the trace and the lane that it is on. */
typedef struct seen {
  const tn__trace_record *r;
  const tn__trace_lane *lane;
} seen;

/* ---- names ---- */

/* Names of the calls, outermost first. */
static void add_path(const tn__trace_scope *scope, tn__text *text)
{
  size_t depth = 0;
  for (const tn__trace_scope *s = scope; s->around != NULL; s = s->around) depth++;
  for (; depth > 0; depth--) {
    const tn__trace_scope *s = scope;
    for (size_t up = 1; up < depth; up++) s = s->around;
    tn__function_path(s->op, s->k, text);
  }
}

/* "name = Op(a, b:1, ^c)" */
static void add_label(const tn_operation *op, const char *name, tn__text *text)
{
  tn__text_printf(text, "%s = %s(", name, op->type);
  for (uint32_t i = 0; i < op->n_inputs + op->n_controls; i++) {
    if (i > 0) tn__text_puts(text, ", ");
    if (i == MOST_INPUTS) {
      tn__text_puts(text, "...");
      break;
    }
    const tn_output *in = &op->inputs[i];
    if (i >= op->n_inputs) tn__text_printf(text, "^%s", op->controls[i - op->n_inputs]->name);
    else if (in->index == 0) tn__text_puts(text, in->op->name);
    else tn__text_printf(text, "%s:%d", in->op->name, (int)in->index);
  }
  tn__text_puts(text, ")");
}

/* A copy in the metadata's arena; NULL: no memory. */
static const char *keep(filling *f, const tn__text *text)
{
  return text->failed ? NULL : tn__arena_string(&f->m->arena, tn__text_get(text), text->size);
}

static tn__metadata_node *make_node(filling *f, const tn__trace_record *r)
{
  tn__metadata_node *node = tn__arena_zalloc(&f->m->arena, sizeof *node);
  if (node == NULL) return NULL;
  tn__text text;
  tn__text_init(&text, 64 << 10);
  add_path(r->scope, &text);
  tn__text_puts(&text, r->op->name);
  node->name = keep(f, &text);
  tn__text_fini(&text);
  tn__text_init(&text, 64 << 10);
  if (node->name != NULL) add_label(r->op, node->name, &text);
  node->label = keep(f, &text);
  tn__text_fini(&text);
  node->op = tn__arena_string(&f->m->arena, r->op->type, strlen(r->op->type));
  node->device =
      r->device != NULL ? tn__metadata_device_named(f->m, r->device) : tn__metadata_device(f->m, f->session, r->op);
  return node->name != NULL && node->label != NULL && node->op != NULL && node->device != TN__NONE ? node : NULL;
}

/* The names of a record's node. Each node is described once for each function that it was called
 * in. */
static const tn__metadata_node *node_of(filling *f, const tn__trace_record *r)
{
  const void *key[2] = { r->scope->around == NULL ? NULL : r->scope, r->op };
  tn__metadata_node *node = tn__map_get(&f->nodes, (const char *)key, sizeof key);
  if (node != NULL) return node;
  char *kept = tn__arena_string(&f->m->arena, (const char *)key, sizeof key);
  node = kept == NULL ? NULL : make_node(f, r);
  return node != NULL && tn__map_put(&f->nodes, kept, sizeof key, node, NULL) ? node : NULL;
}

static const char *kernel_of(filling *f, const tn_kernel_def *kernel)
{
  if (kernel == NULL) return "";
  char *name = tn__map_get(&f->kernels, (const char *)&kernel, sizeof kernel);
  if (name != NULL) return name;
  const char *from = kernel->name == NULL ? "" : kernel->name;
  char *key = tn__arena_string(&f->m->arena, (const char *)&kernel, sizeof kernel);
  name = tn__arena_string(&f->m->arena, from, strlen(from));
  return key != NULL && name != NULL && tn__map_put(&f->kernels, key, sizeof kernel, name, NULL) ? name : NULL;
}

/* ---- records ---- */

static bool copy_outputs(filling *f, const tn__trace_record *r, tn__metadata_record *to)
{
  if (r->n_outputs == 0) return true;
  tn_output_record *out = tn__arena_array(&f->m->arena, r->n_outputs, sizeof *out);
  if (out == NULL) return false;
  const tn__trace_output *o = tn__trace_first_output(r);
  for (uint32_t k = 0; k < r->n_outputs; k++, o = tn__trace_next_output(o)) {
    int64_t *dims = tn__arena_array(&f->m->arena, (size_t)o->rank, sizeof *dims);
    if (dims == NULL) return false;
    for (int32_t d = 0; d < o->rank; d++) dims[d] = o->dims[d];
    out[k] = (tn_output_record){ .struct_size = sizeof *out, .dtype = o->dtype, .rank = o->rank, .dims = dims,
                                 .bytes = o->bytes };
  }
  to->outputs = out;
  to->n_outputs = r->n_outputs;
  return true;
}

static bool copy_record(filling *f, const seen *from, tn__metadata_record *to)
{
  const tn__trace_record *r = from->r;
  *to = (tn__metadata_record){ .node = node_of(f, r),
                               .kernel = kernel_of(f, r->kernel),
                               .thread = from->lane->thread,
                               .start_ns = r->start_ns - f->trace->began_ns,
                               .duration_ns = r->end_ns - r->start_ns,
                               .scratch_bytes = r->scratch_bytes,
                               .status = r->status,
                               .kind = r->kind,
                               .waited = r->waited };
  return to->node != NULL && to->kernel != NULL && copy_outputs(f, r, to) && tn__metadata_cost(r, to);
}

/* Records that enclose others precede them. */
static int compare(const void *a, const void *b)
{
  const tn__trace_record *x = ((const seen *)a)->r, *y = ((const seen *)b)->r;
  if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
  if (x->end_ns != y->end_ns) return x->end_ns > y->end_ns ? -1 : 1;
  return x < y ? -1 : x > y;
}

/* The step has ended, so the lanes are read without a lock. */
static void gather(filling *f, seen *to)
{
  size_t n = 0;
  for (const tn__trace_lane *lane = f->trace->lanes; lane != NULL; lane = lane->next) {
    const tn__trace_chunk *chunk;
    const tn__trace_record *r = NULL;
    while ((r = tn__trace_next(lane, &chunk, r)) != NULL) to[n++] = (seen){ r, lane };
  }
  qsort(to, n, sizeof *to, compare);
}

/* Copies all records in the order of time. False: no memory; those copied so far can be read. */
static bool fill(filling *f)
{
  tn_run_metadata *m = f->m;
  for (const tn__trace_lane *lane = f->trace->lanes; lane != NULL; lane = lane->next) {
    f->n += lane->n;
    m->summary.threads += lane->n > 0;
  }
  if (f->n == 0) return true;
  seen *all = tn__alloc_array(f->n, sizeof *all);
  m->records = all == NULL ? NULL : tn__arena_array(&m->arena, f->n, sizeof *m->records);
  bool ok = m->records != NULL;
  if (ok) gather(f, all);
  for (size_t i = 0; ok && i < f->n; i++) {
    ok = copy_record(f, &all[i], &m->records[i]);
    m->summary.records += ok;
  }
  tn__free(all, f->n * sizeof *all);
  return ok;
}

bool tn__metadata_take_trace(tn_run_metadata *m, tn_session *session, const tn__trace *trace)
{
  filling f = { .m = m, .session = session, .trace = trace };
  m->summary.start_unix_ns = trace->began_unix_ns;
  m->summary.duration_ns = trace->ended_ns - trace->began_ns;
  tn__map_init(&f.nodes);
  tn__map_init(&f.kernels);
  bool ok = fill(&f);
  tn__map_fini(&f.nodes);
  tn__map_fini(&f.kernels);
  return ok && !atomic_load_explicit(&trace->cut, memory_order_relaxed);
}
