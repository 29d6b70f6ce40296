/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/kernel/product/epilogue.h>
#include <ops/kernel/shapes.h>
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

/* Looks up the kind for a name in fused_ops; false if it is unknown. */
static bool epilogue_find(const char *name, size_t size, tn__epilogue_kind *out)
{
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strlen(names[i].text) == size && memcmp(names[i].text, name, size) == 0) {
      *out = names[i].kind;
      return true;
    }
  return false;
}

/* Finds the loops of the steps: those of the plain ops, so the bits are the same. */
static tn_status find_loops(const tn_operation *op, tn__epilogue *e, tn_error *err)
{
  for (uint32_t i = 0; i < e->n; i++) {
    uint8_t kind = e->kinds[i];
    if (kind == TN__EPILOGUE_LEAKY_RELU) {
      e->leaky = tn__leaky_find(TN_FLOAT);
    } else if (kind == TN__EPILOGUE_BIAS || kind == TN__EPILOGUE_ADD) {
      const tn__binary_loop *loop = tn__binary_loop_of("AddV2", op);
      if (loop == NULL) return tn__no_kernel(err, op, tn_operation_input_dtype(op, 0));
      e->add = loop->fn[tn__vectors()];
    } else {
      const char *name = NULL;
      for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (names[k].kind == kind) name = names[k].text;
      const tn__unary_loop *loop = tn__unary_loop_of(name, op);
      if (loop == NULL) return tn__no_kernel(err, op, tn_operation_input_dtype(op, 0));
      for (int k = 0; k < 2; k++) e->activations[kind][k] = loop->fn[tn__vectors_for(k == 1)];
    }
  }
  return TN_OK;
}

tn_status tn__epilogue_read(const tn_operation *op, tn__epilogue *out, tn_error *err)
{
  const char *text;
  size_t size, n = 0;
  *out = (tn__epilogue){ .alpha = tn__attr_float(op, "leakyrelu_alpha", 0.2f) };
  tn_status st = tn_operation_attr_string_at(op, "fused_ops", 0, &text, &size, &n, err);
  if (st != TN_OK) return st;
  if (n > TN__EPILOGUE_STEPS)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: fused_ops has %zu steps, wanted at most %d",
                        tn_operation_type(op), n, TN__EPILOGUE_STEPS);
  for (size_t i = 0; i < n; i++) {
    tn__epilogue_kind kind;
    st = tn_operation_attr_string_at(op, "fused_ops", i, &text, &size, NULL, err);
    if (st != TN_OK) return st;
    if (!epilogue_find(text, size, &kind))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: fused_ops has '%.*s', which is not a step of a product",
                          tn_operation_type(op), (int)(size > 99 ? 99 : size), text);
    out->kinds[out->n++] = (uint8_t)kind;
    if (kind == TN__EPILOGUE_BIAS || kind == TN__EPILOGUE_ADD) out->n_args++;
  }
  st = find_loops(op, out, err);
  if (st != TN_OK) return st;
  if (tn__attr_int(op, "num_args", 0) != (int64_t)out->n_args)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: num_args is %lld, its fused_ops take %u", tn_operation_type(op),
                        (long long)tn__attr_int(op, "num_args", 0), (unsigned)out->n_args);
  return TN_OK;
}
