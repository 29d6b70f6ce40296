/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels on oneDNN: declarations shared by the plugin's files.
 *
 * A kernel's state is its attributes; its shape state is a primitive for one tuple of shapes. The primitive is made for
 * one thread, so no OpenMP team is ever started. Concurrent steps share it, each with its own call object. Weights are
 * reordered once, for all sessions of a graph (tn_prepare_pack). Tensors keep their layout: channels last. */
#ifndef TN_PLUGINS_ONEDNN_H
#define TN_PLUGINS_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <tenon/op.h>

/* ---- engine.c ---- */

/* The engine of the process, made at first use. NULL: *err says why. */
dnnl_engine_t dnn_engine(tn_error *err);
/* The calling thread's stream. NULL: *err says why. */
dnnl_stream_t dnn_stream(tn_error *err);
/* Primitives made between these two calls run on one thread. The second one restores the program's OpenMP setting. */
int dnn_one_thread(void);
void dnn_restore_threads(int before);
/* Converts a status of oneDNN. If oneDNN has no implementation, the result is TN_UNIMPLEMENTED: the kernel declines. */
tn_status dnn_status(dnnl_status_t st, const char *what, tn_error *err);

/* Plain memory of these dims and strides, both in oneDNN's order. */
dnnl_memory_desc_t dnn_strided(const int64_t *dims, const int64_t *strides, int n, dnnl_data_type_t type);
/* The same dims, in a layout that the library may choose. */
dnnl_memory_desc_t dnn_any(const int64_t *dims, int n, dnnl_data_type_t type);

/* oneDNN's type for a dtype; dnnl_data_type_undef if it has none. */
dnnl_data_type_t dnn_type(tn_dtype dtype);
/* Whether this processor has special instructions for products of this dtype. */
bool dnn_type_is_fast(tn_dtype dtype);
/* Whether the processor's vendor is one on which few products by constants are faster here. Measured before the
 * library's own loops had fused multiply-adds: on AMD's processors the two ways took the same time. */
bool dnn_fused_is_faster(void);
/* Whether products and forward convolutions of float can be faster than in the library's own loops: with AVX-512 or on
 * other architectures. The variable TENON_ONEDNN_ALL=1 says so for any processor. */
bool dnn_multiplies_faster(void);
/* Whether products by constants read them in a layout of their own. */
bool dnn_packs_weights(void);

/* oneDNN counts dimensions and offsets in int at places, so larger tensors are left to the library's own kernels. */
#define DNN_MOST INT32_MAX
bool dnn_dims_fit(const int64_t *dims, int32_t rank);
/* The same for the dimensions of a view that has elements; false if it has none. */
bool dnn_fits(const tn_view *v);
/* Reads a shape: the input's own, or the one that its known elements spell out. */
bool dnn_shape_read(const tn_view *v, int rank, int64_t *dims);

/* ---- window.c: windows of convolutions and pooling ---- */

typedef struct dnn_window {
  int axes;               /* 2 or 3, of the image */
  int64_t size[DNNL_MAX_NDIMS], stride[DNNL_MAX_NDIMS], dilation[DNNL_MAX_NDIMS];
  int64_t before[DNNL_MAX_NDIMS], after[DNNL_MAX_NDIMS];
  bool same;
} dnn_window;

/* Returns TN_UNIMPLEMENTED, which makes the planner try the next kernel. */
tn_status dnn_declined(tn_error *err, const char *why);
/* Reads strides, padding, and ksize (pooling) or dilations. False: leave the op to the library's own kernel. */
bool dnn_window_read(const tn_operation *op, int axes, bool pooling, dnn_window *w);
/* Places of the window along each axis of the input; sets the padding. False as above. */
bool dnn_window_fit(dnn_window *w, const int64_t *in, int64_t *out);
/* Layout of a tensor [batch, axes..., channels], of at most 5 dimensions. */
dnnl_memory_desc_t dnn_channels_last(const int64_t *dims, int n, dnnl_data_type_t type);

/* How images [batch, axes..., channels] are divided into bands: by images, and also by rows along the first axis of the
 * result if there are fewer images than parts, or if some parts would get one image more than others. The number of
 * bands is images * rows. */
typedef struct dnn_bands {
  int64_t images, rows;
} dnn_bands;
/* A band: the window's work on some rows of some images, and the elements where it begins. */
typedef struct dnn_band {
  dnn_window window;
  int64_t x[5], y[5], x_at, y_at;
} dnn_band;
/* points: those of one image's result, which has `rows` rows. least: the points of a band below which images are not
 * divided if there are enough of them. */
