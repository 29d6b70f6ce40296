/* SPDX-License-Identifier: Apache-2.0 */
/* Ops and kernels: the contents of an op file (in the library) or a kernel plugin.
 *
 * An op is a schema with traits and a shape function; a kernel computes it on a device for some
 * dtypes. The library looks up the kernel of a node by op, device, dtype constraint and rank.
 * Everything here is static data: structs and strings must live as long as the library (or the
 * plugin).
 *
 * Life of a kernel:
 *   create(node)    once for a node of a plan: checks attributes, stores what is needed in `state`.
 *   prepare(shapes) once for each new tuple of input shapes: output shapes, scratch bytes, views,
 *                   per-shape state. TN_UNIMPLEMENTED declines these shapes: the next kernel by rank
 *                   is tried. If create returns it, the node is declined.
 *   compute(ctx)    every step: no allocation, no look-up, no attribute. States are immutable and
 *                   shared by concurrent steps.
 * Since 0.1 */
#ifndef TENON_OP_H
#define TENON_OP_H

#include <tenon/graph.h>

TN_BEGIN_DECLS

/* Properties of an op that the planner and the executor use. */
enum {
  TN_TRAIT_STATEFUL = 1u << 0,       /* keeps state or has an effect: if needed, never folded, merged or removed */
  TN_TRAIT_RANDOM = 1u << 1,         /* results differ from step to step */
  TN_TRAIT_PLACEHOLDER = 1u << 2,    /* must be fed; running it is an error that names it */
  TN_TRAIT_CONSTANT = 1u << 3,       /* output 0 is the tensor attribute `constant_attr` */
  TN_TRAIT_IDENTITY = 1u << 4,       /* output i is input i: same elements, same shape; no compute needed */
  TN_TRAIT_RESHAPE = 1u << 5,        /* output 0 has the elements of input 0 in the same order; no compute needed */
  TN_TRAIT_ELEMENTWISE = 1u << 6,    /* each output element depends on the input elements at its
                                      * (broadcast) position */
  TN_TRAIT_COMMUTATIVE = 1u << 7,
  TN_TRAIT_NO_EFFECT = 1u << 8,      /* exists for its control edges only (NoOp) */
  TN_TRAIT_SWITCH = 1u << 9,
  TN_TRAIT_MERGE = 1u << 10,
  TN_TRAIT_ENTER = 1u << 11,
  TN_TRAIT_EXIT = 1u << 12,
  TN_TRAIT_NEXT_ITERATION = 1u << 13,
  TN_TRAIT_LOOP_COND = 1u << 14,
  TN_TRAIT_CONTROL_TRIGGER = 1u << 15,
  TN_TRAIT_FUNCTION_CALL = 1u << 16,
  TN_TRAIT_MAY_WAIT = 1u << 17,      /* compute may return TN_PENDING */
  TN_TRAIT_DYNAMIC = 1u << 18,       /* the shape of some output is known only after compute (tn_prepare_dynamic) */
  TN_TRAIT_CONTRACTION = 1u << 19,   /* output 0 is sums of products with input 1, whose last
                                      * dimension is that of the output: matrix products and
                                      * convolutions, which usually dominate the cost */
  TN_TRAIT_OWN_CALL = 1u << 21,      /* nodes whose op is itself a function of the library run on
                                      * this op's kernels that have no type constraint: they call
                                      * function 0 with all inputs. Only one op may have it */
  TN_TRAIT_SHAPE_ONLY = 1u << 20,    /* outputs depend only on the shapes of the inputs; compute
                                      * does not read elements */
  TN_TRAIT_PLAIN_CALL = 1u << 22,    /* the outputs are the results of function 0 for the inputs,
                                      * and there are no other effects: the function body may
                                      * replace the node */
  TN_TRAIT_READS = 1u << 24,         /* of a stateful op: changes nothing that another step can
                                      * observe. It names or reads state, keeps state for its own
                                      * step only, or is stateful because of the functions that it
                                      * calls */
  TN_TRAIT_LOOP_CALL = 1u << 23      /* a loop: while function 0 is true for the loop values,
                                      * function 1 computes the next ones. The inputs are the
                                      * initial loop values, the outputs the final ones */
};

