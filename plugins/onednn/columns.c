/* SPDX-License-Identifier: Apache-2.0 */
/* Products of few rows by a large constant matrix, divided into parts of some columns each, so that every weight is
 * read by only one thread. All parts use the packed form of the whole matrix, in which blocks of columns follow one
 * another. oneDNN writes only dense results, so a part of several rows writes to the scratch and copies; these
 * results are small. */
#include "onednn.h"

#include <string.h>

#define BLOCK 64 /* columns of a block of packed weights, as oneDNN would have them */
#define MIN_COLUMNS 32 /* not divided, with any number of threads, so that results have the same bits */
#define FEW_ROWS 8   /* fewer are never divided by rows */
#define MOST_ROWS 47 /* more are always divided by rows: oneDNN computes 24 rows at once */

/* Some columns of a product; owned by their plan. */
typedef struct columns {
  int64_t rows, k, n, block, first, width; /* n: of the whole */
  size_t result, added[DNN_STEPS]; /* places in the scratch */
  uint32_t n_added, first_added; /* tensors that are added; the first one's input */
} columns;

static void copy(const float *from, int64_t from_row, float *to, int64_t to_row, const columns *c)
{
  for (int64_t r = 0; r < c->rows; r++) memcpy(to + r * to_row, from + r * from_row, (size_t)c->width * sizeof *to);
}

static void enter(const tn_kernel_ctx *ctx, char *scratch, const void *own, int64_t block)
{
  const columns *c = own;
  for (uint32_t i = 0; i < c->n_added; i++)
    copy((const float *)ctx->inputs[c->first_added + i]->data + c->first, c->n, (float *)(scratch + c->added[i]),
         c->width, c);
}

static void leave(const tn_kernel_ctx *ctx, char *scratch, const void *own, int64_t block)
{
  const columns *c = own;
  copy((const float *)(scratch + c->result), c->width, (float *)ctx->outputs[0]->data + c->first, c->n, c);
}

static dnnl_memory_desc_t dense(int64_t rows, int64_t width)
{
  const int64_t dims[] = { rows, width }, strides[] = { width, 1 };
  return dnn_strided(dims, strides, 2, dnnl_f32);
}

/* The layout of `width` packed columns of weights: block after block of columns, and within one 16 rows after 16
 * rows. */
static dnnl_memory_desc_t packed(const columns *c, int64_t width)
{
  const dnnl_dims_t dims = { c->k, width };
  dnnl_memory_desc_t md;
  dnnl_format_tag_t tag = dnnl_BA16a16b;
  if (c->block == BLOCK) tag = dnnl_BA16a64b;
  else if (c->block == BLOCK / 2) tag = dnnl_BA16a32b;
  if (dnnl_memory_desc_init_by_tag(&md, 2, dims, dnnl_f32, tag) != dnnl_success)
    md = (dnnl_memory_desc_t){ 0 };
  return md;
}

static bool dense_result(const columns *c) { return c->rows == 1 || c->width == c->n; }

/* Adds the epilogue's arguments: in the tensors if the result is dense, otherwise in the scratch. */
static void add_epilogue(dnn_plan *p, const dnn_epilogue *e, columns *c)
{
  dnnl_memory_desc_t bias = dense(1, c->width), added = dense(c->rows, c->width);
  size_t at = (size_t)c->first * sizeof(float);
  dnn_epilogue biases = { .n = dnn_has_bias(e), .steps = { DNN_BIAS } };
  if (dense_result(c)) {
    dnn_plan_epilogue(p, e, 2, &(dnn_follow){ &bias, &added, at, at });
    return;
  }
  dnn_plan_epilogue(p, &biases, 2, &(dnn_follow){ .bias = &bias, .bias_at = at });
  c->first_added = 2 + biases.n;
  for (uint32_t i = biases.n; i < e->n; i++) {
    if (e->steps[i] != DNN_ADD) continue;
    size_t room = c->added[c->n_added++] = dnn_plan_room(p, dnnl_memory_desc_get_size(&added));
    dnn_plan_inner(p, DNNL_ARG_ATTR_MULTIPLE_POST_OP((int32_t)(i - biases.n)) | DNNL_ARG_SRC_1, room, &added);
  }
}

static tn_status add_arguments(dnn_plan *p, const dnn_epilogue *e, const columns *piece, tn_error *err)
{
  dnnl_memory_desc_t source = dense(piece->rows, piece->k), target = dense(piece->rows, piece->width);
  columns *c = tn_alloc(sizeof *c);
  if (c == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "out of memory for a product");
  *c = *piece;
  p->own = c;
  dnn_plan_input_piece(p, DNNL_ARG_SRC, 0, 0, &source);
  if (dense_result(c)) {
    dnn_plan_output_piece(p, DNNL_ARG_DST, (size_t)c->first * sizeof(float), &target);
  } else {
    c->result = dnn_plan_room(p, dnnl_memory_desc_get_size(&target));
    dnn_plan_inner(p, DNNL_ARG_DST, c->result, &target);
    p->enter = enter;
    p->leave = leave;
  }
  add_epilogue(p, e, c);
  return TN_OK;
}

