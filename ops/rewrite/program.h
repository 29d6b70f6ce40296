/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of elementwise steps, which _TnElementwise computes block by block: it runs the loops of the plain ops'
 * kernels one after another on a block that stays in the L1 cache. Each step therefore gives the same bits as the
 * plain op, in every dtype.
 *
 * Values are numbered: arguments first, then results of steps. A step reads only values with lower numbers. The
 * last value is the result; every other value is read by some step. Values broadcast as in the plain ops.
 *
 * An argument may consist of several inputs concatenated along their last dimension. The parts are read in place,
 * and the whole is stored in scratch memory only if it is broadcast. */
#ifndef TN_OPS_REWRITE_PROGRAM_H
#define TN_OPS_REWRITE_PROGRAM_H

#include <ops/kernel/product/affine.h>
#include <ops/kernel/elements/curves.h>
#include <ops/kernel/elements/elementwise.h>
#include <ops/kernel/move/join.h>

#define TN__PROGRAM_VALUES 64 /* arguments and steps together */
#define TN__PROGRAM_STEPS 32
#define TN__PROGRAM_ARGS 16
#define TN__PROGRAM_PARTS 64 /* maximum inputs of one argument that the planner creates */

/* Kinds of steps. */
enum {
  TN__STEP_UNARY,
  TN__STEP_BINARY,
  TN__STEP_SAME, /* two operands of the same shape: gradients, and sums of two */
  TN__STEP_BIAS,
  TN__STEP_LEAKY
};
typedef struct tn__step_op {
  const char *name;
  uint8_t kind;
} tn__step_op;

/* X(op name, kind) */
#define TN__STEP_OPS(X)                                                                                             \
  X(Add, BINARY) X(AddV2, BINARY) X(Sub, BINARY) X(Mul, BINARY) X(RealDiv, BINARY) X(Div, BINARY)                   \
  X(Maximum, BINARY) X(Minimum, BINARY) X(SquaredDifference, BINARY) X(DivNoNan, BINARY) X(MulNoNan, BINARY)        \
  X(Neg, UNARY) X(Abs, UNARY) X(Sign, UNARY) X(Square, UNARY) X(Sqrt, UNARY) X(Rsqrt, UNARY) X(Exp, UNARY)          \
  X(Expm1, UNARY) X(Log, UNARY) X(Log1p, UNARY) X(Tanh, UNARY) X(Sigmoid, UNARY) X(Floor, UNARY)      \
  X(Ceil, UNARY) X(Round, UNARY) X(Reciprocal, UNARY) X(Inv, UNARY) X(Sin, UNARY) X(Cos, UNARY) X(Relu, UNARY)      \
  X(Tan, UNARY) X(Asin, UNARY) X(Acos, UNARY) X(Atan, UNARY) X(Sinh, UNARY) X(Cosh, UNARY) X(Asinh, UNARY)          \
  X(Acosh, UNARY) X(Atanh, UNARY) X(Erf, UNARY) X(Erfc, UNARY) X(Pow, BINARY) X(Atan2, BINARY)                      \
  X(Relu6, UNARY) X(Elu, UNARY) X(Selu, UNARY) X(Softplus, UNARY) X(Softsign, UNARY) X(BiasAdd, BIAS)               \
  X(LeakyRelu, LEAKY) X(_TnSwish, LEAKY) X(_TnHardSigmoid, LEAKY) X(_TnHardSwish, LEAKY) X(_TnMish, LEAKY)          \
  X(_TnGelu, LEAKY) X(_TnGeluTanh, LEAKY)                                                                           \
  X(AddN, SAME) X(ReluGrad, SAME) X(Relu6Grad, SAME) X(EluGrad, SAME) X(SeluGrad, SAME)                             \
  X(SoftplusGrad, SAME) X(SoftsignGrad, SAME) X(SigmoidGrad, SAME) X(TanhGrad, SAME) X(SqrtGrad, SAME)              \
  X(RsqrtGrad, SAME) X(ReciprocalGrad, SAME) X(InvGrad, SAME)

/* Looks up a step op by name; NULL if the op cannot be a step. */
const tn__step_op *tn__step_op_find(const char *name, size_t size);
static inline bool tn__step_reads_two(uint8_t kind)
{
  return kind == TN__STEP_BINARY || kind == TN__STEP_SAME || kind == TN__STEP_BIAS;
}

typedef struct tn__step {
  const tn__step_op *op;
  tn__unary_fn one[2]; /* exactly one of these three is set. [1]: for reproducible sessions */
  tn__binary_fn two;
  tn__leaky_fn leaky[2];
  double cost_ns; /* per element */
  float alpha;
  uint8_t x, y;   /* numbers of the values read; y only if the step reads two */
} tn__step;

