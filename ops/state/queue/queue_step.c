/* SPDX-License-Identifier: Apache-2.0 */
/* Queue attempts made by kernels. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/kernel/elements/elements.h>
#include <ops/state/queue/queue_step.h>

#include <string.h>

/* ---- create ---- */

tn_status tn__queue_check_timeout(const tn_operation *op, void **state, tn_error *err)
{
  int64_t ms = tn__attr_int(op, "timeout_ms", -1);
  *state = NULL;
  if (ms == -1) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT,
                      "%s: attribute 'timeout_ms' is %lld, wanted -1: time limits belong to a run or a session",
                      tn_operation_type(op), (long long)ms);
}

static size_t wanted_size(size_t n) { return sizeof(tn__queue_wanted) + n * sizeof(tn_dtype); }

tn_status tn__queue_take_create(const tn_operation *op, void **state, tn_error *err)
{
  tn_status st = tn__queue_check_timeout(op, state, err);
  if (st != TN_OK) return st;
  size_t n = tn_operation_n_outputs(op);
  tn__queue_wanted *w = tn__alloc(wanted_size(n));
  if (w == NULL) return tn__no_memory(err, "kernel", wanted_size(n));
  w->small = tn__attr_bool(op, "allow_small_batch", false);
  w->n = (uint32_t)n;
  for (size_t i = 0; i < n; i++) w->dtypes[i] = tn_operation_output_dtype(op, i);
  *state = w;
  return TN_OK;
}

void tn__queue_take_destroy(void *state) { tn__free(state, wanted_size(((const tn__queue_wanted *)state)->n)); }

tn_status tn__queue_close_create(const tn_operation *op, void **state, tn_error *err)
{
  static bool yes = true;
  (void)err;
  *state = tn__attr_bool(op, "cancel_pending_enqueues", false) ? &yes : NULL;
  return TN_OK;
}

/* ---- inputs ---- */

static tn_status check_input(const tn_kernel_ctx *ctx, const tn__queue_spec *spec, uint32_t first, uint32_t i,
                             bool rows)
{
  const tn_view *v = ctx->inputs[first + i];
  const tn__queue_component *c = &spec->components[i];
  char found[96], wanted[96];
  if (v->dtype != c->dtype)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "component %u is of type %s, the queue has %s there", i,
                        tn_dtype_name(v->dtype), tn_dtype_name(c->dtype));
  tn__format_shape(found, sizeof found, v->dims, v->rank);
  if (!tn__queue_spec_fits(spec, i, v->dims, v->rank, rows))
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "component %u has shape %s, the queue wants %s%s", i, found,
                        rows ? "rows of shape " : "", tn__format_shape(wanted, sizeof wanted, c->dims, c->rank));
  if (!rows || v->dims[0] == ctx->inputs[first]->dims[0]) return TN_OK;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                      "component %u has shape %s, %lld rows are wanted as in component 0", i, found,
                      (long long)ctx->inputs[first]->dims[0]);
}

static tn_status check_inputs(const tn_kernel_ctx *ctx, const tn__queue_spec *spec, uint32_t first, bool rows)
{
  if (ctx->n_inputs - first != spec->n)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "%u components are given, the queue has %u",
                        ctx->n_inputs - first, spec->n);
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < spec->n; i++) st = check_input(ctx, spec, first, i, rows);
  return st;
}

static void set_priority(const tn__queue_spec *spec, tn__queue_element *e)
{
  if (spec->kind != TN__QUEUE_PRIORITY) return;
  const tn__queue_part *p = &e->parts[0];
  e->priority = ((const int64_t *)tn_tensor_data(p->whole))[p->row < 0 ? 0 : p->row];
}

