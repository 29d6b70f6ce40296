/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes, and the interpretation of bracket slicing; see slicing.h. */
#include <ops/kernel/move/slicing.h>

#include <core/base/alloc.h>
#include <ops/kernel/operands.h>

/* ---- boxes ---- */

bool tn__box_is_empty(const tn__box *b)
{
  for (int32_t i = 0; i < b->rank; i++)
    if (b->size[i] == 0) return true;
  return false;
}

bool tn__box_is_all(const tn__box *b, const int64_t *dims)
{
  for (int32_t i = 0; i < b->rank; i++)
    if (b->size[i] != dims[i] || (dims[i] > 1 && b->step[i] != 1)) return false;
  return true;
}

void tn__box_copy_init(tn__box_copy *c, tn_dtype dtype, const int64_t *dims, const tn__box *box, const int64_t *steps,
                       bool into)
{
  int64_t whole = 1, boxed = 1, at = 0; /* strides of dimension i; offset so far */
  int64_t own[TN_MAX_RANK], other[TN_MAX_RANK];
  for (int32_t i = box->rank - 1; i >= 0; i--) {
    at += box->begin[i] * whole;
    own[i] = box->size[i] > 1 ? box->step[i] * whole : 0; /* the step does not matter for size 1 */
    other[i] = steps != NULL ? steps[i] : boxed;
    whole *= dims[i];
    boxed *= box->size[i];
  }
  c->offset = (size_t)at * tn_dtype_size(dtype);
  c->into = into;
  tn__strided_init(&c->strided, dtype);
  for (int32_t i = 0; i < box->rank; i++)
    tn__strided_add(&c->strided, box->size[i], into ? other[i] : own[i], into ? own[i] : other[i]);
  tn__strided_plan(&c->strided);
}

tn_status tn__box_copy_run(const tn__box_copy *c, tn_kernel_ctx *ctx, void *tensor, void *other)
{
  char *box = (char *)tensor + c->offset;
  return c->into ? tn__strided_run(&c->strided, ctx, other, box) : tn__strided_run(&c->strided, ctx, box, other);
}

/* ---- reading ---- */

void tn__slicing_masks(const tn_operation *op, tn__slicing *s)
{
  s->begin_mask = (uint32_t)tn__attr_int(op, "begin_mask", 0);
  s->end_mask = (uint32_t)tn__attr_int(op, "end_mask", 0);
  s->ellipsis_mask = (uint32_t)tn__attr_int(op, "ellipsis_mask", 0);
  s->new_axis_mask = (uint32_t)tn__attr_int(op, "new_axis_mask", 0);
  s->shrink_axis_mask = (uint32_t)tn__attr_int(op, "shrink_axis_mask", 0);
}

static int64_t bracket(const tn_view *v, int64_t k)
{
  int64_t x = tn__operand_int(v, k);
  return x == TN_UNKNOWN_INT ? x + 1 : x; /* an index as far out of range, without the special meaning */
}

tn_status tn__slicing_vectors(const tn_kernel_ctx *ctx, uint32_t first, tn__slicing *s)
{
  const tn_view *begin = ctx->inputs[first], *end = ctx->inputs[first + 1], *step = ctx->inputs[first + 2];
  if (begin->rank != 1 || end->rank != 1 || step->rank != 1 || end->count != begin->count ||
      step->count != begin->count)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                        "inputs %u to %u have ranks %d, %d and %d and %lld, %lld and %lld "
                        "elements, wanted vectors of equal length",
                        first, first + 2, (int)begin->rank, (int)end->rank, (int)step->rank, (long long)begin->count,
                        (long long)end->count, (long long)step->count);
  if (begin->count > TN__SLICING_MAX)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "input %u has %lld elements, at most %d are allowed", first,
                        (long long)begin->count, TN__SLICING_MAX);
  s->n = (int32_t)begin->count;
  for (int32_t i = 0; i < s->n; i++) {
    s->begin[i] = bracket(begin, i);
    s->end[i] = bracket(end, i);
    s->step[i] = bracket(step, i);
  }
  return TN_OK;
}

