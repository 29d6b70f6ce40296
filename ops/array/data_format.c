/* SPDX-License-Identifier: Apache-2.0 */
/* DataFormatDimMap DataFormatVecPermute: axes and sizes of one data format as those of another. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <string.h>

enum { MOST = 5 }; /* letters of a format */

typedef struct format_state {
  int n;                        /* letters */
  int to[MOST], from[MOST];     /* to[i]: where letter i of the source format is in the other one; from: the reverse */
  int from_space[MOST];         /* the same for the spatial letters alone; the first is -1 if H or W is missing */
  bool permutes;
} format_state;

/* Removes the batch and the channels. */
static int spatial(const char *format, int n, char *to)
{
  int k = 0;
  for (int i = 0; i < n; i++)
    if (format[i] != 'N' && format[i] != 'C') to[k++] = format[i];
  return k;
}

static int place_in(const char *format, int n, char letter)
{
  for (int i = 0; i < n; i++)
    if (format[i] == letter) return i;
  return -1;
}

/* Whether both formats have the same letters, each once. */
static bool match(const char *a, const char *b, int n, format_state *s)
{
  for (int i = 0; i < n; i++) {
    s->to[i] = place_in(b, n, a[i]);
    s->from[i] = place_in(a, n, b[i]);
    if (s->to[i] < 0 || place_in(a, n, a[i]) != i || place_in(b, n, b[i]) != i) return false;
  }
  return true;
}

static void match_space(const char *a, const char *b, format_state *s)
{
  char x[MOST], y[MOST];
  int n = spatial(a, s->n, x), m = spatial(b, s->n, y);
  s->from_space[0] = -1;
  if (n != m || n != s->n - 2 || place_in(x, n, 'H') < 0 || place_in(x, n, 'W') < 0) return;
  for (int i = 0; i < n; i++) s->from_space[i] = place_in(x, n, y[i]);
}

static tn_status format_create(const tn_operation *op, void **state, tn_error *err)
{
  const char *from, *to;
  size_t n, m;
  format_state s = { .permutes = strcmp(tn_operation_type(op), "DataFormatVecPermute") == 0 };
  *state = NULL;
  if (tn_operation_attr_string(op, "src_format", &from, &n, NULL) != TN_OK) from = "NHWC", n = 4;
  if (tn_operation_attr_string(op, "dst_format", &to, &m, NULL) != TN_OK) to = "NCHW", m = 4;
  s.n = (int)n;
  if ((n != 4 && n != 5) || m != n || !match(from, to, s.n, &s))
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "%s: src_format is '%.*s' and dst_format '%.*s', wanted the same 4 or 5 letters",
                        tn_operation_type(op), n < 20 ? (int)n : 20, from, m < 20 ? (int)m : 20, to);
  match_space(from, to, &s);
  return tn__keep_state(&s, sizeof s, "formats", state, err);
}

static void format_destroy(void *state) { tn__free(state, sizeof(format_state)); }

static tn_status map_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  ctx->cost_ns = 20 + (double)ctx->inputs[0].count;
  return tn_prepare_output_like(ctx, 0, 0, err);
}

static void put(const tn_view *out, int64_t i, int64_t value)
{
  if (out->dtype == TN_INT32) ((int32_t *)out->data)[i] = (int32_t)value;
  else ((int64_t *)out->data)[i] = value;
}

static tn_status map_compute(tn_kernel_ctx *ctx)
{
  const format_state *s = ctx->state;
  for (int64_t i = 0; i < ctx->outputs[0]->count; i++) {
    int64_t axis = tn__view_int_at(ctx->inputs[0], i) % s->n;
    put(ctx->outputs[0], i, s->to[axis < 0 ? axis + s->n : axis]);
  }
  return TN_OK;
}

/* A vector has an element for each axis or each spatial axis; a matrix has a row of two. */
static tn_status permute_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const format_state *s = ctx->state;
  const tn_view *in = &ctx->inputs[0];
  bool fits = (in->rank == 1 || (in->rank == 2 && in->dims[1] == 2)) &&
              (in->dims[0] == s->n || (in->dims[0] == s->n - 2 && s->from_space[0] >= 0));
  const int64_t wanted[] = { s->n, 2 };
  if (!fits) return tn__shape_error(err, ctx, 0, wanted, in->rank == 2 ? 2 : 1);
  ctx->cost_ns = 20;
  return tn_prepare_output_like(ctx, 0, 0, err);
}

static tn_status permute_compute(tn_kernel_ctx *ctx)
{
  const format_state *s = ctx->state;
  const tn_view *in = ctx->inputs[0];
  const int *from = in->dims[0] == s->n ? s->from : s->from_space;
  int64_t each = in->rank == 2 ? 2 : 1;
  for (int64_t i = 0; i < in->count; i++)
    put(ctx->outputs[0], i, tn__view_int_at(in, from[i / each] * each + i % each));
  return TN_OK;
}

#define OP(op, text)                                                                                     \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = "x: T", .outputs = "y: T",                      \
    .attrs = "T: {int32, int64} = int32; src_format: string = 'NHWC'; dst_format: string = 'NCHW'",      \
    .infer = tn__infer_unchanged, .summary = text }

static const tn_op_def ops[] = {
  OP("DataFormatDimMap", "axes of one data format as those of another"),
  OP("DataFormatVecPermute", "sizes in the order of one data format, in that of another"),
};

static const tn_kernel_def kernels[] = {
  TN__KERNEL("DataFormatDimMap", "data_format_axes_cpu", format_create, format_destroy, map_prepare, map_compute),
  TN__KERNEL("DataFormatVecPermute", "data_format_sizes_cpu", format_create, format_destroy, permute_prepare,
             permute_compute),
};

TN_OP_FAMILY(data_format)
