/* SPDX-License-Identifier: Apache-2.0 */
/* What a fused product does to its result before anybody reads it: a bias for each channel, another tensor of its shape
 * added, an activation. Steps are applied in their order to parts of the result that lie in the cache.
 *
 * An op with an epilogue has the attributes "fused_ops: list(string) = []; leakyrelu_alpha: float = 0.2" and the inputs
 * "args: num_args * T": BiasAdd and Add take one each, in their order. */
#ifndef TN_OPS_SUPPORT_EPILOGUE_H
#define TN_OPS_SUPPORT_EPILOGUE_H

#include <stdbool.h>
#include <tenon/op.h>

typedef enum tn__epilogue_kind {
  TN__EPILOGUE_BIAS,
  TN__EPILOGUE_ADD,
  TN__EPILOGUE_RELU,
  TN__EPILOGUE_RELU6,
  TN__EPILOGUE_LEAKY_RELU,
  TN__EPILOGUE_TANH,
  TN__EPILOGUE_SIGMOID
} tn__epilogue_kind;

#define TN__EPILOGUE_STEPS 8

typedef struct tn__epilogue {
  uint32_t n;
  uint32_t n_args; /* that the steps take */
  float alpha;     /* of LeakyRelu */
  uint8_t kinds[TN__EPILOGUE_STEPS];
} tn__epilogue;

#define TN__EPILOGUE_ATTRS "fused_ops: list(string) = []; leakyrelu_alpha: float = 0.2"

/* The kind of a name in fused_ops; false when there is none. */
bool tn__epilogue_find(const char *name, size_t size, tn__epilogue_kind *out);
/* Reads the attributes. TN_INVALID_ARGUMENT: an unknown step, too many, num_args does not fit. */
tn_status tn__epilogue_read(const tn_operation *op, tn__epilogue *out, tn_error *err);
/* Applies it to output 0, which is float, in place; the args are the inputs from `first` on. TN_INVALID_ARGUMENT: a bias has
 * not one value for each channel (the last dimension), or an added tensor another shape. */
tn_status tn__epilogue_apply(const tn__epilogue *e, tn_kernel_ctx *ctx, uint32_t first);

#endif
