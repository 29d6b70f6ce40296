/* SPDX-License-Identifier: Apache-2.0 */
/* MirrorPad pads a tensor with its mirror image. Its gradient, MirrorPadGrad, folds the edges back. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/kernel/elements/complex.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/family.h>
#include <ops/kernel/move/strided.h>
#include <ops/kernel/padding.h>
#include <string.h>

/* A step copies or adds one part of a tensor to another. MirrorPad takes one dimension after
 * another, the last one first, and fills the padding before and after it from the inside. A step
 * spans the full padded size of the dimensions already done and the unpadded size of those still to
 * do. The gradient folds the dimensions in the opposite order. */
typedef struct mirror_step {
  tn__strided strided;
  size_t from, to; /* bytes from the start of the tensor */
} mirror_step;

typedef void (*add_fn)(const char *from, int64_t from_step, char *to, int64_t to_step, int64_t n);

typedef struct mirror_plan {
  size_t bytes; /* of this allocation */
  size_t whole; /* bytes of the padded tensor */
  add_fn add;
  int32_t n_steps;
  mirror_step steps[];
} mirror_plan;

static void destroy_plan(void *plan)
{
  if (plan != NULL) tn__free(plan, ((mirror_plan *)plan)->bytes);
}

/* ---- planning ---- */

typedef struct mirror {
  tn_dtype dtype;
  int64_t offset; /* distance from the edge of the first mirrored element: 1 for REFLECT, 0 for SYMMETRIC */
  tn__paddings paddings;
  tn__shape inside, padded;
  int64_t step[TN_MAX_RANK]; /* elements of the padded tensor */
} mirror;

/* Reads the attribute and input 1, and checks that there are enough elements to mirror. `sign` is
 * as in padding.h. */
static tn_status read_mirror(const tn_prepare_ctx *ctx, int sign, mirror *m, tn_error *err)
{
  static const char *const modes[] = { "SYMMETRIC", "REFLECT" };
  const char *op = tn_operation_type(ctx->op);
  const tn_view *in = &ctx->inputs[0];
  int mode;
  tn_status st = tn__attr_choice(ctx->op, "mode", modes, 2, &mode, err);
  if (st == TN_OK) st = tn__paddings_read(ctx, 1, &m->paddings, err);
  if (st != TN_OK) return st;
  m->dtype = in->dtype;
  m->offset = mode;
  tn__shape_set(&m->inside, in->dims, in->rank);
  tn__shape_set(&m->padded, in->dims, in->rank);
  for (int32_t k = 0; k < in->rank; k++) {
    int64_t before = m->paddings.before[k], after = m->paddings.after[k], size = in->dims[k];
    if (sign < 0) size = before > size || after > size - before ? 0 : size - before - after;
    if (before > size - mode || after > size - mode || (sign < 0 && size == 0)) /* an empty gradient is rejected */
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: paddings %lld and %lld of dimension %d, which has size %lld: "
                          "at most %lld can be mirrored", op, (long long)before, (long long)after, (int)k,
                          (long long)in->dims[k], (long long)(size < mode ? 0 : size - mode));
    if (__builtin_add_overflow(size, before, &m->padded.dims[k]) ||
        __builtin_add_overflow(m->padded.dims[k], after, &m->padded.dims[k]))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: dimension %d is too large with its paddings", op, (int)k);
    m->inside.dims[k] = size;
  }
  return TN_OK;
}

static void set_steps(mirror *m)
{
  int64_t step = 1;
  for (int32_t k = m->padded.rank - 1; k >= 0; k--) {
    m->step[k] = step;
    step *= m->padded.dims[k];
  }
}

/* Byte offset of the inside of the padded tensor, for its first n_dims dimensions. */
static size_t inside_at(const mirror *m, int32_t n_dims)
{
  int64_t at = 0;
  for (int32_t k = 0; k < n_dims; k++) at += m->paddings.before[k] * m->step[k];
  return (size_t)at * tn_dtype_size(m->dtype);
}

