/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that a fused product applies to its result: a bias per channel, the addition of another tensor of the same
 * shape, an activation. Steps are applied in order, to parts of the result that are still in the cache.
 *
 * An op with an epilogue has the attributes "fused_ops: list(string) = []; leakyrelu_alpha: float = 0.2" and the inputs
 * "args: num_args * T". BiasAdd and Add consume one argument each, in order. */
#ifndef TN_OPS_KERNEL_PRODUCT_EPILOGUE_H
#define TN_OPS_KERNEL_PRODUCT_EPILOGUE_H

#include <ops/kernel/elements/curves.h>
#include <ops/kernel/elements/elementwise.h>

typedef enum tn__epilogue_kind {
  TN__EPILOGUE_BIAS,
  TN__EPILOGUE_ADD,
  TN__EPILOGUE_RELU,
  TN__EPILOGUE_RELU6,
  TN__EPILOGUE_TANH,
  TN__EPILOGUE_SIGMOID,
  TN__EPILOGUE_CURVE /* one of curves.h */
} tn__epilogue_kind;

#define TN__EPILOGUE_STEPS 8

typedef struct tn__epilogue {
  uint32_t n;
  uint32_t n_args; /* number of arguments the steps consume */
  float alpha;     /* of a curve */
  uint8_t kinds[TN__EPILOGUE_STEPS];
  /* The loops of the plain ops, for this machine's vectors; activations are indexed by kind; [1]: for
   * reproducible sessions. */
  tn__binary_fn add;
  tn__unary_fn activations[TN__EPILOGUE_SIGMOID + 1][2];
  tn__leaky_fn curves[TN__EPILOGUE_STEPS][2]; /* by step */
} tn__epilogue;

#define TN__EPILOGUE_ATTRS "fused_ops: list(string) = []; leakyrelu_alpha: float = 0.2"

/* Reads the attributes and finds the loops. TN_INVALID_ARGUMENT if a step is unknown, there are too many steps, or
 * num_args does not match. */
tn_status tn__epilogue_read(const tn_operation *op, tn__epilogue *out, tn_error *err);

#endif
