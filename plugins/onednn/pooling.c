/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling of float, channels last: the largest element or the mean of each window over images and volumes, and its
 * gradients. */
#include "onednn.h"

#include <string.h>

typedef struct pool_state {
  dnn_window window;
  bool mean;
} pool_state;

tn_status dnn_pool_create(const tn_operation *op, void **state, tn_error *err)
{
  const char *type = tn_operation_type(op);
  pool_state s = { .mean = type[0] == 'A' };
  *state = NULL;
  if (!dnn_window_read(op, strstr(type, "3D") != NULL ? 3 : 2, true, &s.window))
    return dnn_declined(err, "attributes that the library's own kernel judges");
  pool_state *p = tn_alloc(sizeof *p);
  if (p == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "out of memory for pooling");
  *p = s;
  *state = p;
  return TN_OK;
}

/* ---- shapes ---- */

typedef struct sizes {
  dnn_window window;
  int rank;
  int64_t x[5], y[5];
  double seen; /* elements read by all windows */
  dnnl_memory_desc_t source, target;
} sizes;

/* Every window must contain an element of the image; other cases are left to the library's own kernel. */
static bool measure(const tn_prepare_ctx *ctx, const pool_state *s, sizes *z)
{
  dnn_window *w = &z->window;
  *w = s->window;
  z->rank = w->axes + 2;
  z->seen = 1;
  if (!dnn_shape_read(&ctx->inputs[0], z->rank, z->x)) return false;
  z->y[0] = z->x[0];
  z->y[z->rank - 1] = z->x[z->rank - 1];
  if (!dnn_window_fit(w, z->x + 1, z->y + 1) || !dnn_dims_fit(z->y, z->rank)) return false;
  for (int a = 0; a < w->axes; a++) {
    if (w->before[a] >= w->size[a] || w->after[a] >= w->size[a]) return false;
    z->seen *= (double)w->size[a];
  }
  for (int i = 0; i < z->rank; i++) z->seen *= (double)z->y[i];
  z->source = dnn_channels_last(z->x, z->rank, dnnl_f32);
  z->target = dnn_channels_last(z->y, z->rank, dnnl_f32);
  return true;
}

#define SMALL 2000 /* elements read, below which the library's own loops are as fast */

static tn_status judge(tn_prepare_ctx *ctx, sizes *z, tn_error *err)
{
  if (!measure(ctx, ctx->state, z)) return dnn_declined(err, "shapes that the library's own kernel judges");
  ctx->cost_ns = z->seen * 0.05;
  return z->seen < SMALL ? dnn_declined(err, "pooling this small") : TN_OK;
}

static tn_status forward_desc(const pool_state *s, const sizes *z, dnnl_prop_kind_t prop, dnnl_pooling_desc_t *desc,
                              tn_error *err)
{
  const dnn_window *w = &z->window;
  dnnl_alg_kind_t kind = s->mean ? dnnl_pooling_avg_exclude_padding : dnnl_pooling_max;
  return dnn_status(dnnl_pooling_forward_desc_init(desc, prop, kind, &z->source, &z->target, w->stride, w->size,
                                                   w->before, w->after), "pooling", err);
}

/* ---- forward ---- */

static tn_status pool_plan(tn_prepare_ctx *ctx, const sizes *z, const dnn_band *b, tn_error *err)
{
  dnnl_pooling_desc_t desc;
  dnn_plan *p;
  tn_status st = forward_desc(ctx->state, z, dnnl_forward_inference, &desc, err);
  if (st == TN_OK) st = dnn_plan_create(ctx, &desc, &(dnn_setup){ NULL, NULL, NULL }, &p, err);
  if (st != TN_OK) return st;
  dnn_plan_input_piece(p, DNNL_ARG_SRC, 0, (size_t)b->x_at * sizeof(float), &z->source);
  dnn_plan_output_piece(p, DNNL_ARG_DST, (size_t)b->y_at * sizeof(float), &z->target);
  return dnn_plan_end(p, ctx, err);
}

static tn_status banded_plan(tn_prepare_ctx *ctx, const sizes *z, dnn_bands b, tn_error *err)
{
  uint32_t n = (uint32_t)(b.images * b.rows);
  tn_status st = dnn_parts_begin(ctx, n, ctx->cost_ns, err);
  for (uint32_t i = 0; st == TN_OK && i < n; i++) {
    sizes part = *z;
    dnn_band band;
    if (!dnn_band_of(&z->window, z->rank, z->x, z->y, b, i, &band)) return dnn_declined(err, "a band of padding");
    part.window = band.window;
    part.source = dnn_channels_last(band.x, z->rank, dnnl_f32);
    part.target = dnn_channels_last(band.y, z->rank, dnnl_f32);
    st = pool_plan(ctx, &part, &band, err);
  }
  if (st != TN_OK) return st;
  dnn_whole_begin(ctx);
  dnn_whole_end(ctx, pool_plan(ctx, z, &(dnn_band){ .x_at = 0 }, err), err);
  return TN_OK;
}

#define MOST_LONG \
  32 /* maximum bands made only to limit their time: oneDNN compiles code for each padding, which takes ms */

