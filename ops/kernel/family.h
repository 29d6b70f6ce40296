/* SPDX-License-Identifier: Apache-2.0 */
/* The last line of a file of ops: it makes the file's tables a family, which the generated table of families finds. */
#ifndef OPS_KERNEL_FAMILY_H
#define OPS_KERNEL_FAMILY_H

#include <tenon/op.h>
#include <tenon/rewrite.h>

/* A family of the arrays `ops` and `kernels`; NAME is the file's name without its ending. */
#define TN_OP_FAMILY(NAME)                         \
  extern const tn_op_family tn__ops_##NAME;        \
  const tn_op_family tn__ops_##NAME = {            \
    .struct_size = TN_OP_FAMILY_SIZE,              \
    .name = #NAME,                                 \
    .ops = ops,                                    \
    .n_ops = sizeof ops / sizeof *ops,             \
    .kernels = kernels,                            \
    .n_kernels = sizeof kernels / sizeof *kernels, \
  };

/* The same for ops that the planner replaces, so that none of them has a kernel. */
#define TN_OP_FAMILY_WITHOUT_KERNELS(NAME)  \
  extern const tn_op_family tn__ops_##NAME; \
  const tn_op_family tn__ops_##NAME = {     \
    .struct_size = TN_OP_FAMILY_SIZE,       \
    .name = #NAME,                          \
    .ops = ops,                             \
    .n_ops = sizeof ops / sizeof *ops,      \
  };

/* A family of the array `rewrites`, without ops. */
#define TN_REWRITE_FAMILY(NAME)                          \
  extern const tn_op_family tn__ops_##NAME;              \
  const tn_op_family tn__ops_##NAME = {                  \
    .struct_size = TN_SIZE_TO(tn_op_family, n_rewrites), \
    .name = #NAME,                                       \
    .rewrites = rewrites,                                \
    .n_rewrites = sizeof rewrites / sizeof *rewrites,    \
  };

/* A family of the array `costs`: what ops of other families cost. */
#define TN_COST_FAMILY(NAME)                          \
  extern const tn_op_family tn__ops_##NAME;           \
  const tn_op_family tn__ops_##NAME = {               \
    .struct_size = TN_SIZE_TO(tn_op_family, n_costs), \
    .name = #NAME,                                    \
    .costs = costs,                                   \
    .n_costs = sizeof costs / sizeof *costs,          \
  };

#endif
