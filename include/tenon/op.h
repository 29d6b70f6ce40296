/* SPDX-License-Identifier: Apache-2.0 */
/* Ops and kernels: what an op file (in the library) or a kernel plugin gives.
 *
 * An op is a schema with traits and a shape function; a kernel computes it on a device for some dtypes. The library looks
 * up the kernel of a node in a table by op, device, dtype constraint and rank. Everything here is static data: structs and
 * texts must live as long as the library (or the plugin).
 *
 * Life of a kernel:
 *   create(node)    once for a node of a plan: check attributes, keep what is needed in `state`.
 *   prepare(shapes) once for each new tuple of input shapes: output shapes, scratch bytes, views, per-shape state.
 *                   TN_UNIMPLEMENTED declines these shapes: the next kernel by rank is asked. So does create for a node.
 *   compute(ctx)    every step: no allocation, no look-up, no attribute. States are immutable and shared by concurrent
 *                   steps.
 * Since 0.1 */
#ifndef TENON_OP_H
#define TENON_OP_H

#include <tenon/graph.h>

TN_BEGIN_DECLS

/* What the planner and the executor must know of an op. */
enum {
  TN_TRAIT_STATEFUL = 1u << 0,       /* keeps state or has an effect: never folded, merged or left out of a wanted set */
  TN_TRAIT_RANDOM = 1u << 1,         /* differs from step to step */
  TN_TRAIT_PLACEHOLDER = 1u << 2,    /* must be fed; running it is an error that names it */
  TN_TRAIT_CONSTANT = 1u << 3,       /* output 0 is the tensor attribute `constant_attr` */
  TN_TRAIT_IDENTITY = 1u << 4,       /* output i is input i, element for element, same shape; no compute needed */
  TN_TRAIT_RESHAPE = 1u << 5,        /* output 0 has the elements of input 0 in the same order; no compute needed */
  TN_TRAIT_ELEMENTWISE = 1u << 6,    /* each output element depends on the input elements at its (broadcast) place */
  TN_TRAIT_COMMUTATIVE = 1u << 7,
  TN_TRAIT_NO_EFFECT = 1u << 8,      /* runs for its control edges only (NoOp) */
  TN_TRAIT_SWITCH = 1u << 9,
  TN_TRAIT_MERGE = 1u << 10,
  TN_TRAIT_ENTER = 1u << 11,
  TN_TRAIT_EXIT = 1u << 12,
  TN_TRAIT_NEXT_ITERATION = 1u << 13,
  TN_TRAIT_LOOP_COND = 1u << 14,
  TN_TRAIT_CONTROL_TRIGGER = 1u << 15,
  TN_TRAIT_FUNCTION_CALL = 1u << 16,
  TN_TRAIT_MAY_WAIT = 1u << 17,      /* compute may return TN_PENDING */
  TN_TRAIT_DYNAMIC = 1u << 18,       /* some output's shape is known only after compute (tn_prepare_dynamic) */
  TN_TRAIT_CONTRACTION = 1u << 19,   /* output 0 is sums of products with input 1, whose last dimension is that of the
                                      * output: products and convolutions, which are most of the work where they are */
  TN_TRAIT_OWN_CALL = 1u << 21,      /* nodes whose op is itself a function of the library run on this op's kernels that have
                                      * no constraint on types: they call function 0 with all inputs; one op has it */
  TN_TRAIT_SHAPE_ONLY = 1u << 20,    /* outputs depend on the shapes of the inputs alone; compute does not read elements */
  TN_TRAIT_PLAIN_CALL = 1u << 22,    /* the outputs are what function 0 gives for the inputs, and nothing else happens: its
                                      * body may take the node's place */
  TN_TRAIT_READS = 1u << 24,         /* of a stateful op: it changes nothing that another step sees. It names or reads a state,
                                      * keeps one for its step alone, or is stateful because of the functions that it calls */
  TN_TRAIT_LOOP_CALL = 1u << 23      /* as long as function 0 says so for what goes round, the inputs at first and the
                                      * outputs in the end, function 1 gives what goes round next */
};

/* An op.
 * inputs, outputs  arguments, "x: T, y: T": a type is a dtype's name (float, int32, ...), an attribute of kind type, a
 *                  list of one type "N * T" (N an int attribute), or an attribute of kind list(type). "Ref(T)" passes a
 *                  variable by reference. "" = none.
 * attrs            "T: {half, float} = float; N: int >= 1; axis: int = 0; sizes: list(int) = []; pad: {'SAME', 'VALID'};
 *                  s: string = 'x'; v: tensor; shape: shape = ?; f: func; Tlist: list(type) >= 1; b: bool = false". T may
 *                  be `type` (any dtype) or a set, in which numbertype, realnumbertype and quantizedtype stand for
 *                  TensorFlow's sets of these names. `shape = ?` is unknown rank; `[]` is a scalar or an empty list.
 * shape_operands   bit i set: the output shapes depend on the VALUE of argument i of `inputs`, of all its tensors when it is
 *                  a list (Reshape's shape, a reduction's axes, the axis of ConcatV2).
 * infer            shape function on partial shapes; NULL: outputs are unknown. Must not fail on unknown parts. */
