/* SPDX-License-Identifier: Apache-2.0 */
/* NaN operands of a fused activation. oneDNN's code for these computes a maximum or minimum, which
 * returns the other operand for a NaN. The processor records such an operand in a flag, which is cheap to clear
 * before a primitive and to read after it. If the flag is set, the result is computed again: by a primitive that ends
 * before the first such step, and by the loops here from that step on. */
#include "onednn.h"

#include <math.h>
#include <string.h>

#if defined(__SSE__)
#include <xmmintrin.h>
#define INVALID 1u

static bool flag_is_set(void) { return (_mm_getcsr() & INVALID) != 0; }
static void set_flag(bool to) { _mm_setcsr(to ? _mm_getcsr() | INVALID : _mm_getcsr() & ~INVALID); }
#else
#include <fenv.h>

static bool flag_is_set(void) { return fetestexcept(FE_INVALID) != 0; }
static void set_flag(bool to)
{
  if (to) feraiseexcept(FE_INVALID);
  else feclearexcept(FE_INVALID);
}
#endif

bool dnn_nan_watch(void)
{
  bool before = flag_is_set();
  if (before) set_flag(false);
  return before;
}

bool dnn_nan_met(bool before)
{
  bool met = flag_is_set();
  if (before && !met) set_flag(true);
  return met;
}

/* ---- which steps ---- */

static bool loses(const dnn_epilogue *e, uint32_t i)
{
  switch (e->steps[i]) {
  case DNN_RELU: case DNN_RELU6: case DNN_TANH: case DNN_SIGMOID: case DNN_SWISH: case DNN_MISH:
  case DNN_HARD_SWISH: case DNN_GELU: case DNN_GELU_TANH:
    return true;
  case DNN_LEAKY_RELU: return e->alpha == 0;
  default: return false;
  }
}

uint32_t dnn_epilogue_safe(const dnn_epilogue *e)
{
  uint32_t n = 0;
  while (n < e->n && !loses(e, n)) n++;
  return n;
}

/* ---- the primitive ---- */

typedef union op_desc {
  dnnl_matmul_desc_t product;
  dnnl_convolution_desc_t convolution;
} op_desc;

/* The descriptor from which the plan's primitive was made, with the weights in their packed form. */
static bool describe(const dnn_plan *p, op_desc *out)
{
  const dnnl_memory_desc_t *weights = dnnl_primitive_desc_query_md(p->desc, dnnl_query_weights_md, 0);
  const dnnl_matmul_desc_t *product = NULL;
  const dnnl_convolution_desc_t *convolution = NULL;
  if (weights == NULL) return false;
  if (dnnl_primitive_desc_query(p->desc, dnnl_query_matmul_d, 0, &product) == dnnl_success && product != NULL) {
    out->product = *product;
    out->product.weights_desc = *weights;
    return true;
  }
  if (dnnl_primitive_desc_query(p->desc, dnnl_query_convolution_d, 0, &convolution) != dnnl_success ||
      convolution == NULL)
    return false;
  out->convolution = *convolution;
  out->convolution.weights_desc = *weights;
  return true;
}

static const dnnl_exec_arg_t *find_arg(const dnn_plan *p, const dnnl_exec_arg_t *args, int32_t arg)
{
  for (uint32_t i = 0; i < p->n_args; i++)
    if (args[i].arg == arg) return &args[i];
  return NULL;
}

/* The tensor that step i of the epilogue adds. Steps after the bias are post-ops. */
static const dnnl_exec_arg_t *added_by(const dnn_plan *p, const dnnl_exec_arg_t *args, uint32_t i)
{
  int32_t post = (int32_t)i - dnn_has_bias(&p->epilogue);
  return find_arg(p, args, DNNL_ARG_ATTR_MULTIPLE_POST_OP(post) | DNNL_ARG_SRC_1);
}

static dnnl_status_t append_safe(const dnn_plan *p, const dnnl_exec_arg_t *args, dnnl_post_ops_t to)
{
  const dnnl_memory_desc_t *added = NULL;
  dnn_epilogue safe = p->epilogue;
  safe.n = dnn_epilogue_safe(&p->epilogue);
  for (uint32_t i = 0; i < safe.n; i++) {
    const dnnl_exec_arg_t *a = safe.steps[i] == DNN_ADD ? added_by(p, args, i) : NULL;
    if (a != NULL) dnnl_memory_get_memory_desc(a->memory, &added);
  }
  return dnn_epilogue_append(&safe, added, to, NULL) == TN_OK ? dnnl_success : dnnl_unimplemented;
}

/* The plan's scratch has no room for this primitive, so it uses oneDNN's own. */
static dnnl_status_t make_careful(const dnn_plan *p, const dnnl_exec_arg_t *args, dnnl_primitive_t *out)
{
  op_desc op;
  dnnl_primitive_attr_t attr = NULL;
  dnnl_post_ops_t ops = NULL;
  dnnl_primitive_desc_t desc = NULL;
  if (!describe(p, &op)) return dnnl_unimplemented;
  dnnl_status_t st = dnnl_primitive_attr_create(&attr);
  if (st == dnnl_success) st = dnnl_post_ops_create(&ops);
  if (st == dnnl_success) st = append_safe(p, args, ops);
  if (st == dnnl_success) st = dnnl_primitive_attr_set_post_ops(attr, ops);
  if (st == dnnl_success) st = dnnl_primitive_desc_create(&desc, &op, attr, dnn_engine(NULL), NULL);
  if (st == dnnl_success) st = dnnl_primitive_create(out, desc);
  if (desc != NULL) dnnl_primitive_desc_destroy(desc);
  if (ops != NULL) dnnl_post_ops_destroy(ops);
  if (attr != NULL) dnnl_primitive_attr_destroy(attr);
  return st;
}

