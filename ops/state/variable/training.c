/* SPDX-License-Identifier: Apache-2.0 */
/* Optimisers: Apply..., SparseApply..., ResourceApply... and ResourceSparseApply..., each with a
 * line in LIST. Their rules are in optimiser_rules.c. */
#include <ops/kernel/family.h>
#include <ops/state/variable/optimiser.h>

/* Inputs: V is how a variable is passed, G the gradient, with its indices if it is sparse. */
#define SLOTS_1(V) "var: " V
#define SLOTS_2(V, a) SLOTS_1(V) ", " a ": " V
#define SLOTS_3(V, a, b) SLOTS_2(V, a) ", " b ": " V
#define SLOTS_4(V, a, b, c) SLOTS_3(V, a, b) ", " c ": " V
#define DESCENT(V, G) SLOTS_1(V) ", alpha: T, " G
#define PROXIMAL(V, G) SLOTS_1(V) ", alpha: T, l1: T, l2: T, " G
#define MOMENTUM(V, G) SLOTS_2(V, "accum") ", lr: T, " G ", momentum: T"
#define POWERS "beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, epsilon: T, "
#define ADAM(V, G) SLOTS_3(V, "m", "v") ", " POWERS G
#define AMSGRAD(V, G) SLOTS_4(V, "m", "v", "vhat") ", " POWERS G
#define ADAMAX(V, G) SLOTS_3(V, "m", "v") ", beta1_power: T, lr: T, beta1: T, beta2: T, epsilon: T, " G
#define RMSPROP(V, G) SLOTS_3(V, "ms", "mom") ", lr: T, rho: T, momentum: T, epsilon: T, " G
#define CENTERED(V, G) SLOTS_4(V, "mg", "ms", "mom") ", lr: T, rho: T, momentum: T, epsilon: T, " G
#define ADD_SIGN(V, G) SLOTS_2(V, "m") ", lr: T, alpha: T, sign_decay: T, beta: T, " G
#define POWER_SIGN(V, G) SLOTS_2(V, "m") ", lr: T, logbase: T, sign_decay: T, beta: T, " G
#define ADAGRAD(V, G) SLOTS_2(V, "accum") ", lr: T, " G
#define ADAGRAD_V2(V, G) SLOTS_2(V, "accum") ", lr: T, epsilon: T, " G
#define ADAGRAD_DA(V, G)                                                     \
  SLOTS_3(V, "gradient_accumulator", "gradient_squared_accumulator") ", " G  \
          ", lr: T, l1: T, l2: T, global_step: int64"
#define PROXIMAL_ADAGRAD(V, G) SLOTS_2(V, "accum") ", lr: T, l1: T, l2: T, " G
#define ADADELTA(V, G) SLOTS_3(V, "accum", "accum_update") ", lr: T, rho: T, epsilon: T, " G
#define FTRL(V, G) SLOTS_3(V, "accum", "linear") ", " G ", lr: T, l1: T, l2: T, lr_power: T"
#define FTRL_V2(V, G) SLOTS_3(V, "accum", "linear") ", " G ", lr: T, l1: T, l2: T, l2_shrinkage: T, lr_power: T"

/* Attributes and dtypes. */
#define PLAIN ""
#define NESTEROV "; use_nesterov: bool = false"
#define UPDATES "; update_slots: bool = true"
#define MULTIPLIES "; multiply_linear_by_lr: bool = false"
#define REALS "T=half|bfloat16|float|double"
#define ALL REALS "|complex64|complex128"

/* Forms: X(op, inputs, outputs, attributes, dtypes of the kernel, summary) */
#define DENSE_ATTRS(more) "T: {numbertype, qint16, quint16}; use_locking: bool = false" more
#define SPARSE_ATTRS(more) "T: {numbertype, qint16, quint16}; Tindices: {int32, int64}; use_locking: bool = false" more
#define ROWS "grad: T, indices: Tindices"
#define BY_REFERENCE(X, name, args, g, more, types, text) \
  X("Apply" name, args("Ref(T)", g), "out: Ref(T)", DENSE_ATTRS(more), types, text)
#define BY_RESOURCE(X, name, args, g, more, types, text) \
  X("ResourceApply" name, args("resource", g), "", DENSE_ATTRS(more), types, text)
#define SPARSE_BY_REFERENCE(X, name, args, more, types, text) \
  X("SparseApply" name, args("Ref(T)", ROWS), "out: Ref(T)", SPARSE_ATTRS(more), types, text ", rows")
#define SPARSE_BY_RESOURCE(X, name, args, more, types, text) \
  X("ResourceSparseApply" name, args("resource", ROWS), "", SPARSE_ATTRS(more), types, text ", rows")
#define DENSE(X, name, args, g, more, types, text)    \
  BY_REFERENCE(X, name, args, g, more, types, text)   \
  BY_RESOURCE(X, name, args, g, more, types, text)
#define SPARSE(X, name, args, more, types, text)        \
  SPARSE_BY_REFERENCE(X, name, args, more, types, text) \
  SPARSE_BY_RESOURCE(X, name, args, more, types, text)
#define FOUR(X, name, args, more, types, text)        \
  DENSE(X, name, args, "grad: T", more, types, text)  \
  SPARSE(X, name, args, more, types, text)

