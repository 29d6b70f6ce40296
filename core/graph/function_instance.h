/* SPDX-License-Identifier: Apache-2.0 */
/* Function bodies that are run, for core/compile and core/exec. */
#ifndef TN_CORE_GRAPH_FUNCTION_INSTANCE_H
#define TN_CORE_GRAPH_FUNCTION_INSTANCE_H

#include <core/base/text.h>
#include <core/graph/graph_internal.h>

/* The body of a function as a graph, made for one call. */
typedef struct tn__function_instance {
  tn_graph *graph;        /* a reference; keeps the graph of the call alive, and with it the library */
  const char *name;       /* of the function. This and all below are in the graph's arena */
  tn_output *inputs;      /* to be fed: one placeholder output for each argument tensor */
  tn_output *outputs;     /* an output may be an input, and may occur twice */
  tn_operation **targets; /* nodes that run even if unread: those with side effects, and control outputs */
  size_t n_inputs, n_outputs, n_targets;
} tn__function_instance;

/* Makes the body of function k of an operation, numbered as in tn_kernel_call. tn_operation_n_functions + k is the
 * gradient of function k: the one that the library names, else one that is derived. Returns TN_INVALID_ARGUMENT (the
 * function is malformed, or does not fit the call), TN_NOT_FOUND (the library has no such function), TN_UNIMPLEMENTED
 * (the gradient cannot be derived), TN_RESOURCE_EXHAUSTED. Call tn__function_instance_fini when done. */
tn_status tn__function_instantiate(const tn_operation *op, uint32_t k, tn__function_instance *out, tn_error *err);
void tn__function_instance_fini(tn__function_instance *instance);

/* Like tn__function_instantiate, for a plan that inlines the body. Node names are prefixed with the path of the call
 * (tn__function_path), and the body gets the known facts of the arguments: those of the operation's inputs, or, if
 * `as_outputs` (loop variables), those of its outputs. */
tn_status tn__function_inline(const tn_operation *op, uint32_t k, bool as_outputs, tn__function_instance *out,
                              tn_error *err);

/* Facts of function k that are available before its body is made. False: it cannot be inlined (no such function, a
 * derived gradient, or the operation's name is too long). */
typedef struct tn__function_facts {
  const void *identity; /* the same for the same function of a library */
  size_t n_nodes;       /* in its body */
  size_t n_library;     /* nodes in all bodies of the library and in the graph */
} tn__function_facts;
bool tn__function_look(const tn_operation *op, uint32_t k, tn__function_facts *out);

/* Derives a gradient that the library does not name: turns the body of a function into that of its gradient, which
 * takes the gradients of all outputs as additional arguments and returns those of all arguments. Set by the room that
 * knows the ops; NULL: none has set it. */
extern tn_status (*_Atomic tn__function_differentiate)(tn__function_instance *f, tn_error *err);
/* Replaces the arguments (all placeholders) and results of an instance by copies of these. */
tn_status tn__function_set_signature(tn__function_instance *f, const tn_output *inputs, size_t n_inputs,
                                     const tn_output *outputs, size_t n_outputs, tn_error *err);

/* Appends bytes that identify function k with its attribute values within its library: equal keys, equal bodies. Fails
 * like tn__function_instantiate. */
tn_status tn__function_key(const tn_operation *op, uint32_t k, tn__text *key, tn_error *err);

/* Appends "call/", or for an operation with several functions "loop/body/", "switch/branches.2/". */
void tn__function_path(const tn_operation *op, uint32_t k, tn__text *path);

#endif