struct tn_op_def {
  size_t struct_size;
  const char *name;
  const char *inputs;
  const char *outputs;
  const char *attrs;
  uint32_t traits;
  uint32_t shape_operands;
  const char *constant_attr; /* for TN_TRAIT_CONSTANT, else NULL */
  tn_status (*infer)(tn_infer_ctx *ctx, tn_error *err);
  const char *summary; /* one line for `tenon ops`, may be NULL */
};
#define TN_OP_DEF_SIZE TN_SIZE_TO(tn_op_def, summary)

/* Values as a kernel sees them. dims are borrowed and valid as long as the call (as long as the ctx in compute). */
struct tn_view {
  void *data; /* host address; NULL for device memory and for a value that is not known yet (prepare); in compute one that
                 can be added to even when there are no elements */
  const int64_t *dims;
  int64_t count; /* elements */
  tn_dtype dtype;
  int32_t rank;
  tn_buffer *buffer; /* NULL when the memory is a plan's arena */
};

/* What prepare sees and fills in.
 * inputs   shapes; `data` is set when the value is known at that time: a constant, or a shape operand.
 * Fill in through the functions below; every output needs a shape, unless it is declared dynamic. */
struct tn_prepare_ctx {
  size_t struct_size;
  const tn_operation *op;
  uint32_t n_inputs;
  uint32_t n_outputs;
  const tn_view *inputs;
  void *state;         /* from create */
  size_t scratch_bytes; /* out: bytes that compute gets at ctx->scratch, aligned to 64 */
  void *shape_state;   /* out: for compute on these shapes; freed by destroy_shape_state, also when prepare fails */
  double cost_ns;      /* out: rough time of compute in nanoseconds, 0 = unknown */
  void *host;          /* the library's */
  uint32_t threads;    /* that may share a loop of compute (tn_parallel_for), the caller's among them: 1 = it alone */
};

/* Shape of output i; dims are copied. TN_INVALID_ARGUMENT for a bad shape. */
TN_API tn_status tn_prepare_output(tn_prepare_ctx *ctx, uint32_t i, const int64_t *dims, int32_t rank, tn_error *err);
/* Output i has the same shape as input j. */
TN_API tn_status tn_prepare_output_like(tn_prepare_ctx *ctx, uint32_t i, uint32_t j, tn_error *err);
/* Output i is the very memory of input j (same bytes): the library shares it and compute need not copy. The shape must be
 * given too. When the kernel has only such outputs its compute is not called at all, unless the op is stateful. */
TN_API tn_status tn_prepare_view(tn_prepare_ctx *ctx, uint32_t i, uint32_t j, tn_error *err);
/* Output i may be written over input j when nobody else needs that: compute is right when both have one address. Called for
 * several inputs, the first of them that can be had is taken. */
TN_API tn_status tn_prepare_in_place(tn_prepare_ctx *ctx, uint32_t i, uint32_t j, tn_error *err);
/* The shape of output i is known only after compute, which gives it by tn_kernel_allocate. The op needs
 * TN_TRAIT_DYNAMIC. */
TN_API tn_status tn_prepare_dynamic(tn_prepare_ctx *ctx, uint32_t i, tn_error *err);
/* Compute gives output i itself, by tn_kernel_set_output, with the shape that was said before: what it has is not copied.
 * Since 0.1 */
TN_API tn_status tn_prepare_given(tn_prepare_ctx *ctx, uint32_t i, tn_error *err);
/* Whether input i is a constant, also one whose elements are gone (below). Since 0.1 */
TN_API tn_bool tn_prepare_is_constant(const tn_prepare_ctx *ctx, uint32_t i);
/* A form of constant input i that is made once and shared by the sessions of a graph: `pack` writes `bytes` to `to`.
 * key tells forms of one constant and kernel apart, and says all that `pack` depends on. *packed, aligned to 64, lives as
 * long as the shape state. The kernel does without the input's elements then: where every reader of a constant has a form of
 * its own, the elements go, and inputs[i].data is NULL here and nothing of use in compute. TN_FAILED_PRECONDITION when the
 * input is no constant. */
TN_API tn_status tn_prepare_pack(tn_prepare_ctx *ctx, uint32_t i, uint64_t key, size_t bytes,
                                 tn_status (*pack)(void *user, const tn_view *from, void *to, tn_error *err), void *user,
                                 const void **packed, tn_error *err);