/* An op.
 * inputs, outputs  arguments, "x: T, y: T": a type is the name of a dtype (float, int32, ...), an
 *                  attribute of kind type, a list of one type "N * T" (N an int attribute), or an
 *                  attribute of kind list(type). "Ref(T)" passes a variable by reference. "" =
 *                  none.
 * attrs            "T: {half, float} = float; N: int >= 1; axis: int = 0; sizes: list(int) = [];
 *                  pad: {'SAME', 'VALID'}; s: string = 'x'; v: tensor; shape: shape = ?; f: func;
 *                  Tlist: list(type) >= 1; b: bool = false". T may be `type` (any dtype) or a set,
 *                  in which numbertype, realnumbertype and quantizedtype denote TensorFlow's sets of
 *                  these names. `shape = ?` is unknown rank; `[]` is a scalar or an empty list.
 * shape_operands   bit i set: the output shapes depend on the VALUE of argument i of `inputs`; if
 *                  it is a list, of all its tensors (Reshape's shape, a reduction's axes, the axis
 *                  of ConcatV2).
 * infer            shape function on partial shapes; NULL: output shapes are unknown. Must not fail
 *                  on unknown parts. */
struct tn_op_def {
  size_t struct_size;
  const char *name;
  const char *inputs;
  const char *outputs;
  const char *attrs;
  uint32_t traits; /* TN_TRAIT_... */
  uint32_t shape_operands;
  const char *constant_attr; /* for TN_TRAIT_CONSTANT, else NULL */
  tn_status (*infer)(tn_infer_ctx *ctx, tn_error *err);
  const char *summary; /* one line for `tenon ops`, may be NULL */
};
#define TN_OP_DEF_SIZE TN_SIZE_TO(tn_op_def, summary)

/* A value as a kernel sees it. dims are borrowed and valid during the call (in compute, as long as
 * the ctx). */
struct tn_view {
  void *data; /* host address; NULL for device memory and, in prepare, for a value that is not known
               * yet. In compute it supports pointer arithmetic even if there are no elements */
  const int64_t *dims;
  int64_t count; /* number of elements */
  tn_dtype dtype;
  int32_t rank;
  tn_buffer *buffer; /* NULL if the memory is a plan's arena */
};

/* Input and output of prepare.
 * inputs   shapes; `data` is set if the value is known at that time: a constant, or a shape
 *          operand.
 * Set outputs through the functions below; every output needs a shape, unless it is declared
 * dynamic. */
struct tn_prepare_ctx {
  size_t struct_size;
  const tn_operation *op;
  uint32_t n_inputs;
  uint32_t n_outputs;
  const tn_view *inputs;
  void *state;         /* from create */
  size_t scratch_bytes; /* out: size of ctx->scratch in compute, which is aligned to 64 */
  void *shape_state;   /* out: for compute on these shapes; freed by destroy_shape_state, also if prepare fails */
  double cost_ns;      /* out: approximate time of compute in nanoseconds, 0 = unknown */
  void *host;          /* used by the library */
  uint32_t threads;    /* maximum for one loop of compute (tn_parallel_for), including the caller */
  uint32_t reproducible; /* as in tn_kernel_ctx */
};

/* Sets the shape of output i; dims are copied. TN_INVALID_ARGUMENT for an invalid shape. */
TN_API tn_status tn_prepare_output(tn_prepare_ctx *ctx, uint32_t i, const int64_t *dims, int32_t rank, tn_error *err);
/* Output i has the same shape as input j. */
TN_API tn_status tn_prepare_output_like(tn_prepare_ctx *ctx, uint32_t i, uint32_t j, tn_error *err);
/* Output i is the memory of input j (same bytes): the library shares it and compute need not copy.
 * The shape must be given too. If all outputs of the kernel are views, compute is not called,
 * unless the op is stateful. */
TN_API tn_status tn_prepare_view(tn_prepare_ctx *ctx, uint32_t i, uint32_t j, tn_error *err);
/* Output i may overwrite input j if no other reader needs the input: compute must be correct if
 * both have the same address. If called for several inputs, the first available one is used. */
TN_API tn_status tn_prepare_in_place(tn_prepare_ctx *ctx, uint32_t i, uint32_t j, tn_error *err);
/* The shape of output i is known only after compute, which sets it with tn_kernel_allocate. The op
 * needs TN_TRAIT_DYNAMIC. */