/* Reads n places along dimension d backwards from place `from`, and writes them forwards from place
 * `to`. */
static void set_step(mirror_step *s, const mirror *m, int32_t d, int64_t n, int64_t from, int64_t to, bool plan)
{
  size_t element = tn_dtype_size(m->dtype), at = inside_at(m, d);
  tn__strided_init(&s->strided, m->dtype);
  for (int32_t k = 0; k < m->padded.rank; k++) {
    int64_t size = k < d ? m->inside.dims[k] : m->padded.dims[k];
    if (k == d) size = n;
    tn__strided_add(&s->strided, size, k == d ? -m->step[k] : m->step[k], m->step[k]);
  }
  if (plan) tn__strided_plan(&s->strided);
  s->from = at + (size_t)(from * m->step[d]) * element;
  s->to = at + (size_t)(to * m->step[d]) * element;
}

/* A step between the inside of the padded tensor and a separate tensor. `out`: from the padded
 * tensor to the other one. */
static void set_inside(mirror_step *s, const mirror *m, bool out)
{
  int64_t own = 1, steps[TN_MAX_RANK];
  for (int32_t k = m->inside.rank - 1; k >= 0; k--) {
    steps[k] = own;
    own *= m->inside.dims[k];
  }
  tn__strided_init(&s->strided, m->dtype);
  for (int32_t k = 0; k < m->inside.rank; k++)
    tn__strided_add(&s->strided, m->inside.dims[k], out ? m->step[k] : steps[k], out ? steps[k] : m->step[k]);
  tn__strided_plan(&s->strided);
  s->from = out ? inside_at(m, m->padded.rank) : 0;
  s->to = out ? 0 : inside_at(m, m->padded.rank);
}

static mirror_plan *new_plan(const mirror *m)
{
  int32_t n = 1;
  for (int32_t k = 0; k < m->padded.rank; k++) n += (m->paddings.before[k] > 0) + (m->paddings.after[k] > 0);
  size_t bytes = sizeof(mirror_plan) + (size_t)n * sizeof(mirror_step);
  mirror_plan *p = tn__zalloc(bytes);
  if (p == NULL) return NULL;
  p->bytes = bytes;
  p->whole = tn_dtype_size(m->dtype);
  for (int32_t k = 0; k < m->padded.rank; k++) p->whole *= (size_t)m->padded.dims[k];
  return p;
}

static bool has_elements(const tn__shape *s)
{
  for (int32_t k = 0; k < s->rank; k++)
    if (s->dims[k] == 0) return false;
  return true;
}

/* ---- MirrorPad ---- */

static tn_status pad_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  mirror m;
  tn_status st = read_mirror(ctx, 1, &m, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, m.padded.dims, m.padded.rank, err);
  if (st != TN_OK) return st;
  tn_view padded = { .dims = m.padded.dims, .rank = m.padded.rank };
  if (tn__view_same_shape(&ctx->inputs[0], &padded)) return tn_prepare_view(ctx, 0, 0, err);
  if (!has_elements(&m.padded)) return TN_OK;
  set_steps(&m);
  mirror_plan *p = new_plan(&m);
  if (p == NULL) return tn__no_memory(err, "padding", sizeof *p);
  ctx->shape_state = p;
  set_inside(&p->steps[p->n_steps++], &m, false);
  for (int32_t d = m.padded.rank - 1; d >= 0; d--) {
    int64_t before = m.paddings.before[d], after = m.paddings.after[d], end = before + m.inside.dims[d];
    if (before > 0) set_step(&p->steps[p->n_steps++], &m, d, before, 2 * before + m.offset - 1, 0, true);
    if (after > 0) set_step(&p->steps[p->n_steps++], &m, d, after, end - 1 - m.offset, end, true);
  }
  for (int32_t i = 0; i < p->n_steps; i++) ctx->cost_ns += p->steps[i].strided.cost_ns;
  return TN_OK;
}

