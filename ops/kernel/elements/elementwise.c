/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/kernel/elements/elementwise.h>

#include <stdatomic.h>
#include <string.h>

/* Up to this many elements, a loop runs on the calling thread whatever its cost. */
#define SMALL 1024
/* Work, in nanoseconds, above which other threads are used. */
#define PARALLEL_NS 8000.0
#define GRAIN_NS 3000.0
/* Rows shorter than this are replicated to about TILE elements. */
#define SHORT_ROW 64
#define TILE 512

/* Fewer elements than this do not fill a wide vector. */
#define FEW 8
static inline int kind_for(int64_t n) { return n < FEW ? TN__BASELINE : tn__vectors(); }

static inline int binary_kind(const tn_kernel_ctx *ctx, const tn__binary_loop *loop, int64_t n)
{
  return loop->info->fused ? tn__vectors_for(ctx->reproducible) : kind_for(n);
}

static inline tn__unary_fn unary_fn(const tn_kernel_ctx *ctx, const tn__unary_loop *loop, int64_t n)
{
  if (loop->info->fused) return loop->fn[tn__vectors_for(ctx->reproducible)];
  return loop->fn[kind_for(n)];
}

static int64_t grain(double cost_ns)
{
  return cost_ns > 0 ? (int64_t)(GRAIN_NS / cost_ns) + 1 : TN__SERIAL_ELEMENTS;
}

/* ---- half and bfloat16 through float ---- */

const tn__short_format tn__half_format = { tn__half_to_floats, tn__half_from_floats };
const tn__short_format tn__bfloat16_format = { tn__bfloat16_to_floats, tn__bfloat16_from_floats };

#define FLOATS 512 /* block size: small enough to stay in the cache */

void tn__unary_via_float(const tn__short_format *format, tn__unary_fn fn, const void *x, void *out,
                         bool to_short, int64_t n)
{
  float wide[FLOATS];
  const uint16_t *from = x;
  for (int64_t at = 0, k; at < n; at += k) {
    k = n - at < FLOATS ? n - at : FLOATS;
    format->to_floats(from + at, wide, k);
    fn(wide, to_short ? (void *)wide : (uint8_t *)out + at, k);
    if (to_short) format->from_floats(wide, (uint16_t *)out + at, k);
  }
}

void tn__unary_rest(tn__unary_fn fn, const void *x, void *out, int64_t n, size_t size)
{
  _Alignas(64) char vector[64] = { 0 };
  memcpy(vector, x, (size_t)n * size);
  fn(vector, vector, (int64_t)(sizeof(vector) / size));
  memcpy(out, vector, (size_t)n * size);
}

void tn__unary_via_double(tn__unary_fn fn, const float *x, float *out, int64_t n)
{
  double wide[FLOATS];
  for (int64_t at = 0, k; at < n; at += k) {
    k = n - at < FLOATS ? n - at : FLOATS;
    for (int64_t i = 0; i < k; i++) wide[i] = (double)x[at + i];
    fn(wide, wide, k);
    for (int64_t i = 0; i < k; i++) out[at + i] = (float)wide[i];
  }
}

void tn__dense_rest(tn__dense_fn fn, const void *x, const void *y, void *out, int64_t n, size_t size)
{
  _Alignas(64) char xs[64] = { 0 }, ys[64] = { 0 };
  memcpy(xs, x, (size_t)n * size);
  memcpy(ys, y, (size_t)n * size);
  fn(xs, ys, xs, (int64_t)(sizeof(xs) / size));
  memcpy(out, xs, (size_t)n * size);
}

void tn__binary_dense(tn__dense_fn fn, size_t size, const void *x, int64_t sx, const void *y, int64_t sy, void *out,
                      int64_t n)
{
  _Alignas(64) char block[FLOATS * sizeof(double)];
  const bool both = sx != 0 && sy != 0;
  const char *xs = x, *ys = y, *one = sx == 0 ? x : y;
  const int64_t most = both ? n : FLOATS, copies = n < FLOATS ? n : FLOATS;
  for (int64_t i = 0; !both && i < copies; i++) memcpy(block + (size_t)i * size, one, size);
  for (int64_t at = 0, k; at < n; at += k) {
    size_t begin = (size_t)at * size;
    k = n - at < most ? n - at : most;
    fn(sx != 0 ? xs + begin : block, sy != 0 ? ys + begin : block, (char *)out + begin, k);
  }
}