dnnl_status_t dnn_careful(dnn_plan *p, const dnnl_exec_arg_t *args, dnnl_primitive_t *out)
{
  dnnl_primitive_t made = atomic_load_explicit(&p->careful, memory_order_acquire), other = NULL;
  if (made == NULL) {
    dnnl_status_t st = make_careful(p, args, &made);
    if (st != dnnl_success) return st;
    if (!atomic_compare_exchange_strong(&p->careful, &other, made)) {
      dnnl_primitive_destroy(made);
      made = other;
    }
  }
  *out = made;
  return dnnl_success;
}

/* ---- the steps ---- */

static float apply(const dnn_epilogue *e, uint32_t i, float x, float added)
{
  if (e->steps[i] == DNN_ADD) return x + added;
  if (isnan(x)) return x;
  switch (e->steps[i]) {
  case DNN_RELU: return x > 0 ? x : 0;
  case DNN_RELU6: return x > 0 ? fminf(x, 6) : 0;
  case DNN_LEAKY_RELU: return x > 0 ? x : e->alpha * x;
  case DNN_TANH: return tanhf(x);
  case DNN_SIGMOID: return 1 / (1 + expf(-x));
  case DNN_SWISH: return x / (1 + expf(-e->alpha * x));
  case DNN_MISH: return x > 40 ? x : x * tanhf(log1pf(expf(x)));
  case DNN_HARD_SWISH: return x * fminf(fmaxf(x + 3, 0), 6) / 6;
  case DNN_GELU: return x * 0.5f * (1 + erff(e->alpha * x));
  case DNN_GELU_TANH: return x / (1 + expf(-2 * e->alpha * x * (1 + 0.044715f * x * x)));
  default: return x;
  }
}

static float load(const char *from, bool half)
{
  uint32_t bits = 0;
  uint16_t upper;
  float v;
  if (!half) {
    memcpy(&v, from, sizeof v);
    return v;
  }
  memcpy(&upper, from, sizeof upper);
  bits = (uint32_t)upper << 16;
  memcpy(&v, &bits, sizeof v);
  return v;
}

/* bfloat16 is rounded to nearest, ties to even; a NaN stays a NaN. */
static void store(char *to, bool half, float v)
{
  uint32_t bits;
  memcpy(&bits, &v, sizeof bits);
  if (!half) {
    memcpy(to, &bits, sizeof bits);
    return;
  }
  uint16_t upper = (uint16_t)(isnan(v) ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  memcpy(to, &upper, sizeof upper);
}

typedef struct place {
  char *data;
  const dnnl_memory_desc_t *desc;
  bool half;
} place;

static bool place_of(const dnnl_exec_arg_t *arg, place *out)
{
  void *data = NULL;
  if (arg == NULL || dnnl_memory_get_memory_desc(arg->memory, &out->desc) != dnnl_success ||
      dnnl_memory_get_data_handle(arg->memory, &data) != dnnl_success)
    return false;
  const dnnl_memory_desc_t *d = out->desc;
  out->half = d->data_type == dnnl_bf16;
  out->data = (char *)data + d->offset0 * (out->half ? 2 : 4);
  return d->format_kind == dnnl_blocked && d->format_desc.blocking.inner_nblks == 0 &&
         (out->half || d->data_type == dnnl_f32);
}

static char *element(const place *p, const int64_t *at)
{
  int64_t offset = 0;
  for (int d = 0; d < p->desc->ndims; d++) offset += at[d] * p->desc->format_desc.blocking.strides[d];
  return p->data + offset * (p->half ? 2 : 4);
}

/* Applies step i to every element of the result. */
static bool run_step(const dnn_plan *p, const dnnl_exec_arg_t *args, uint32_t i)
{
  place y, added = { .data = NULL };
  int64_t at[DNNL_MAX_NDIMS] = { 0 };
  if (!place_of(find_arg(p, args, DNNL_ARG_DST), &y)) return false;
  if (p->epilogue.steps[i] == DNN_ADD && !place_of(added_by(p, args, i), &added)) return false;
  for (int d = 0; d >= 0;) {
    char *to = element(&y, at);
    store(to, y.half,
          apply(&p->epilogue, i, load(to, y.half), added.data == NULL ? 0 : load(element(&added, at), added.half)));
    for (d = y.desc->ndims - 1; d >= 0 && ++at[d] == y.desc->dims[d]; d--) at[d] = 0;
  }
  return true;
}

dnnl_status_t dnn_careful_finish(const dnn_plan *p, const dnnl_exec_arg_t *args)
{
  for (uint32_t i = dnn_epilogue_safe(&p->epilogue); i < p->epilogue.n; i++)
    if (!run_step(p, args, i)) return dnnl_unimplemented;
  return dnnl_success;
}