/* Makes one element from the inputs, each as a whole tensor. */
static tn_status whole_inputs(tn_kernel_ctx *ctx, const tn__queue_spec *spec, uint32_t first, tn__queue_element **out)
{
  tn__queue_element *e = tn__queue_element_create(spec->n);
  tn_status st = e != NULL ? TN_OK : tn__no_memory(ctx->err, "an element of a queue", 0);
  for (uint32_t i = 0; st == TN_OK && i < spec->n; i++) {
    e->parts[i].row = -1;
    st = tn_kernel_keep_input(ctx, first + i, &e->parts[i].whole);
  }
  if (st != TN_OK && e != NULL) tn__queue_element_destroy(e);
  *out = st == TN_OK ? e : NULL;
  return st;
}

/* Makes an element of row `row` of each part of another one. */
static tn__queue_element *row_of(const tn__queue_element *wholes, int64_t row)
{
  tn__queue_element *e = tn__queue_element_create(wholes->n);
  if (e == NULL) return NULL;
  for (uint32_t i = 0; i < wholes->n; i++)
    e->parts[i] = (tn__queue_part){ tn_tensor_ref(wholes->parts[i].whole), row };
  return e;
}

static tn_status split_rows(const tn__queue_spec *spec, tn__queue_element *wholes, int64_t n, tn__queue_list *list,
                            tn_error *err)
{
  tn__queue_list rows = { NULL, NULL, 0 };
  for (int64_t r = 0; r < n; r++) {
    tn__queue_element *e = row_of(wholes, r);
    if (e == NULL) {
      tn__queue_list_clear(&rows);
      return tn__no_memory(err, "elements of a queue", 0);
    }
    set_priority(spec, e);
    tn__queue_list_add(&rows, e);
  }
  *list = rows;
  return TN_OK;
}

tn_status tn__queue_read_inputs(tn_kernel_ctx *ctx, const tn__queue_spec *spec, uint32_t first, bool rows,
                                tn__queue_list *list)
{
  tn__queue_element *e;
  tn_status st = check_inputs(ctx, spec, first, rows);
  if (st == TN_OK) st = whole_inputs(ctx, spec, first, &e);
  if (st != TN_OK) return st;
  if (!rows) {
    set_priority(spec, e);
    tn__queue_list_add(list, e);
    return TN_OK;
  }
  st = split_rows(spec, e, ctx->inputs[first]->dims[0], list, ctx->err);
  tn__queue_element_destroy(e);
  return st;
}

/* ---- parts ---- */

/* Shape and data of a part, borrowed. */
static tn_view view_of(const tn__queue_part *part)
{
  const tn_tensor *t = part->whole;
  tn_view v = { .data = tn_tensor_data(t), .dims = tn_tensor_dims(t), .count = tn_tensor_elements(t),
                .dtype = tn_tensor_dtype(t), .rank = tn_tensor_rank(t) };
  if (part->row < 0) return v;
  v.count /= v.dims[0]; /* not 0: the row exists */
  v.dims++;
  v.rank--;
  v.data = v.count == 0 ? v.data : (char *)v.data + (size_t)(part->row * v.count) * tn_dtype_size(v.dtype);
  return v;
}

#define SMALL_ROW 4096 /* bytes up to which a row is copied rather than keeping the whole tensor alive */

/* A part as a tensor: the whole, a copy of a small row, or a view of a row. The caller owns *out. */
static tn_status queue_part_tensor(const tn__queue_part *part, tn_tensor **out, tn_error *err)
{
  if (part->row < 0) {
    *out = tn_tensor_ref(part->whole);
    return TN_OK;
  }
  tn_view v = view_of(part);
  size_t bytes = (size_t)v.count * tn_dtype_size(v.dtype);
  if (bytes > SMALL_ROW)
    return tn_tensor_from_buffer(v.dtype, v.dims, v.rank, part->whole->buffer,
                                 part->whole->offset + (size_t)part->row * bytes, out, err);
  tn_status st = tn_tensor_create(v.dtype, v.dims, v.rank, out, err);
  if (st == TN_OK && v.count > 0) st = tn__copy_elements(v.dtype, tn_tensor_data(*out), v.data, v.count, err);
  if (st == TN_OK) return TN_OK;
  tn_tensor_unref(*out);
  *out = NULL;
  return st;
}

