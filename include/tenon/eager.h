/* SPDX-License-Identifier: Apache-2.0 */
/* Eager sessions: operations that run at once.
 *
 * A session owns the tensors that its operations make; the program has handles to them. A tensor is
 * unused once its handle is released and no operation reads it; the session's strategy determines
 * when it is then deleted. Closing the session deletes all remaining tensors.
 *
 * tn_reset of the runtime also ends its eager sessions: operations in flight and all later calls
 * return TN_CANCELLED. Handles can still be released, and closing deletes the remaining tensors.
 *
 * Threads: any thread may call any function on a session at any time. The exception is
 * tn_eager_session_destroy, which must be the last call. After fork(), sessions of the parent
 * return TN_FAILED_PRECONDITION in the child. Since 0.1, S-EAG */
#ifndef TENON_EAGER_H
#define TENON_EAGER_H

#include <tenon/graph.h>
#include <tenon/options.h>
#include <tenon/session.h>

TN_BEGIN_DECLS
#ifndef TN_PLUGIN

typedef struct tn_eager_session tn_eager_session;
typedef struct tn_eager_op tn_eager_op;

/* A tensor of one session. 0 is no tensor. A handle that was released or belongs to another session
 * is detected. */
typedef struct tn_eager_handle {
  uint64_t id;
} tn_eager_handle;

/* ---- sessions ---- */

/* When unused tensors are deleted.
 *   IN_BACKGROUND     by a thread of the session, within some milliseconds, without any call of the
 *                     program. The thread sleeps when it has no work. If many tensors are unused,
 *                     calls that make new tensors help.
 *   ON_SAFE_POINTS    on the calling thread: at the start and the end of each operation, and in
 *                     tn_eager_safe_point. There is no other thread.
 *   ON_SESSION_CLOSE  when the session is closed, not before. */
enum { TN_EAGER_IN_BACKGROUND = 0, TN_EAGER_ON_SAFE_POINTS = 1, TN_EAGER_ON_SESSION_CLOSE = 2 };

/* How an operation treats an input on another device. A resource is used in place, as are inputs
 * that the operation reads on the host on every device, such as shapes. All devices of type CPU
 * share the host's memory; a copy between them shares the elements. */
enum {
  TN_EAGER_SILENT = 0,           /* copy it */
  TN_EAGER_WARN = 1,             /* copy it and log a line */
  TN_EAGER_EXPLICIT = 2,         /* refuse it with TN_INVALID_ARGUMENT */
  TN_EAGER_SILENT_FOR_INT32 = 3  /* copy int32 tensors, refuse others with TN_INVALID_ARGUMENT */
};

/* Options of an eager session. tn_eager_options_init sets the defaults; a NULL pointer means the
 * same. */
typedef struct tn_eager_options {
  size_t struct_size;
  int32_t strategy; /* TN_EAGER_IN_BACKGROUND, ... */
  int32_t device_policy;      /* TN_EAGER_SILENT, ... */
  int64_t memory_limit_bytes; /* limit for tensors made by the session and for the scratch memory of
                               * operations; 0 = none. Tensors supplied by the program
                               * (tn_eager_from_tensor, DLPack) do not count. Before an operation is
                               * refused, unused tensors are deleted (except with ON_SESSION_CLOSE)
                               * and the operation is retried. Also applies to the memory of each
                               * device other than CPUs */
  tn_bool async; /* operations run one after the other on a thread of the session; see tn_eager_wait */
  tn_bool reserved[7];
  const tn_session_options *session; /* the target, which names the runtime, and all other options
                                      * for steps, memory and state; copied. NULL = the defaults */
} tn_eager_options;
#define TN_EAGER_OPTIONS_SIZE TN_SIZE_TO(tn_eager_options, session)

/* Sets the defaults. Inline, so that struct_size is the size that the program was compiled with.
 * Since 0.1 */
static inline TN_UNUSED void tn_eager_options_init(tn_eager_options *options)
{
  const tn_eager_options defaults = {
    sizeof(tn_eager_options), TN_EAGER_IN_BACKGROUND, TN_EAGER_SILENT, 0, 0, { 0 }, NULL
  };
  if (options != NULL) *options = defaults;
}

