/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites: an op file tells the planner how to replace some nodes by a cheaper form.
 *
 * A rewrite is listed in its family's table beside the ops and kernels. It belongs to a pass and is
 * disabled with it. When a signature is compiled at level 1, the pass calls the rewrite for each
 * node of its op. The rewrite examines the node and, through its inputs, the nodes before it, makes
 * new nodes, and replaces the old outputs by theirs. The planner removes nodes that are no longer
 * needed. The program's graph does not change.
 *
 * Nodes and values are indices, valid during the compilation. A value is an output of a node, a
 * feed or a constant. The nodes, including new ones, are visited again until no rewrite of the pass
 * changes anything.
 * Since 0.1 */
#ifndef TENON_REWRITE_H
#define TENON_REWRITE_H

#include <tenon/op.h>

TN_BEGIN_DECLS

#define TN_NO_NODE UINT32_MAX

/* pass   "algebra", "batch_norm", "fuse", ... (`tenon plan --passes` lists them)
 * name   for reports, for example "conv_bias_activation"
 * op     type of the node at which it starts: the last one of those that it replaces
 * apply  changes nothing, or replaces the node's outputs by equal ones. Errors other than
 *        TN_RESOURCE_EXHAUSTED mean that the rewrite does not apply. */
struct tn_rewrite_def {
  size_t struct_size;
  const char *pass;
  const char *name;
  const char *op;
  tn_status (*apply)(tn_rewriter *rw, uint32_t node, tn_error *err);
};
#define TN_REWRITE_DEF_SIZE TN_SIZE_TO(tn_rewrite_def, apply)

#ifndef TN_PLUGIN
/* The operation of a node, for its type and attributes; its inputs are those of the program's graph
 * and may be outdated. */
TN_API const tn_operation *tn_rewrite_operation(const tn_rewriter *rw, uint32_t node);
TN_API tn_bool tn_rewrite_is(const tn_rewriter *rw, uint32_t node, const char *op); /* false also for TN_NO_NODE */
TN_API uint32_t tn_rewrite_n_inputs(const tn_rewriter *rw, uint32_t node);
TN_API uint32_t tn_rewrite_input(const tn_rewriter *rw, uint32_t node, uint32_t i);  /* value */
TN_API uint32_t tn_rewrite_output(const tn_rewriter *rw, uint32_t node, uint32_t i); /* value */

/* Whether the session's runtime has no devices but CPUs. If it has, do not make nodes that only a CPU
 * has kernels for. */
TN_API tn_bool tn_rewrite_cpu_only(const tn_rewriter *rw);

/* The session's option `weights`: TN_FLOAT, TN_BFLOAT16 or TN_INT8. Since 0.1 */
TN_API tn_dtype tn_rewrite_weights(const tn_rewriter *rw);

/* The node that computes a value, TN_NO_NODE for a feed or a constant. Only nodes that may be
 * replaced or looked through are returned: TN_NO_NODE also for nodes with control edges or effects.
 * *index, if not NULL, receives the output number. */
TN_API uint32_t tn_rewrite_producer(const tn_rewriter *rw, uint32_t value, uint32_t *index);
/* Number of reads of a value, by nodes and as a fetch. 1: the caller's node is the only reader. */
TN_API uint32_t tn_rewrite_n_uses(const tn_rewriter *rw, uint32_t value);
/* The constant tensor of a value, borrowed; NULL if the value is not a constant. Reading a large
 * constant uses memory for it while the plan is made: if only the shape matters, use
 * tn_rewrite_is_constant and tn_rewrite_shape. */
TN_API const tn_tensor *tn_rewrite_constant(const tn_rewriter *rw, uint32_t value);
/* A reference to a constant with its elements, to examine a large one: the planner does not retain
 * it. If the value is not a constant, TN_OK and *out is NULL. Returns TN_RESOURCE_EXHAUSTED, or the
 * reason why the elements cannot be read again. */
TN_API tn_status tn_rewrite_elements(const tn_rewriter *rw, uint32_t value, tn_tensor **out, tn_error *err);
TN_API tn_bool tn_rewrite_is_constant(const tn_rewriter *rw, uint32_t value);
TN_API tn_dtype tn_rewrite_dtype(const tn_rewriter *rw, uint32_t value);
/* The shape of a value as far as known before any step, as in tn_output_shape; dims has room for
 * TN_MAX_RANK. Returns the rank. */
TN_API int32_t tn_rewrite_shape(const tn_rewriter *rw, uint32_t value, int64_t *dims);

/* Begins a node of this op; the node takes the name (for messages) and device of `like`. Set
 * attributes with tn_operation_set_...; pass inputs to tn_rewrite_finish, which frees the builder.
 * NULL only if there is no memory. */
TN_API tn_operation_builder *tn_rewrite_begin(tn_rewriter *rw, const char *op, uint32_t like);
/* Copies attributes by name ("strides padding dilations") from a node; attributes that it lacks are
 * skipped. */
TN_API void tn_rewrite_copy_attrs(tn_rewriter *rw, tn_operation_builder *b, uint32_t node, const char *names);
/* Places new nodes before this one instead of the one that the rewrite was called for. Needed if a
 * replaced value is computed earlier, since its readers may be in between. All inputs of new nodes
 * must be computed before it. */
TN_API void tn_rewrite_place(tn_rewriter *rw, uint32_t node);
/* Adds the node at its place and frees the builder, also on failure. The first list_first inputs
 * are single arguments, the others form one list argument; TN_NO_LIST: there is no list. */
TN_API tn_status tn_rewrite_finish(tn_rewriter *rw, tn_operation_builder *b, const uint32_t *inputs, uint32_t n,
                                   uint32_t list_first, uint32_t *node, tn_error *err);
/* The same for a node with constant inputs only, computed now: *value is its output 0, a constant,
 * or TN_NO_NODE if its kernel refuses. For large constants prefer it to tn_rewrite_add_constant:
 * the library can recompute the value, and frees the elements once kernels have packed forms of
 * their own. */
TN_API tn_status tn_rewrite_compute(tn_rewriter *rw, tn_operation_builder *b, const uint32_t *inputs, uint32_t n,
                                    uint32_t *value, tn_error *err);
#define TN_NO_LIST UINT32_MAX
/* Adds a constant. Takes a reference; the tensor must not change afterwards. */
TN_API tn_status tn_rewrite_add_constant(tn_rewriter *rw, tn_tensor *tensor, uint32_t *value, tn_error *err);
/* Makes all readers of `from` read `to` instead: same dtype, same elements, same shape. */
TN_API void tn_rewrite_replace(tn_rewriter *rw, uint32_t from, uint32_t to);
#endif

TN_END_DECLS

#endif