dnn_bands dnn_bands_cut(int64_t images, int64_t rows, int64_t points, int64_t parts, int64_t least);
/* False: the band's windows would see only padding. */
bool dnn_band_of(const dnn_window *w, int rank, const int64_t *x, const int64_t *y, dnn_bands b, int64_t i,
                 dnn_band *out);

/* ---- post_ops.c: the epilogue of fused ops ---- */

#define DNN_STEPS 8

typedef enum dnn_step {
  DNN_BIAS,
  DNN_ADD,
  DNN_RELU,
  DNN_RELU6,
  DNN_LEAKY_RELU,
  DNN_TANH,
  DNN_SIGMOID,
  DNN_SWISH,
  DNN_MISH,
  DNN_HARD_SWISH, /* oneDNN's has a factor of 1/6 */
  DNN_GELU,       /* and of 1/sqrt(2) */
  DNN_GELU_TANH   /* and of sqrt(2/pi) */
} dnn_step;

typedef struct dnn_epilogue {
  uint32_t n;
  float alpha;
  uint8_t steps[DNN_STEPS];
} dnn_epilogue;

/* Reads fused_ops where the op has them. TN_UNIMPLEMENTED: a step that is not known, or a bias that is not first. */
tn_status dnn_epilogue_read(const tn_operation *op, dnn_epilogue *out, tn_error *err);
bool dnn_has_bias(const dnn_epilogue *e);
/* Appends the steps after the bias. `added` is the layout of the tensors that are added. */
tn_status dnn_epilogue_append(const dnn_epilogue *e, const dnnl_memory_desc_t *added, dnnl_post_ops_t to,
                              tn_error *err);
/* Whether the inputs from `first` on fit a result of this shape: biases one value a channel, others its shape. */
bool dnn_epilogue_fits(const dnn_epilogue *e, const tn_prepare_ctx *ctx, uint32_t first, const int64_t *dims,
                       int32_t rank);

/* ---- call.c: a primitive and its calls ---- */

#define DNN_ARGS 20
#define DNN_MOVES 3

/* The memory of an argument: an input, the output, packed weights, the scratch. */
typedef enum dnn_source { DNN_INPUT, DNN_OUTPUT, DNN_FIXED, DNN_SCRATCH } dnn_source;

typedef struct dnn_arg {
  int32_t arg; /* DNNL_ARG_... */
  uint8_t source;
  uint32_t index;    /* of the input */
  size_t offset;     /* bytes in the tensor, or in the scratch */
  const void *fixed; /* DNN_FIXED */
} dnn_arg;

/* A primitive before or after the main one: mostly a reorder from one layout to another. */
typedef struct dnn_move {
  dnnl_primitive_t primitive;
  uint32_t first, n; /* its arguments in args */
  bool after;
} dnn_move;

typedef struct dnn_call dnn_call;

/* The shape state of all kernels here. The primitive's arguments are at the front of args, those of moves at its end. A
 * plan may instead have parts, which are plans as well and may be executed by several threads at once (parts.c). */
typedef struct dnn_plan {
  dnnl_primitive_desc_t desc;
  dnnl_primitive_t primitive;
  uint32_t n_args, n_moves, n_moved; /* arguments of the primitive, moves, their arguments */
  dnn_arg args[DNN_ARGS];
  dnn_move moves[DNN_MOVES];
  size_t scratch_bytes;
  dnnl_status_t failed;          /* the first failure of adding an argument */
  dnn_call *first;               /* lives as long as the plan */
  _Atomic(dnn_call *) free_call; /* of the step before */
  /* A step may call the primitive for one block after another, with `enter` before and `leave` after each. `scratch` is
   * the plan's part of the scratch. */
  int64_t n_blocks;
  void (*enter)(const tn_kernel_ctx *ctx, char *scratch, const void *own, int64_t block);
  void (*leave)(const tn_kernel_ctx *ctx, char *scratch, const void *own, int64_t block);
  void *own; /* freed with the plan */
  dnn_epilogue epilogue;              /* of the primitive */
  bool watches;                       /* a step of it may lose a NaN */
  _Atomic(dnnl_primitive_t) careful;  /* up to that step; NULL: no NaN was met yet */
  struct dnn_plan **parts;
  struct dnn_plan *whole; /* all parts in one, for a thread without help; NULL: it executes the parts */
  uint32_t n_parts, most_parts;
  bool adds_whole;
  double part_ns;    /* roughly */
  size_t scratch_at; /* of a part in the scratch of all */
} dnn_plan;

typedef struct dnn_setup {
  const dnn_epilogue *epilogue; /* NULL = none */
  const dnnl_memory_desc_t *added;
  const_dnnl_primitive_desc_t forward; /* of a gradient */
} dnn_setup;