TN_API tn_status tn_prepare_dynamic(tn_prepare_ctx *ctx, uint32_t i, tn_error *err);
/* Compute supplies output i itself, with tn_kernel_set_output and the shape given here in prepare;
 * its tensor is not copied. Since 0.1 */
TN_API tn_status tn_prepare_given(tn_prepare_ctx *ctx, uint32_t i, tn_error *err);
/* Whether input i is a constant, even if its elements have been freed (see below). Since 0.1 */
TN_API tn_bool tn_prepare_is_constant(const tn_prepare_ctx *ctx, uint32_t i);
/* A packed form of constant input i, made once and shared by the sessions of a graph: `pack` writes
 * `bytes` bytes to `to`. key distinguishes forms of the same constant and kernel, and must encode
 * everything that `pack` depends on. *packed, aligned to 64, lives as long as the shape state. The
 * kernel then does not use the input's elements: if every reader of a constant has a packed form,
 * the elements are freed. inputs[i].data is then NULL here and must not be used in compute. Returns
 * TN_FAILED_PRECONDITION if the input is not a constant. */
TN_API tn_status tn_prepare_pack(tn_prepare_ctx *ctx, uint32_t i, uint64_t key, size_t bytes,
                                 tn_status (*pack)(void *user, const tn_view *from, void *to, tn_error *err),
                                 void *user, const void **packed, tn_error *err);

/* The context of compute. It is flat: operands are reached without a call. Outputs are allocated,
 * but not cleared. */
struct tn_kernel_ctx {
  size_t struct_size;
  const void *state; /* from create */
  const void *shape_state; /* from prepare */
  void *scratch;           /* scratch_bytes of prepare, aligned to 64 */
  tn_view *const *inputs;
  tn_view *const *outputs;
  uint32_t n_inputs;
  uint32_t n_outputs;
  uint32_t resume; /* 1 when compute is called again after TN_PENDING */
  uint32_t reproducible; /* 1 if the session wants the same bits on every processor (its option), else 0 */
  tn_error *err;
  tn_step *step;
  void *waiting; /* for the kernel's own use; NULL at the first call, preserved from a call that
                  * returns TN_PENDING to the next one */
};

/* True once the step is over: cancelled, past its time limit, its session closed, or failed
 * elsewhere; it then stays true. A kernel that runs long checks it regularly, for example every
 * millisecond, and returns TN_CANCELLED. Any thread that works for the call; about 50 ns. */
TN_API tn_bool tn_kernel_cancelled(const tn_kernel_ctx *ctx);

/* Allocates a dynamic output with this shape and fills in ctx->outputs[i]. Once for each output. */
TN_API tn_status tn_kernel_allocate(tn_kernel_ctx *ctx, uint32_t i, const int64_t *dims, int32_t rank);

/* Makes an existing tensor an output that is dynamic or was declared with tn_prepare_given (adds a
 * reference). */
TN_API tn_status tn_kernel_set_output(tn_kernel_ctx *ctx, uint32_t i, tn_tensor *tensor);

/* Equivalent to fn(user, 0, n). Parts [begin, end) of at least `grain` items may run on several
 * threads at once; returns once all have ended. cost_ns is the approximate time of one item in
 * nanoseconds. fn must not fail. If the step is over, the rest of a long loop is skipped, unless
 * the op is TN_TRAIT_STATEFUL without TN_TRAIT_RANDOM. The outputs are then not read. A kernel that
 * uses results of the loop, such as counts or indices, must call tn_kernel_cancelled first. */
TN_API void tn_parallel_for(tn_kernel_ctx *ctx, int64_t n, int64_t grain, double cost_ns,
                            void (*fn)(void *user, int64_t begin, int64_t end), void *user);

/* Input i as a tensor that may be kept: the same memory if it does not change any more, else a
 * copy. The caller owns *out. Since 0.1 */
TN_API tn_status tn_kernel_keep_input(tn_kernel_ctx *ctx, uint32_t i, tn_tensor **out);

/* ---- waiting ---- */