/* Opens a session on the runtime that options->session selects.
 * Returns  TN_INVALID_ARGUMENT (out is NULL, struct_size not set, no such strategy or policy,
 *          negative limit); TN_UNIMPLEMENTED: the runtime, named in the message, does not run
 *          single operations; otherwise as tn_session_create.
 * Since 0.1, S-EAG-01, S-EAG-03, S-EAG-04 */
TN_API tn_status tn_eager_session_create(const tn_eager_options *options, tn_eager_session **out, tn_error *err);

/* Closes a session: cancels the operations in flight that can be cancelled, waits for all of them,
 * and deletes all tensors of the session. Every later use is TN_FAILED_PRECONDITION, except
 * releasing, which does nothing. May be called any number of times, also concurrently: each call
 * returns once everything is deleted.
 * Returns  TN_FAILED_PRECONDITION for the default session, and for a call from inside the session:
 *          from a kernel, or from a function called when a tensor is deleted. Since 0.1, S-EAG-02,
 *          S-EAG-09, S-EAG-17, S-EAG-23 */
TN_API tn_status tn_eager_session_close(tn_eager_session *session, tn_error *err);

/* Closes and frees a session; the last call on it. NULL allowed; does nothing for the default
 * session. Since 0.1 */
TN_API void tn_eager_session_destroy(tn_eager_session *session);

/* The runtime that runs the operations: name, file, version. Borrowed from the session. Since 0.1 */
TN_API const tn_runtime_info *tn_eager_session_runtime(const tn_eager_session *session);

/* Device i of the session, on which operations run. CPUs are first; the first of them is the
 * default device. The caller sets out->struct_size. Strings are borrowed from the session. Returns
 * TN_OUT_OF_RANGE past the end, TN_INVALID_ARGUMENT. Works after close. Any thread. Since 0.1,
 * S-EAG-26 */
TN_API tn_status tn_eager_session_device(const tn_eager_session *session, size_t i, tn_device_info *out, tn_error *err);

/* The default session of the process, opened by the first call; it cannot be closed. After a reset
 * of its runtime the next call opens another one; the caller must then destroy the old one.
 * Since 0.1, S-EAG-23 */
TN_API tn_status tn_eager_default(tn_eager_session **out, tn_error *err);
/* Sets the options of the default session; copied. Returns TN_FAILED_PRECONDITION if they were set
 * before or the session is already open. Since 0.1, S-EAG-24 */
TN_API tn_status tn_eager_set_default_options(const tn_eager_options *options, tn_error *err);

/* ---- handles ----
 *
 * A call with handles returns TN_FAILED_PRECONDITION if one was released or is not of this session,
 * and for any handle after close; on failure out is 0 or NULL. */

/* Makes a handle to a tensor. The tensor is shared, not copied, and must not be written any more.
 * Since 0.1 */
TN_API tn_status tn_eager_from_tensor(tn_eager_session *session, tn_tensor *tensor, tn_eager_handle *out,
                                      tn_error *err);

/* Returns a reference to the tensor of a handle, owned by the caller, without a copy. The tensor
 * must not be written while it has other holders. The memory of a tensor that is not on a CPU may
 * be the device's: tn_tensor_data is then NULL, and tn_tensor_read copies. In an asynchronous
 * session the call waits until the tensor is available, and returns the error of the operation that
 * should have made it. Since 0.1 */
TN_API tn_status tn_eager_tensor(tn_eager_session *session, tn_eager_handle handle, tn_tensor **out, tn_error *err);

/* Removes a tensor from the session: the caller owns it, and the handle is used up. Since 0.1,
 * S-EAG-20 */
TN_API tn_status tn_eager_detach(tn_eager_session *session, tn_eager_handle handle, tn_tensor **out, tn_error *err);

/* Releases a handle. The tensor is deleted as the session's strategy says, once no operation reads
 * it any more. Releasing 0, or any handle after close, is OK. Lock-free, about ten nanoseconds; any
 * thread. Since 0.1, S-EAG-19, S-EAG-22 */
TN_API tn_status tn_eager_release(tn_eager_session *session, tn_eager_handle handle, tn_error *err);

