/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/kernel/product/after_product.h>
#include <ops/kernel/shapes.h>
#include <ops/kernel/window/volume.h>
#include <string.h>

tn_status tn__after_product_read(const tn_operation *op, bool channels_last, tn__epilogue *out, tn_error *err)
{
  *out = (tn__epilogue){ 0 };
  if (tn_operation_attr_kind(op, "fused_ops") == TN_ATTR_NONE) return TN_OK;
  tn_status st = tn__epilogue_read(op, out, err);
  if (st == TN_OK && out->n > 0 && !channels_last)
    return tn_error_set(err, TN_UNIMPLEMENTED, "%s: attribute 'data_format' has channels first, fused_ops require them "
                        "last", tn_operation_type(op));
  return st;
}

static bool takes_arg(uint8_t kind) { return kind == TN__EPILOGUE_BIAS || kind == TN__EPILOGUE_ADD; }

tn_status tn__after_product_check(const tn__epilogue *e, const tn_prepare_ctx *ctx, uint32_t first, const int64_t *dims,
                                  int32_t rank, tn_error *err)
{
  for (uint32_t i = 0, arg = first; i < e->n; i++) {
    if (!takes_arg(e->kinds[i])) continue;
    int32_t skip = e->kinds[i] == TN__EPILOGUE_BIAS ? rank - 1 : 0;
    tn_status st = tn__want_shape(ctx, arg++, dims + skip, rank - skip, err);
    if (st != TN_OK) return st;
  }
  return TN_OK;
}

/* ---- steps ---- */

void tn__after_product_finish(const tn__gemm_then *then, int n, void *const *c, int64_t column, int64_t columns)
{
  static const uint8_t kinds[] = { TN__EPILOGUE_BIAS, TN__EPILOGUE_RELU, TN__EPILOGUE_RELU6 };
  const tn__after_product *a = (const tn__after_product *)then;
  const tn__epilogue *e = a->epilogue;
  for (int i = 0; i < n; i++) {
    if (then->bias != NULL) e->add(c[i], 1, then->bias + column, 1, c[i], columns);
    if (then->clamp != TN__GEMM_NO_CLAMP) e->activations[kinds[then->clamp]][a->reproducible](c[i], c[i], columns);
  }
}

#define NARROW 64 /* columns: fewer leave a loop over one row waiting for its own results */
#define BLOCK 512 /* elements */

static void activate(const tn__after_product *a, uint32_t step, float *x, int64_t n)
{
  const tn__epilogue *e = a->epilogue;
  const uint8_t kind = e->kinds[step];
  if (kind == TN__EPILOGUE_CURVE) e->curves[step][a->reproducible](x, x, x, n, e->alpha);
  else e->activations[kind][a->reproducible](x, x, n);
}

/* Without a call: rows are short. */
static inline void copy_row(const float *from, float *to, int64_t n)
{
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) memcpy(to + i, from + i, 8 * sizeof(float));
  for (; i < n; i++) to[i] = from[i];
}

static bool are_adjacent(int n, void *const *c, int64_t columns)
{
  for (int i = 1; i < n; i++)
    if ((float *)c[i] != (float *)c[i - 1] + columns) return false;
  return true;
}

/* Applies an activation to rows; narrow ones as one block. */
static void activate_rows(const tn__after_product *a, uint32_t step, int n, void *const *c, int64_t columns)
{
  float block[BLOCK];
  if (are_adjacent(n, c, columns)) {
    activate(a, step, c[0], n * columns);
    return;
  }
  for (int row = 0, some; row < n; row += some) {
    some = columns < NARROW ? (int)(BLOCK / columns) : 1;
    if (some > n - row) some = n - row;
    if (some == 1) {
      activate(a, step, c[row], columns);
      continue;
    }
    for (int i = 0; i < some; i++) copy_row(c[row + i], block + i * columns, columns);
    activate(a, step, block, some * columns);
    for (int i = 0; i < some; i++) copy_row(block + i * columns, c[row + i], columns);
  }
}

/* The steps that tn__after_product_set has not delegated to the product itself. */
static void after_rows(const tn__gemm_then *then, int n, void *const *c, int64_t column, int64_t columns)
{
  const tn__after_product *a = (const tn__after_product *)then;
  const tn__epilogue *e = a->epilogue;
  for (uint32_t i = a->first, arg = a->first_arg; i < e->n; i++) {
    if (!takes_arg(e->kinds[i])) {
      activate_rows(a, i, n, c, columns);
      continue;
    }
    const float *y = a->args[arg++]->data;
    for (int k = 0; k < n; k++) {
      float *x = c[k];
      const int64_t at = e->kinds[i] == TN__EPILOGUE_BIAS ? a->column + column : x - a->out;
      e->add(x, 1, y + at, 1, x, columns);
    }
  }
}

const tn__gemm_then *tn__after_product_set(tn__after_product *a, const tn__epilogue *e, const tn_kernel_ctx *ctx,
                                           uint32_t first, int64_t column)
{
  *a = (tn__after_product){ .epilogue = e, .out = ctx->outputs[0]->data, .args = ctx->inputs + first,
                            .column = column, .reproducible = ctx->reproducible };
  if (e->n == 0) return NULL;
  if (e->kinds[0] == TN__EPILOGUE_BIAS) {
    a->then.bias = (const float *)a->args[a->first_arg++]->data + column;
    a->first++;
  }
  uint8_t next = a->first < e->n ? e->kinds[a->first] : TN__EPILOGUE_BIAS;
  if (next == TN__EPILOGUE_RELU || next == TN__EPILOGUE_RELU6) {
    a->then.clamp = next == TN__EPILOGUE_RELU ? TN__GEMM_RELU : TN__GEMM_RELU6;
    a->first++;
  }
  if (a->first < e->n) a->then.rows = after_rows;
  return &a->then;
}
