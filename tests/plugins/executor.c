/* SPDX-License-Identifier: Apache-2.0 */
/* Level (c) of the kit, complete: a runtime that executes straight plans by itself, in memory of
 * its own, and calls the plan's kernels to compute. Other plans use level (a). With the setting
 * share=yes it keeps layouts of one segment, and uses each for all steps of the same shapes,
 * also concurrently; with help=yes a worker of the runtime helps the kernels. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/runtime.h>

#include "runtime.h"

TN_PLUGIN_MANIFEST("runtime", "test.executor", "CPU", "0", "1.0.0", "Tests", "")

static const char *const settings[] = { "share", "help" };

struct tn_runtime_session {
  int share;
  tn_kit_workers *workers; /* NULL: no workers */
};

/* A layout used for all steps whose inputs have the key. */
typedef struct shared {
  struct shared *next;
  tn_plan_layout *layout;
  size_t size;
  int64_t key[];
} shared;

struct tn_executable {
  const tn_plan *plan;
  tn_executable *kit; /* NULL: the plan is straight */
  int share;
  pthread_mutex_t mu;
  shared *layouts; /* guarded by mu; each is kept until the end */
  size_t steps;    /* number of steps that used them */
};

/* A value during a step. */
typedef struct value {
  tn_view view;
  tn_tensor *tensor; /* the owner of the memory if it is a tensor's; NULL in the arena */
  int owned;         /* owns a reference to tensor */
} value;

typedef struct state {
  const tn_plan *plan;
  tn_step *step;
  tn_executable *executable;
  tn_plan_layout *layout;
  int borrowed; /* the layout is shared */
  value *values;
  tn_view **views; /* by value; NULL = not made yet */
  char *arena, *scratch;
} state;

/* ---- the session ---- */