/* What compute sees. It is flat: no call is needed to reach an operand. Outputs are allocated, and not cleared. */
struct tn_kernel_ctx {
  size_t struct_size;
  const void *state;
  const void *shape_state;
  void *scratch;
  tn_view *const *inputs;
  tn_view *const *outputs;
  uint32_t n_inputs;
  uint32_t n_outputs;
  uint32_t resume; /* 1 when compute is called again after TN_PENDING */
  uint32_t reserved;
  tn_error *err;
  tn_step *step;
  void *waiting; /* the kernel's own, NULL at the first call, kept from a call that returns TN_PENDING to the next one */
};

/* True once the step is over: cancelled, out of time, its session closed, or failed elsewhere; it stays true. A kernel that takes long asks
 * now and then, as every millisecond, and returns TN_CANCELLED. Any thread that works for the call; about 50 ns. */
TN_API tn_bool tn_kernel_cancelled(const tn_kernel_ctx *ctx);

/* Gives a dynamic output its shape and memory; ctx->outputs[i] is filled in. Once for each output. */
TN_API tn_status tn_kernel_allocate(tn_kernel_ctx *ctx, uint32_t i, const int64_t *dims, int32_t rank);

/* Gives an output that is dynamic, or declared by tn_prepare_given, a tensor that exists (adds a reference). */
TN_API tn_status tn_kernel_set_output(tn_kernel_ctx *ctx, uint32_t i, tn_tensor *tensor);

/* Equal to: fn(user, 0, n). Parts [begin, end) of at least `grain` items may run on several threads at once; returns when
 * all have ended. cost_ns is the rough time of one item in nanoseconds. fn must not fail. When the step is over what is left of a long
 * loop is left out, unless the op is TN_TRAIT_STATEFUL without TN_TRAIT_RANDOM: nothing reads the outputs then, and a kernel that uses
 * what the loop has made, as counts or indices, asks tn_kernel_cancelled first. */
TN_API void tn_parallel_for(tn_kernel_ctx *ctx, int64_t n, int64_t grain, double cost_ns,
                            void (*fn)(void *user, int64_t begin, int64_t end), void *user);

/* Input i as a tensor that may be kept: the same memory where that does not change any more, else a copy. *out is the
 * caller's. Since 0.1 */
TN_API tn_status tn_kernel_keep_input(tn_kernel_ctx *ctx, uint32_t i, tn_tensor **out);

/* ---- waiting ---- */

/* For ops with TN_TRAIT_MAY_WAIT. Before compute returns TN_PENDING it gets a token; tn_wake(token), once, from any thread,
 * has compute called again with ctx->resume set, on the same ctx. Meanwhile the step goes on with what does not depend on
 * the node; what stands in scratch and in outputs then is lost, and nobody may write to them.
 * cancel is called at most once, by the step and outside all of the library's locks, when the step is to end and has not seen
 * the token woken; never while compute of this call runs, and not after compute was called again. Another thread may wake the
 * token just before cancel is called or while it runs, so `user` lives until compute is called again, and a lock of the
 * kernel's own decides who wakes: cancel does it, soon, or has somebody do it, unless somebody has. The token itself lives
 * as long as cancel runs. Called again in a step that ends, compute gives back what it holds and returns TN_CANCELLED, or
 * what came of it when that had happened before. A call that asked for a token and does not return TN_PENDING has ended:
 * cancel is not called for it, and tn_wake of that token, once, is still allowed and still needed. */
TN_API tn_status tn_kernel_wait(tn_kernel_ctx *ctx, void (*cancel)(void *user, tn_wait_token *token), void *user,
                                tn_wait_token **token);
TN_API void tn_wake(tn_wait_token *token);

/* ---- calling functions ---- */

/* For ops with TN_TRAIT_FUNCTION_CALL: calls function k of the node, counted through its attributes of kinds func and
 * list(func) in the order of the schema; of a node whose op is itself a function of the library that is function 0.
 * tn_operation_n_functions(op) + k is the gradient of function k, which the library names or which is made.
 * inputs   n_inputs values for its arguments, borrowed during the call: inputs of ctx by the pointers that it has, or views of
 *          the kernel's own; what has a buffer may be held on to.
 * outputs  n_outputs places; tensors of the caller's when the call ends well, else NULL.
 * Returns TN_INVALID_ARGUMENT (counts or types differ from the signature), TN_NOT_FOUND (no such function),
 *         TN_RESOURCE_EXHAUSTED (called too deeply), what a kernel returned; TN_PENDING: something in it waits. Then
 *         compute keeps what it needs at ctx->waiting, returns TN_PENDING too, and calls again with the same k when it is
 *         resumed (inputs are not looked at then). It may end with an error instead, or in a step that ends
 *         (tn_kernel_cancelled): then what waits in the function is cancelled, and nobody gets its results. To end with
 *         TN_OK is an error, TN_INTERNAL. */
