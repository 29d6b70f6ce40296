/* SPDX-License-Identifier: Apache-2.0 */
/* Eager sessions: operations at once.
 *
 * A session owns the tensors that its operations make; the program has handles of them. A tensor is unused when its handle was
 * released and no operation reads it; the session's strategy says when it is deleted then. Closing deletes all that are left.
 *
 * tn_reset of the runtime ends its eager sessions, too: operations in flight and all later calls get TN_CANCELLED, but releasing goes
 * on, and closing deletes what is left.
 *
 * Threads: every call is safe from any thread on one session, but tn_eager_session_destroy, which must be the last one.
 * After fork() a child gets TN_FAILED_PRECONDITION from sessions of its parent. Since 0.1, S-EAG */
#ifndef TENON_EAGER_H
#define TENON_EAGER_H

#include <tenon/graph.h>
#include <tenon/options.h>
#include <tenon/session.h>

TN_BEGIN_DECLS
#ifndef TN_PLUGIN

typedef struct tn_eager_session tn_eager_session;
typedef struct tn_eager_op tn_eager_op;

/* A tensor of one session. 0 is none. A handle that was released, or is another session's, is found out. */
typedef struct tn_eager_handle {
  uint64_t id;
} tn_eager_handle;

/* ---- sessions ---- */

/* When what is unused is deleted.
 *   IN_BACKGROUND     by a thread of the session's own, within some milliseconds, without any call of the program. It sleeps
 *                     when there is nothing to do. Where much is unused, the calls that make new tensors help.
 *   ON_SAFE_POINTS    on the thread that calls: at the start and the end of each operation, and by tn_eager_safe_point. There
 *                     is no other thread.
 *   ON_SESSION_CLOSE  not before the session is closed. */
enum { TN_EAGER_IN_BACKGROUND = 0, TN_EAGER_ON_SAFE_POINTS = 1, TN_EAGER_ON_SESSION_CLOSE = 2 };

/* What happens to an input on another device than the operation's. A resource is used from where it is, and so is on each device
 * what the operation reads on the host, as shapes. The memory of all devices of type CPU is the host's: between them, a copy
 * shares it. */
enum {
  TN_EAGER_SILENT = 0,           /* it is copied */
  TN_EAGER_WARN = 1,             /* it is copied, with a line in the log */
  TN_EAGER_EXPLICIT = 2,         /* TN_INVALID_ARGUMENT */
  TN_EAGER_SILENT_FOR_INT32 = 3  /* int32 tensors are copied, others are TN_INVALID_ARGUMENT */
};

/* tn_eager_options_init gives the defaults; NULL in place of a pointer to it means the same. */
typedef struct tn_eager_options {
  size_t struct_size;
  int32_t strategy;
  int32_t device_policy;
  int64_t memory_limit_bytes; /* of tensors that the session makes and of what operations work in; 0 = none. What the program made
                               * and brought (tn_eager_from_tensor, DLPack) does not count. Before the limit refuses an
                               * operation, what is unused is deleted (but with ON_SESSION_CLOSE) and it is tried again.
                               * It holds for the memory of each device that is no CPU, too */
  tn_bool async; /* operations run one after the other on a thread of the session's own; see tn_eager_wait */
  tn_bool reserved[7];
  const tn_session_options *session; /* the target, which names the runtime, and all else that concerns steps, memory and
                                      * state; copied. NULL = the defaults */
} tn_eager_options;
#define TN_EAGER_OPTIONS_SIZE TN_SIZE_TO(tn_eager_options, session)

/* The defaults. Inline, so that struct_size is the size that the program was compiled with. Since 0.1 */
static inline TN_UNUSED void tn_eager_options_init(tn_eager_options *options)
{
  const tn_eager_options defaults = { sizeof(tn_eager_options), TN_EAGER_IN_BACKGROUND, TN_EAGER_SILENT, 0, 0, { 0 }, NULL };
  if (options != NULL) *options = defaults;
}

/* Opens a session on the runtime that options->session chooses.
 * Returns  TN_INVALID_ARGUMENT (out is NULL, struct_size not set, no such strategy or policy, a limit below 0);
 *          TN_UNIMPLEMENTED: the runtime does not run single operations, it is named; what tn_session_create returns.
 * Since 0.1, S-EAG-01, S-EAG-03, S-EAG-04 */
TN_API tn_status tn_eager_session_create(const tn_eager_options *options, tn_eager_session **out, tn_error *err);

