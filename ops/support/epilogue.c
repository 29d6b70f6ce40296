/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/support/epilogue.h>
#include <ops/support/shapes.h>
#include <ops/support/vector_math.h>
#include <string.h>

static const struct name {
  const char *text;
  uint8_t kind;
} names[] = {
  { "BiasAdd", TN__EPILOGUE_BIAS },     { "Add", TN__EPILOGUE_ADD },
  { "Relu", TN__EPILOGUE_RELU },        { "Relu6", TN__EPILOGUE_RELU6 },
  { "LeakyRelu", TN__EPILOGUE_LEAKY_RELU }, { "Tanh", TN__EPILOGUE_TANH },
  { "Sigmoid", TN__EPILOGUE_SIGMOID },
};

bool tn__epilogue_find(const char *name, size_t size, tn__epilogue_kind *out)
{
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strlen(names[i].text) == size && memcmp(names[i].text, name, size) == 0) {
      *out = names[i].kind;
      return true;
    }
  return false;
}

tn_status tn__epilogue_read(const tn_operation *op, tn__epilogue *out, tn_error *err)
{
  const char *text;
  size_t size, n = 0;
  *out = (tn__epilogue){ .alpha = tn__attr_float(op, "leakyrelu_alpha", 0.2f) };
  tn_status st = tn_operation_attr_string_at(op, "fused_ops", 0, &text, &size, &n, err);
  if (st != TN_OK) return st;
  if (n > TN__EPILOGUE_STEPS)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: fused_ops has %zu steps, at most %d wanted", tn_operation_type(op),
                        n, TN__EPILOGUE_STEPS);
  for (size_t i = 0; i < n; i++) {
    tn__epilogue_kind kind;
    st = tn_operation_attr_string_at(op, "fused_ops", i, &text, &size, NULL, err);
    if (st != TN_OK) return st;
    if (!tn__epilogue_find(text, size, &kind))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: fused_ops has '%.*s', which is no step of a product",
                          tn_operation_type(op), (int)(size > 99 ? 99 : size), text);
    out->kinds[out->n++] = (uint8_t)kind;
    if (kind == TN__EPILOGUE_BIAS || kind == TN__EPILOGUE_ADD) out->n_args++;
  }
  if (tn__attr_int(op, "num_args", 0) != (int64_t)out->n_args)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: num_args is %lld, its fused_ops take %u", tn_operation_type(op),
                        (long long)tn__attr_int(op, "num_args", 0), (unsigned)out->n_args);
  return TN_OK;
}

static tn_status check_args(const tn__epilogue *e, tn_kernel_ctx *ctx, uint32_t first)
{
  const tn_view *out = ctx->outputs[0];
  for (uint32_t i = 0, arg = first; i < e->n; i++) {
    if (e->kinds[i] != TN__EPILOGUE_BIAS && e->kinds[i] != TN__EPILOGUE_ADD) continue;
    const tn_view *v = ctx->inputs[arg];
    bool bias = e->kinds[i] == TN__EPILOGUE_BIAS;
    int32_t skip = bias ? out->rank - 1 : 0;
    bool same = v->rank == out->rank - skip;
    for (int32_t d = 0; same && d < v->rank; d++) same = v->dims[d] == out->dims[d + skip];
    if (!same)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "input %u has another shape than the result wants", (unsigned)arg);
    arg++;
  }
  return TN_OK;
}

/* ---- applying ---- */

typedef struct job {
  const tn__epilogue *e;
  float *data;
  int64_t channels;
  tn_view *const *args;
} job;

static void activate(const tn__epilogue *e, uint8_t kind, float *restrict x, int64_t n)
{
  switch (kind) { /* a NaN stays one */
  case TN__EPILOGUE_RELU:
    for (int64_t i = 0; i < n; i++) x[i] = x[i] < 0 ? 0 : x[i];
    break;
  case TN__EPILOGUE_RELU6:
    for (int64_t i = 0; i < n; i++) {
      float v = x[i] < 0 ? 0 : x[i];
      x[i] = v > 6 ? 6 : v;
    }
    break;
  case TN__EPILOGUE_LEAKY_RELU:
    for (int64_t i = 0; i < n; i++) x[i] = x[i] < 0 ? x[i] * e->alpha : x[i];
    break;
  case TN__EPILOGUE_TANH:
    for (int64_t i = 0; i < n; i++) x[i] = tn__tanhf(x[i]);
    break;
  case TN__EPILOGUE_SIGMOID:
    for (int64_t i = 0; i < n; i++) x[i] = tn__sigmoidf(x[i]);
    break;
  default: break;
  }
}

static void add(float *restrict x, const float *restrict y, int64_t n)
{
  for (int64_t i = 0; i < n; i++) x[i] += y[i];
}

static void part(void *user, int64_t begin, int64_t end)
{
  const job *j = user;
  int64_t channels = j->channels, block = 4096 / channels + 1; /* rows that stay in the first cache */
  for (int64_t row = begin; row < end; row += block) {
    int64_t rows = end - row < block ? end - row : block, arg = 0;
    float *x = j->data + row * channels;
    for (uint32_t i = 0; i < j->e->n; i++) {
      uint8_t kind = j->e->kinds[i];
      if (kind == TN__EPILOGUE_BIAS)
        for (int64_t r = 0; r < rows; r++) add(x + r * channels, j->args[arg]->data, channels);
      else if (kind == TN__EPILOGUE_ADD)
        add(x, (const float *)j->args[arg]->data + row * channels, rows * channels);
      else
        activate(j->e, kind, x, rows * channels);
      if (kind == TN__EPILOGUE_BIAS || kind == TN__EPILOGUE_ADD) arg++;
    }
  }
}

tn_status tn__epilogue_apply(const tn__epilogue *e, tn_kernel_ctx *ctx, uint32_t first)
{
  const tn_view *out = ctx->outputs[0];
  tn_status st = check_args(e, ctx, first);
  if (st != TN_OK || e->n == 0 || out->count == 0) return st;
  int64_t channels = out->dims[out->rank - 1];
  job j = { e, out->data, channels, ctx->inputs + first };
  tn_parallel_for(ctx, out->count / channels, TN__SERIAL_ELEMENTS / channels + 1, (double)channels * e->n * 0.2, part, &j);
  return TN_OK;
}
