/* SPDX-License-Identifier: Apache-2.0 */
/* Resources: objects that outlive the step that made them (variables, queues, tables, ...). They live in containers, by name.
 *
 * Containers belong to a session factory and are shared by its sessions, unless a session is isolated. A reset gives a
 * container a new generation: what was in it stays with the steps that had begun, and goes with the last session that sees
 * the old one. Since 0.1, S-RST */
#ifndef TENON_RESOURCE_H
#define TENON_RESOURCE_H

#include <tenon/op.h>

TN_BEGIN_DECLS

/* Where a resource is that names no container. It can be listed and reset by this name (S-RST-16). */
#define TN_DEFAULT_CONTAINER "localhost"

/* The container of one session, shared with no other: what has no name of its own and would be mistaken for another's. A
 * reset that lists it does nothing. */
#define TN_SESSION_CONTAINER "<session>"

/* The container of one step, emptied when it ends (S-RST-22). */
#define TN_STEP_CONTAINER "<step>"

/* A kind of resource. Two classes are the same when they have one address.
 * name     for messages: "Variable"
 * destroy  frees an object, with its last holder. Any thread, no lock of the library held.
 * read     what an object is worth where an op takes its value and not the reference to it: a tensor that does not change
 *          any more, with a reference for the caller. NULL: it has no value. Any thread. */
struct tn_resource_class {
  size_t struct_size;
  const char *name;
  void (*destroy)(void *object);
  tn_status (*read)(void *object, tn_tensor **out, tn_error *err);
};

/* Holders are counted; NULL is allowed. Any thread. */
TN_API tn_resource *tn_resource_ref(tn_resource *resource);
TN_API void tn_resource_unref(tn_resource *resource);
/* What it is; borrowed, as long as the resource is held. */
TN_API void *tn_resource_object(const tn_resource *resource);
TN_API const char *tn_resource_name(const tn_resource *resource);
TN_API const tn_resource_class *tn_resource_class_of(const tn_resource *resource);

/* A resource in no container, with one holder; takes the object over, also on failure. TN_RESOURCE_EXHAUSTED. Any thread. */
TN_API tn_status tn_resource_create(const tn_resource_class *cls, const char *name, void *object, tn_resource **out,
                                    tn_error *err);
/* False once it was removed from its container. */
TN_API tn_bool tn_resource_is_alive(const tn_resource *resource);

/* ---- handles ---- */

/* An element of dtype resource that stands for a resource holds it; so does what an op passes by reference (an output
 * "Ref(T)"), which kernels see as a scalar of dtype resource. */
TN_API tn_handle *tn_resource_handle(tn_resource *resource); /* the resource as an element: the same pointer, no new holder */
TN_API tn_resource *tn_handle_resource(tn_handle *handle);   /* borrowed; NULL when it is no resource */

/* ---- in compute ---- */

/* Each gives a reference. container: NULL or "" is the default one. Kernels name a resource by their attribute shared_name,
 * or by the node where that is empty. TN_INVALID_ARGUMENT: there is one of this name and another class (S-RST-21);
 * TN_FAILED_PRECONDITION: there are no containers here, or they were reset and nobody else is left who saw them. */
/* The one that is there, or a new one of the object that `make` gives (outside all locks; of two that are made at once one is
 * destroyed again). The library remembers it with the node, so that it is cheap to ask in each step. */
TN_API tn_status tn_kernel_obtain(tn_kernel_ctx *ctx, const char *container, const char *name,
                                  const tn_resource_class *cls,
                                  tn_status (*make)(void *user, void **object, tn_error *err), void *user,
                                  tn_resource **out);
/* TN_NOT_FOUND: there is none. */
TN_API tn_status tn_kernel_lookup(tn_kernel_ctx *ctx, const char *container, const char *name,
                                  const tn_resource_class *cls, tn_resource **out);
/* Takes a resource out of the container that it is in; who holds it may use it on. TN_NOT_FOUND: it is in none. */
TN_API tn_status tn_kernel_remove(tn_kernel_ctx *ctx, tn_resource *resource);

TN_END_DECLS

#ifdef TN_PLUGIN
#include <tenon/host.h>
#endif
#endif
