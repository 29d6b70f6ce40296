/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/alloc.h>
#include <ops/nn/conv/conv_phases.h>
#include <ops/nn/conv/conv_product.h>
#include <ops/nn/conv/winograd.h>
#include <ops/kernel/product/gemm_kernel.h>
#include <ops/kernel/product/product_loops.h>
#include <ops/kernel/shapes.h>
#include <ops/kernel/elements/widen.h>

/* ---- states ---- */

typedef struct conv_state {
  tn__conv_kind kind;
  tn__volume_window window;
  tn__gemm_type type;
  tn_dtype dtype;
} conv_state;

enum { X, FILTER, Y };

typedef struct conv_plan {
  tn__conv_sizes z;
  tn__gemm_plan gemm; /* product of one channel group */
  tn__taps *taps;     /* NULL: a window is one pixel, so A is a matrix in memory */
  const void *packed; /* the constant filter in panels, or NULL */
  tn__form form[3];
  size_t at_turned, at_gemm; /* offsets in scratch */
  bool fewer;                /* use `winograd` unless the filter is not finite */
  tn__winograd winograd;
  bool sums; /* use `winograd_sums` unless an element is not finite */
  tn__winograd_sums winograd_sums;
  tn__conv_phases *phases; /* computes the gradient for images instead of `gemm`, or NULL */
} conv_plan;

tn_status tn__conv_create(const tn_operation *op, const tn__conv_kind *kind, void **state, tn_error *err)
{
  *state = NULL;
  conv_state s = { .kind = *kind, .dtype = tn_operation_output_dtype(op, 0) };
  tn_status st = tn__conv_read(op, kind, &s.window, err);
  if (st != TN_OK) return st;
  if (!tn__gemm_type_of(tn__wide_dtype(s.dtype), &s.type)) return tn__no_kernel(err, op, s.dtype);
  return tn__keep_state(&s, sizeof s, "convolution", state, err);
}

void tn__conv_destroy(void *state) { tn__free(state, sizeof(conv_state)); }

void tn__conv_destroy_plan(void *plan)
{
  conv_plan *p = plan;
  if (p == NULL) return;
  tn__taps_destroy(p->taps);
  tn__conv_phases_destroy(p->phases);
  tn__free(p, sizeof *p);
}

/* ---- preparing ---- */

static tn_status pack_filter(void *user, const tn_view *from, void *to, tn_error *err)
{
  (void)err;
  tn__gemm_pack(user, from->data, to);
  return TN_OK;
}

static bool is_dense(const tn__conv_sizes *z)
{
  for (int k = 0; k < 3; k++) {
    const tn__window_axis *a = &z->window.axis[k];
    if (a->size != 1 || a->stride != 1 || a->before != 0 || a->after != 0) return false;
  }
  return true;
}

static void plan_sizes(const conv_state *s, conv_plan *p)
{
  const tn__conv_sizes *z = &p->z;
  tn__gemm_plan *g = &p->gemm;
  int64_t outs = z->fo / z->groups;
  *g = (tn__gemm_plan){ .type = s->type, .a_row = z->x.c, .a_col = 1, .b_row = z->fo, .b_col = 1, .c_row = z->fo };
  switch (s->kind.wanted) {
  case TN__CONV_Y:
    g->m = z->y_pixels;
    g->n = outs;
    g->k = z->taps * z->fc;
    break;
  case TN__CONV_X:
    g->m = z->x_pixels;
    g->n = z->fc;
    g->k = z->taps * outs;
    g->a_row = z->y.c;
    g->b_row = z->fc;
    g->c_row = z->x.c;
    break;
  case TN__CONV_FILTER:
    g->m = z->taps * z->fc;
    g->n = outs;
    g->k = z->y_pixels;
    g->a_row = 1;
    g->a_col = z->x.c;
    break;
  }
}

static tn_status plan_rows(const conv_state *s, conv_plan *p, tn_error *err)
{
  const tn__conv_sizes *z = &p->z;
  if (is_dense(z) || p->gemm.m == 0 || p->gemm.k == 0) return TN_OK;
  bool x = s->kind.wanted == TN__CONV_X;
  p->taps = x ? tn__taps_of_y(z) : tn__taps_of_x(z);
  if (p->taps == NULL) return tn__no_memory(err, "table of windows", sizeof *p->taps);
  p->taps->element = tn_dtype_size(tn__wide_dtype(s->dtype));
  p->taps->c = x ? z->fo / z->groups : z->fc;
  p->taps->pitch = x ? z->y.c : z->x.c;
  p->gemm.rows = s->kind.wanted == TN__CONV_FILTER ? tn__taps_by_tap : tn__taps_by_place;
  return TN_OK;
}

