/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of elementwise steps, which _TnElementwise computes block by block: the loops of the plain ops' own kernels,
 * one after the other on a block that stays in the first cache. So a step has the bits of the plain op, in every dtype.
 *
 * Values are numbered: arguments first, then results of steps. A step reads values in front of its own; the last one is
 * the result, and each other value is read by some step. Values broadcast as they do in the plain ops.
 *
 * An argument may be several inputs side by side along their last dimension: a concatenation that is read where its parts
 * are, so that the whole never stands in memory. */
#ifndef TN_OPS_REWRITE_PROGRAM_H
#define TN_OPS_REWRITE_PROGRAM_H

#include <ops/kernel/product/affine.h>
#include <ops/kernel/elements/elementwise.h>
#include <ops/kernel/move/join.h>
#include <ops/kernel/elements/leaky.h>

#define TN__PROGRAM_VALUES 64 /* arguments and steps together */
#define TN__PROGRAM_STEPS 32
#define TN__PROGRAM_ARGS 16
#define TN__PROGRAM_PARTS 64 /* inputs of one argument, as the planner makes them */

/* What can be a step. */
enum { TN__STEP_UNARY, TN__STEP_BINARY, TN__STEP_BIAS, TN__STEP_LEAKY };
typedef struct tn__step_op {
  const char *name;
  uint8_t kind;
} tn__step_op;

/* X(name of the op, kind) */
#define TN__STEP_OPS(X)                                                                                             \
  X(Add, BINARY) X(AddV2, BINARY) X(Sub, BINARY) X(Mul, BINARY) X(RealDiv, BINARY) X(Div, BINARY)                   \
  X(Maximum, BINARY) X(Minimum, BINARY) X(SquaredDifference, BINARY) X(DivNoNan, BINARY) X(MulNoNan, BINARY)        \
  X(Neg, UNARY) X(Abs, UNARY) X(Sign, UNARY) X(Square, UNARY) X(Sqrt, UNARY) X(Rsqrt, UNARY) X(Exp, UNARY)          \
  X(Expm1, UNARY) X(Log, UNARY) X(Log1p, UNARY) X(Tanh, UNARY) X(Sigmoid, UNARY) X(Floor, UNARY)      \
  X(Ceil, UNARY) X(Round, UNARY) X(Reciprocal, UNARY) X(Inv, UNARY) X(Sin, UNARY) X(Cos, UNARY) X(Relu, UNARY)      \
  X(Relu6, UNARY) X(Elu, UNARY) X(Selu, UNARY) X(Softplus, UNARY) X(Softsign, UNARY) X(BiasAdd, BIAS)               \
  X(LeakyRelu, LEAKY)

/* NULL when an op of this name is no step. */
const tn__step_op *tn__step_op_find(const char *name, size_t size);
static inline bool tn__step_reads_two(uint8_t kind) { return kind == TN__STEP_BINARY || kind == TN__STEP_BIAS; }

typedef struct tn__step {
  const tn__step_op *op;
  tn__unary_fn one; /* one of these three */
  tn__binary_fn two;
  tn__leaky_fn leaky;
  double cost_ns; /* of an element */
  float alpha;
  uint8_t x, y;   /* values; y only of a step that reads two */
} tn__step;

typedef struct tn__program {
  uint32_t n_args, n_steps;
  int64_t size; /* bytes of an element */
  uint32_t first_input[TN__PROGRAM_VALUES + 1]; /* of each argument; behind the last one the number of inputs */
  tn__step steps[];
} tn__program;

#define TN__PROGRAM_ATTRS \
  "N: int >= 1; T: {half, bfloat16, float, double}; steps: list(string) >= 1; operands: list(int) >= 2; " \
  "alphas: list(float) = []; nodes: list(string) = []; joined: list(int) = []; joins: list(string) = []"