/* A plan for an op descriptor, which is ctx's shape state from then on, or the next part of the one that is; no
 * arguments yet but its scratch. */
tn_status dnn_plan_create(tn_prepare_ctx *ctx, const_dnnl_op_desc_t op, const dnn_setup *setup, dnn_plan **out,
                          tn_error *err);
void dnn_plan_destroy(void *plan);
/* Adds a tensor of this layout. If the primitive needs another layout (`wanted`; NULL: it does not), the tensor is
 * reordered in each step. Failures are reported by dnn_plan_end. */
void dnn_plan_input(dnn_plan *p, int32_t arg, uint32_t index, const dnnl_memory_desc_t *layout,
                    const dnnl_memory_desc_t *wanted);
void dnn_plan_output(dnn_plan *p, int32_t arg, const dnnl_memory_desc_t *layout, const dnnl_memory_desc_t *wanted);
/* Adds a piece of a tensor, `offset` bytes from its beginning, without reordering. */
void dnn_plan_input_piece(dnn_plan *p, int32_t arg, uint32_t index, size_t offset, const dnnl_memory_desc_t *layout);
void dnn_plan_output_piece(dnn_plan *p, int32_t arg, size_t offset, const dnnl_memory_desc_t *layout);
/* Adds input `index` of layout `from` in the layout that the primitive needs: unchanged if that is the same, packed
 * once if the input is constant, otherwise reordered in each step if each_step is true. TN_UNIMPLEMENTED if it is
 * not. */
tn_status dnn_plan_weights(dnn_plan *p, tn_prepare_ctx *ctx, int32_t arg, uint32_t index,
                           const dnnl_memory_desc_t *from, bool each_step, tn_error *err);
/* Reserves room in the scratch and returns its offset. The next two add arguments in the scratch, and in memory that
 * lives as long as the plan. */
size_t dnn_plan_room(dnn_plan *p, size_t bytes);
void dnn_plan_inner(dnn_plan *p, int32_t arg, size_t offset, const dnnl_memory_desc_t *desc);
void dnn_plan_fixed(dnn_plan *p, int32_t arg, const void *data, const dnnl_memory_desc_t *desc);
/* Takes ownership of a primitive to execute before the plan's own on the input `src`, with results in the scratch. */
void dnn_plan_before(dnn_plan *p, dnnl_primitive_t primitive, const dnnl_memory_desc_t *src,
                     const dnnl_memory_desc_t *dst, const dnnl_memory_desc_t *workspace, size_t workspace_at);
/* Arguments of the epilogue: inputs from `first` on, from these offsets in bytes on. */
typedef struct dnn_follow {
  const dnnl_memory_desc_t *bias, *added;
  size_t bias_at, added_at;
} dnn_follow;
void dnn_plan_epilogue(dnn_plan *p, const dnn_epilogue *e, uint32_t first, const dnn_follow *follow);
/* Call this once all arguments were added: sets the scratch and reports failures. */
tn_status dnn_plan_end(dnn_plan *p, tn_prepare_ctx *ctx, tn_error *err);
/* The compute of all kernels here. */
tn_status dnn_compute(tn_kernel_ctx *ctx);
/* The same for a plan without parts. */
dnnl_status_t dnn_plan_execute(const tn_kernel_ctx *ctx, dnn_plan *p);

/* ---- careful.c: steps that lose a NaN ---- */

/* The number of steps of an epilogue before the first that may lose a NaN. */
uint32_t dnn_epilogue_safe(const dnn_epilogue *e);
/* Called around a primitive: whether it read a NaN that may be lost, or produced one. */
bool dnn_nan_watch(void);
bool dnn_nan_met(bool before);
/* Makes the plan's primitive without the steps from the first unsafe one on; the second executes these. args: a
 * call's. */
dnnl_status_t dnn_careful(dnn_plan *p, const dnnl_exec_arg_t *args, dnnl_primitive_t *out);
dnnl_status_t dnn_careful_finish(const dnn_plan *p, const dnnl_exec_arg_t *args);
tn_status dnn_reorder_create(const dnnl_memory_desc_t *from, const dnnl_memory_desc_t *to, dnnl_primitive_t *out,
                             tn_error *err);

/* ---- parts.c: work shared by threads ---- */

#define DNN_WORTH 4000.0 /* ns; shorter work is not divided */
/* The approximate time in ns of `products` multiplications with `weights` weights, which dominate if there are few
 * rows. */
