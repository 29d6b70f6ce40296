/* SPDX-License-Identifier: Apache-2.0 */
/* Variables: tensors that outlive the step. One object serves both kinds, VariableV2's, which is
 * passed by reference, and VarHandleOp's; kernels get a scalar handle for either.
 *
 * A variable's tensor is never written while it has another holder. Reading returns the tensor
 * itself, not a copy. A change in place requires exclusive ownership, and copies the tensor first
 * if a reader still holds it. So a tensor once read never changes, and a step that updates after
 * its reads have finished allocates nothing.
 *
 * An op that changes several variables, as training ops do:
 *
 *   static const uint32_t which[] = { 0, 1 };          the inputs that are handles
 *   tn__variable *vars[2];
 *   tn_tensor *tensors[2];
 *   tn_status st = tn__variables_open(ctx, which, 2, vars, tensors);
 *   if (st != TN_OK) return st;
 *   ... check shapes, then write tn_tensor_data(tensors[k]) ...
 *   tn__variables_close(vars, tensors, 2);             also after an error */
#ifndef TN_OPS_STATE_VARIABLE_VARIABLE_H
#define TN_OPS_STATE_VARIABLE_VARIABLE_H

#include <core/base/threads/lock.h>
#include <ops/kernel/resources.h>

extern const tn_resource_class tn__variable_class; /* "Variable"; its objects are tn__variable */

/* name, by_reference, dtype and dims are immutable; the tensor is guarded by mu.
 * by_reference  created by VariableV2, Variable or TemporaryVariable: exists from the start, with a dtype and a shape.
 *               A variable of VarHandleOp exists only from its first assignment on. */
typedef struct tn__variable {
  tn__mutex mu;
  tn_tensor *tensor; /* NULL: not initialised */
  /* Replaced by a copy while locked; released after unlocking. */
  tn_tensor *replaced;
  char *name;
  tn_dtype dtype;    /* declared */
  int32_t rank;      /* declared; -1: unknown */
  int64_t *dims;     /* declared; -1: unknown */
  bool by_reference;
} tn__variable;

/* ---- creation ---- */

/* Arguments of tn__variable_create: declared dtype and shape (dims are copied), and a name for error
 * messages. */
typedef struct tn__variable_wish {
  const char *name;
  tn_dtype dtype;
  int32_t rank;
  const int64_t *dims;
  bool by_reference;
} tn__variable_wish;

/* For tn_kernel_obtain. `user` is a tn__variable_wish. The object is a tn__variable without a
 * value, freed by the destroy function of the class. TN_RESOURCE_EXHAUSTED. */
tn_status tn__variable_create(void *user, void **object, tn_error *err);

/* ---- shapes known before a step (declared.c) ---- */

/* The shape that a node's handle, its input i, declares: *dims is an attribute of the VarHandleOp. Returns the rank,
 * -1 if the shape is not fully declared or the handle comes from elsewhere, such as a function's argument. */
int32_t tn__handle_declared(const tn_operation *op, size_t i, const int64_t **dims);
/* The same, but -1 also if the graph may assign a value of another shape. Shape functions give this shape to values
 * that are read, so kernels check it: another graph may have assigned one. */
int32_t tn__handle_shape(const tn_operation *op, size_t i, const int64_t **dims);
/* TN_INVALID_ARGUMENT if the value of a variable has another shape; rank -1: any will do. */
tn_status tn__variable_check_shape(const tn__variable *v, const tn_tensor *value, const int64_t *dims, int32_t rank,
                                   tn_error *err);

/* ---- one variable; no lock held ---- */

/* The variable of input i, borrowed as long as the input. TN_INVALID_ARGUMENT: the input is
 * something else. */
tn_status tn__variable_input(const tn_kernel_ctx *ctx, uint32_t i, tn__variable **out);

/* The value, as a reference owned by the caller; it is immutable. TN_FAILED_PRECONDITION if there
 * is none; the error names the variable. */
tn_status tn__variable_read(tn__variable *v, tn_tensor **out, tn_error *err);
bool tn__variable_is_set(tn__variable *v);
/* Sets output 0 to whether the variable of input 0 has a value. */
tn_status tn__variable_is_set_compute(tn_kernel_ctx *ctx);

/* Sets the value, of any shape; takes over the caller's reference. NULL makes the variable
 * uninitialised. */
void tn__variable_put(tn__variable *v, tn_tensor *tensor);

/* Sets the value to input i, of any shape. Takes over the input's memory if possible; otherwise
 * copies the elements, into the variable's current memory if it owns that and it has the same size. */
tn_status tn__variable_assign(tn__variable *v, tn_kernel_ctx *ctx, uint32_t i);

/* ---- under the lock ---- */

/* Hold the lock briefly: free nothing and call no kernel meanwhile. tn_parallel_for is allowed. */
void tn__variable_lock(tn__variable *v);
void tn__variable_unlock(tn__variable *v);

/* Requires the lock. Returns the tensor, borrowed and exclusive, to be changed in place until the
 * variable is unlocked. If it has another holder, it is replaced by a copy. TN_RESOURCE_EXHAUSTED;
 * without a value tn__variable_unset_error. */
tn_status tn__variable_edit(tn__variable *v, tn_tensor **out, tn_error *err);

/* The error for changing a variable without a value: TN_FAILED_PRECONDITION for a variable passed
 * by reference, TN_NOT_FOUND for one of VarHandleOp, which does not exist yet. */
tn_status tn__variable_unset_error(const tn__variable *v, tn_error *err);

/* ---- several variables ---- */

/* Locks the variables of n inputs, in a global order that prevents deadlock, and makes their tensors exclusive, as
 * tn__variable_edit does. A repeated variable is locked once and has the same tensor in each place.
 * inputs   n input numbers
 * vars     room for n, for tn__variables_close
 * tensors  room for n: borrowed until they are closed. Their dtypes and shapes are not checked.
 * On failure nothing is locked. TN_FAILED_PRECONDITION names the first variable without a value;
 * TN_INVALID_ARGUMENT: an input is no variable; TN_RESOURCE_EXHAUSTED. */
tn_status tn__variables_open(tn_kernel_ctx *ctx, const uint32_t *inputs, uint32_t n, tn__variable **vars,
                             tn_tensor **tensors);
void tn__variables_close(tn__variable *const *vars, tn_tensor **tensors, uint32_t n);

#endif