static tn_status pad_compute(tn_kernel_ctx *ctx)
{
  const mirror_plan *p = ctx->shape_state;
  const char *in = ctx->inputs[0]->data;
  char *out = ctx->outputs[0]->data;
  if (p == NULL) return TN_OK; /* no elements */
  tn_status st = tn__strided_run(&p->steps[0].strided, ctx, in, out + p->steps[0].to);
  for (int32_t i = 1; i < p->n_steps && st == TN_OK; i++)
    st = tn__strided_run(&p->steps[i].strided, ctx, out + p->steps[i].from, out + p->steps[i].to);
  return st;
}

static tn_status infer_pad(tn_infer_ctx *ctx, tn_error *err) { return tn__paddings_infer(ctx, 1, 1, err); }

/* ---- MirrorPadGrad ---- */

/* to[i] += from[i], with strides in bytes; integers wrap. */
#define ADD(name, T, C, LOAD, STORE)                                                                            \
  static void add_##name(const char *from, int64_t from_step, char *to, int64_t to_step, int64_t n)             \
  {                                                                                                             \
    if (from_step == (int64_t)sizeof(T) && to_step == (int64_t)sizeof(T)) {                                     \
      const T *x = (const T *)from;                                                                             \
      T *y = (T *)to;                                                                                           \
      for (int64_t i = 0; i < n; i++) y[i] = STORE((C)(LOAD(y[i]) + LOAD(x[i])));                               \
      return;                                                                                                   \
    }                                                                                                           \
    for (int64_t i = 0; i < n; i++) {                                                                           \
      const T *x = (const T *)(from + i * from_step);                                                           \
      T *y = (T *)(to + i * to_step);                                                                           \
      *y = STORE((C)(LOAD(*y) + LOAD(*x)));                                                                     \
    }                                                                                                           \
  }
#define SAME(x) (x)
ADD(f32, float, float, SAME, SAME)
ADD(f64, double, double, SAME, SAME)
ADD(f16, uint16_t, float, tn__half_to_float, tn__half_from_float)
ADD(b16, uint16_t, float, tn__bfloat16_to_float, tn__bfloat16_from_float)
ADD(c64, tn__c64, tn__c64, SAME, SAME)
ADD(c128, tn__c128, tn__c128, SAME, SAME)
ADD(i8, uint8_t, uint8_t, SAME, SAME)
ADD(i16, uint16_t, uint16_t, SAME, SAME)
ADD(i32, uint32_t, uint32_t, SAME, SAME)
ADD(i64, uint64_t, uint64_t, SAME, SAME)

static const struct {
  tn_dtype dtype;
  add_fn add;
} adders[] = {
  { TN_FLOAT, add_f32 }, { TN_DOUBLE, add_f64 },    { TN_HALF, add_f16 },       { TN_BFLOAT16, add_b16 },
  { TN_INT8, add_i8 },   { TN_INT16, add_i16 },     { TN_INT32, add_i32 },      { TN_INT64, add_i64 },
  { TN_UINT8, add_i8 },  { TN_UINT16, add_i16 },    { TN_UINT32, add_i32 },     { TN_UINT64, add_i64 },
  { TN_COMPLEX64, add_c64 }, { TN_COMPLEX128, add_c128 },
};

static add_fn adder_of(tn_dtype dtype)
{
  for (size_t i = 0; i < sizeof adders / sizeof adders[0]; i++)
    if (adders[i].dtype == dtype) return adders[i].add;
  return NULL;
}