double dnn_product_ns(double products, double weights);
/* The number of parts for work of `ns` nanoseconds, given the threads that a step may have; 1: it is not divided. */
uint32_t dnn_parts_worth(const tn_prepare_ctx *ctx, double ns);
/* n parts, at most `most`, rounded down to a multiple of the threads if there are more parts than threads. */
uint32_t dnn_parts_at_most(const tn_prepare_ctx *ctx, uint32_t n, int64_t most);
/* Increases n, up to `most`, if the primitives would run so long that a step could not be stopped in time. */
uint32_t dnn_parts_long(const tn_prepare_ctx *ctx, uint32_t n, double ns, int64_t most);
/* Whether each of `pieces` equal primitives would run far too long. The library's own kernel can be stopped. */
bool dnn_too_long(double ns, uint32_t pieces);
/* A plan of `most` parts, which is ctx's shape state: the plans made from now on are its parts, and each ends with
 * dnn_plan_end. */
tn_status dnn_parts_begin(tn_prepare_ctx *ctx, uint32_t most, double ns, tn_error *err);
/* Called after the parts were made: the plan made between these two calls is the whole, for a step without help. It
 * uses the weights in the form that the parts have. st: the result of making it; on failure, the parts are used
 * instead. */
void dnn_whole_begin(tn_prepare_ctx *ctx);
void dnn_whole_end(tn_prepare_ctx *ctx, tn_status st, tn_error *err);
/* Undoes a failed dnn_parts_begin or plan and clears its error, so that another way can be tried. */
void dnn_plan_undo(tn_prepare_ctx *ctx, tn_error *err);
/* Makes `part` the next part of ctx's shape state, which owns it then. False if that is not a plan of parts. */
bool dnn_parts_add(tn_prepare_ctx *ctx, dnn_plan *part);
tn_status dnn_parts_compute(tn_kernel_ctx *ctx, const dnn_plan *p);
/* Where part i of `parts` begins if n items are divided evenly. */
static inline int64_t dnn_part_begin(int64_t n, int64_t parts, int64_t i)
{
  return n / parts * i + n % parts * i / parts;
}

/* ---- columns.c ---- */

/* As dnn_rows_plan, in parts of some columns each. TN_UNIMPLEMENTED: not this product, or not these threads. */
tn_status dnn_columns_plan(tn_prepare_ctx *ctx, const dnn_epilogue *e, int64_t rows, int64_t k, int64_t n, double ns,
                           tn_error *err);

/* ---- weights.c ---- */

/* Packs the constant input `index` from layout `from` into `to`. TN_FAILED_PRECONDITION: it is not constant. */
tn_status dnn_pack(tn_prepare_ctx *ctx, uint32_t index, const dnnl_memory_desc_t *from, const dnnl_memory_desc_t *to,
                   const void **packed, tn_error *err);

/* ---- winograd.c ---- */

/* A convolution of images with a constant filter of 3 by 3 and steps of 1. TN_UNIMPLEMENTED: not this one. */
tn_status dnn_winograd_plan(tn_prepare_ctx *ctx, const dnn_epilogue *e, const dnn_window *w, const int64_t *x,
                            const int64_t *y, tn_error *err);

/* ---- product.c: rows by a matrix; convolutions of one point are such products, too ---- */

/* Whether float weights [any, n] are as fast unpacked as packed. Packing needs memory of their size. */
bool dnn_rows_plain(int64_t rows, int64_t n);
/* Whether the library's own loops are as fast for a float product by constants. */
bool dnn_product_is_small(int64_t rows, int64_t k, int64_t n);
/* out[rows, n] = in[rows, k] * weights[k, n], inputs 0 and 1, with what follows. */
tn_status dnn_rows_plan(tn_prepare_ctx *ctx, const dnn_epilogue *e, int64_t rows, int64_t k, int64_t n, tn_error *err);

/* ---- kernels, see plugin.c ---- */

tn_status dnn_product_create(const tn_operation *op, void **state, tn_error *err);
tn_status dnn_product_prepare(tn_prepare_ctx *ctx, tn_error *err);
tn_status dnn_conv_create(const tn_operation *op, void **state, tn_error *err);
tn_status dnn_conv_prepare(tn_prepare_ctx *ctx, tn_error *err);
tn_status dnn_gradient_prepare(tn_prepare_ctx *ctx, tn_error *err);
tn_status dnn_pool_create(const tn_operation *op, void **state, tn_error *err);
tn_status dnn_pool_prepare(tn_prepare_ctx *ctx, tn_error *err);
tn_status dnn_pool_gradient_prepare(tn_prepare_ctx *ctx, tn_error *err);
tn_status dnn_softmax_prepare(tn_prepare_ctx *ctx, tn_error *err);
tn_status dnn_lrn_create(const tn_operation *op, void **state, tn_error *err);
tn_status dnn_lrn_prepare(tn_prepare_ctx *ctx, tn_error *err);

#endif