#define BOUNDED(name, T, fabs_)                                                                          \
  void name(tn__unary_fn fn, T limit, T (*exact)(T), const T *x, T *out, int64_t n)                      \
  {                                                                                                      \
    T kept[FLOATS]; /* out may be x */                                                                   \
    for (int64_t at = 0, k; at < n; at += k) {                                                           \
      int above = 0;                                                                                     \
      k = n - at < FLOATS ? n - at : FLOATS;                                                             \
      for (int64_t i = 0; i < k; i++) above |= fabs_(x[at + i]) > limit;                                 \
      if (above) memcpy(kept, x + at, (size_t)k * sizeof(T));                                            \
      fn(x + at, out + at, k);                                                                           \
      for (int64_t i = 0; above && i < k; i++)                                                           \
        if (fabs_(kept[i]) > limit) out[at + i] = exact(kept[i]);                                        \
    }                                                                                                    \
  }
BOUNDED(tn__unary_bounded, float, fabsf)
BOUNDED(tn__unary_bounded_wide, double, fabs)

bool tn__binary_via_float(const tn__short_format *format, const tn__binary_fn *fn, const void *x, int64_t sx,
                          const void *y, int64_t sy, void *out, bool to_short, int64_t n)
{
  float xs[FLOATS], ys[FLOATS];
  const uint16_t *from_x = x, *from_y = y;
  bool bad = false;
  int v = tn__vectors();
  if (n > 0 && sx == 0) format->to_floats(from_x, xs, 1);
  if (n > 0 && sy == 0) format->to_floats(from_y, ys, 1);
  float *result = sx != 0 ? xs : ys; /* overwrites an operand that is reloaded for each block */
  for (int64_t at = 0, k; at < n; at += k) {
    k = n - at < FLOATS ? n - at : FLOATS;
    if (sx != 0) format->to_floats(from_x + at, xs, k);
    if (sy != 0) format->to_floats(from_y + at, ys, k);
    bad |= fn[v](xs, sx, ys, sy, to_short ? (void *)result : (uint8_t *)out + at, k);
    if (to_short) format->from_floats(result, (uint16_t *)out + at, k);
  }
  return bad;
}

/* ---- the loops of another op ---- */

/* The state of an elementwise kernel is its loop, chosen by the node's dtypes. prepare: NULL for any. */
static const void *loop_of(const char *op, const tn_operation *node, tn_status (*compute)(tn_kernel_ctx *ctx),
                           tn_status (*prepare)(tn_prepare_ctx *ctx, tn_error *err))
{
  const tn_op_schema *schema = tn_op_schema_find(op);
  const tn_kernel_def *k;
  void *state;
  for (size_t i = 0; schema != NULL && (k = tn_op_schema_kernel(schema, i)) != NULL; i++)
    if (k->rank == TN_RANK_C && strcmp(k->device, "CPU") == 0 && k->compute == compute &&
        (prepare == NULL || k->prepare == prepare) && k->create(node, &state, NULL) == TN_OK)
      return state;
  return NULL;
}

const tn__unary_loop *tn__unary_loop_of(const char *op, const tn_operation *node)
{
  const tn__unary_loop *loop = loop_of(op, node, tn__unary_compute, tn__unary_prepare);
  return loop != NULL && loop->info->fault == TN_OK ? loop : NULL;
}

static bool is_float(tn_dtype dtype)
{
  return dtype == TN_FLOAT || dtype == TN_DOUBLE || dtype == TN_HALF || dtype == TN_BFLOAT16;
}

/* Faults are those of integers. */
const tn__binary_loop *tn__binary_loop_of(const char *op, const tn_operation *node)
{
  const tn__binary_loop *loop = loop_of(op, node, tn__binary_compute, tn__binary_prepare);
  return loop != NULL && (loop->info->fault == TN_OK || is_float(loop->from)) ? loop : NULL;
}

const tn__binary_loop *tn__gradient_loop_of(const char *op, const tn_operation *node)
{
  return loop_of(op, node, tn__binary_compute, NULL);
}

/* ---- one input ---- */

tn_status tn__unary_create(const tn_operation *node, const tn__unary_loop *loops, size_t n, void **state, tn_error *err)
{
  tn_dtype from = tn_operation_input_dtype(node, 0), to = tn_operation_output_dtype(node, 0);
  *state = NULL;
  for (size_t i = 0; i < n; i++) {
    if (loops[i].from == from && loops[i].to == to) {
      *state = (void *)&loops[i]; /* only read through it */
      return TN_OK;
    }
  }
  return tn__no_kernel(err, node, from);
}

tn_status tn__unary_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn__unary_loop *loop = ctx->state;
  ctx->cost_ns = loop->info->cost_ns * (double)ctx->inputs[0].count;
  tn_status st = tn_prepare_output_like(ctx, 0, 0, err);
  if (st != TN_OK || loop->from_size != loop->to_size) return st;
  return tn_prepare_in_place(ctx, 0, 0, err);
}

typedef struct unary_run {
  const tn__unary_loop *loop;
  tn__unary_fn fn;
  const char *x;
  char *out;
} unary_run;

