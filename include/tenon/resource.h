/* SPDX-License-Identifier: Apache-2.0 */
/* Resources: objects that outlive the step that created them (variables, queues, tables, ...). They
 * are stored in containers, by name.
 *
 * Containers belong to a session factory and are shared by its sessions, unless a session is
 * isolated. A reset gives a container a new generation: steps that had begun still see the old
 * content, which is freed with the last session that uses the old generation. Since 0.1, S-RST */
#ifndef TENON_RESOURCE_H
#define TENON_RESOURCE_H

#include <tenon/op.h>

TN_BEGIN_DECLS

/* The container of resources that name none. It can be listed and reset by this name (S-RST-16). */
#define TN_DEFAULT_CONTAINER "localhost"

/* A container that belongs to one session: for resources without a name of their own, which could
 * be mistaken for another session's. A reset that lists it does nothing. */
#define TN_SESSION_CONTAINER "<session>"

/* The container of one step, emptied when it ends (S-RST-22). */
#define TN_STEP_CONTAINER "<step>"

/* A class of resources, identified by its address.
 * name     for messages: "Variable"
 * destroy  frees an object after its last holder is released. Any thread, no lock of the library
 *          held.
 * read     the value of an object, used if an op takes the value instead of a reference: a tensor
 *          that does not change any more, with a reference for the caller. NULL: it has no value.
 *          Any thread.
 * write    replaces the value of an object without a step, as a restore does. Takes over the
 *          caller's reference to the tensor, which does not change any more; the caller has checked
 *          dtype and shape. NULL: it cannot be written. Any thread. Since 0.1 */
struct tn_resource_class {
  size_t struct_size;
  const char *name;
  void (*destroy)(void *object);
  tn_status (*read)(void *object, tn_tensor **out, tn_error *err);
  void (*write)(void *object, tn_tensor *value);
};

/* Reference counting; NULL is allowed. Any thread. */
TN_API tn_resource *tn_resource_ref(tn_resource *resource);
TN_API void tn_resource_unref(tn_resource *resource);
/* Properties of a resource; borrowed while the caller holds the resource. */
TN_API void *tn_resource_object(const tn_resource *resource);
TN_API const char *tn_resource_name(const tn_resource *resource);
TN_API const tn_resource_class *tn_resource_class_of(const tn_resource *resource);

/* Creates a resource in no container, with one holder. Takes ownership of the object, also on
 * failure. Returns TN_RESOURCE_EXHAUSTED. Any thread. */
TN_API tn_status tn_resource_create(const tn_resource_class *cls, const char *name, void *object, tn_resource **out,
                                    tn_error *err);
/* False once the resource was removed from its container. */
TN_API tn_bool tn_resource_is_alive(const tn_resource *resource);

/* ---- handles ---- */

/* An element of dtype resource that refers to a resource holds it. So does a value passed by
 * reference (an output "Ref(T)"), which kernels see as a scalar of dtype resource. */
TN_API tn_handle *tn_resource_handle(tn_resource *resource); /* the resource as an element: same
                                                              * pointer, no new holder */
TN_API tn_resource *tn_handle_resource(tn_handle *handle);   /* borrowed; NULL if it is not a resource */

/* ---- in compute ---- */

/* Each returns a reference. container: NULL or "" is the default one. Kernels name a resource by
 * their attribute shared_name, or by the node if that is empty. Returns TN_INVALID_ARGUMENT if a
 * resource of this name has another class (S-RST-21); TN_FAILED_PRECONDITION if there are no
 * containers here, or if they were reset and their last other user is gone. */
/* Returns the existing resource, or a new one with the object that `make` creates (called outside
 * all locks; if two threads create it at once, one object is destroyed). The library caches the
 * result with the node, so that calling this in each step is cheap. */
TN_API tn_status tn_kernel_obtain(tn_kernel_ctx *ctx, const char *container, const char *name,
                                  const tn_resource_class *cls,
                                  tn_status (*make)(void *user, void **object, tn_error *err), void *user,
                                  tn_resource **out);
/* TN_NOT_FOUND if there is no such resource. */
TN_API tn_status tn_kernel_lookup(tn_kernel_ctx *ctx, const char *container, const char *name,
                                  const tn_resource_class *cls, tn_resource **out);
/* Removes a resource from its container; its holders may continue to use it. TN_NOT_FOUND if it is
 * in no container. */
TN_API tn_status tn_kernel_remove(tn_kernel_ctx *ctx, tn_resource *resource);

TN_END_DECLS

#ifdef TN_PLUGIN
#include <tenon/host.h>
#endif
#endif