/* Makes a handle to the same elements on a device of the session, given by name; "" is the default
 * device. On the device where they already are, and between CPUs, the memory is shared. Returns
 * TN_INVALID_ARGUMENT: no such device, or a malformed name; TN_UNIMPLEMENTED: elements that the
 * device cannot hold, such as strings; TN_RESOURCE_EXHAUSTED. Since 0.1, S-EAG-26 */
TN_API tn_status tn_eager_copy_to_device(tn_eager_session *session, tn_eager_handle handle, const char *device,
                                         tn_eager_handle *out, tn_error *err);

/* The full name of the device of a tensor: the one on which its operation ran, or to which it was
 * copied; the default device for tensors supplied by the program. Borrowed from the session.
 * Since 0.1, S-EAG-26 */
TN_API tn_status tn_eager_device(tn_eager_session *session, tn_eager_handle handle, const char **out, tn_error *err);

/* ---- operations ---- */

/* An attribute of an operation. Pointers are read during the call only, with one exception:
 * tn_eager_op_create holds a reference to a tensor, which must not be written any more. Attributes
 * determined by inputs (T, N, Tlist) may be omitted. */
typedef struct tn_eager_attr {
  const char *name;
  int32_t kind;      /* TN_ATTR_...; lists of all kinds but TENSOR */
  int32_t rank;      /* rank of a SHAPE; -1 = unknown */
  size_t n;          /* items of a list, bytes of a STRING */
  int64_t i;         /* INT, BOOL, TYPE */
  double f;          /* FLOAT */
  const void *at;    /* STRING: the text. FUNC: its name. SHAPE: int64_t dims. TENSOR: a tn_tensor.
                      * Lists: int64_t, float, tn_bool, tn_dtype, const char * (STRING, FUNC), const
                      * int64_t * (SHAPE) */
  const void *sizes; /* lists of STRING: size_t lengths, or NULL if NUL-terminated. Lists of SHAPE: int32_t ranks */
} tn_eager_attr;

/* Looks up an op and stores its attributes, so that calls need neither. The first call with inputs
 * of given types makes a plan for these types, which is kept.
 * op       a registered op, or a function of tn_eager_add_functions
 * device   the device to run on. NULL or "": the device of its first resource, or else of its
 *          inputs if all are on one device, or else the default device, the session's first, which
 *          is a CPU. If the device has no kernel for the op, it runs on the default device; if
 *          `device` names one, only with the option allow_soft_placement, and otherwise calls
 *          return TN_INVALID_ARGUMENT
 * Returns  TN_NOT_FOUND: no such op; TN_INVALID_ARGUMENT: a device that the session lacks, an
 *          attribute without a name or of an unknown kind; TN_FAILED_PRECONDITION after close. The
 *          first call reports attributes that are unknown to the op or do not match. Free *out with
 *          tn_eager_op_destroy, at any time, even after the session was destroyed. Since 0.1 */
TN_API tn_status tn_eager_op_create(tn_eager_session *session, const char *op, const char *device,
                                    const tn_eager_attr *attrs, size_t n_attrs, tn_eager_op **out, tn_error *err);
TN_API void tn_eager_op_destroy(tn_eager_op *op); /* no call of it may be running; NULL allowed */

/* Runs an operation. Lists of inputs and outputs are counted flat.
 * outputs    room for `room` handles; may overlap with inputs, whose handles are not released by
 *            that. May be NULL if there are no outputs
 * n_outputs  receives the number of outputs, even if room is too small
 * Returns    TN_FAILED_PRECONDITION: closed, or a handle that is not of the session;
 *            TN_INVALID_ARGUMENT: wrong counts, types, attributes or shapes, room too small;
 *            TN_RESOURCE_EXHAUSTED; the error of the kernel.
 * On error all outputs are 0. Any thread, several at once. Since 0.1, S-EAG-01, S-EAG-25 */
TN_API tn_status tn_eager_op_call(tn_eager_op *op, const tn_eager_handle *inputs, size_t n_inputs,
                                  tn_eager_handle *outputs, size_t room, size_t *n_outputs, tn_error *err);

