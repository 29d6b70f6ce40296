/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites: how an op file tells the planner that some nodes have a cheaper form.
 *
 * A rewrite stands in its family's table beside the ops and kernels and belongs to a pass, by whose name it is switched
 * off. While a signature is compiled at level 1 the pass calls it for each node of its op: it looks at the node and, through
 * inputs, at those in front of it, makes new nodes, and puts their outputs in the place of the old ones. What nobody needs
 * any more is taken away by the planner. Nothing of the program's graph changes.
 *
 * Nodes and values are numbers that are valid during the compilation. A value is an output of a node, a feed or a constant.
 * A node is offered again, with the new ones, until no rewrite of the pass changes anything.
 * Since 0.1 */
#ifndef TENON_REWRITE_H
#define TENON_REWRITE_H

#include <tenon/op.h>

TN_BEGIN_DECLS

#define TN_NO_NODE UINT32_MAX

/* pass   "algebra", "batch_norm", "fuse", ... (`tenon plan --passes` lists those that there are)
 * name   for reports, as "conv_bias_activation"
 * op     type of the node at which it begins: the last one of those that it replaces
 * apply  changes nothing, or puts something equal in the place of node's outputs. Errors other than TN_RESOURCE_EXHAUSTED
 *        mean that the rewrite does not fit. */
struct tn_rewrite_def {
  size_t struct_size;
  const char *pass;
  const char *name;
  const char *op;
  tn_status (*apply)(tn_rewriter *rw, uint32_t node, tn_error *err);
};
#define TN_REWRITE_DEF_SIZE TN_SIZE_TO(tn_rewrite_def, apply)

#ifndef TN_PLUGIN
/* The operation of a node, for its type and attributes; its inputs are those of the program's graph and may be outdated. */
TN_API const tn_operation *tn_rewrite_operation(const tn_rewriter *rw, uint32_t node);
TN_API tn_bool tn_rewrite_is(const tn_rewriter *rw, uint32_t node, const char *op); /* false for TN_NO_NODE, too */
TN_API uint32_t tn_rewrite_n_inputs(const tn_rewriter *rw, uint32_t node);
TN_API uint32_t tn_rewrite_input(const tn_rewriter *rw, uint32_t node, uint32_t i);  /* value */
TN_API uint32_t tn_rewrite_output(const tn_rewriter *rw, uint32_t node, uint32_t i); /* value */

/* The node that makes a value, TN_NO_NODE for a feed or a constant. Only nodes that may be replaced or looked through are
 * given: those with control edges or effects are TN_NO_NODE, too. *index, when not NULL: which output it is. */
TN_API uint32_t tn_rewrite_producer(const tn_rewriter *rw, uint32_t value, uint32_t *index);
/* How often a value is read, by nodes and as a fetch. 1: whoever asks is the only reader. */
TN_API uint32_t tn_rewrite_n_uses(const tn_rewriter *rw, uint32_t value);
/* NULL when it is none; borrowed. Asking for a large one costs its memory while the plan is made: where only the shape
 * matters, tn_rewrite_is_constant and tn_rewrite_shape say as much. */
TN_API const tn_tensor *tn_rewrite_constant(const tn_rewriter *rw, uint32_t value);
/* A reference to a constant with its elements, for a look at a large one: the planner keeps nothing of it. *out NULL, and TN_OK,
 * when the value is no constant. Errors: RESOURCE_EXHAUSTED, and why the elements cannot be read again. */
TN_API tn_status tn_rewrite_elements(const tn_rewriter *rw, uint32_t value, tn_tensor **out, tn_error *err);
TN_API tn_bool tn_rewrite_is_constant(const tn_rewriter *rw, uint32_t value);
TN_API tn_dtype tn_rewrite_dtype(const tn_rewriter *rw, uint32_t value);
/* What is known of its shape before any step, as in tn_output_shape; dims has room for TN_MAX_RANK. Returns the rank. */
TN_API int32_t tn_rewrite_shape(const tn_rewriter *rw, uint32_t value, int64_t *dims);

/* Begins a node of this op; `like` lends its name (for messages) and device. Attributes are set by tn_operation_set_...,
 * inputs are given to tn_rewrite_finish, which frees the builder. NULL only when there is no memory. */
TN_API tn_operation_builder *tn_rewrite_begin(tn_rewriter *rw, const char *op, uint32_t like);
/* Copies attributes by name ("strides padding dilations") from a node; those that it does not have are left out. */
TN_API void tn_rewrite_copy_attrs(tn_rewriter *rw, tn_operation_builder *b, uint32_t node, const char *names);
/* New nodes go in front of this one, instead of the one that the rewrite was called for: needed where a value that is
 * replaced is made earlier, since its readers may stand in between. All that new nodes read must be made before it. */
TN_API void tn_rewrite_place(tn_rewriter *rw, uint32_t node);
/* Adds the node at its place, and frees the builder, also on failure. The first
 * list_first inputs stand alone, the others are one list argument; TN_NO_LIST: there is none. */
TN_API tn_status tn_rewrite_finish(tn_rewriter *rw, tn_operation_builder *b, const uint32_t *inputs, uint32_t n,
                                   uint32_t list_first, uint32_t *node, tn_error *err);
/* The same for a node with constant inputs only, computed now: *value is its output 0, a constant, or TN_NO_NODE when its
 * kernel refuses. Better than tn_rewrite_add_constant for what is large: the library can compute it again, and lets the
 * elements go when kernels have forms of their own. */
TN_API tn_status tn_rewrite_compute(tn_rewriter *rw, tn_operation_builder *b, const uint32_t *inputs, uint32_t n,
                                    uint32_t *value, tn_error *err);
#define TN_NO_LIST UINT32_MAX
/* A new constant; adds a reference, the tensor must not change afterwards. */
TN_API tn_status tn_rewrite_add_constant(tn_rewriter *rw, tn_tensor *tensor, uint32_t *value, tn_error *err);
/* All that read `from` read `to` from now on: same dtype, same elements, same shape. */
TN_API void tn_rewrite_replace(tn_rewriter *rw, uint32_t from, uint32_t to);
#endif

TN_END_DECLS

#endif
