/* SPDX-License-Identifier: Apache-2.0 */
/* Level (a) of the kit with parts run by the runtime: this one computes every instruction of a
 * part with the plan's kernel, in memory that no other value uses, and returns the values that
 * the part declares as read by others. The setting take=half takes every second part, take=none
 * none; fail=take and fail=run fail. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tenon/runtime.h>

#include "runtime.h"

TN_PLUGIN_MANIFEST("runtime", "test.offload", "CPU", "0", "1.0.0", "Tests", "")

static const char *const settings[] = { "take", "fail" };

struct tn_runtime_session {
  char take[8], fail[8];
  _Atomic size_t offered, taken, runs, released;
};

/* A part taken by the runtime. */
typedef struct handle {
  tn_runtime_session *session;
  const tn_kit_part *part;
  size_t n_values;
} handle;

typedef struct state {
  const handle *h;
  tn_step *step;
  tn_view *values; /* indexed by value of the plan */
  void **blocks;   /* indexed by value: memory of the part */
} state;

/* ---- the session ---- */

static void copy_setting(char *to, const char *from) { strncpy(to, from == NULL ? "" : from, 7); }

static tn_status new_session(const tn_session_factory *self, const tn_session_options *options,
                             tn_runtime_session **out, tn_error *err)
{
  (void)self;
  *out = calloc(1, sizeof **out);
  if (*out == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a session");
  copy_setting((*out)->take, tn_session_options_setting(options, "take"));
  copy_setting((*out)->fail, tn_session_options_setting(options, "fail"));
  return TN_OK;
}

static tn_bool accepts_options(const tn_session_factory *self, const tn_session_options *options)
{
  (void)self;
  return tn_session_options_check_settings(options, settings, 2, NULL) == TN_OK;
}

static void destroy_session(const tn_session_factory *self, tn_runtime_session *session)
{
  (void)self;
  tn_log(TN_LOG_INFO, "offload: %zu parts offered, %zu taken, %zu runs, %zu released", atomic_load(&session->offered),
         atomic_load(&session->taken), atomic_load(&session->runs), atomic_load(&session->released));
  free(session);
}

/* ---- parts ---- */

static tn_status take(void *user, const tn_kit_part *part, void **out, tn_error *err)
{
  tn_runtime_session *session = user;
  size_t number = atomic_fetch_add(&session->offered, 1);
  if (strcmp(session->fail, "take") == 0) return tn_error_set(err, TN_UNAVAILABLE, "the device was missing");
  if (strcmp(session->take, "none") == 0 || (strcmp(session->take, "half") == 0 && number % 2 == 1)) return TN_OK;
  handle *h = malloc(sizeof *h);
  if (h == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a part");
  *h = (handle){ session, part, tn_plan_n_values(part->plan) };
  atomic_fetch_add(&session->taken, 1);
  *out = h;
  return TN_OK;
}

static void release(void *user, void *h)
{
  tn_runtime_session *session = user;
  atomic_fetch_add(&session->released, 1);
  free(h);
}

static void *allocate(size_t bytes)
{
  void *p = aligned_alloc(64, bytes == 0 ? 64 : (bytes + 63) / 64 * 64);
  if (p != NULL) memset(p, 0xab, bytes); /* makes elements that are not computed noticeable */
  return p;
}

/* Obtains a constant, or a value that follows from shapes, when it is first read. */
static tn_status bring(state *s, uint32_t v, tn_error *err)
{
  tn_layout_value l = { .struct_size = sizeof l };
  tn_plan_value p = { .struct_size = sizeof p };
  if (s->values[v].dtype != TN_DTYPE_INVALID) return TN_OK;
  tn_status st = tn_kit_layout_value(s->h->part->layout, v, &l, err);
  if (st == TN_OK) st = tn_plan_get_value(s->h->part->plan, v, &p, err);
  if (st != TN_OK) return st;
  const void *data = l.place == TN_PLACE_KNOWN ? l.data : NULL;
  if (p.kind != TN_VALUE_CONSTANT && l.place == TN_PLACE_CONSTANT)
    st = tn_plan_get_value(s->h->part->plan, l.source, &p, err);
  if (l.place == TN_PLACE_CONSTANT) data = tn_tensor_data(p.constant);
  else if (l.place != TN_PLACE_KNOWN)
    return tn_error_set(err, TN_INTERNAL, "the part reads value %u, which was not provided", v);
  s->values[v] = (tn_view){ .data = (void *)data, .dims = l.dims, .count = l.count, .dtype = l.dtype, .rank = l.rank };
  return st;
}

/* The output of an instruction that computes nothing: it uses an input's memory. */
static tn_status show(state *s, const tn_plan_instruction *in, uint32_t out, tn_error *err)
{
  tn_layout_value l = { .struct_size = sizeof l }, from = { .struct_size = sizeof from };
  tn_status st = tn_kit_layout_value(s->h->part->layout, out, &l, err);
  if (st != TN_OK || l.place == TN_PLACE_KNOWN || l.place == TN_PLACE_CONSTANT) return st;
  for (uint32_t k = 0; st == TN_OK && k < in->n_inputs; k++) {
    st = tn_kit_layout_value(s->h->part->layout, in->inputs[k], &from, err);
    if (st != TN_OK || from.source != l.source) continue;
    s->values[out] = (tn_view){ .data = s->values[in->inputs[k]].data,
                                .dims = l.dims,
                                .count = l.count,
                                .dtype = l.dtype,
                                .rank = l.rank,
                                .buffer = s->values[in->inputs[k]].buffer };
  }
  return st;
}

static tn_status make(state *s, uint32_t v, tn_error *err)
{
  tn_layout_value l = { .struct_size = sizeof l };
  tn_status st = tn_kit_layout_value(s->h->part->layout, v, &l, err);
  if (st != TN_OK) return st;
  s->blocks[v] = allocate(l.bytes);
  if (s->blocks[v] == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a value");
  s->values[v] = (tn_view){ .data = s->blocks[v], .dims = l.dims, .count = l.count, .dtype = l.dtype, .rank = l.rank };
  return TN_OK;
}

static int64_t now_ns(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static tn_status compute(state *s, uint32_t i, const tn_plan_instruction *in, size_t scratch_bytes, tn_error *err)
{
  tn_view **views = malloc((in->n_inputs + in->n_outputs + 1) * sizeof *views);
  void *scratch = allocate(scratch_bytes);
  tn_status st =
      views == NULL || scratch == NULL ? tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a call") : TN_OK;
  for (uint32_t k = 0; st == TN_OK && k < in->n_inputs; k++) {
    st = bring(s, in->inputs[k], err);
    views[k] = &s->values[in->inputs[k]];
  }
  for (uint32_t k = 0; st == TN_OK && k < in->n_outputs; k++) {
    st = make(s, in->outputs[k], err);
    views[in->n_inputs + k] = &s->values[in->outputs[k]];
  }
  if (st == TN_OK) {
    int64_t begun = now_ns();
    st = tn_kit_compute(s->step, s->h->part->layout, i, views, views + in->n_inputs, scratch, NULL, err);
    if (tn_step_wants_records(s->step)) tn_step_record(s->step, s->h->part->layout, i, NULL, begun, now_ns(), st);
  }
  free(scratch);
  free(views);
  return st;
}

static tn_status run_all(state *s, tn_view *const *inputs, tn_view *const *outputs, tn_error *err)
{
  const tn_kit_part *p = s->h->part;
  tn_status st = TN_OK;
  for (uint32_t i = 0; i < p->n_inputs; i++) s->values[p->inputs[i]] = *inputs[i];
  for (uint32_t i = p->begin; st == TN_OK && i < p->end; i++) {
    tn_plan_instruction in = { .struct_size = sizeof in };
    tn_layout_instruction l = { .struct_size = sizeof l };
    st = tn_kit_part_instruction(p, i, &in, err);
    if (st == TN_OK) st = tn_kit_layout_instruction(p->layout, i, &l, err);
    if (st == TN_OK && l.computes) st = compute(s, i, &in, l.scratch_bytes, err);
    for (uint32_t k = 0; st == TN_OK && !l.computes && k < in.n_outputs; k++) st = show(s, &in, in.outputs[k], err);
  }
  for (uint32_t i = 0; st == TN_OK && i < p->n_outputs; i++) {
    const tn_view *from = &s->values[p->outputs[i]];
    if (from->count > 0) memcpy(outputs[i]->data, from->data, (size_t)from->count * tn_dtype_size(from->dtype));
  }
  return st;
}

static tn_status run(void *user, void *part, tn_step *step, tn_view *const *inputs, tn_view *const *outputs,
                     tn_error *err)
{
  tn_runtime_session *session = user;
  state s = { .h = part, .step = step };
  size_t n = s.h->n_values + 1;
  atomic_fetch_add(&session->runs, 1);
  if (strcmp(session->fail, "run") == 0) return TN_UNAVAILABLE;
  s.values = calloc(n, sizeof *s.values);
  s.blocks = calloc(n, sizeof *s.blocks);
  tn_status st = s.values == NULL || s.blocks == NULL ? tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a step")
                                                      : run_all(&s, inputs, outputs, err);
  for (size_t v = 0; s.blocks != NULL && v < n; v++) free(s.blocks[v]);
  free(s.blocks);
  free(s.values);
  return st;
}

/* ---- the factory ---- */

static tn_status prepare(const tn_session_factory *self, tn_runtime_session *session, const tn_plan *plan,
                         tn_executable **out, tn_error *err)
{
  (void)self;
  const tn_kit_offload offload = {
    .struct_size = TN_KIT_OFFLOAD_SIZE, .user = session, .take = take, .run = run, .release = release
  };
  return tn_kit_prepare_offloaded(plan, TN_KIT_INLINE, &offload, out, err);
}

TEST_RUNTIME("test.offload", .prepare = prepare, .reset = test_reset)