/* Packs a constant filter into panels once. */
static void plan_packing(tn_prepare_ctx *ctx, const conv_state *s, conv_plan *p)
{
  tn__gemm_plan *g = &p->gemm;
  if (s->kind.wanted != TN__CONV_Y || p->z.groups != 1 || p->form[FILTER].convert) return;
  if (g->m == 0) return;
  uint64_t key = 0x636f6e7600000000u | (uint64_t)g->kernel->nr;
  if (tn_prepare_pack(ctx, 1, key, tn__gemm_packed_bytes(g), pack_filter, g, &p->packed, NULL) != TN_OK) return;
  g->packed = p->packed != NULL;
  tn__gemm_plan_choose(g);
}

/* Plans a gradient with fewer products, if that is faster. */
static void plan_fewer(tn_prepare_ctx *ctx, const conv_state *s, conv_plan *p, size_t *scratch)
{
  const tn__conv_sizes *z = &p->z;
  const tn__window_axis *v = &z->window.axis[1], *u = &z->window.axis[2];
  if (s->kind.wanted == TN__CONV_Y || s->kind.directions != 2 || s->type != TN__GEMM_F32 || z->groups != 1 ||
      p->form[FILTER].convert || v->size != 3 || u->size != 3 || v->stride != 1 || u->stride != 1 ||
      v->dilation != 1 || u->dilation != 1)
    return;
  const int64_t *x = z->x.size, *y = z->y.size;
  if (s->kind.wanted == TN__CONV_X) { /* a convolution of y with the turned filter */
    const tn__winograd_image image = { z->x.n, y[1], y[2], z->fo, x[1], x[2], z->fc, { 2 - v->before, 2 - u->before } };
    p->fewer = tn__winograd_plan(&p->winograd, &image, TN__WINOGRAD_TURNED, ctx, scratch);
  } else {
    const tn__winograd_image image = { z->x.n, x[1], x[2], z->fc, y[1], y[2], z->fo, { v->before, u->before } };
    p->sums = tn__winograd_sums_plan(&p->winograd_sums, &image, ctx, scratch);
  }
}

tn_status tn__conv_product_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const conv_state *s = ctx->state;
  tn__conv_sizes z;
  tn_status st = tn__conv_prepare(ctx, &s->kind, &s->window, &z, err);
  if (st != TN_OK) return st;
  conv_plan *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "convolution plan", sizeof *p);
  ctx->shape_state = p;
  p->z = z;
  const tn__volume filter = { 1, { 1, 1, z.taps }, z.fc * z.fo };
  size_t scratch = 0;
  tn__form_plan(&p->form[X], s->dtype, s->window.channels_first, &z.x, &scratch);
  tn__form_plan(&p->form[FILTER], s->dtype, false, &filter, &scratch);
  tn__form_plan(&p->form[Y], s->dtype, s->window.channels_first, &z.y, &scratch);
  plan_fewer(ctx, s, p, &scratch);
  if (s->kind.wanted == TN__CONV_X && !is_dense(&p->z)) {
    /* Fewer products use the filter itself, whose elements are freed if all readers have packed it. */
    bool constant = !p->fewer && !p->form[FILTER].convert && tn_prepare_is_constant(ctx, 1);
    st = tn__conv_phases_plan(ctx, &p->z, s->type, constant, &p->phases, &scratch, err);
    if (st != TN_OK || p->phases != NULL) {
      ctx->scratch_bytes = scratch;
      if (p->phases != NULL) ctx->cost_ns = p->fewer ? p->winograd.cost_ns : tn__conv_phases_cost(p->phases);
      return st;
    }
  }
  plan_sizes(s, p);
  p->gemm.reproducible = ctx->reproducible;
  st = plan_rows(s, p, err);
  if (st != TN_OK) return st;
  if (s->kind.wanted == TN__CONV_X)
    p->at_turned = tn__take(&scratch, (size_t)(z.taps * z.fc * z.fo) * tn_dtype_size(p->form[FILTER].wide));
  tn__gemm_plan_choose(&p->gemm);
  plan_packing(ctx, s, p);
  p->at_gemm = tn__take(&scratch, p->gemm.scratch);
  ctx->scratch_bytes = scratch;
  ctx->cost_ns = p->fewer ? p->winograd.cost_ns : p->gemm.cost_ns * (double)z.groups;
  return TN_OK;
}