#define LIST(X)                                                                                          \
  DENSE(X, "GradientDescent", DESCENT, "delta: T", PLAIN, ALL, "gradient descent")                       \
  DENSE(X, "ProximalGradientDescent", PROXIMAL, "delta: T", PLAIN, REALS, "FOBOS")                       \
  SPARSE(X, "ProximalGradientDescent", PROXIMAL, PLAIN, REALS, "FOBOS")                                  \
  FOUR(X, "Momentum", MOMENTUM, NESTEROV, ALL, "momentum")                                               \
  BY_RESOURCE(X, "KerasMomentum", MOMENTUM, "grad: T", NESTEROV, ALL, "momentum of steps")               \
  SPARSE_BY_RESOURCE(X, "KerasMomentum", MOMENTUM, NESTEROV, ALL, "momentum of steps")                   \
  DENSE(X, "Adam", ADAM, "grad: T", NESTEROV, ALL, "Adam")                                               \
  BY_RESOURCE(X, "AdamWithAmsgrad", AMSGRAD, "grad: T", PLAIN, REALS, "AMSGrad")                         \
  DENSE(X, "AdaMax", ADAMAX, "grad: T", PLAIN, REALS, "AdaMax")                                          \
  FOUR(X, "RMSProp", RMSPROP, PLAIN, ALL, "RMSProp")                                                     \
  FOUR(X, "CenteredRMSProp", CENTERED, PLAIN, ALL, "centered RMSProp")                                   \
  DENSE(X, "AddSign", ADD_SIGN, "grad: T", PLAIN, REALS, "AddSign")                                      \
  DENSE(X, "PowerSign", POWER_SIGN, "grad: T", PLAIN, REALS, "PowerSign")                                \
  FOUR(X, "Adagrad", ADAGRAD, UPDATES, ALL, "Adagrad")                                                   \
  FOUR(X, "AdagradV2", ADAGRAD_V2, UPDATES, ALL, "Adagrad")                                              \
  FOUR(X, "AdagradDA", ADAGRAD_DA, PLAIN, REALS, "Adagrad, dual averaging")                              \
  FOUR(X, "ProximalAdagrad", PROXIMAL_ADAGRAD, PLAIN, REALS, "FOBOS with Adagrad's rates")               \
  FOUR(X, "Adadelta", ADADELTA, PLAIN, ALL, "Adadelta")                                                  \
  FOUR(X, "Ftrl", FTRL, MULTIPLIES, REALS, "FTRL-proximal")                                              \
  FOUR(X, "FtrlV2", FTRL_V2, MULTIPLIES, REALS, "FTRL-proximal")

/* ---- shapes ---- */

/* Only references tell the shapes of their variables. */
static tn_status merge_slots(tn_infer_ctx *ctx, const tn__training_row *row, tn__shape *var, tn_error *err)
{
  tn__infer_get(ctx, 0, var);
  for (uint32_t k = 1; k < row->n_slots; k++) {
    tn__shape slot;
    tn__infer_get(ctx, k, &slot);
    if (!tn__shape_merge(var, slot.dims, slot.rank))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: variables 0 and %u have different shapes", tn__infer_op(ctx),
                          k);
  }
  return TN_OK;
}

/* Merges the information in the gradient's shape into *var. */
static tn_status merge_gradient(tn_infer_ctx *ctx, uint32_t i, bool sparse, tn__shape *var, tn_error *err)
{
  tn__shape grad, indices;
  tn__infer_get(ctx, i, &grad);
  if (sparse) {
    tn_status st = tn__infer_rank(ctx, i + 1, 1, &indices, err);
    if (st == TN_OK) st = tn__infer_rank_at_least(ctx, i, 1, &grad, err);
    if (st != TN_OK || grad.rank < 0) return st;
    if (!tn__dim_merge(&indices.dims[0], grad.dims[0]))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %u has %lld rows, input %u has %lld indices",
                          tn__infer_op(ctx), i, (long long)grad.dims[0], i + 1, (long long)indices.dims[0]);
    grad.dims[0] = var->rank > 0 ? var->dims[0] : -1;
  }
  if (tn__shape_merge(var, grad.dims, grad.rank)) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the gradient, input %u, has a different shape than the variable",
                      tn__infer_op(ctx), i);
}

static tn_status infer(tn_infer_ctx *ctx, tn_error *err)
{
  tn__training_form form = tn__training_form_of(tn__infer_op(ctx));
  tn__shape var, scalar;
  tn__shape_unknown(&var);
  if (form.row == NULL) return TN_OK;
  uint32_t grad = form.row->n_slots + form.row->n_before, rest = grad + (form.sparse ? 2 : 1);
  tn_status st = form.by_reference ? merge_slots(ctx, form.row, &var, err) : TN_OK;
  for (uint32_t i = form.row->n_slots; i < tn_infer_n_inputs(ctx) && st == TN_OK; i++)
    if (i < grad || i >= rest) st = tn__infer_rank(ctx, i, 0, &scalar, err);
  if (st == TN_OK) st = merge_gradient(ctx, grad, form.sparse, &var, err);
  return st == TN_OK && form.by_reference ? tn__infer_set(ctx, 0, &var, err) : st;
}

/* ---- the family ---- */

#define OP(op, inputs_, outputs_, attrs_, types_, text)                                                      \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = inputs_, .outputs = outputs_, .attrs = attrs_,      \
    .traits = TN_TRAIT_STATEFUL, .infer = infer, .summary = text },
static const tn_op_def ops[] = { LIST(OP) };

#define KERNEL(op_, inputs_, outputs_, attrs_, types_, text)                                                 \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = op_, .device = "CPU", .types = types_, .name = op_ "_cpu",      \
    .rank = TN_RANK_C, .create = tn__training_create, .destroy = tn__training_destroy,                       \
    .prepare = tn__training_prepare, .compute = tn__training_compute },
static const tn_kernel_def kernels[] = { LIST(KERNEL) };

TN_OP_FAMILY(training)