/* For ops with TN_TRAIT_MAY_WAIT. Before compute returns TN_PENDING, it requests a token.
 * tn_wake(token), called once, from any thread, makes the executor call compute again with
 * ctx->resume set, on the same ctx. Meanwhile the step runs operations that do not depend on the
 * node; the contents of scratch and outputs are lost, and must not be written by any thread.
 *
 * If the step ends and has not seen the token woken, it calls `cancel`: at most once, outside all
 * of the library's locks, never while compute of this call runs, and not after compute was called
 * again. Another thread may wake the token just before cancel is called or while it runs. Therefore
 * `user` must stay valid until compute is called again, and a lock of the kernel decides which
 * thread wakes the token: cancel must wake it soon, itself or through another thread, unless it has
 * been woken. The token is valid while cancel runs. When compute is called again in a step that
 * ends, it frees what it holds and returns TN_CANCELLED, or its result if it was complete before.
 *
 * If compute requests a token but does not return TN_PENDING, the call has ended: cancel is not
 * called for it, but tn_wake must still be called once for that token. */
TN_API tn_status tn_kernel_wait(tn_kernel_ctx *ctx, void (*cancel)(void *user, tn_wait_token *token), void *user,
                                tn_wait_token **token);
TN_API void tn_wake(tn_wait_token *token);

/* ---- calling functions ---- */

/* For ops with TN_TRAIT_FUNCTION_CALL: calls function k of the node. Functions are numbered in the
 * order of the schema's attributes of kinds func and list(func); if the node's op is itself a
 * function of the library, that is function 0. tn_operation_n_functions(op) + k is the gradient of
 * function k, as named by the library or generated.
 * inputs   n_inputs values for its arguments, borrowed during the call: inputs of ctx by their
 *          pointers, or views of the kernel's own; buffers of views may be retained.
 * outputs  room for n_outputs tensors, owned by the caller after TN_OK, else NULL.
 * Returns  TN_INVALID_ARGUMENT (counts or types differ from the signature), TN_NOT_FOUND (no such
 *          function), TN_RESOURCE_EXHAUSTED (calls nested too deeply), the error of a kernel, or
 *          TN_PENDING: an operation in the function waits. Compute then stores its own state in
 *          ctx->waiting, returns TN_PENDING too, and when it is resumed calls again with the same k
 *          (inputs are ignored then). It may instead return an error, also in a step that ends
 *          (tn_kernel_cancelled): waiting operations of the function are then cancelled and its
 *          results dropped. Returning TN_OK instead is an error, TN_INTERNAL. */
TN_API tn_status tn_kernel_call(tn_kernel_ctx *ctx, uint32_t k, tn_view *const *inputs, uint32_t n_inputs,
                                tn_tensor **outputs, uint32_t n_outputs);
/* Number of functions of the node, as counted above. */
TN_API uint32_t tn_operation_n_functions(const tn_operation *op);

/* A kernel.
 * types   constraint on type attributes, "T=float|double,Tidx=int32"; NULL = all that the schema
 *         allows.
 * rank    higher ranks are tried first; the library's own C kernels have 100; 0 = disabled. */
struct tn_kernel_def {
  size_t struct_size;
  const char *op;
  const char *device; /* "CPU", "GPU", ... */
  const char *types;
  const char *name;   /* for profiles, for example "matmul_f32_cpu" */
  int32_t rank;
  uint32_t flags;     /* must be 0 */
  tn_status (*create)(const tn_operation *op, void **state, tn_error *err); /* may be NULL: state is NULL */
  void (*destroy)(void *state);                                            /* may be NULL */
  tn_status (*prepare)(tn_prepare_ctx *ctx, tn_error *err);
  void (*destroy_shape_state)(void *shape_state); /* may be NULL */
  tn_status (*compute)(tn_kernel_ctx *ctx);
};
#define TN_KERNEL_DEF_SIZE TN_SIZE_TO(tn_kernel_def, compute)
#define TN_RANK_C 100

/* ---- costs ---- */

