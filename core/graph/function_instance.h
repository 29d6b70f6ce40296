/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of functions that are run: for core/plan and core/exec. */
#ifndef TN_CORE_GRAPH_FUNCTION_INSTANCE_H
#define TN_CORE_GRAPH_FUNCTION_INSTANCE_H

#include <core/base/text.h>
#include <core/graph/graph_internal.h>

/* The body of a function as a graph, made for one call. */
typedef struct tn__function_instance {
  tn_graph *graph;        /* a reference; it holds the graph of the call, which holds the library */
  const char *name;       /* of the function. This and all below lies in the graph's arena */
  tn_output *inputs;      /* what is fed: a placeholder of its type for each tensor that it is called with */
  tn_output *outputs;     /* may be inputs, and the same one twice */
  tn_operation **targets; /* what runs whoever reads it: nodes with effects, and those that control outputs name */
  size_t n_inputs, n_outputs, n_targets;
} tn__function_instance;

/* Function k of an operation, as tn_kernel_call counts them; tn_operation_n_functions + k is the gradient of
 * function k: the function that the library names, or else one that is made. Returns TN_INVALID_ARGUMENT (malformed, or
 * does not fit what the call says), TN_NOT_FOUND (the library has no such function), TN_UNIMPLEMENTED (its gradient is
 * not known), TN_RESOURCE_EXHAUSTED. tn__function_instance_fini when done. */
tn_status tn__function_instantiate(const tn_operation *op, uint32_t k, tn__function_instance *out, tn_error *err);
void tn__function_instance_fini(tn__function_instance *instance);

/* The same for a plan that takes the nodes of the body into its own: they have the way through the call in front of
 * their names, and what the arguments are known to be is known in the body: that of the operation's inputs, or, for
 * what goes round in a loop, of its outputs. */
tn_status tn__function_inline(const tn_operation *op, uint32_t k, bool as_outputs, tn__function_instance *out,
                              tn_error *err);

/* Function k before anybody makes it; NULL when there is none that could be called as it is. */
typedef struct tn__function_facts {
  const void *identity;  /* of the function */
  size_t n_nodes;        /* of its body */
  size_t n_library;      /* of all bodies of the library, and of the graph */
} tn__function_facts;
bool tn__function_look(const tn_operation *op, uint32_t k, tn__function_facts *out);

/* Where the library names no gradient: makes the body of a function that of its gradient, which takes the gradients of
 * all outputs as further arguments and gives those of all arguments. Set by those who know the ops; NULL: nobody does.
 */
extern tn_status (*_Atomic tn__function_differentiate)(tn__function_instance *f, tn_error *err);
/* New arguments, all of them placeholders, and results; copied. */
tn_status tn__function_set_signature(tn__function_instance *f, const tn_output *inputs, size_t n_inputs,
                                     const tn_output *outputs, size_t n_outputs, tn_error *err);

/* What tells this function with its attributes from others of the same library: bytes for keys. The same failures. */
tn_status tn__function_key(const tn_operation *op, uint32_t k, tn__text *key, tn_error *err);

/* "call/", or "loop/body/" and "switch/branches.2/" for an operation with several functions. */
void tn__function_path(const tn_operation *op, uint32_t k, tn__text *path);

#endif