static tn_status new_session(const tn_session_factory *self, const tn_session_options *options,
                             tn_runtime_session **out, tn_error *err)
{
  (void)self;
  *out = tn_alloc(sizeof **out);
  if (*out == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a session");
  **out = (tn_runtime_session){ .share = tn_session_options_setting(options, "share") != NULL };
  if (tn_session_options_setting(options, "help") == NULL) return TN_OK;
  const tn_kit_workers_config config = {
    .struct_size = TN_KIT_WORKERS_CONFIG_SIZE, .threads = 2, .spin_us = -1, .own_pool = 1
  };
  tn_status st = tn_kit_workers_open(&config, &(*out)->workers, err);
  if (st == TN_OK) return TN_OK;
  tn_free(*out);
  *out = NULL;
  return st;
}

static tn_bool accepts_options(const tn_session_factory *self, const tn_session_options *options)
{
  (void)self;
  return tn_session_options_check_settings(options, settings, 2, NULL) == TN_OK;
}

static void destroy_session(const tn_session_factory *self, tn_runtime_session *session)
{
  (void)self;
  tn_kit_workers_close(session->workers);
  tn_free(session);
}

static tn_status prepare(const tn_session_factory *self, tn_runtime_session *session, const tn_plan *plan,
                         tn_executable **out, tn_error *err)
{
  (void)self;
  tn_executable *e = tn_alloc(sizeof *e);
  if (e == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a plan");
  *e = (tn_executable){ .plan = plan, .share = session->share, .mu = PTHREAD_MUTEX_INITIALIZER };
  tn_status st =
      tn_plan_check_straight(plan, NULL) == TN_OK ? TN_OK : tn_kit_prepare(plan, TN_KIT_INLINE, &e->kit, err);
  if (st == TN_OK) *out = e;
  else tn_free(e);
  return st;
}

static void release(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable)
{
  (void)self, (void)session;
  size_t n = 0;
  for (shared *l = executable->layouts, *next; l != NULL; l = next, n++) {
    next = l->next;
    tn_kit_layout_release(l->layout);
    tn_free(l);
  }
  if (n > 0) tn_log(TN_LOG_INFO, "executor: %zu layouts for %zu steps", n, executable->steps);
  tn_kit_release(executable->kit);
  tn_free(executable);
}

/* ---- values ---- */

static void *allocate(size_t bytes) { return bytes == 0 ? NULL : aligned_alloc(64, (bytes + 63) / 64 * 64); }

static tn_view view_of(tn_tensor *t)
{
  const tn_view v = { .data = tn_tensor_data(t), .dims = tn_tensor_dims(t), .count = tn_tensor_elements(t),
                      .dtype = tn_tensor_dtype(t), .rank = tn_tensor_rank(t), .buffer = tn_tensor_buffer(t) };
  return v;
}

static void set(state *s, uint32_t i, tn_tensor *t, int owned)
{
  s->values[i] = (value){ view_of(t), t, owned };
  s->views[i] = &s->values[i].view;
}

static tn_status set_outside(state *s, uint32_t i, tn_error *err)
{
  tn_plan_value v = { .struct_size = sizeof v };
  tn_status st = tn_plan_get_value(s->plan, i, &v, err);
  if (st != TN_OK || v.kind == TN_VALUE_COMPUTED) return st;
  set(s, i, v.kind == TN_VALUE_FEED ? tn_step_input(s->step, v.index) : (tn_tensor *)v.constant, 0);
  return TN_OK;
}

/* The tensor that becomes output `index`: the caller's, or a new one. */
static tn_status make_output(state *s, uint32_t i, uint32_t index, tn_error *err)
{
  tn_layout_value v = { .struct_size = sizeof v };
  tn_status st = tn_kit_layout_value(s->layout, tn_plan_output(s->plan, index), &v, err);
  tn_tensor *t = tn_step_output(s->step, index);
  int owned = t == NULL;
  if (st == TN_OK && t == NULL) st = tn_tensor_create(v.dtype, v.dims, v.rank, &t, err);
  if (st == TN_OK) set(s, i, t, owned);
  return st;
}

/* A value that a segment is about to compute. */
static tn_status place(state *s, uint32_t i, tn_error *err)
{
  tn_layout_value v = { .struct_size = sizeof v };
  tn_status st = tn_kit_layout_value(s->layout, i, &v, err);
  value *to = &s->values[i];
  tn_tensor *t = NULL;
  if (st != TN_OK) return st;
  if (v.source != i) {
    to->tensor = s->values[v.source].tensor;
    to->view.data = s->values[v.source].view.data;
    to->view.buffer = s->values[v.source].view.buffer;
  } else if (v.place == TN_PLACE_ARENA) {
    to->view.data = s->arena + v.offset;
  } else if (v.place == TN_PLACE_KNOWN) {
    to->view.data = (void *)v.data;
  } else if (v.place == TN_PLACE_OUTPUT) {
    st = make_output(s, i, v.index, err);
  } else if (v.place == TN_PLACE_OWN) {
    st = tn_tensor_create(v.dtype, v.dims, v.rank, &t, err);
    if (st == TN_OK) set(s, i, t, 1);
  }
  if (st != TN_OK) return st;
  to->view.dims = v.dims;
  to->view.rank = v.rank;
  to->view.count = v.count;
  to->view.dtype = v.dtype;
  s->views[i] = &to->view;
  return TN_OK;
}

/* ---- layouts shared by steps ---- */

/* The key of a layout: shapes, and the values of small integer tensors, which may be shapes. */
static size_t write_key(tn_tensor *const *inputs, size_t n, int64_t *key)
{
  size_t size = 0;
  for (size_t i = 0; i < n; i++) {
    tn_dtype dtype = tn_tensor_dtype(inputs[i]);
    int64_t elements = tn_tensor_elements(inputs[i]), rank = tn_tensor_rank(inputs[i]);
    const void *data = tn_tensor_data(inputs[i]);
    if (key != NULL) key[size] = rank;
    for (int64_t k = 0; key != NULL && k < rank; k++) key[size + 1 + (size_t)k] = tn_tensor_dims(inputs[i])[k];
    size += 1 + (size_t)rank;
    if ((dtype != TN_INT32 && dtype != TN_INT64) || elements > 64) continue;
    for (int64_t k = 0; key != NULL && k < elements; k++)
      key[size + (size_t)k] = dtype == TN_INT32 ? ((const int32_t *)data)[k] : ((const int64_t *)data)[k];
    size += (size_t)elements;
  }
  return size;
}

static tn_status make_shared(state *s, tn_tensor *const *inputs, size_t n, shared *made, tn_error *err)
{
  tn_layout_segment segment = { .struct_size = sizeof segment, .is_last = 1 };
  tn_status st = tn_kit_layout(s->plan, inputs, n, &s->layout, err);
  if (st == TN_OK && tn_plan_n_instructions(s->plan) > 0) st = tn_kit_layout_segment(s->layout, 0, &segment, err);
  if (st != TN_OK || !segment.is_last) { /* further segments depend on the step */
    tn_free(made);
    return st;
  }
  made->layout = s->layout;
  made->next = s->executable->layouts;
  s->executable->layouts = made;
  s->borrowed = 1;
  return TN_OK;
}

static tn_status take_layout(state *s, tn_tensor *const *inputs, size_t n, tn_error *err)
{
  tn_executable *e = s->executable;
  if (!e->share) return tn_kit_layout(s->plan, inputs, n, &s->layout, err);
  size_t size = write_key(inputs, n, NULL);
  shared *made = tn_alloc(sizeof *made + size * sizeof *made->key), *l;
  if (made == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a layout");
  made->size = write_key(inputs, n, made->key);
  pthread_mutex_lock(&e->mu);
  for (l = e->layouts; l != NULL; l = l->next)
    if (l->size == size && memcmp(l->key, made->key, size * sizeof *made->key) == 0) break;
  tn_status st = l == NULL ? make_shared(s, inputs, n, made, err) : TN_OK;
  if (l != NULL) {
    s->layout = l->layout;
    s->borrowed = 1;
    tn_free(made);
  }
  e->steps += (size_t)s->borrowed;
  pthread_mutex_unlock(&e->mu);
  return st;
}

/* ---- running ---- */

static tn_status call(state *s, uint32_t i, const tn_plan_instruction *in, tn_error *err)
{
  tn_layout_instruction l = { .struct_size = sizeof l };
  tn_status st = tn_kit_layout_instruction(s->layout, i, &l, err);
  if (st != TN_OK || !l.computes) return st;
  tn_view **inputs = tn_alloc((in->n_inputs + in->n_outputs + 1) * sizeof *inputs), **outputs = inputs + in->n_inputs;
  tn_tensor **made = tn_alloc((in->n_outputs + 1) * sizeof *made);
  void *scratch = allocate(l.scratch_bytes);
  if (inputs == NULL || made == NULL || (scratch == NULL && l.scratch_bytes > 0))
    st = tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a call");
  for (uint32_t k = 0; st == TN_OK && k < in->n_inputs; k++) inputs[k] = s->views[in->inputs[k]];
  for (uint32_t k = 0; st == TN_OK && k < in->n_outputs; k++) outputs[k] = s->views[in->outputs[k]];
  if (st == TN_OK) st = tn_kit_compute(s->step, s->layout, i, inputs, outputs, scratch, made, err);
  for (uint32_t k = 0; st == TN_OK && k < in->n_outputs; k++)
    if (made[k] != NULL) set(s, in->outputs[k], made[k], 1);
  free(scratch);
  tn_free(made);
  tn_free(inputs);
  return st;
}

static tn_status run_segment(state *s, size_t number, tn_bool *last, tn_error *err)
{
  tn_layout_segment segment = { .struct_size = sizeof segment };
  tn_status st = tn_kit_layout_segment(s->layout, number, &segment, err);
  if (st != TN_OK) return st;
  *last = segment.is_last;
  free(s->arena);
  s->arena = allocate(segment.arena_bytes);
  if (s->arena == NULL && segment.arena_bytes > 0)
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for an arena");
  for (uint32_t i = segment.begin; st == TN_OK && i < segment.end; i++) {
    tn_plan_instruction in = { .struct_size = sizeof in };
    st = tn_plan_get_instruction(s->plan, i, &in, err);
    for (uint32_t k = 0; st == TN_OK && k < in.n_outputs; k++) st = place(s, in.outputs[k], err);
    if (st == TN_OK) st = call(s, i, &in, err);
  }
  return st;
}

/* Elements that are bytes and own nothing else. */
static int is_plain(tn_dtype dtype) { return dtype != TN_STRING && dtype != TN_RESOURCE && dtype != TN_VARIANT; }

static tn_status copy_into(tn_tensor *to, const tn_view *from, tn_error *err)
{
  tn_status st = TN_OK;
  if (is_plain(from->dtype)) {
    if (from->count > 0) memcpy(tn_tensor_data(to), from->data, tn_tensor_bytes(to));
    return TN_OK;
  }
  if (from->dtype != TN_STRING) return tn_error_set(err, TN_UNIMPLEMENTED, "handles into a given tensor");
  for (int64_t i = 0; st == TN_OK && i < from->count; i++) {
    size_t n;
    const char *text = tn_string_data((const tn_string *)from->data + i, &n);
    st = tn_string_set((tn_string *)tn_tensor_data(to) + i, text, n, err);
  }
  return st;
}

/* Makes the program's own copy of a value, unless it exists already. */
static tn_status give(state *s, size_t o, tn_error *err)
{
  value *v = &s->values[tn_plan_output(s->plan, o)];
  tn_tensor *given = tn_step_output(s->step, o), *out = NULL, *copy = NULL;
  tn_status st = TN_OK;
  if (given != NULL) return given == v->tensor ? TN_OK : copy_into(given, &v->view, err);
  if (is_plain(v->view.dtype)) {
    size_t bytes;
    st = tn_shape_bytes(v->view.dtype, v->view.dims, v->view.rank, &bytes, err);
    if (st == TN_OK)
      st = tn_tensor_from_data(v->view.dtype, v->view.dims, v->view.rank, v->view.data, bytes, &out, err);
  } else {
    st = tn_tensor_copy(v->tensor, &copy, err);
    if (st == TN_OK) st = tn_tensor_reshape(copy, v->view.dims, v->view.rank, &out, err);
    tn_tensor_unref(copy);
  }
  if (st == TN_OK) tn_step_set_output(s->step, o, out);
  return st;
}

static tn_status run(state *s, size_t n_values, tn_error *err)
{
  size_t n = tn_step_n_inputs(s->step);
  tn_tensor **inputs = tn_alloc((n + 1) * sizeof *inputs);
  if (inputs == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a step");
  for (size_t i = 0; i < n; i++) inputs[i] = tn_step_input(s->step, i);
  tn_status st = take_layout(s, inputs, n, err);
  tn_free(inputs);
  for (uint32_t i = 0; st == TN_OK && i < n_values; i++) st = set_outside(s, i, err);
  tn_bool last = tn_plan_n_instructions(s->plan) == 0;
  for (size_t k = 0; st == TN_OK && !last; k++) {
    if (k > 0) st = tn_kit_layout_next(s->layout, s->views, n_values, err);
    if (st == TN_OK) st = run_segment(s, k, &last, err);
  }
  for (size_t o = 0; st == TN_OK && o < tn_plan_n_outputs(s->plan); o++) st = give(s, o, err);
  return st;
}

static tn_status step(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable,
                      tn_step *step, tn_error *err)
{
  (void)self;
  if (executable->kit != NULL) return tn_kit_step(executable->kit, step, err);
  if (session->workers != NULL && tn_step_pool(step) >= 0)
    tn_kit_step_workers(step, executable->plan, session->workers);
  state s = { .plan = executable->plan, .step = step, .executable = executable };
  size_t n = tn_plan_n_values(s.plan);
  s.values = calloc(n + 1, sizeof *s.values);
  s.views = calloc(n + 1, sizeof *s.views);
  tn_status st = s.values != NULL && s.views != NULL ? run(&s, n, err)
                                                     : tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a step");
  for (size_t i = 0; s.values != NULL && i < n; i++)
    if (s.values[i].owned) tn_tensor_unref(s.values[i].tensor);
  if (!s.borrowed) tn_kit_layout_release(s.layout);
  free(s.arena);
  free(s.views);
  free(s.values);
  return st;
}

TEST_RUNTIME("test.executor", .prepare = prepare, .release = release, .step = step, .reset = test_reset)