/* Of a node: steps are names of ops, operands two values for each step (-1: none), alphas those of the LeakyRelus in
 * their order, nodes those that the steps were, for errors; joined how many inputs each argument has (none: one each),
 * joins what the concatenations were, "" for none. TN_INVALID_ARGUMENT for what makes no program, TN_UNIMPLEMENTED when
 * an op has no loop for the dtype. */
tn_status tn__program_read(const tn_operation *op, tn__program **out, tn_error *err);
void tn__program_free(tn__program *p);
/* The first input of each argument of a node, and behind the last one the number of inputs; first has room for
 * TN__PROGRAM_VALUES + 1. */
tn_status tn__program_args(const tn_operation *op, uint32_t *first, uint32_t *n_args, tn_error *err);
static inline bool tn__program_joins(const tn__program *p, uint32_t value)
{
  return value < p->n_args && p->first_input[value + 1] - p->first_input[value] > 1;
}

/* ---- with shapes ---- */

/* How a value that a stage reads from memory stands to the elements of the stage. */
enum {
  TN__AT_FLAT,     /* element for element */
  TN__AT_ONE,      /* one element for all */
  TN__AT_PERIODIC, /* again from its first element after `period`; a block lies inside a period */
  TN__AT_TILED,    /* the same, repeated in scratch memory up to a block */
  TN__AT_JOINED,   /* element for element, from several inputs: each block is copied together into a register */
  TN__AT_SPREAD    /* anything else: the same */
};
typedef struct tn__stage_operand {
  uint8_t value;
  uint8_t at;
  uint32_t reg;   /* of TN__AT_JOINED, TN__AT_SPREAD */
  int64_t period;
  size_t tile;    /* bytes in scratch memory */
  tn__broadcast_plan *plan;
  const tn__join *join;
} tn__stage_operand;

/* Steps whose results have one shape. The last one has the result's; a step before it that has a smaller one is a stage
 * of its own, so that nothing is computed more often than its shape says.
 *
 * The elements lie in rows, in a row blocks; no block reaches past its row. */
typedef struct tn__stage {
  uint32_t first_step, n_steps; /* in plan->steps */
  uint32_t first_operand, n_operands;
  uint32_t n_registers;
  int64_t count, row, block, blocks_in_row, n_blocks;
  size_t register_bytes;
  size_t result; /* bytes in scratch memory, of all stages but the last */
  double block_ns;
} tn__stage;

typedef struct tn__stage_step {
  uint8_t step;
  uint8_t reg;    /* TN__TO_MEMORY: the stage's result */
  uint8_t sx, sy; /* 0 for an operand that is one element for all, else 1 */
} tn__stage_step;
#define TN__TO_MEMORY UINT8_MAX

typedef struct tn__program_plan {
  _Alignas(8) size_t bytes;
  uint32_t n_stages, n_operands;
  tn__stage *stages;
  tn__stage_operand *operands;
  size_t *results;       /* by step: bytes in scratch memory, of those that end a stage but the last */
  tn__stage_step *steps; /* by stage */
  tn__join **joins;      /* by argument; NULL where it is one input */
  size_t *wholes;        /* by argument: bytes in scratch memory of a join that is spread; SIZE_MAX: it is not */
  uint32_t n_args;
  tn__affine affine;     /* when found, in place of the one stage */
} tn__program_plan;

#define TN__REGISTER_BYTES 16384 /* of all registers of a part; they lie on the stack */

/* Gives the output its shape, says what it may lie over, and makes the plan: NULL when there are no elements. */
tn_status tn__program_prepare(const tn__program *p, tn_prepare_ctx *ctx, tn__program_plan **out, tn_error *err);
void tn__program_plan_free(tn__program_plan *plan);

/* Whether the stage, whose operands are known, is all of the program and a matrix scaled, shifted and clamped. */
bool tn__program_find_affine(const tn__program *p, const tn__program_plan *plan, const tn__stage *stage, tn__affine *a);

#endif
