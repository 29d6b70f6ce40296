/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <tenon/plan.h>

#include <tools/bench/roofline/roofline.h>

/* Steps are traced for as long as those of the row were measured, but at least LEAST_STEPS and at most MOST_STEPS. */
enum { LEAST_STEPS = 5, MOST_STEPS = 1000 };

/* The block whose reading gives the bandwidth is as large as what a step reads, within these limits: above the largest
 * caches, the size makes no difference. The cache's is for a block that fits the caches of one core. */
#define LEAST_BLOCK ((uint64_t)64 << 10)
#define MOST_BLOCK ((uint64_t)256 << 20)
#define CACHE_BLOCK ((size_t)128 << 10)

/* Plain and traced steps take turns, so that other load on the machine affects both. */
typedef struct tracing {
  bench *b;
  bench_case *c;
  roofline *r;
  tn_callable traced;
  tn_run_metadata *metadata;
  tn_tensor **fetched;
} tracing;

static tn_status traced_callable(tracing *t, tn_error *err)
{
  const bench *b = t->b;
  tn_run_options options;
  tn_run_options_init(&options);
  options.timeout_ms = (int64_t)b->request->timeout_ms;
  options.cancellation = b->cancellation;
  options.trace_level = 3;
  return tn_session_make_callable(t->c->session, &options, b->feed_names, b->n_inputs, b->fetches.items, b->fetches.n,
                                  b->targets.items, b->targets.n, &t->traced, err);
}

/* A turn; the first one is not counted, as its steps begin without layouts. */
static tn_status take_turn(tracing *t, bool counted, tn_error *err)
{
  tn_metadata_summary s = { .struct_size = sizeof(s) };
  uint64_t began = tool_now_ns();
  tn_status status = bench_step(t->b, t->c, t->c->callable, t->fetched, NULL, err);
  double ns = (double)(tool_now_ns() - began);
  if (status == TN_OK) status = bench_step(t->b, t->c, t->traced, t->fetched, t->metadata, err);
  if (status == TN_OK) status = tn_run_metadata_summary(t->metadata, &s, err);
  if (status != TN_OK || !counted) return status;
  bool first = t->r->nodes.steps == 0;
  if (first || ns < t->r->step_ns) t->r->step_ns = ns;
  if (first || (double)s.duration_ns < t->r->traced_ns) t->r->traced_ns = (double)s.duration_ns;
  return roof_collect(&t->r->nodes, t->metadata, err);
}

static tn_status take_turns(tracing *t, tn_error *err)
{
  roof_nodes *nodes = &t->r->nodes;
  double most = t->b->request->seconds * 1e9;
  tool_progress *progress = tool_progress_start("tracing steps", MOST_STEPS);
  tn_status status = take_turn(t, false, err);
  uint64_t began = tool_now_ns();
  while (status == TN_OK && tool_interrupted() == 0 && nodes->steps < MOST_STEPS) {
    if (nodes->steps >= LEAST_STEPS && (double)(tool_now_ns() - began) > most) break;
    status = take_turn(t, true, err);
    tool_progress_set(progress, nodes->steps);
  }
  tool_progress_end(progress);
  return status;
}

/* ---- the machine ---- */

/* Bytes that a step may read: feeds, constants, variables and its own memory. UNIMPLEMENTED if the plan has
 * instructions but the steps had no records. */
static tn_status step_bytes(const tracing *t, uint64_t *bytes, tn_error *err)
{
  const bench *b = t->b;
  tn_plan_report *report = NULL;
  tn_plan_summary s = { .struct_size = sizeof(s) };
  tn_status status = tn_session_plan_report(t->c->session, b->feed_names, b->n_inputs, b->fetches.items, b->fetches.n,
                                            b->targets.items, b->targets.n, &report, err);
  if (status == TN_OK) status = tn_plan_report_summary(report, &s, err);
  tn_plan_report_release(report);
  if (status == TN_OK && s.instructions > 0 && t->r->nodes.records == 0)
    status = tn_error_set(err, TN_UNIMPLEMENTED,
                          "the metadata of its steps has no records of nodes, which give their times");
  *bytes = s.constant_bytes + s.arena_bytes + (uint64_t)t->r->nodes.variable_bytes;
  for (size_t i = 0; i < b->n_inputs; i++) *bytes += tn_tensor_bytes(b->inputs[i].value);
  return status;
}

/* The threads that a step may use: the requested number, as far as there are CPUs, or those that were seen. */
static int threads_of(const bench_case *c, uint64_t seen)
{
  uint64_t cpus = (uint64_t)machine_cpus(), n = c->threads > seen ? c->threads : seen;
  if (n > cpus) n = cpus;
  return n > 1 ? (int)n : 1;
}

static tn_status measure_machine(roofline *r, uint64_t bytes, tn_error *err)
{
  machine_limits cache = { 0 };
  tool_progress *progress = tool_progress_start("measuring the machine", 0);
  r->block_bytes = bytes < LEAST_BLOCK ? LEAST_BLOCK : bytes;
  if (r->block_bytes > MOST_BLOCK) r->block_bytes = MOST_BLOCK;
  bool ok = machine_measure((size_t)r->block_bytes, r->threads, &r->most) &&
            machine_measure_reading(CACHE_BLOCK * (size_t)r->threads, r->threads, &cache);
  tool_progress_end(progress);
  r->cache_bandwidth = cache.bandwidth > r->most.bandwidth ? cache.bandwidth : r->most.bandwidth;
  if (ok && r->most.flops > 0 && r->most.bandwidth > 0) return TN_OK;
  char text[32];
  return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a block of %s, or no %d threads",
                      tool_bytes_text(text, r->block_bytes), r->threads);
}

/* ---- interface ---- */

static tn_status measure(tracing *t, tn_error *err)
{
  uint64_t bytes = 0;
  tn_status status = traced_callable(t, err);
  if (status == TN_OK) status = tn_run_metadata_create(&t->metadata, err);
  if (status == TN_OK) status = take_turns(t, err);
  if (tool_interrupted() != 0) {
    tn_error_clear(err); /* it names the cancelled step */
    return tn_error_set(err, TN_CANCELLED, "interrupted while steps were traced");
  }
  if (status == TN_OK) status = step_bytes(t, &bytes, err);
  if (status != TN_OK) return status;
  t->r->threads = threads_of(t->c, t->r->nodes.threads);
  status = measure_machine(t->r, bytes, err);
  if (status == TN_OK) roof_group_nodes(t->r);
  return status;
}

tn_status roof_measure(bench *b, bench_case *c, tn_error *err)
{
  tracing t = { .b = b, .c = c, .r = tool_alloc(1, sizeof(*t.r)) };
  t.fetched = tool_alloc(b->fetches.n + 1, sizeof(*t.fetched));
  tn_status status = measure(&t, err);
  if (status == TN_OK)
    c->roofline = t.r;
  else
    roof_free(t.r);
  if (status != TN_OK && status != TN_CANCELLED) {
    tool_text name = { 0 };
    bench_case_text(c, &name);
    tn_error_prefix(err, "--roofline: %s", name.data);
    tool_text_fini(&name);
  }
  for (size_t i = 0; i < b->fetches.n; i++) tn_tensor_unref(t.fetched[i]);
  tn_run_metadata_destroy(t.metadata);
  free(t.fetched);
  return status;
}

void roof_free(roofline *r)
{
  if (r == NULL) return;
  roof_nodes_free(&r->nodes);
  free(r->groups);
  free(r);
}