/* The same by name, through a cache in the session. n_outputs may be NULL. Since 0.1 */
TN_API tn_status tn_eager_call(tn_eager_session *session, const char *op, const tn_eager_attr *attrs, size_t n_attrs,
                               const tn_eager_handle *inputs, size_t n_inputs, tn_eager_handle *outputs, size_t room,
                               size_t *n_outputs, tn_error *err);

/* Registers the functions of a graph's library with the session, for use as ops and as attribute
 * values. A function with the name of a registered one must equal it. Since 0.1 */
TN_API tn_status tn_eager_add_functions(tn_eager_session *session, tn_graph *graph, tn_error *err);

/* ---- common operations ---- */

/* tn_eager_add(session, x, y, &z, err) and so on, each one call of tn_eager_call. Since 0.1 */
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
#define TN__EAGER_UNARY(name, op)                                                                 \
  static inline TN_UNUSED tn_status tn_eager_##name(tn_eager_session *session, tn_eager_handle x, \
                                                    tn_eager_handle *out, tn_error *err)          \
  {                                                                                               \
    return tn_eager_call(session, op, NULL, 0, &x, 1, out, 1, NULL, err);                         \
  }
TN_EAGER_BINARY_MAP(TN__EAGER_BINARY)
TN_EAGER_UNARY_MAP(TN__EAGER_UNARY)

/* Makes a handle to new elements, which are copied: tn_tensor_from_data and tn_eager_from_tensor in
 * one. Since 0.1 */
TN_API tn_status tn_eager_from_data(tn_eager_session *session, tn_dtype dtype, const int64_t *dims, int32_t rank,
                                    const void *data, size_t bytes, tn_eager_handle *out, tn_error *err);

/* ---- deleting, waiting ---- */

/* With ON_SAFE_POINTS, deletes all unused tensors on this thread, which may take a moment;
 * otherwise does nothing. Since 0.1, S-EAG-12, S-EAG-14 */
TN_API tn_status tn_eager_safe_point(tn_eager_session *session, tn_error *err);

/* Waits until every operation called before has ended. Returns the first error since the last wait,
 * and only once. In a session that is not asynchronous, returns TN_OK at once. Since 0.1, S-EAG-27 */
TN_API tn_status tn_eager_wait(tn_eager_session *session, tn_error *err);

/* Statistics of a session. Numbers of tensors, except for bytes, pauses and times. */
typedef struct tn_eager_counters {
  size_t struct_size;
  uint64_t allocated; /* handles made */
  uint64_t live;      /* not released, or read by an operation */
  uint64_t unused;    /* released, not deleted yet */
  uint64_t deleted;
  uint64_t detached;
  uint64_t bytes;      /* of elements, live and unused */
  uint64_t peak_bytes; /* maximum so far; may be too low by a few KiB per thread */
  uint64_t pauses;     /* safe points that deleted more than a few small tensors */
  uint64_t pause_ns;   /* their total time */
  uint64_t longest_pause_ns;
} tn_eager_counters;
#define TN_EAGER_COUNTERS_SIZE TN_SIZE_TO(tn_eager_counters, longest_pause_ns)

/* Reads the counters; the caller sets out->struct_size. No thread is stopped, so while operations
 * run the numbers may be from slightly different moments. Works after close. Returns
 * TN_INVALID_ARGUMENT for NULL or a struct that is too small. Since 0.1 */
TN_API tn_status tn_eager_get_counters(const tn_eager_session *session, tn_eager_counters *out, tn_error *err);

/* ---- scopes ---- */

/* Begins a scope of the calling thread: all handles that this thread makes in the session from now
 * on are released when the scope ends. Scopes nest. Since 0.1 */
TN_API tn_status tn_eager_scope_push(tn_eager_session *session, tn_error *err);
/* Ends this thread's innermost scope in the session. Releases all handles made in it, except those
 * in keep, which pass to the enclosing scope. Handles already released or detached are skipped.
 * Returns TN_FAILED_PRECONDITION if there is no scope, or if keep[i] is not a handle of the
 *         session; nothing has happened then. Works after close. Since 0.1 */
TN_API tn_status tn_eager_scope_pop(tn_eager_session *session, const tn_eager_handle *keep, size_t n, tn_error *err);

#endif
TN_END_DECLS
#endif