typedef struct tn__program {
  uint32_t n_args, n_steps;
  int64_t size; /* bytes per element */
  uint32_t first_input[TN__PROGRAM_VALUES + 1]; /* of each argument, then the total number of inputs */
  tn__step steps[];
} tn__program;

#define TN__PROGRAM_ATTRS \
  "N: int >= 1; T: {half, bfloat16, float, double}; steps: list(string) >= 1; operands: list(int) >= 2; " \
  "alphas: list(float) = []; nodes: list(string) = []; joined: list(int) = []; joins: list(string) = []"

/* Reads the program from a node's attributes. steps: op names. operands: two values per step (-1: none). alphas:
 * those of the LeakyRelus, in order. nodes: the original nodes of the steps, for error texts. joined: the number of
 * inputs of each argument (absent: one each). joins: the original concatenations, "" for none. TN_INVALID_ARGUMENT
 * if it is not a valid program, TN_UNIMPLEMENTED if an op has no loop for the dtype. */
tn_status tn__program_read(const tn_operation *op, tn__program **out, tn_error *err);
void tn__program_destroy(tn__program *p);
/* Stores the first input of each argument of a node, then the total number of inputs. first must have room for
 * TN__PROGRAM_VALUES + 1. */
tn_status tn__program_args(const tn_operation *op, uint32_t *first, uint32_t *n_args, tn_error *err);
static inline bool tn__program_joins(const tn__program *p, uint32_t value)
{
  return value < p->n_args && p->first_input[value + 1] - p->first_input[value] > 1;
}

/* ---- with shapes ---- */

/* How the elements of a value that a stage reads from memory map to the elements of the stage. */
enum {
  TN__AT_FLAT,     /* one to one */
  TN__AT_ONE,      /* one element for all */
  TN__AT_PERIODIC, /* repeats after `period` elements; a block does not cross the end of a period */
  TN__AT_TILED,    /* the same with a short period: replicated in scratch memory to the size of a block */
  TN__AT_JOINED,   /* one to one, from several inputs: each block is collected in a register */
  TN__AT_SPREAD    /* any other broadcast: each block is expanded in a register */
};
typedef struct tn__stage_operand {
  uint8_t value;
  uint8_t at;
  uint32_t reg;   /* for TN__AT_JOINED and TN__AT_SPREAD */
  int64_t period;
  size_t tile;    /* offset in scratch memory */
  tn__broadcast_plan *plan;
  const tn__join *join;
} tn__stage_operand;

/* Steps whose results have the same shape. The last stage has the shape of the program's result. An earlier step with a
 * smaller shape is a separate stage, so that it is computed only once per element of its shape.
 *
 * The elements of a stage are divided into rows, and rows into blocks. A block never crosses the end of its row. */
typedef struct tn__stage {
  uint32_t first_step, n_steps; /* in plan->steps */
  uint32_t first_operand, n_operands;
  uint32_t n_registers;
  int64_t count, row, block, blocks_in_row, n_blocks;
  size_t register_bytes;
  size_t result; /* offset in scratch memory; not used by the last stage */
  double block_ns;
} tn__stage;

typedef struct tn__stage_step {
  uint8_t step;
  uint8_t reg;    /* TN__TO_MEMORY: this is the stage's result */
  uint8_t sx, sy; /* operand strides: 0 for an operand that is one element for all, else 1 */
} tn__stage_step;
#define TN__TO_MEMORY UINT8_MAX

typedef struct tn__program_plan {
  _Alignas(8) size_t bytes;
  uint32_t n_stages, n_operands;
  tn__stage *stages;
  tn__stage_operand *operands;
  size_t *results;       /* by step: offset in scratch memory, for steps that end a stage other than the last */
  tn__stage_step *steps; /* ordered by stage */
  tn__join **joins;      /* by argument; NULL if it is a single input */
  size_t *wholes;        /* by argument: offset in scratch memory of a join that is broadcast; SIZE_MAX if it is not */
  uint32_t n_args;
  tn__affine affine;     /* if found, used instead of the only stage */
} tn__program_plan;

#define TN__REGISTER_BYTES 16384 /* total size of a thread's registers, which are on the stack */

/* Sets the output's shape and the inputs whose memory it may reuse, and creates the plan: NULL if there are no
 * elements. */
tn_status tn__program_prepare(const tn__program *p, tn_prepare_ctx *ctx, tn__program_plan **out, tn_error *err);
void tn__program_plan_destroy(tn__program_plan *plan);

/* True if the stage, whose operands must be known, is the whole program, and scales, shifts and clamps a matrix. */
bool tn__program_find_affine(const tn__program *p, const tn__program_plan *plan, const tn__stage *stage, tn__affine *a);

#endif
