/* SPDX-License-Identifier: Apache-2.0 */
/* MaxPool3D, AvgPool3D and their gradients. */
#include <math.h>
#include <ops/kernel/family.h>
#include <ops/kernel/poll.h>
#include <ops/kernel/shapes.h>
#include <ops/nn/pool/pooling.h>

static tn_status create(const tn_operation *op, void **state, tn_error *err)
{
  return tn__pool_create(op, 3, 0, state, err);
}

/* ---- pooling ---- */

static tn_status infer_pool(tn_infer_ctx *ctx, tn_error *err)
{
  tn__volume_window w;
  bool known = tn__volume_read(tn_infer_operation(ctx), 3, &w, NULL) == TN_OK; /* the kernel reports the error */
  return tn__volume_infer_pool(ctx, 3, &w, known, 1, err);
}

/* If strides skip elements and some are left over, TensorFlow skips half of them before the first window. Its
 * gradients, and pooling of images, start at the first element instead. */
static void move_windows(tn__pool_plan *p, tn__padding padding)
{
  for (int k = 0; k < 3 && padding == TN__PAD_SAME && p->outs > 0; k++) {
    tn__window_axis *a = &p->axis[k];
    int64_t reach = (p->out.size[k] - 1) * a->stride + a->size;
    if (reach < p->in.size[k]) a->before = -((p->in.size[k] - reach) / 2);
  }
}

static tn_status prepare_pool(tn_prepare_ctx *ctx, tn_error *err)
{
  tn__pool_plan *p;
  tn_status st = tn__want_rank(ctx, 0, 5, err);
  if (st == TN_OK) st = tn__pool_plan_create(ctx, ctx->inputs[0].dims, &p, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, p->out_dims, 5, err);
  if (st != TN_OK) return st;
  move_windows(p, ((const tn__pool_state *)ctx->state)->window.padding);
  tn__pool_form(ctx, p, 0, true);
  tn__pool_form(ctx, p, 1, false);
  return TN_OK;
}

/* A NaN is never the maximum. */
#define LARGER(a, b) ((b) > (a) ? (b) : (a))
#define SUM(a, b) ((a) + (b))
#define CELLS(name, T, FIRST, TAKE, BY)                                                                     \
  static void name(const T *in, const tn__cells *k, int64_t n, T *out)                                      \
  {                                                                                                         \
    T acc[TN__POOL_BLOCK];                                                                                  \
    for (int64_t j = 0; j < n; j++) acc[j] = FIRST;                                                         \
    for (int64_t a = 0; a < k->n[0]; a++)                                                                   \
      for (int64_t b = 0; b < k->n[1]; b++)                                                                 \
        for (int64_t c = 0; c < k->n[2]; c++) {                                                             \
          const T *at = in + a * k->step[0] + b * k->step[1] + c * k->step[2];                              \
          for (int64_t j = 0; j < n; j++) acc[j] = TAKE(acc[j], at[j]);                                     \
        }                                                                                                   \
    const T by = (T)BY;                                                                                     \
    for (int64_t j = 0; j < n; j++) out[j] = acc[j] / by;                                                   \
  }
CELLS(max_f32, float, -INFINITY, LARGER, 1)
CELLS(mean_f32, float, 0, SUM, (k->n[0] * k->n[1] * k->n[2]))
CELLS(mean_f64, double, 0, SUM, (k->n[0] * k->n[1] * k->n[2]))

typedef struct pool_run {
  tn__pool_run run;
  bool mean;
} pool_run;

static void pool_part(void *user, int64_t begin, int64_t end)
{
  const pool_run *a = user;
  const tn__pool_plan *p = a->run.plan;
  tn__poll poll = tn__poll_here();
  tn__cells cells;
  int64_t first;
  for (int64_t line = begin; line < end; line++)
    for (int64_t at = 0; at < p->out.size[2]; at++) {
      if (!tn__pool_cells(p, line, at, &cells, &first)) continue; /* never: paddings are narrower than a window */
      const int64_t to = (line * p->out.size[2] + at) * p->in.c;
      for (int64_t c = 0; c < p->in.c; c += TN__POOL_BLOCK) {
        if (tn__poll_over(&poll, tn__cells_ns(&cells))) return;
        const int64_t n = p->in.c - c < TN__POOL_BLOCK ? p->in.c - c : TN__POOL_BLOCK;
        if (a->run.state->size == sizeof(double))
          mean_f64((const double *)a->run.in + first + c, &cells, n, (double *)a->run.out + to + c);
        else
          (a->mean ? mean_f32 : max_f32)((const float *)a->run.in + first + c, &cells, n, (float *)a->run.out + to + c);
      }
    }
}