static tn_status best_plan(tn_prepare_ctx *ctx, const sizes *z, tn_error *err)
{
  int64_t points = 1;
  for (int a = 1; a < z->rank - 1; a++) points *= z->y[a];
  uint32_t n = dnn_parts_long(ctx, dnn_parts_worth(ctx, ctx->cost_ns), ctx->cost_ns, MOST_LONG);
  dnn_bands b = dnn_bands_cut(z->y[0], z->y[1], points, n, 0);
  if (dnn_too_long(ctx->cost_ns, n > 1 ? (uint32_t)(b.images * b.rows) : 1))
    return dnn_declined(err, "pooling that no time limit would end");
  if (n > 1) {
    tn_status st = b.images * b.rows > 1 ? banded_plan(ctx, z, b, err) : TN_UNIMPLEMENTED;
    if (st != TN_UNIMPLEMENTED) return st;
    dnn_plan_undo(ctx, err);
  }
  return pool_plan(ctx, z, &(dnn_band){ .x_at = 0 }, err);
}

tn_status dnn_pool_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  sizes z;
  tn_status st = judge(ctx, &z, err);
  if (st == TN_OK) st = best_plan(ctx, &z, err);
  return st != TN_OK ? st : tn_prepare_output(ctx, 0, z.y, z.rank, err);
}

/* ---- gradients ---- */

/* The largest element of each window is found again in each step, by a pooling before the gradient. */
static void find_largest(dnn_plan *p, const sizes *z, const_dnnl_primitive_desc_t forward)
{
  const dnnl_memory_desc_t *workspace = dnnl_primitive_desc_query_md(forward, dnnl_query_workspace_md, 0);
  dnnl_primitive_t primitive = NULL;
  int before = dnn_one_thread();
  dnnl_status_t st = workspace == NULL ? dnnl_unimplemented : dnnl_primitive_create(&primitive, forward);
  dnn_restore_threads(before);
  if (st != dnnl_success) {
    if (p->failed == dnnl_success) p->failed = st;
    return;
  }
  size_t at = dnn_plan_room(p, dnnl_memory_desc_get_size(workspace));
  dnn_plan_before(p, primitive, &z->source, &z->target, workspace, at);
  dnn_plan_inner(p, DNNL_ARG_WORKSPACE, at, workspace);
}

static tn_status gradient_plan(tn_prepare_ctx *ctx, const pool_state *s, const sizes *z,
                               const_dnnl_primitive_desc_t forward, tn_error *err)
{
  const dnn_window *w = &z->window;
  dnnl_alg_kind_t kind = s->mean ? dnnl_pooling_avg_exclude_padding : dnnl_pooling_max;
  dnnl_pooling_desc_t desc;
  dnn_plan *p;
  tn_status st = dnn_status(dnnl_pooling_backward_desc_init(&desc, kind, &z->source, &z->target, w->stride, w->size,
                                                            w->before, w->after), "gradient", err);
  if (st == TN_OK) st = dnn_plan_create(ctx, &desc, &(dnn_setup){ NULL, NULL, forward }, &p, err);
  if (st != TN_OK) return st;
  if (!s->mean) find_largest(p, z, forward);
  dnn_plan_input(p, DNNL_ARG_DIFF_DST, ctx->n_inputs - 1, &z->target, NULL);
  dnn_plan_output(p, DNNL_ARG_DIFF_SRC, &z->source, NULL);
  return dnn_plan_end(p, ctx, err);
}

/* Whether the inputs after the first have the shape of the result. */
static bool alike(const tn_prepare_ctx *ctx, const sizes *z)
{
  for (uint32_t i = 1; i < ctx->n_inputs; i++) {
    const tn_view *v = &ctx->inputs[i];
    if (v->rank != z->rank || memcmp(v->dims, z->y, (size_t)z->rank * sizeof *z->y) != 0) return false;
  }
  return true;
}

tn_status dnn_pool_gradient_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  sizes z;
  dnnl_pooling_desc_t desc;
  dnnl_primitive_desc_t forward = NULL;
  dnnl_engine_t engine = dnn_engine(err);
  if (engine == NULL) return TN_UNIMPLEMENTED;
  tn_status st = judge(ctx, &z, err);
  if (st == TN_OK && dnn_too_long(ctx->cost_ns, 1)) st = dnn_declined(err, "a gradient that no time limit would end");
  if (st == TN_OK && !alike(ctx, &z)) st = dnn_declined(err, "shapes that the library's own kernel judges");
  if (st == TN_OK) st = forward_desc(ctx->state, &z, dnnl_forward_training, &desc, err);
  if (st != TN_OK) return st;
  int before = dnn_one_thread();
  st = dnn_status(dnnl_primitive_desc_create(&forward, &desc, NULL, engine, NULL), "pooling", err);
  dnn_restore_threads(before);
  if (st == TN_OK) st = gradient_plan(ctx, ctx->state, &z, forward, err);
  if (forward != NULL) dnnl_primitive_desc_destroy(forward);
  return st != TN_OK ? st : tn_prepare_output(ctx, 0, z.x, z.rank, err);
}