/* Makes a plan for a piece, without the weights. */
static tn_status piece_create(tn_prepare_ctx *ctx, const dnn_epilogue *e, const columns *c, tn_error *err)
{
  dnnl_memory_desc_t source = dense(c->rows, c->k), target = dense(c->rows, c->width), bias = dense(1, c->width);
  dnnl_memory_desc_t by = packed(c, c->width);
  const dnn_setup setup = { e, &target, NULL };
  dnnl_matmul_desc_t desc;
  dnn_plan *p;
  tn_status st = dnn_status(dnnl_matmul_desc_init(&desc, &source, &by, dnn_has_bias(e) ? &bias : NULL, &target),
                            "product", err);
  if (st == TN_OK) st = dnn_plan_create(ctx, &desc, &setup, &p, err);
  return st == TN_OK ? add_arguments(p, e, c, err) : st;
}

static tn_status pack(tn_prepare_ctx *ctx, const columns *c, const dnnl_memory_desc_t *form, const void **weights,
                      tn_error *err)
{
  dnnl_memory_desc_t plain = dense(c->k, c->n);
  return dnn_pack(ctx, 1, &plain, form, weights, err);
}

/* Completes the plan of all columns, with the weights in the form that the pieces have. */
static tn_status end_whole(tn_prepare_ctx *ctx, const columns *c, dnn_plan *p, tn_error *err)
{
  dnnl_memory_desc_t form = packed(c, c->n);
  const void *weights;
  tn_status st = pack(ctx, c, &form, &weights, err);
  if (st != TN_OK) return st;
  dnn_plan_fixed(p, DNNL_ARG_WEIGHTS, weights, &form);
  return dnn_plan_end(p, ctx, err);
}

/* Completes the pieces: packs the weights once for all of them. */
static tn_status end_all(tn_prepare_ctx *ctx, const columns *c, tn_error *err)
{
  const dnn_plan *all = ctx->shape_state;
  dnnl_memory_desc_t form = packed(c, c->n);
  const void *weights;
  tn_status st = pack(ctx, c, &form, &weights, err);
  for (uint32_t i = 0; st == TN_OK && i < all->n_parts; i++) {
    dnn_plan *p = all->parts[i];
    const columns *piece = p->own;
    int64_t at = piece->first / c->block * form.format_desc.blocking.strides[1];
    dnnl_memory_desc_t by = packed(c, piece->width);
    dnn_plan_fixed(p, DNNL_ARG_WEIGHTS, (const float *)weights + at, &by);
    st = dnn_plan_end(p, ctx, err);
  }
  return st;
}

/* The columns of the widest part. */
static int64_t widest(int64_t n, int64_t block, int64_t parts)
{
  int64_t blocks = (n + block - 1) / block;
  return blocks <= parts ? block : (blocks + parts - 1) / parts * block;
}

/* Narrower blocks take longer for each column, but make the parts more equal: chooses the width for which the widest
 * part is fastest. The whole, for a step without help, uses the same form. */
static int64_t block_of(int64_t n, uint32_t parts)
{
  if (parts < 2) return n <= BLOCK ? BLOCK / 2 : BLOCK;
  int64_t half = BLOCK / 2, quarter = BLOCK / 4;
  double wide = (double)widest(n, BLOCK, parts), narrow = 1.05 * (double)widest(n, half, parts);
  double narrowest = 1.15 * (double)widest(n, quarter, parts);
  if (narrowest < 0.95 * wide && narrowest < 0.95 * narrow) return quarter;
  return narrow < 0.95 * wide ? half : BLOCK;
}

/* Parts of some rows each read all weights. Parts of some columns read about half of the input rows from the cache of
 * the core that wrote them, and the reader of the result finds half of its rows in another core's cache: such cache
 * lines take about four times as long as lines that are in no cache. */
static bool by_columns(int64_t rows, int64_t k, int64_t n)
{
  double weights = (double)k * (double)n / 2, others = (double)rows * ((double)k / 2 + (double)n / 4);
  return rows < FEW_ROWS || (rows <= MOST_ROWS && weights > 4 * others);
}

tn_status dnn_columns_plan(tn_prepare_ctx *ctx, const dnn_epilogue *e, int64_t rows, int64_t k, int64_t n, double ns,
                           tn_error *err)
{
  uint32_t parts = dnn_parts_worth(ctx, ns);
  if (ns < DNN_WORTH || n <= MIN_COLUMNS || !by_columns(rows, k, n) || ctx->inputs[0].dtype != TN_FLOAT ||
      !tn_prepare_is_constant(ctx, 1))
    return dnn_declined(err, "no such product");
  columns c = { .rows = rows, .k = k, .n = n, .block = block_of(n, parts) };
  int64_t blocks = (n + c.block - 1) / c.block;
  if (parts < 2) {
    c.width = n;
    tn_status st = piece_create(ctx, e, &c, err);
    return st == TN_OK ? end_whole(ctx, &c, ctx->shape_state, err) : st;
  }
  parts = dnn_parts_at_most(ctx, parts, blocks);
  tn_status st = dnn_parts_begin(ctx, parts, ns, err);
  for (uint32_t i = 0; st == TN_OK && i < parts; i++) {
    int64_t end = dnn_part_begin(blocks, parts, i + 1) * c.block;
    c.first = dnn_part_begin(blocks, parts, i) * c.block;
    c.width = (end < n ? end : n) - c.first;
    st = piece_create(ctx, e, &c, err);
  }
  if (st == TN_OK) st = end_all(ctx, &c, err);
  if (st != TN_OK) return st;
  c.first = 0;
  c.width = n;
  dnn_whole_begin(ctx);
  st = piece_create(ctx, e, &c, err);
  const dnn_plan *all = ctx->shape_state;
  dnn_whole_end(ctx, st == TN_OK ? end_whole(ctx, &c, all->whole, err) : st, err);
  return TN_OK;
}