static void unary_part(void *user, int64_t begin, int64_t end)
{
  const unary_run *r = user;
  r->fn(r->x + begin * r->loop->from_size, r->out + begin * r->loop->to_size, end - begin);
}

tn_status tn__unary_compute(tn_kernel_ctx *ctx)
{
  const tn__unary_loop *loop = ctx->state;
  const tn_view *x = ctx->inputs[0], *out = ctx->outputs[0];
  int64_t n = out->count;
  double cost = loop->info->cost_ns;
  tn__unary_fn fn = unary_fn(ctx, loop, n);
  if (n <= SMALL || (double)n * cost < PARALLEL_NS) {
    fn(x->data, out->data, n);
  } else {
    unary_run run = { loop, fn, x->data, out->data };
    tn_parallel_for(ctx, n, grain(cost), cost, unary_part, &run);
  }
  return TN_OK;
}

/* ---- two inputs ---- */

/* Shape states that are not allocated: these two, and NULL, which means that no input is broadcast. */
static const tn__broadcast_plan left_scalar = { .n = 2, .row_strides = { 0, 1 } };
static const tn__broadcast_plan right_scalar = { .n = 2, .row_strides = { 1, 0 } };

tn_status tn__binary_create(const tn_operation *node, const tn__binary_loop *loops, size_t n, void **state,
                            tn_error *err)
{
  tn_dtype from = tn_operation_input_dtype(node, 0), to = tn_operation_output_dtype(node, 0);
  *state = NULL;
  for (size_t i = 0; i < n; i++) {
    if (loops[i].from == from && loops[i].to == to) {
      *state = (void *)&loops[i]; /* only read through it */
      return TN_OK;
    }
  }
  return tn__no_kernel(err, node, from);
}

/* The output may reuse the memory of any input with the same element count and element size. */
static tn_status allow_in_place(tn_prepare_ctx *ctx, int64_t count, tn_error *err)
{
  const tn__binary_loop *loop = ctx->state;
  if (loop->from_size != loop->to_size || loop->from == TN_STRING) return TN_OK;
  for (uint32_t i = 0; i < 2; i++) {
    if (ctx->inputs[i].count != count) continue;
    tn_status st = tn_prepare_in_place(ctx, 0, i, err);
    if (st != TN_OK) return st;
  }
  return TN_OK;
}

tn_status tn__binary_prepare_same(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn__binary_loop *loop = ctx->state;
  if (ctx->inputs[0].count != ctx->inputs[1].count) return tn__want_same_shape(ctx, 0, 1, err);
  tn_status st = tn_prepare_output_like(ctx, 0, 0, err);
  if (st != TN_OK) return st;
  ctx->cost_ns = loop->info->cost_ns * (double)ctx->inputs[0].count;
  return allow_in_place(ctx, ctx->inputs[0].count, err);
}

/* [many, few] with [few]: rows are so short that one call of the loop per row would cost more than the work itself. The
 * short operand is replicated in scratch memory first, and each call processes plan->tile elements. */
static void plan_tile(tn_prepare_ctx *ctx, tn__broadcast_plan *plan, int64_t size)
{
  if (plan->rank != 1 || plan->row >= SHORT_ROW || plan->row_strides[0] == 0 || plan->row_strides[1] == 0) return;
  int64_t tile = TILE / plan->row * plan->row;
  if (plan->count < 4 * tile) return;
  plan->tile = tile;
  ctx->scratch_bytes = (size_t)(tile * size);
}

tn_status tn__binary_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *x = &ctx->inputs[0], *y = &ctx->inputs[1];
  if (tn__view_same_shape(x, y)) return tn__binary_prepare_same(ctx, err);
  tn__shape shape;
  if (!tn__broadcast_shapes(x->dims, x->rank, y->dims, y->rank, &shape))
    return tn__broadcast_error(err, tn_operation_type(ctx->op), x->dims, x->rank, y->dims, y->rank);
  tn_status st = tn_prepare_output(ctx, 0, shape.dims, shape.rank, err);
  if (st != TN_OK) return st;

  const tn__binary_loop *loop = ctx->state;
  const tn_view *both[] = { x, y };
  tn__broadcast b;
  tn__broadcast_merge(&b, shape.dims, shape.rank, both, 2);
  ctx->cost_ns = loop->info->cost_ns * (double)b.count;
  st = allow_in_place(ctx, b.count, err);
  if (st != TN_OK || tn__broadcast_is_flat(&b)) return st;
  if (b.rank == 1) {
    ctx->shape_state = (void *)(b.strides[0][0] == 0 ? &left_scalar : &right_scalar); /* only read through it */
    return TN_OK;
  }
  tn__broadcast_plan *plan;
  st = tn__broadcast_plan_create(&b, &plan, err);
  if (st == TN_OK && loop->from != TN_STRING) plan_tile(ctx, plan, loop->from_size);
  ctx->shape_state = plan;
  return st;
}

