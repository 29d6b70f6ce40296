/* SPDX-License-Identifier: Apache-2.0 */
/* Common code of resource ops: the container and name of a node's resource, and lookup of the resource behind a
 * handle. */
#ifndef TN_OPS_KERNEL_RESOURCES_H
#define TN_OPS_KERNEL_RESOURCES_H

#include <ops/kernel/shapes.h>
#include <tenon/resource.h>

/* A kernel's state: the node's attributes `container` and `shared_name`, read once. An empty shared_name stands for the
 * node's name. */
typedef struct tn__resource_place {
  const char *container, *name; /* owned */
  const tn_operation *op;
} tn__resource_place;

/* Initialises a place that is embedded in a larger state. */
tn_status tn__resource_place_init(tn__resource_place *place, const tn_operation *op, tn_error *err);
void tn__resource_place_fini(tn__resource_place *place);

/* Looks up the object behind input i, a handle of this class. The object is borrowed for as long as the input is.
 * *resource (NULL allowed) receives its resource. TN_INVALID_ARGUMENT if input i is anything else. */
tn_status tn__resource_input(const tn_kernel_ctx *ctx, uint32_t i, const tn_resource_class *cls, void **object,
                             tn_resource **resource);

/* For `prepare`: declares output i as a scalar handle. For `compute`: stores the handle; takes over the caller's
 * reference, also on failure. */
tn_status tn__prepare_handle(tn_prepare_ctx *ctx, uint32_t i, tn_error *err);
tn_status tn__give_handle(tn_kernel_ctx *ctx, uint32_t i, tn_resource *resource);

#endif