/* Waits for the operations in flight, of which those that can be cancelled are, and deletes all tensors of the session. Every
 * later use is TN_FAILED_PRECONDITION, but releasing, which does nothing. Any number of times, also at once: each returns when
 * all is deleted. TN_FAILED_PRECONDITION: it is the default session; or the call comes from inside of the session: of a
 * kernel, or of a function that is called when a tensor is deleted. Since 0.1, S-EAG-02, S-EAG-09, S-EAG-17, S-EAG-23 */
TN_API tn_status tn_eager_session_close(tn_eager_session *session, tn_error *err);

/* Closes and frees it; the last call. NULL allowed; does nothing to the default session. Since 0.1 */
TN_API void tn_eager_session_destroy(tn_eager_session *session);

/* The runtime that runs the operations: name, file, version. Borrowed from the session. Since 0.1 */
TN_API const tn_runtime_info *tn_eager_session_runtime(const tn_eager_session *session);

/* Device i of the session, on which operations run: CPUs first, and the first of them is the default one; out->struct_size is set by
 * the caller. Texts are borrowed from the session. Returns TN_OUT_OF_RANGE past the end, TN_INVALID_ARGUMENT. Works after close.
 * Any thread. Since 0.1, S-EAG-26 */
TN_API tn_status tn_eager_session_device(const tn_eager_session *session, size_t i, tn_device_info *out, tn_error *err);

/* The session of the process, made at the first call; it cannot be closed. After a reset of its runtime the next call makes
 * another one, and the old one is the caller's to destroy. Since 0.1, S-EAG-23 */
TN_API tn_status tn_eager_default(tn_eager_session **out, tn_error *err);
/* The options of the session of the process; copied. TN_FAILED_PRECONDITION: they were set before, or it is there by now.
 * Since 0.1, S-EAG-24 */
TN_API tn_status tn_eager_set_default_options(const tn_eager_options *options, tn_error *err);

/* ---- handles ----
 *
 * Each call that takes handles returns TN_FAILED_PRECONDITION for one that is not of this session, or was released, and for
 * any after close; out is 0 or NULL on failure. */

/* Makes a handle of a tensor, which is shared, not copied: it must not be written any more. Since 0.1 */
TN_API tn_status tn_eager_from_tensor(tn_eager_session *session, tn_tensor *tensor, tn_eager_handle *out, tn_error *err);

/* A reference to the tensor of a handle, the caller's, without a copy; not to be written as long as others have it. Of one that is
 * not on a CPU the memory may be the device's: tn_tensor_data is NULL then, and tn_tensor_read copies. In an asynchronous session
 * this waits until the tensor is there, and returns the error of the operation that was to make it. Since 0.1 */
TN_API tn_status tn_eager_tensor(tn_eager_session *session, tn_eager_handle handle, tn_tensor **out, tn_error *err);

/* Takes a tensor out of the session: it is the caller's, and the handle is used up. Since 0.1, S-EAG-20 */
TN_API tn_status tn_eager_detach(tn_eager_session *session, tn_eager_handle handle, tn_tensor **out, tn_error *err);

/* Gives a handle back. The tensor is deleted as the session's strategy says, once no operation reads it any more. 0 is OK, as
 * is anything after close. Lock-free, some ten nanoseconds; from any thread. Since 0.1, S-EAG-19, S-EAG-22 */
TN_API tn_status tn_eager_release(tn_eager_session *session, tn_eager_handle handle, tn_error *err);

/* A handle of the same elements on a device of the session, by its name; "" is the default one. On the device on which they
 * are already the memory is shared, as between CPUs. TN_INVALID_ARGUMENT: no such device, or a malformed name; TN_UNIMPLEMENTED:
 * elements that the device cannot have, as strings; TN_RESOURCE_EXHAUSTED. Since 0.1, S-EAG-26 */
TN_API tn_status tn_eager_copy_to_device(tn_eager_session *session, tn_eager_handle handle, const char *device,
                                         tn_eager_handle *out, tn_error *err);

/* The full name of the device on which a tensor is: that on which the operation ran that made it, or to which it was copied; the default
 * one for what the program brought. Borrowed from the session. Since 0.1, S-EAG-26 */
TN_API tn_status tn_eager_device(tn_eager_session *session, tn_eager_handle handle, const char **out, tn_error *err);

/* ---- operations ---- */

/* An attribute of an operation. What it points to is read during the call only, but for a tensor that is given to
 * tn_eager_op_create, which holds a reference: it must not be written any more. Those that inputs decide (T, N, Tlist) may be left
 * out. */