tn_status tn__slicing_read(const tn_prepare_ctx *ctx, uint32_t first, tn__slicing *s, tn_error *err)
{
  const tn_view *in = ctx->inputs + first;
  int64_t *to[3] = { s->begin, s->end, s->step };
  tn_status st = tn__want_rank(ctx, first, 1, err);
  if (st == TN_OK && in->count > TN__SLICING_MAX)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %u has %lld elements, at most %d are allowed",
                      tn_operation_type(ctx->op), first, (long long)in->count, TN__SLICING_MAX);
  s->n = (int32_t)in->count;
  for (uint32_t k = 0; k < 3 && st == TN_OK; k++) {
    st = tn__want_vector(ctx, first + k, s->n, err);
    for (int32_t i = 0; i < s->n && st == TN_OK; i++) to[k][i] = bracket(&in[k], i);
  }
  tn__slicing_masks(ctx->op, s);
  return st;
}

bool tn__slicing_infer(const tn_infer_ctx *ctx, size_t first, tn__slicing *s)
{
  int64_t *to[3] = { s->begin, s->end, s->step };
  s->n = -1;
  for (size_t k = 0; k < 3 && s->n < 0; k++) s->n = tn__infer_length(ctx, first + k);
  if (s->n < 0 || s->n > TN__SLICING_MAX) return false;
  for (size_t k = 0; k < 3; k++) {
    const int64_t *items;
    bool known = tn_infer_input_ints(ctx, first + k, &items) == s->n;
    for (int32_t i = 0; i < s->n; i++) to[k][i] = known ? items[i] : TN_UNKNOWN_INT;
  }
  tn__slicing_masks(tn_infer_operation(ctx), s);
  return true;
}

/* ---- interpretation ---- */

/* The begin:end:step of one dimension. */
typedef struct range {
  int64_t begin, end, step;
  bool from_start, to_end; /* begin or end is omitted */
  bool shrink;
} range;

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
  if (x < low) return low;
  return x > high ? high : x;
}

/* Number of indices from begin, in steps, before end. All three are known. */
static int64_t places(int64_t begin, int64_t end, int64_t step)
{
  int64_t length = end - begin;
  if (length == 0 || (length < 0) != (step < 0)) return 0;
  return length / step + (length % step != 0);
}

static tn_status shrink_range(const char *op, const range *r, int32_t dim, int64_t whole, tn__box *box, tn_error *err)
{
  box->step[dim] = box->size[dim] = 1;
  box->begin[dim] = r->begin;
  if (r->step != TN_UNKNOWN_INT && r->step < 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: dimension %d is taken away with step %lld, wanted 1", op,
                        (int)dim, (long long)r->step);
  if (r->begin == TN_UNKNOWN_INT || whole < 0) return TN_OK;
  if (r->begin < -whole || r->begin >= whole)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: index %lld is outside dimension %d of size %lld", op,
                        (long long)r->begin, (int)dim, (long long)whole);
  if (r->begin < 0) box->begin[dim] += whole;
  return TN_OK;
}

