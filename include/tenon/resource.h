/* SPDX-License-Identifier: Apache-2.0 */
/* Resources: objects that outlive the step that made them (variables, queues, tables, ...). They live in containers, by name.
 *
 * Containers belong to a session factory and are shared by its sessions, unless a session is isolated. A reset gives a
 * container a new generation: what was in it stays with the steps that had begun, and goes with the last session that sees
 * the old one. Since 0.1, S-RST */
#ifndef TENON_RESOURCE_H
#define TENON_RESOURCE_H

#include <tenon/status.h>

TN_BEGIN_DECLS

/* Where a resource is that names no container. It can be listed and reset by this name (S-RST-16). */
#define TN_DEFAULT_CONTAINER "localhost"

typedef struct tn_resource tn_resource;

/* A kind of resource. Two classes are the same when they have one address.
 * name     for messages: "Variable"
 * destroy  frees an object, with its last holder. Any thread, no lock of the library held. */
typedef struct tn_resource_class {
  size_t struct_size;
  const char *name;
  void (*destroy)(void *object);
} tn_resource_class;

/* Holders are counted; NULL is allowed. Any thread. */
TN_API tn_resource *tn_resource_ref(tn_resource *resource);
TN_API void tn_resource_unref(tn_resource *resource);
/* What it is; borrowed, as long as the resource is held. */
TN_API void *tn_resource_object(const tn_resource *resource);
TN_API const char *tn_resource_name(const tn_resource *resource);
TN_API const tn_resource_class *tn_resource_class_of(const tn_resource *resource);

TN_END_DECLS

#endif
