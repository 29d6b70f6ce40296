/* SPDX-License-Identifier: Apache-2.0 */
/* Variables: tensors that outlive the step. One object for both kinds, VariableV2's, which is passed by reference, and
 * VarHandleOp's; kernels get a scalar handle of it either way.
 *
 * The tensor of a variable is never written while somebody else holds it. Reading hands it out (no copy); changing it
 * in place wants it exclusive and copies it first when a reader still has it. So what was read does not change any
 * more, and a step whose reads are over when it updates allocates nothing.
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

#include <core/base/lock.h>
#include <ops/kernel/resources.h>

extern const tn_resource_class tn__variable_class; /* "Variable"; its objects are tn__variable */

/* name, by_reference, dtype and dims do not change, the tensor is guarded by mu.
 * by_reference  made by VariableV2, Variable or TemporaryVariable: there from the beginning with a dtype and a shape.
 *               One of VarHandleOp counts as there from its first assignment on only. */
typedef struct tn__variable {
  tn__mutex mu;
  tn_tensor *tensor; /* NULL: not initialised */
  tn_tensor *replaced; /* by a copy while it is locked; let go when it is not */
  char *name;
  tn_dtype dtype;    /* declared */
  int32_t rank;      /* declared; -1: not known */
  int64_t *dims;     /* declared; -1: not known */
  bool by_reference;
} tn__variable;

/* ---- making one ---- */

/* What tn__variable_make needs: declared dtype and shape (dims are copied), and a name for messages. */
typedef struct tn__variable_wish {
  const char *name;
  tn_dtype dtype;
  int32_t rank;
  const int64_t *dims;
  bool by_reference;
} tn__variable_wish;

/* For tn_kernel_obtain: `user` is a tn__variable_wish, the object a tn__variable without a value, which the class's
 * destroy frees. TN_RESOURCE_EXHAUSTED. */
tn_status tn__variable_make(void *user, void **object, tn_error *err);

/* ---- one variable; no lock held ---- */

/* The variable behind input i, borrowed as long as the input is. TN_INVALID_ARGUMENT: the input is something else. */
tn_status tn__variable_input(const tn_kernel_ctx *ctx, uint32_t i, tn__variable **out);

/* The value, with a reference for the caller; it does not change any more. TN_FAILED_PRECONDITION names the variable. */
tn_status tn__variable_read(tn__variable *v, tn_tensor **out, tn_error *err);
bool tn__variable_is_set(tn__variable *v);
/* Output 0 is whether the variable behind input 0 has a value. */
tn_status tn__variable_is_set_compute(tn_kernel_ctx *ctx);

/* A new value, of any shape: takes over the caller's reference. NULL: not initialised any more. */
void tn__variable_put(tn__variable *v, tn_tensor *tensor);

/* Input i as the new value, of any shape. Its memory is taken over where that is possible; else its elements are
 * copied, into the memory that the variable has when that is its own and as large. */
tn_status tn__variable_assign(tn__variable *v, tn_kernel_ctx *ctx, uint32_t i);

/* ---- under the lock ---- */

/* Short: nothing is freed and no kernel called while a variable is locked. tn_parallel_for is allowed. */
void tn__variable_lock(tn__variable *v);
void tn__variable_unlock(tn__variable *v);

/* The lock is held. The tensor, borrowed, exclusive: to be changed in place until the lock is given back. A copy has
 * taken its place when somebody held it. TN_RESOURCE_EXHAUSTED; without a value tn__variable_unset_error. */
tn_status tn__variable_edit(tn__variable *v, tn_tensor **out, tn_error *err);

/* What an op says that wants to change a variable without a value: TN_FAILED_PRECONDITION for one that is passed by
 * reference, TN_NOT_FOUND for one of VarHandleOp, as it is not there yet. */
tn_status tn__variable_unset_error(const tn__variable *v, tn_error *err);

/* ---- several variables ---- */

/* Locks the variables behind n inputs, in an order that no two threads can block each other with, and makes their
 * tensors exclusive, as tn__variable_edit does. One that is there twice is locked once and has one tensor in both
 * places.
 * inputs   numbers of the inputs, n of them
 * vars     room for n, for tn__variables_close
 * tensors  room for n: borrowed until they are closed. Their dtypes and shapes are not looked at.
 * On failure nothing is locked. TN_FAILED_PRECONDITION names the first without a value; TN_INVALID_ARGUMENT, an input
 * is no variable; TN_RESOURCE_EXHAUSTED. */
tn_status tn__variables_open(tn_kernel_ctx *ctx, const uint32_t *inputs, uint32_t n, tn__variable **vars,
                             tn_tensor **tensors);
void tn__variables_close(tn__variable *const *vars, tn_tensor **tensors, uint32_t n);

#endif