static tn_status apply_range(const char *op, const range *r, int32_t dim, int64_t whole, tn__box *box, tn_error *err)
{
  if (r->step == 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the step in dimension %d is 0", op, (int)dim);
  if (r->shrink) return shrink_range(op, r, dim, whole, box, err);
  bool begin_known = r->from_start || r->begin != TN_UNKNOWN_INT, end_known = r->to_end || r->end != TN_UNKNOWN_INT;
  box->step[dim] = r->step;
  box->begin[dim] = 0;
  box->size[dim] = -1;
  if (whole < 0 || r->step == TN_UNKNOWN_INT || !begin_known || !end_known) return TN_OK;
  /* Bounds that begin and end are clamped to; they depend on the direction of the step. */
  int64_t low = r->step > 0 ? 0 : -1, high = r->step > 0 ? whole : whole - 1;
  int64_t begin = clamp(r->begin < 0 ? r->begin + whole : r->begin, low, high);
  int64_t end = clamp(r->end < 0 ? r->end + whole : r->end, low, high);
  if (r->from_start) begin = r->step > 0 ? low : high;
  if (r->to_end) end = r->step > 0 ? high : low;
  box->begin[dim] = begin;
  box->size[dim] = places(begin, end, r->step);
  return TN_OK;
}

/* Iteration over the entries of the brackets. */
typedef struct walk {
  const char *op;
  const int64_t *dims;
  int32_t rank, at; /* dimensions of the tensor, and how many are done */
  tn__sliced *out;
  tn_error *err;
} walk;

static tn_status put(walk *w, int64_t size, int32_t source)
{
  if (w->out->shape.rank < TN_MAX_RANK) w->out->source[w->out->shape.rank] = (int16_t)source;
  if (tn__shape_append(&w->out->shape, size)) return TN_OK;
  return tn_error_set(w->err, TN_INVALID_ARGUMENT, "%s: the result has more than %d dimensions", w->op, TN_MAX_RANK);
}

/* Applies a range to the next dimension of the tensor. */
static tn_status take(walk *w, const range *r)
{
  if (w->at >= w->rank)
    return tn_error_set(w->err, TN_INVALID_ARGUMENT, "%s: more indices than the %d dimensions of the tensor", w->op,
                        (int)w->rank);
  tn_status st = apply_range(w->op, r, w->at, w->dims[w->at], &w->out->box, w->err);
  if (st != TN_OK) return st;
  w->at++;
  return r->shrink ? TN_OK : put(w, w->out->box.size[w->at - 1], w->at - 1);
}

/* Takes whole dimensions up to `end`, where the remaining entries of the brackets apply. */
static tn_status take_whole(walk *w, int32_t end)
{
  static const range whole = { .step = 1, .from_start = true, .to_end = true };
  tn_status st = TN_OK;
  while (st == TN_OK && w->at < end) st = take(w, &whole);
  return st;
}

/* How many dimensions of the tensor entries [from, n) consume. */
static int32_t count_taken(const tn__slicing *s, int32_t from)
{
  int32_t n = 0;
  for (int32_t i = from; i < s->n; i++) n += (s->new_axis_mask >> i & 1) == 0;
  return n;
}

tn_status tn__slicing_apply(const char *op, const tn__slicing *s, const int64_t *dims, int32_t rank, tn__sliced *out,
                            tn_error *err)
{
  walk w = { op, dims, rank, 0, out, err };
  out->box.rank = rank;
  out->shape.rank = 0;
  if (s->ellipsis_mask & (s->ellipsis_mask - 1))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: ellipsis_mask 0x%x names more than one place", op,
                        (unsigned)s->ellipsis_mask);
  tn_status st = TN_OK;
  for (int32_t i = 0; i < s->n && st == TN_OK; i++) {
    if (s->ellipsis_mask >> i & 1) {
      st = take_whole(&w, rank - count_taken(s, i + 1));
    } else if (s->new_axis_mask >> i & 1) {
      st = put(&w, 1, -1);
    } else {
      range r = { s->begin[i], s->end[i], s->step[i], s->begin_mask >> i & 1, s->end_mask >> i & 1,
                  s->shrink_axis_mask >> i & 1 };
      st = take(&w, &r);
    }
  }
  return st == TN_OK ? take_whole(&w, rank) : st;
}

/* ---- values assigned to a slice ---- */

bool tn__sliced_value_steps(const tn_view *value, const tn__sliced *s, int64_t *steps)
{
  int64_t behind = 1;
  int32_t lead = value->rank - s->shape.rank;
  for (int32_t i = 0; i < s->box.rank; i++) steps[i] = 0;
  for (int32_t i = value->rank - 1; i >= 0; i--) {
    int64_t size = value->dims[i], wanted = i < lead ? 1 : s->shape.dims[i - lead];
    if (size != 1 && size != wanted) return false;
    if (size != 1 && s->source[i - lead] >= 0) steps[s->source[i - lead]] = behind;
    behind *= size;
  }
  return true;
}