/* ---- computing ---- */

/* Exchanges the filter's input and output channels, group by group. */
#define TURN(name, T)                                                                                     \
  static void name(const tn__conv_sizes *z, const T *restrict from, T *restrict to)                       \
  {                                                                                                       \
    const int64_t outs = z->fo / z->groups;                                                               \
    for (int64_t g = 0; g < z->groups; g++)                                                               \
      for (int64_t tap = 0; tap < z->taps; tap++)                                                         \
        for (int64_t o = 0; o < outs; o++)                                                                \
          for (int64_t c = 0; c < z->fc; c++) *to++ = from[(tap * z->fc + c) * z->fo + g * outs + o];     \
  }
TURN(turn_32, uint32_t)
TURN(turn_64, uint64_t)

typedef struct matrices {
  const char *a, *b;
  char *c;
  size_t a_group, b_group, c_group; /* bytes between groups */
} matrices;

static matrices set_matrices(const tn_kernel_ctx *ctx, const conv_plan *p, const void *const *at, void *result)
{
  const conv_state *s = ctx->state;
  const tn__conv_sizes *z = &p->z;
  size_t size = tn_dtype_size(p->form[X].wide), in = (size_t)z->fc * size, out = (size_t)(z->fo / z->groups) * size;
  char *turned = (char *)ctx->scratch + p->at_turned;
  switch (s->kind.wanted) {
  case TN__CONV_Y:
    return (matrices){ at[X], p->packed != NULL ? p->packed : at[FILTER], result, in, out, out };
  case TN__CONV_FILTER: return (matrices){ at[X], at[Y], result, in, out, out };
  case TN__CONV_X: break;
  }
  if (size == 4)
    turn_32(z, at[FILTER], (uint32_t *)turned);
  else
    turn_64(z, at[FILTER], (uint64_t *)turned);
  return (matrices){ at[Y], turned, result, out, (size_t)(z->taps * z->fc) * out, in };
}

tn_status tn__conv_compute(tn_kernel_ctx *ctx)
{
  static const int wanted[] = { [TN__CONV_Y] = Y, [TN__CONV_X] = X, [TN__CONV_FILTER] = FILTER };
  const conv_state *s = ctx->state;
  const conv_plan *p = ctx->shape_state;
  char *scratch = ctx->scratch;
  int r = wanted[s->kind.wanted];
  const void *at[3] = { NULL, NULL, NULL };
  if (ctx->outputs[0]->count == 0) return TN_OK;
  for (int i = 0; i < (int)ctx->n_inputs; i++)
    if (i != r) at[i] = tn__form_load(&p->form[i], ctx, ctx->inputs[i]->data, scratch);
  void *result = tn__form_room(&p->form[r], ctx->outputs[0]->data, scratch);
  if ((p->fewer && tn__winograd_run(&p->winograd, ctx, at[Y], at[FILTER], result, NULL)) ||
      (p->sums && tn__winograd_sums_run(&p->winograd_sums, ctx, at[X], at[Y], result))) {
    tn__form_store(&p->form[r], ctx, ctx->outputs[0]->data, scratch);
    return TN_OK;
  }
  if (p->phases != NULL) {
    tn__conv_phases_run(p->phases, ctx, at[Y], at[FILTER], result);
    tn__form_store(&p->form[r], ctx, ctx->outputs[0]->data, scratch);
    return TN_OK;
  }
  matrices m = set_matrices(ctx, p, at, result);
  for (int64_t g = 0; g < p->z.groups; g++) {
    tn__tap_rows rows = { p->taps, m.a == NULL ? NULL : m.a + (size_t)g * m.a_group };
    const void *a = p->taps != NULL ? (const void *)&rows : rows.in;
    tn__gemm_run(&p->gemm, ctx, a, m.b + (size_t)g * m.b_group, m.c + (size_t)g * m.c_group, scratch + p->at_gemm);
  }
  tn__form_store(&p->form[r], ctx, ctx->outputs[0]->data, scratch);
  return TN_OK;
}