void tn__binary_destroy_shape_state(void *shape_state)
{
  if (shape_state != &left_scalar && shape_state != &right_scalar) tn__broadcast_plan_destroy(shape_state);
}

typedef struct binary_run {
  const tn__binary_loop *loop;
  tn__binary_fn fn;
  const tn__broadcast_plan *plan; /* NULL for one row */
  const char *x, *y;
  char *out;
  int64_t sx, sy;
  atomic_bool bad;
} binary_run;

/* One operand is flat, the other one a tile. */
static void tiled_part(void *user, int64_t begin, int64_t end)
{
  binary_run *r = user;
  const tn__binary_loop *loop = r->loop;
  int64_t from = loop->from_size, skip = begin % r->plan->row;
  bool x_flat = r->plan->v[1] != 0, bad = false;
  for (int64_t at = begin, n; at < end && !bad; at += n) {
    n = r->plan->tile - skip;
    if (n > end - at) n = end - at;
    int64_t x = x_flat ? at : skip, y = x_flat ? skip : at;
    bad = r->fn(r->x + x * from, 1, r->y + y * from, 1, r->out + at * loop->to_size, n);
    skip = 0;
  }
  if (bad) atomic_store_explicit(&r->bad, true, memory_order_relaxed); /* read after all parts have ended */
}

static void make_tile(binary_run *r, char *tile)
{
  bool x_flat = r->plan->v[1] != 0;
  const char *row = x_flat ? r->y : r->x;
  size_t bytes = (size_t)r->plan->row * r->loop->from_size, all = (size_t)r->plan->tile * r->loop->from_size;
  for (size_t at = 0; at < all; at += bytes) memcpy(tile + at, row, bytes);
  if (x_flat) r->y = tile;
  else r->x = tile;
}

static void binary_part(void *user, int64_t begin, int64_t end)
{
  binary_run *r = user;
  const tn__binary_loop *loop = r->loop;
  int64_t from = loop->from_size, to = loop->to_size;
  bool bad = false;
  if (r->plan == NULL) {
    bad = r->fn(r->x + begin * r->sx * from, r->sx, r->y + begin * r->sy * from, r->sy, r->out + begin * to,
                end - begin);
  } else {
    tn__broadcast_cursor c;
    tn__broadcast_start(&c, r->plan, begin, end);
    while (!bad && tn__broadcast_next(&c))
      bad = r->fn(r->x + c.offsets[0] * from, r->sx, r->y + c.offsets[1] * from, r->sy, r->out + c.at * to, c.n);
  }
  if (bad) atomic_store_explicit(&r->bad, true, memory_order_relaxed); /* read after all parts have ended */
}

static tn_status fault(tn_kernel_ctx *ctx, const tn__binary_loop *loop)
{
  return tn_error_set(ctx->err, loop->info->fault, "%s", loop->info->fault_text);
}

tn_status tn__binary_compute(tn_kernel_ctx *ctx)
{
  const tn__binary_loop *loop = ctx->state;
  const tn__broadcast_plan *plan = ctx->shape_state;
  const tn_view *x = ctx->inputs[0], *y = ctx->inputs[1], *out = ctx->outputs[0];
  int64_t n = out->count;
  if (plan == NULL && n < FEW) {
    tn__binary_fn few = loop->fn[binary_kind(ctx, loop, 0)];
    return few(x->data, 1, y->data, 1, out->data, n) ? fault(ctx, loop) : TN_OK;
  }
  tn__binary_fn fn = loop->fn[binary_kind(ctx, loop, n)];
  if (plan == NULL && n <= SMALL) return fn(x->data, 1, y->data, 1, out->data, n) ? fault(ctx, loop) : TN_OK;

  void (*part)(void *user, int64_t begin, int64_t end) = binary_part;
  binary_run run = { loop, fn, plan, x->data, y->data, out->data, 1, 1, false };
  if (plan != NULL) {
    run.sx = plan->row_strides[0];
    run.sy = plan->row_strides[1];
    if (plan->rank == 0) run.plan = NULL;
    if (plan->tile != 0) {
      make_tile(&run, ctx->scratch);
      part = tiled_part;
    }
  }
  double cost = loop->info->cost_ns;
  if (n <= SMALL || (double)n * cost < PARALLEL_NS) part(&run, 0, n);
  else tn_parallel_for(ctx, n, grain(cost), cost, part, &run);
  return atomic_load_explicit(&run.bad, memory_order_relaxed) ? fault(ctx, loop) : TN_OK;
}