TN_API tn_status tn_kernel_call(tn_kernel_ctx *ctx, uint32_t k, tn_view *const *inputs, uint32_t n_inputs,
                                tn_tensor **outputs, uint32_t n_outputs);
/* How many functions the node has; arguments and results of the k-th. */
TN_API uint32_t tn_operation_n_functions(const tn_operation *op);

/* A kernel.
 * types   constraint on type attributes, "T=float|double,Tidx=int32"; NULL = all that the schema allows.
 * rank    higher ones are taken first; the library's own C kernels have 100; 0 = switched off. */
struct tn_kernel_def {
  size_t struct_size;
  const char *op;
  const char *device; /* "CPU", "GPU", ... */
  const char *types;
  const char *name;   /* for profiles, as "matmul_f32_cpu" */
  int32_t rank;
  uint32_t flags;     /* 0 */
  tn_status (*create)(const tn_operation *op, void **state, tn_error *err); /* may be NULL: state is NULL */
  void (*destroy)(void *state);                                            /* may be NULL */
  tn_status (*prepare)(tn_prepare_ctx *ctx, tn_error *err);
  void (*destroy_shape_state)(void *shape_state); /* may be NULL */
  tn_status (*compute)(tn_kernel_ctx *ctx);
};
#define TN_KERNEL_DEF_SIZE TN_SIZE_TO(tn_kernel_def, compute)
#define TN_RANK_C 100

/* A family of ops with their kernels: what one file of ops/ exports, or what a kernel plugin registers. */
struct tn_op_family {
  size_t struct_size;
  const char *name;
  const tn_op_def *ops;
  size_t n_ops;
  const tn_kernel_def *kernels;
  size_t n_kernels;
  const tn_rewrite_def *rewrites; /* <tenon/rewrite.h>; a family without may end in front of this */
  size_t n_rewrites;
};
#define TN_OP_FAMILY_SIZE TN_SIZE_TO(tn_op_family, n_kernels)

/* Adds a family to the tables. TN_ALREADY_EXISTS for an op that is registered, TN_INVALID_ARGUMENT for a malformed
 * schema; all or nothing. */
TN_API tn_status tn_register_ops(const tn_op_family *family, tn_error *err);

/* ---- shape functions ---- */

/* Rank and dims are as in tn_output_shape: -1 = unknown. Dims are borrowed and valid during the call. A dimension above
 * 2^48 that a shape function gives becomes unknown, so none is ever seen; attributes can have any value. */
TN_API const tn_operation *tn_infer_operation(const tn_infer_ctx *ctx);
TN_API size_t tn_infer_n_inputs(const tn_infer_ctx *ctx);
TN_API int32_t tn_infer_input(const tn_infer_ctx *ctx, size_t i, const int64_t **dims); /* returns the rank */
/* The value of input i when it is known before any step, else NULL: a constant, or what shape functions gave for it by
 * tn_infer_output_ints. Borrowed during the call. */
TN_API const tn_tensor *tn_infer_input_value(const tn_infer_ctx *ctx, size_t i);
TN_API tn_status tn_infer_output(tn_infer_ctx *ctx, size_t i, const int64_t *dims, int32_t rank, tn_error *err);

/* Values that are known in part, of scalars and vectors of int32 and int64 with few elements: sizes and axes. */
#define TN_UNKNOWN_INT INT64_MIN /* an element that is not known */
#define TN_MAX_INFER_INTS 64
/* Elements of input i, borrowed during the call. Returns how many there are, -1 when nothing is known. Since 0.1 */
TN_API int64_t tn_infer_input_ints(const tn_infer_ctx *ctx, size_t i, const int64_t **items);
/* The shape that input i asks for, as TensorFlow means it: elements that are not known and those below 0 are -1. dims has
 * room for TN_MAX_RANK. Returns the rank, -1 when it is not known. Since 0.1 */
TN_API int32_t tn_infer_input_as_shape(const tn_infer_ctx *ctx, size_t i, int64_t *dims);
/* Elements of output i, whose shape was given before: for ops that make sizes from shapes and sizes (Shape, Size, Mul).
 * More than TN_MAX_INFER_INTS are dropped. TN_INVALID_ARGUMENT when they do not fit the output. Since 0.1 */
TN_API tn_status tn_infer_output_ints(tn_infer_ctx *ctx, size_t i, const int64_t *items, int64_t n, tn_error *err);

TN_END_DECLS

#ifdef TN_PLUGIN
#include <tenon/host.h>
#endif
#endif