typedef struct tn_eager_attr {
  const char *name;
  int32_t kind;      /* TN_ATTR_...; a list: of all but TENSOR */
  int32_t rank;      /* of a SHAPE; -1 = unknown */
  size_t n;          /* items of a list, bytes of a STRING */
  int64_t i;         /* INT, BOOL, TYPE */
  double f;          /* FLOAT */
  const void *at;    /* STRING: the text. FUNC: its name. SHAPE: int64_t dims. TENSOR: a tn_tensor.
                      * Lists: int64_t, float, tn_bool, tn_dtype, const char * (STRING, FUNC), const int64_t * (SHAPE) */
  const void *sizes; /* lists of STRING: size_t, or NULL: they end with a NUL. Lists of SHAPE: int32_t ranks */
} tn_eager_attr;

/* Looks an op up and keeps its attributes, so that calls need neither: plans for the types of inputs are made by the first call
 * with these types, and kept.
 * op      a registered op, or a function of tn_eager_add_functions
 * device  on which it is to run. NULL or "": where its first resource is, or else where all of its inputs are, or else on the
 *         default device, the session's first, which is a CPU. It runs on that one, too, where the device has no kernel for it;
 *         when it was named here, only with the option allow_soft_placement, and calls are TN_INVALID_ARGUMENT else
 * Returns TN_NOT_FOUND: no such op; TN_INVALID_ARGUMENT: a device that the session does not have, an attribute without name or of
 *         no kind; TN_FAILED_PRECONDITION after close. Attributes that the op does not have, or that do not fit, are found out
 *         by the first call. Goes with tn_eager_op_destroy, at any time, also after the session. Since 0.1 */
TN_API tn_status tn_eager_op_create(tn_eager_session *session, const char *op, const char *device, const tn_eager_attr *attrs,
                                    size_t n_attrs, tn_eager_op **out, tn_error *err);
TN_API void tn_eager_op_destroy(tn_eager_op *op); /* no call of it runs; NULL allowed */

/* Runs it. Lists of inputs and outputs are counted flat.
 * outputs  room places, which may be those of inputs (whose handles are not released by that); *n_outputs becomes how many there
 *          are, also when room is too small. May be NULL where there are none
 * Returns  TN_FAILED_PRECONDITION: closed, or a handle that is none of the session's; TN_INVALID_ARGUMENT: counts, types,
 *          attributes or shapes that do not fit, room too small; TN_RESOURCE_EXHAUSTED; what the kernel returns.
 * On error all of outputs are 0. Any thread, several at once. Since 0.1, S-EAG-01, S-EAG-25 */
TN_API tn_status tn_eager_op_call(tn_eager_op *op, const tn_eager_handle *inputs, size_t n_inputs, tn_eager_handle *outputs,
                                  size_t room, size_t *n_outputs, tn_error *err);

/* The same by name, through a cache of the session's. n_outputs may be NULL. Since 0.1 */
TN_API tn_status tn_eager_call(tn_eager_session *session, const char *op, const tn_eager_attr *attrs, size_t n_attrs,
                               const tn_eager_handle *inputs, size_t n_inputs, tn_eager_handle *outputs, size_t room,
                               size_t *n_outputs, tn_error *err);

/* Makes the functions of a graph's library known to the session, as ops and as values of attributes. One of a name that is
 * known must be the same. Since 0.1 */
TN_API tn_status tn_eager_add_functions(tn_eager_session *session, tn_graph *graph, tn_error *err);

/* ---- common operations ---- */

/* tn_eager_add(session, x, y, &z, err) and the like, by tn_eager_call. Since 0.1 */
#define TN_EAGER_BINARY_MAP(X)                                                                                        \
  X(add, "AddV2") X(sub, "Sub") X(mul, "Mul") X(div, "RealDiv") X(floordiv, "FloorDiv") X(floormod, "FloorMod")       \
  X(pow, "Pow") X(maximum, "Maximum") X(minimum, "Minimum") X(equal, "Equal") X(not_equal, "NotEqual")                \
  X(less, "Less") X(less_equal, "LessEqual") X(greater, "Greater") X(greater_equal, "GreaterEqual")                   \
  X(logical_and, "LogicalAnd") X(logical_or, "LogicalOr") X(matmul, "MatMul") X(reshape, "Reshape") X(fill, "Fill")   \
  X(expand_dims, "ExpandDims") X(transpose, "Transpose") X(tile, "Tile") X(sum, "Sum") X(mean, "Mean") X(max, "Max")  \
  X(min, "Min") X(prod, "Prod")