static tn_status grad_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  mirror m;
  tn_status st = read_mirror(ctx, -1, &m, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, m.inside.dims, m.inside.rank, err);
  if (st != TN_OK) return st;
  tn_view inside = { .dims = m.inside.dims, .rank = m.inside.rank };
  if (tn__view_same_shape(&ctx->inputs[0], &inside)) return tn_prepare_view(ctx, 0, 0, err);
  if (!has_elements(&m.inside)) return TN_OK;
  set_steps(&m);
  mirror_plan *p = new_plan(&m);
  if (p == NULL) return tn__no_memory(err, "padding", sizeof *p);
  ctx->shape_state = p;
  p->add = adder_of(m.dtype);
  if (p->add == NULL) return tn__no_kernel(err, ctx->op, m.dtype);
  set_inside(&p->steps[p->n_steps++], &m, true);
  for (int32_t d = 0; d < m.padded.rank; d++) {
    int64_t before = m.paddings.before[d], after = m.paddings.after[d], end = before + m.inside.dims[d];
    if (before > 0) set_step(&p->steps[p->n_steps++], &m, d, before, before - 1, before + m.offset, false);
    if (after > 0) set_step(&p->steps[p->n_steps++], &m, d, after, end + after - 1, end - after - m.offset, false);
  }
  ctx->scratch_bytes = p->whole;
  ctx->cost_ns = 20 + (double)p->whole * 0.5;
  return TN_OK;
}

/* A step of the gradient: adds the elements outside to those that they mirror. */
static void run_add(const mirror_step *s, add_fn add, char *base)
{
  const tn__strided_dim one = { 1, 0, 0 };
  const tn__strided *t = &s->strided;
  int32_t last = t->rank - 1;
  const tn__strided_dim *row = last < 0 ? &one : &t->dims[last];
  int64_t index[TN__STRIDED_DIMS] = { 0 };
  const char *from = base + s->from;
  char *to = base + s->to;
  for (;;) {
    add(from, row->from, to, row->to, row->size);
    int32_t k = last - 1;
    for (; k >= 0; k--) {
      const tn__strided_dim *d = &t->dims[k];
      from += d->from;
      to += d->to;
      if (++index[k] < d->size) break;
      from -= d->from * d->size;
      to -= d->to * d->size;
      index[k] = 0;
    }
    if (k < 0) return;
  }
}

static tn_status grad_compute(tn_kernel_ctx *ctx)
{
  const mirror_plan *p = ctx->shape_state;
  char *folded = ctx->scratch;
  if (p == NULL) return TN_OK; /* no elements */
  memcpy(folded, ctx->inputs[0]->data, p->whole);
  for (int32_t i = 1; i < p->n_steps; i++) run_add(&p->steps[i], p->add, folded);
  return tn__strided_run(&p->steps[0].strided, ctx, folded + p->steps[0].from, ctx->outputs[0]->data);
}

static tn_status infer_grad(tn_infer_ctx *ctx, tn_error *err) { return tn__paddings_infer(ctx, 1, -1, err); }

/* ---- tables ---- */

#define OP(op, shapes, text)                                                                             \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = "input: T, paddings: Tpaddings",                \
    .outputs = "output: T", .shape_operands = 1u << 1, .infer = shapes, .summary = text,                 \
    .attrs = "T: type; Tpaddings: {int32, int64} = int32; mode: {'REFLECT', 'SYMMETRIC'}" }

static const tn_op_def ops[] = {
  OP("MirrorPad", infer_pad, "pads a tensor with mirrored values"),
  OP("MirrorPadGrad", infer_grad, "gradient of MirrorPad: edges folded back and added"),
};

#define KERNEL(which, title, type_list, prepare_fn, compute_fn)                                          \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = type_list, .name = title, \
    .rank = TN_RANK_C, .prepare = prepare_fn, .destroy_shape_state = destroy_plan, .compute = compute_fn }
#define GRAD_TYPES                                                                                           \
  "T=float|double|half|bfloat16|int8|int16|int32|int64|uint8|uint16|uint32|uint64|complex64|complex128"

static const tn_kernel_def kernels[] = {
  KERNEL("MirrorPad", "mirror_pad_cpu", NULL, pad_prepare, pad_compute),
  KERNEL("MirrorPadGrad", "mirror_pad_grad_cpu", GRAD_TYPES, grad_prepare, grad_compute),
};

TN_OP_FAMILY(mirror_pad)