static tn_status compute_pool(tn_kernel_ctx *ctx, bool mean)
{
  const tn__pool_plan *p = ctx->shape_state;
  pool_run a = { { .state = ctx->state, .plan = p }, mean };
  if (ctx->outputs[0]->count == 0) return TN_OK;
  a.run.in = tn__form_load(&p->form[0], ctx, ctx->inputs[0]->data, ctx->scratch);
  a.run.out = tn__form_room(&p->form[1], ctx->outputs[0]->data, ctx->scratch);
  double cost = (double)(p->out.size[2] * p->in.c) * (double)p->axis[0].size * (double)p->axis[1].size *
                (double)p->axis[2].size * 0.5;
  tn__run_parts(ctx, p->lines, cost, pool_part, &a);
  tn__form_store(&p->form[1], ctx, ctx->outputs[0]->data, ctx->scratch);
  return TN_OK;
}

static tn_status compute_mean(tn_kernel_ctx *ctx) { return compute_pool(ctx, true); }
static tn_status compute_max(tn_kernel_ctx *ctx) { return compute_pool(ctx, false); }

/* ---- tables ---- */

#define WINDOW                                                                                        \
  "; ksize: list(int) >= 5; strides: list(int) >= 5; padding: {'SAME', 'VALID'}; "                    \
  "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'"
#define REALS "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"
#define POOL_OP(op, in, attributes, operands, shape, text)                                                          \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = "output: T", .attrs = attributes WINDOW,    \
    .shape_operands = operands, .infer = shape, .summary = text }

static const tn_op_def ops[] = {
  POOL_OP("AvgPool3D", "input: T", "T: {half, bfloat16, float, double}", 0, infer_pool,
          "average pooling of volumes"),
  POOL_OP("AvgPool3DGrad", "orig_input_shape: int32, grad: T", "T: {half, bfloat16, float, double}", 1u << 0,
          tn__pool_infer_mean_3d, "gradient of AvgPool3D"),
  POOL_OP("MaxPool3D", "input: T", "T: {half, bfloat16, float}", 0, infer_pool,
          "max pooling of volumes"),
  POOL_OP("MaxPool3DGrad", "orig_input: TInput, orig_output: TInput, grad: T",
          "T: {half, bfloat16, float} = float; TInput: {half, bfloat16, float} = float", 0, tn__pool_infer_image,
          "gradient of MaxPool3D"),
  POOL_OP("MaxPool3DGradGrad", "orig_input: T, orig_output: T, grad: T", REALS, 0, tn__pool_infer_pooled,
          "gradient of MaxPool3DGrad"),
};

#define POOL_KERNEL(which, set, title, prepare_, compute_)                                                          \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = set, .name = title,                   \
    .rank = TN_RANK_C, .create = create, .destroy = tn__pool_destroy, .prepare = prepare_,                          \
    .destroy_shape_state = tn__pool_destroy_plan, .compute = compute_ }
#define MAX_GRAD_KERNEL(set) \
  POOL_KERNEL("MaxPool3DGrad", set, "max_pool3d_grad_cpu", tn__pool_prepare_grad, tn__pool_compute_grad)

static const tn_kernel_def kernels[] = {
  POOL_KERNEL("AvgPool3D", NULL, "avg_pool3d_cpu", prepare_pool, compute_mean),
  POOL_KERNEL("AvgPool3DGrad", NULL, "avg_pool3d_grad_cpu", tn__pool_prepare_mean, tn__pool_compute_mean),
  POOL_KERNEL("MaxPool3D", NULL, "max_pool3d_cpu", prepare_pool, compute_max),
  MAX_GRAD_KERNEL("T=float,TInput=float"),
  MAX_GRAD_KERNEL("T=half,TInput=half"),
  MAX_GRAD_KERNEL("T=bfloat16,TInput=bfloat16"),
  POOL_KERNEL("MaxPool3DGradGrad", NULL, "max_pool3d_grad_grad_cpu", tn__pool_prepare_grad_grad,
              tn__pool_compute_grad_grad),
};

TN_OP_FAMILY(pool3d)