#define TN_EAGER_UNARY_MAP(X)                                                                                         \
  X(neg, "Neg") X(abs, "Abs") X(exp, "Exp") X(log, "Log") X(sqrt, "Sqrt") X(square, "Square") X(tanh, "Tanh")         \
  X(sigmoid, "Sigmoid") X(relu, "Relu") X(softmax, "Softmax") X(identity, "Identity") X(shape, "Shape")               \
  X(logical_not, "LogicalNot") X(zeros_like, "ZerosLike") X(ones_like, "OnesLike")

#define TN__EAGER_BINARY(name, op)                                                                                    \
  static inline TN_UNUSED tn_status tn_eager_##name(tn_eager_session *session, tn_eager_handle x, tn_eager_handle y,  \
                                                    tn_eager_handle *out, tn_error *err)                              \
  {                                                                                                                   \
    const tn_eager_handle inputs[2] = { x, y };                                                                       \
    return tn_eager_call(session, op, NULL, 0, inputs, 2, out, 1, NULL, err);                                         \
  }
#define TN__EAGER_UNARY(name, op)                                                                                     \
  static inline TN_UNUSED tn_status tn_eager_##name(tn_eager_session *session, tn_eager_handle x, tn_eager_handle *out, \
                                                    tn_error *err)                                                    \
  {                                                                                                                   \
    return tn_eager_call(session, op, NULL, 0, &x, 1, out, 1, NULL, err);                                             \
  }
TN_EAGER_BINARY_MAP(TN__EAGER_BINARY)
TN_EAGER_UNARY_MAP(TN__EAGER_UNARY)

/* A handle of new elements, which are copied: tn_tensor_from_data and tn_eager_from_tensor. Since 0.1 */
TN_API tn_status tn_eager_from_data(tn_eager_session *session, tn_dtype dtype, const int64_t *dims, int32_t rank,
                                    const void *data, size_t bytes, tn_eager_handle *out, tn_error *err);

/* ---- deleting, waiting ---- */

/* With ON_SAFE_POINTS, deletes all that is unused now, on this thread, and may take a moment; otherwise does nothing.
 * Since 0.1, S-EAG-12, S-EAG-14 */
TN_API tn_status tn_eager_safe_point(tn_eager_session *session, tn_error *err);

/* Waits until every operation that was called before has ended; returns the first error of those that failed since the last
 * wait, once. In a session that is not asynchronous it returns TN_OK at once. Since 0.1, S-EAG-27 */
TN_API tn_status tn_eager_wait(tn_eager_session *session, tn_error *err);

/* What a session has done. Numbers of tensors, but for bytes, pauses and times. */
typedef struct tn_eager_counters {
  size_t struct_size;
  uint64_t allocated; /* handles made */
  uint64_t live;      /* that were not released, or that operations read */
  uint64_t unused;    /* released, not deleted yet */
  uint64_t deleted;
  uint64_t detached;
  uint64_t bytes;      /* of elements, live and unused */
  uint64_t peak_bytes; /* the most so far; a few KiB a thread may be missing */
  uint64_t pauses;     /* safe points that deleted more than a few small tensors */
  uint64_t pause_ns;   /* their time together */
  uint64_t longest_pause_ns;
} tn_eager_counters;
#define TN_EAGER_COUNTERS_SIZE TN_SIZE_TO(tn_eager_counters, longest_pause_ns)

/* The counters; out->struct_size is set by the caller. Stops nobody, so while operations run the numbers are of slightly different
 * moments. Works after close. TN_INVALID_ARGUMENT: NULL, or a struct that is too small. Since 0.1 */
TN_API tn_status tn_eager_get_counters(const tn_eager_session *session, tn_eager_counters *out, tn_error *err);

/* ---- scopes ---- */

/* Begins a scope of the calling thread: what this thread makes in the session from now on is released when it ends. Scopes may
 * be inside of each other. Since 0.1 */
TN_API tn_status tn_eager_scope_push(tn_eager_session *session, tn_error *err);
/* Ends the innermost one of this thread in the session: releases all that was made in it, but for what is in keep, which belongs
 * to the scope around it then. What was released or detached meanwhile is left alone.
 * Returns TN_FAILED_PRECONDITION: there is none; or keep[i] is no handle of the session, and nothing has happened. Works after
 *         close. Since 0.1 */
TN_API tn_status tn_eager_scope_pop(tn_eager_session *session, const tn_eager_handle *keep, size_t n, tn_error *err);

#endif
TN_END_DECLS
#endif