/* What one call of a node costs, for the records of traced steps (<tenon/metadata.h>): a measure of
 * the node, not of the kernel that was taken. The library calls `cost` after the step, on shapes
 * that the step had.
 * inputs, outputs  types and shapes; `data` and `buffer` are NULL
 * flops            in and out: floating-point operations; a multiplication with an addition is two.
 *                  Before the call: for TN_TRAIT_CONTRACTION its products and sums, if each weight
 *                  is used at each position of the output; for other ops one for each element of
 *                  their largest input or output, 0 if no output is floating or complex
 * bytes            in and out: bytes that must be read or written. Before the call: each input and
 *                  each output once
 * Since 0.1 */
struct tn_cost_ctx {
  size_t struct_size;
  const tn_operation *op;
  const tn_view *inputs;
  const tn_view *outputs;
  uint32_t n_inputs;
  uint32_t n_outputs;
  double flops;
  double bytes;
};

/* The cost of an op of this or another family; an op that is not known is ignored, and of several
 * the first one registered applies. `cost` must accept any shapes that a kernel accepts. */
struct tn_cost_def {
  size_t struct_size;
  const char *op;
  void (*cost)(tn_cost_ctx *ctx);
};
#define TN_COST_DEF_SIZE TN_SIZE_TO(tn_cost_def, cost)

/* A family of ops with their kernels: the export of one file of ops/, or what a kernel plugin
 * registers. */
struct tn_op_family {
  size_t struct_size;
  const char *name;
  const tn_op_def *ops;
  size_t n_ops;
  const tn_kernel_def *kernels;
  size_t n_kernels;
  const tn_rewrite_def *rewrites; /* <tenon/rewrite.h>; a family without rewrites may end before this field */
  size_t n_rewrites;
  const tn_cost_def *costs; /* a family without costs may end before this field */
  size_t n_costs;
};
#define TN_OP_FAMILY_SIZE TN_SIZE_TO(tn_op_family, n_kernels)

/* Registers a family. TN_ALREADY_EXISTS for an op that is registered, TN_INVALID_ARGUMENT for a
 * malformed schema; all or nothing. */
TN_API tn_status tn_register_ops(const tn_op_family *family, tn_error *err);

/* ---- shape functions ---- */

/* Rank and dims are as in tn_output_shape: -1 = unknown. Dims are borrowed and valid during the
 * call. If a shape function gives a dimension above 2^48, it becomes unknown, so inputs never have
 * one; attributes can have any value. */
TN_API const tn_operation *tn_infer_operation(const tn_infer_ctx *ctx);
TN_API size_t tn_infer_n_inputs(const tn_infer_ctx *ctx);
TN_API int32_t tn_infer_input(const tn_infer_ctx *ctx, size_t i, const int64_t **dims); /* returns the rank */
/* The value of input i if it is known before any step, else NULL: a constant, or a value that shape
 * functions set with tn_infer_output_ints. Borrowed during the call. */
TN_API const tn_tensor *tn_infer_input_value(const tn_infer_ctx *ctx, size_t i);
TN_API tn_status tn_infer_output(tn_infer_ctx *ctx, size_t i, const int64_t *dims, int32_t rank, tn_error *err);

/* Partially known values of scalars and short vectors of int32 and int64: sizes and axes. */
#define TN_UNKNOWN_INT INT64_MIN /* an unknown element */
#define TN_MAX_INFER_INTS 64
/* Elements of input i, borrowed during the call. Returns their number, -1 if nothing is known.
 * Since 0.1 */
TN_API int64_t tn_infer_input_ints(const tn_infer_ctx *ctx, size_t i, const int64_t **items);
/* The shape given by the elements of input i, with TensorFlow's meaning: unknown and negative
 * elements become -1. dims has room for TN_MAX_RANK. Returns the rank, -1 if unknown. Since 0.1 */
TN_API int32_t tn_infer_input_as_shape(const tn_infer_ctx *ctx, size_t i, int64_t *dims);
/* Sets elements of output i, whose shape must be set before: for ops that compute sizes from shapes
 * and sizes (Shape, Size, Mul). More than TN_MAX_INFER_INTS are ignored. TN_INVALID_ARGUMENT if
 * they do not match the output. Since 0.1 */
TN_API tn_status tn_infer_output_ints(tn_infer_ctx *ctx, size_t i, const int64_t *items, int64_t n, tn_error *err);

TN_END_DECLS

#ifdef TN_PLUGIN
#include <tenon/host.h>
#endif
#endif
