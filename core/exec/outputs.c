/* SPDX-License-Identifier: Apache-2.0 */
/* The step's outputs. If a kernel computes an output, and no other output shows its memory, the
 * tensor is allocated before the segment runs (or is the one that the caller gave), and the kernel
 * writes into it. Tensors of the step's own are handed over at the end if possible. Any other
 * output (a feed, a constant, a value fetched twice) is copied. */
#include <core/exec/control.h>
#include <core/exec/values.h>

/* The caller's tensor for output o, borrowed; NULL = none. */
static tn_tensor *given_output(const tn__run *run, size_t o)
{
  return run->step->given == NULL ? NULL : run->step->given[o];
}

static tn_status check_given(const tn_tensor *t, size_t o, tn_dtype dtype, const int64_t *dims, int32_t rank,
                             tn_error *err)
{
  bool same = t->dtype == dtype && t->rank == rank;
  for (int32_t d = 0; same && d < rank; d++) same = t->dims[d] == dims[d];
  if (same) return TN_OK;
  char want[96], have[96];
  return tn_error_set(err, TN_INVALID_ARGUMENT, "fetch %zu is %s %s, but the tensor to write into is %s %s", o,
                      tn_dtype_name(dtype), tn__format_shape(want, sizeof want, dims, rank), tn_dtype_name(t->dtype),
                      tn__format_shape(have, sizeof have, t->dims, t->rank));
}

/* Reuses the output of an earlier run inside of the same instruction, if it has the same type and
 * shape and no other reference to it exists. */
static bool take_again(tn__run *run, size_t o, tn_dtype dtype, const int64_t *dims, int32_t rank, size_t bytes,
                       tn_tensor **out)
{
  tn_tensor *t = run->again == NULL ? NULL : run->again[o];
  if (t == NULL || t->dtype != dtype || t->rank != rank || t->bytes != bytes || !tn_tensor_is_exclusive(t))
    return false;
  for (int32_t d = 0; d < rank; d++)
    if (t->dims[d] != dims[d]) return false;
  run->again[o] = NULL;
  *out = t;
  return true;
}

/* The tensor into which output o is written: the caller's, or a new one. */
static tn_status output_target(tn__run *run, size_t o, tn_dtype dtype, const int64_t *dims, int32_t rank, int64_t count,
                               tn_tensor **out)
{
  *out = given_output(run, o);
  if (*out != NULL) return check_given(*out, o, dtype, dims, rank, run->err);
  size_t bytes = (size_t)count * tn_dtype_size(dtype);
  tn_status st = TN_OK;
  if (!take_again(run, o, dtype, dims, rank, bytes, out))
    st = run->inner ? tn__spare_tensor(run->workspace, dtype, dims, rank, count, bytes, out, run->err)
                    : tn__tensor_create_known(dtype, dims, rank, count, bytes, out, run->err);
  if (st == TN_OK) run->step->outputs[o] = *out;
  return st;
}

tn_status tn__outputs_bind(tn__run *run, tn__instance *instance)
{
  const tn__layout *l = instance->layout;
  for (uint32_t at = 0; at < l->segment->n_outputs; at++) {
    uint32_t root = l->output_root[at], o = l->segment->outputs[at];
    if (root == TN__NONE) continue;
    uint32_t slot;
    tn__instance *own;
    const tn_view *v = tn__run_view(run, run->plan->outputs[o], &slot, &own);
    tn_tensor *t;
    tn_status st = output_target(run, o, v->dtype, v->dims, v->rank, v->count, &t);
    if (st != TN_OK) return st;
    tn__bind_data(instance, root, t->data, t->buffer);
  }
  return TN_OK;
}

/* Copies elements; strings and handles are copied one by one, since each owns memory or a
 * reference. */
static tn_status copy_elements(const tn_view *from, tn_tensor *to, tn_error *err)
{
  if (from->dtype == TN_STRING) {
    for (int64_t i = 0; i < from->count; i++) {
      size_t n;
      const char *text = tn_string_data((const tn_string *)from->data + i, &n);
      tn_status st = tn_string_set((tn_string *)to->data + i, text, n, err);
      if (st != TN_OK) return st;
    }
  } else if (tn__dtype_is_managed(from->dtype)) {
    for (int64_t i = 0; i < from->count; i++) {
      tn_handle *h = ((tn_handle **)from->data)[i], **place = (tn_handle **)to->data + i;
      if (h != NULL) h->cls->ref(h);
      if (*place != NULL) (*place)->cls->unref(*place);
      *place = h;
    }
  } else if (to->bytes > 0) {
    __builtin_memcpy(to->data, from->data, to->bytes);
  }
  return TN_OK;
}