/* ---- outputs ---- */

static tn_status write_one(tn_kernel_ctx *ctx, const tn__queue_element *e)
{
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < e->n; i++) {
    tn_tensor *t;
    st = queue_part_tensor(&e->parts[i], &t, ctx->err);
    if (st == TN_OK) st = tn_kernel_set_output(ctx, i, t);
    tn_tensor_unref(t);
  }
  return st;
}

/* The shape of a batch of component i: in dimensions that may differ, the maximum of all elements. */
static tn_status batch_shape(const tn__queue_spec *spec, uint32_t i, const tn__queue_list *list, tn__shape *out,
                             tn_error *err)
{
  const tn__queue_component *c = &spec->components[i];
  out->rank = 0;
  bool fits = c->rank >= 0 && tn__shape_append(out, list->n), differ = false;
  for (int32_t d = 0; fits && d < c->rank; d++) {
    fits = tn__shape_append(out, c->dims[d] < 0 ? 0 : c->dims[d]);
    differ = differ || c->dims[d] < 0;
  }
  if (!fits)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "component %u of rank %d cannot be batched", i, c->rank);
  for (const tn__queue_element *e = list->first; differ && e != NULL; e = e->next) {
    tn_view v = view_of(&e->parts[i]);
    for (int32_t d = 0; d < c->rank; d++)
      if (v.dims[d] > out->dims[d + 1]) out->dims[d + 1] = v.dims[d];
  }
  return TN_OK;
}

static bool is_shape_of(const tn_view *v, const int64_t *dims)
{
  for (int32_t d = 0; d < v->rank; d++)
    if (v->dims[d] != dims[d]) return false;
  return true;
}

/* Copies to the leading corner of an array of shape `dims`, whose elements are zero or empty. */
static tn_status copy_corner(const tn_view *v, char *to, const int64_t *dims, tn_error *err)
{
  size_t size = tn_dtype_size(v->dtype);
  int64_t index[TN_MAX_RANK] = { 0 }, row = v->rank == 0 ? 1 : v->dims[v->rank - 1];
  for (int64_t done = 0; done < v->count; done += row) {
    int64_t at = 0;
    for (int32_t d = 0; d < v->rank; d++) at = at * dims[d] + index[d];
    tn_status st = tn__copy_elements(v->dtype, to + (size_t)at * size, (const char *)v->data + (size_t)done * size, row,
                                     err);
    if (st != TN_OK) return st;
    for (int32_t d = v->rank - 2; d >= 0; d--) {
      if (++index[d] < v->dims[d]) break;
      index[d] = 0;
    }
  }
  return TN_OK;
}

/* The number of elements, from e on, whose parts are consecutive rows of one tensor. */
static int64_t row_run(const tn__queue_element *e, uint32_t i)
{
  const tn__queue_part *p = &e->parts[i];
  int64_t n = 1;
  for (e = e->next; p->row >= 0 && e != NULL && e->parts[i].whole == p->whole && e->parts[i].row == p->row + n;
       e = e->next)
    n++;
  return n;
}

static tn_status write_rows(const tn__queue_list *list, uint32_t i, const tn_view *out, tn_error *err)
{
  int64_t each = list->n == 0 ? 0 : out->count / list->n, n;
  size_t step = (size_t)each * tn_dtype_size(out->dtype);
  char *to = out->data;
  tn_status st = TN_OK;
  for (const tn__queue_element *e = list->first; st == TN_OK && e != NULL && each > 0; to += step * (size_t)n) {
    tn_view v = view_of(&e->parts[i]);
    n = 1;
    if (is_shape_of(&v, out->dims + 1)) {
      n = row_run(e, i);
      st = tn__copy_elements(out->dtype, to, v.data, each * n, err);
    } else { /* elements that own memory are empty initially */
      if (!tn__dtype_is_managed(out->dtype)) memset(to, 0, step);
      st = copy_corner(&v, to, out->dims + 1, err);
    }
    for (int64_t k = 0; k < n; k++) e = e->next;
  }
  return st;
}

