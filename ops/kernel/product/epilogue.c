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
  { "Tanh", TN__EPILOGUE_TANH },        { "Sigmoid", TN__EPILOGUE_SIGMOID },
  { "LeakyRelu", TN__EPILOGUE_CURVE },  { "_TnSwish", TN__EPILOGUE_CURVE },
  { "_TnMish", TN__EPILOGUE_CURVE },    { "_TnHardSwish", TN__EPILOGUE_CURVE },
  { "_TnHardSigmoid", TN__EPILOGUE_CURVE }, { "_TnGelu", TN__EPILOGUE_CURVE },
  { "_TnGeluTanh", TN__EPILOGUE_CURVE },
};

/* Looks up a name in fused_ops; NULL if it is unknown. */
static const struct name *epilogue_find(const char *name, size_t size)
{
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strlen(names[i].text) == size && memcmp(names[i].text, name, size) == 0) return &names[i];
  return NULL;
}

/* Finds the loop of step i: that of the plain op, so the bits are the same. */
static tn_status find_loop(const tn_operation *op, const struct name *name, uint32_t i, tn__epilogue *e, tn_error *err)
{
  bool found;
  if (name->kind == TN__EPILOGUE_CURVE) {
    for (int k = 0; k < 2; k++) e->curves[i][k] = tn__curve_find(name->text, TN_FLOAT, k == 1);
    found = e->curves[i][0] != NULL && e->curves[i][1] != NULL;
  } else if (name->kind == TN__EPILOGUE_BIAS || name->kind == TN__EPILOGUE_ADD) {
    const tn__binary_loop *loop = tn__binary_loop_of("AddV2", op);
    found = loop != NULL;
    if (found) e->add = loop->fn[tn__vectors()];
  } else {
    const tn__unary_loop *loop = tn__unary_loop_of(name->text, op);
    found = loop != NULL;
    for (int k = 0; found && k < 2; k++) e->activations[name->kind][k] = loop->fn[tn__vectors_for(k == 1)];
  }
  return found ? TN_OK : tn__no_kernel(err, op, tn_operation_input_dtype(op, 0));
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
    st = tn_operation_attr_string_at(op, "fused_ops", i, &text, &size, NULL, err);
    if (st != TN_OK) return st;
    const struct name *name = epilogue_find(text, size);
    if (name == NULL)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: fused_ops has '%.*s', which is not a step of a product",
                          tn_operation_type(op), (int)(size > 99 ? 99 : size), text);
    out->kinds[out->n] = name->kind;
    if (name->kind == TN__EPILOGUE_BIAS || name->kind == TN__EPILOGUE_ADD) out->n_args++;
    st = find_loop(op, name, out->n++, out, err);
    if (st != TN_OK) return st;
  }
  if (tn__attr_int(op, "num_args", 0) != (int64_t)out->n_args)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: num_args is %lld, its fused_ops take %u", tn_operation_type(op),
                        (long long)tn__attr_int(op, "num_args", 0), (unsigned)out->n_args);
  return TN_OK;
}