static tn_status copy_output(tn__run *run, size_t o, const tn_view *from)
{
  tn_tensor *t;
  tn_status st = output_target(run, o, from->dtype, from->dims, from->rank, from->count, &t);
  return st == TN_OK ? copy_elements(from, t, run->err) : st;
}

/* A tensor of the step's own is handed over if no other reference to it exists. Further outputs
 * that show its memory are copied from it, which is safe because the program has not received any
 * of them yet. */
static bool hand_over(tn__run *run, size_t o, tn__instance *instance, uint32_t slot)
{
  const tn__slot *slots = instance->layout->slots;
  if (slots[slot].store != TN_STORE_HEAP || slots[slot].root != slot || given_output(run, o) != NULL) return false;
  if (!tn_tensor_is_exclusive(instance->heap[slot])) return false; /* NULL: it was handed over for another output */
  run->step->outputs[o] = instance->heap[slot];
  instance->heap[slot] = NULL;
  return true;
}

/* The output of a Merge or a loop is handed over if no other reference exists. */
static bool hand_over_whole(tn__run *run, size_t o, uint32_t held)
{
  tn_tensor **place = &run->workspace->held[held];
  if (given_output(run, o) != NULL || !tn_tensor_is_exclusive(*place)) return false;
  run->step->outputs[o] = *place;
  *place = NULL;
  return true;
}

/* The output to which this output's value was handed over. There is one. */
static const tn_tensor *handed_over(const tn__run *run, uint32_t o)
{
  uint32_t first = 0;
  while (run->plan->outputs[first] != run->plan->outputs[o] || run->step->outputs[first] == NULL) first++;
  return run->step->outputs[first];
}

tn_status tn__output_dead(const tn__run *run, uint32_t o) /* S-EXE-09 */
{
  const tn_output asked = run->plan->asked[o];
  const tn_output from = asked.op != NULL ? asked : run->plan->values[run->plan->outputs[o]].output;
  tn_status st =
      tn_error_set(run->err, TN_INVALID_ARGUMENT, "fetch '%s:%d' has no value: it is on a branch that was not taken",
                   tn_operation_name(from.op), (int)from.index);
  tn_error_set_node(run->err, tn_operation_name(from.op));
  return st;
}

/* Makes output o unless the segment's kernels have written it already. */
static tn_status output_finish(tn__run *run, uint32_t o)
{
  const tn__plan_value *v = &run->plan->values[run->plan->outputs[o]];
  const tn_tensor *t = v->constant;
  if (run->plan->has_control && tn__context_state(run, run->plan->conditions.outputs[o]) != TN__LIVE)
    return tn__output_dead(run, o);
  if (v->whole) {
    t = run->workspace->held[v->held];
    if (t == NULL) t = handed_over(run, o);
    else if (hand_over_whole(run, o, v->held)) return TN_OK;
  } else if (v->kind == TN_VALUE_COMPUTED) {
    uint32_t slot;
    tn__instance *instance;
    const tn_view *from = tn__run_view(run, run->plan->outputs[o], &slot, &instance);
    if (instance->layout->output_root[run->plan->output_places[o]] != TN__NONE) return TN_OK;
    if (hand_over(run, o, instance, slot)) return TN_OK;
    return copy_output(run, o, from);
  }
  if (v->kind == TN_VALUE_FEED) t = run->step->inputs[v->index];
  const tn_view from = { .data = t->data, .dims = t->dims, .count = t->count, .dtype = t->dtype, .rank = t->rank };
  if (t->data != NULL || t->bytes == 0) return copy_output(run, o, &from);
  tn_tensor *to; /* device memory */
  tn_status st = output_target(run, o, t->dtype, t->dims, t->rank, t->count, &to);
  return st == TN_OK ? tn_tensor_read(t, to->data, to->bytes, run->err) : st;
}

tn_status tn__outputs_finish(tn__run *run)
{
  for (uint32_t o = 0; o < run->plan->n_outputs; o++) {
    tn_status st = output_finish(run, o);
    if (st != TN_OK) return st;
  }
  return TN_OK;
}

void tn__outputs_drop(tn__run *run)
{
  for (uint32_t o = 0; o < run->plan->n_outputs; o++) {
    tn_tensor_unref(run->step->outputs[o]);
    run->step->outputs[o] = NULL;
  }
}