tn_status tn__queue_write_outputs(tn_kernel_ctx *ctx, const tn__queue_spec *spec, const tn__queue_list *list, bool many)
{
  if (!many) return write_one(ctx, list->first);
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < spec->n; i++) {
    tn__shape shape;
    st = batch_shape(spec, i, list, &shape, ctx->err);
    if (st == TN_OK) st = tn_kernel_allocate(ctx, i, shape.dims, shape.rank);
    if (st == TN_OK) st = write_rows(list, i, ctx->outputs[i], ctx->err);
  }
  return st;
}

tn_status tn__queue_check_outputs(const tn_kernel_ctx *ctx, const tn__queue *q, const tn__queue_wanted *wanted)
{
  const tn__queue_spec *spec = q->spec;
  if (wanted->n != spec->n)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "%s '%s' has %u components, the node wants %u", q->what, q->name,
                        spec->n, wanted->n);
  for (uint32_t i = 0; i < wanted->n; i++)
    if (wanted->dtypes[i] != spec->components[i].dtype)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "component %u of %s '%s' is of type %s, the node wants %s", i,
                          q->what, q->name, tn_dtype_name(spec->components[i].dtype), tn_dtype_name(wanted->dtypes[i]));
  return TN_OK;
}

/* ---- attempts ---- */

static tn_status report(tn_kernel_ctx *ctx, const tn__queue_attempt *a)
{
  const char *what = a->queue->what, *name = a->queue->name;
  switch (a->end) {
  case TN__QUEUE_CLOSED:
    return tn_error_set(ctx->err, a->base.status, "%s '%s' is closed%s", what, name,
                        a->action == TN__QUEUE_CLOSE ? " already" : "");
  case TN__QUEUE_SHUT:
    return tn_error_set(ctx->err, a->base.status, "%s '%s' was closed, and pending enqueues were cancelled", what,
                        name);
  case TN__QUEUE_TOO_FEW:
    return tn_error_set(ctx->err, a->base.status, "%s '%s' is closed and has %lld elements, %lld are asked for", what,
                        name, (long long)a->found, (long long)a->asked);
  case TN__QUEUE_NO_MEMORY: return tn__no_memory(ctx->err, "elements of a queue", 0);
  default: return tn_error_set(ctx->err, a->base.status, "waiting at %s '%s' was cancelled", what, name);
  }
}

static tn_status finish(tn_kernel_ctx *ctx, tn__attempt *attempt)
{
  tn__queue_attempt *a = (tn__queue_attempt *)attempt;
  tn_status st = a->base.status;
  if (st != TN_OK) return report(ctx, a);
  if (a->action != TN__QUEUE_TAKE) return TN_OK;
  if (ctx->resume && tn_kernel_cancelled(ctx)) {
    a->end = TN__QUEUE_GONE;
    a->base.status = TN_CANCELLED;
    st = report(ctx, a);
  } else {
    st = tn__queue_write_outputs(ctx, a->queue->spec, &a->list, a->many);
  }
  if (st != TN_OK) tn__queue_give_back(a); /* S-CAN-12 */
  return st;
}

static const tn__attempt_kind queue_kind = { .size = sizeof(tn__queue_attempt), .attempt = tn__queue_attempt_now,
                                             .enter = tn__queue_enter, .finish = finish,
                                             .release = tn__queue_attempt_fini };

tn_status tn__queue_submit(tn_kernel_ctx *ctx, tn__queue_attempt *attempt)
{
  return tn__attempt_submit(ctx, &attempt->base, &queue_kind);
}

tn_status tn__queue_resume(tn_kernel_ctx *ctx) { return tn__attempt_resume(ctx, &queue_kind); }
