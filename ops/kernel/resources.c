/* SPDX-License-Identifier: Apache-2.0 */
/* Common code of resource ops. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <core/graph/graph_internal.h>
#include <ops/kernel/resources.h>

#include <string.h>

/* Returns a copy of a string attribute, cut at its first zero byte; NULL if out of memory. If the node lacks the
 * attribute, the copy is "". */
static char *attr_text(const tn_operation *op, const char *name)
{
  const char *text = "";
  size_t length = 0;
  if (tn_operation_attr_kind(op, name) == 0 || tn_operation_attr_string(op, name, &text, &length, NULL) != TN_OK)
    length = 0;
  length = strnlen(text, length);
  char *copy = tn__alloc(length + 1);
  if (copy == NULL) return NULL;
  if (length > 0) memcpy(copy, text, length);
  copy[length] = 0;
  return copy;
}

void tn__resource_place_fini(tn__resource_place *place)
{
  tn__strfree((char *)place->container);
  tn__strfree((char *)place->name);
  *place = (tn__resource_place){ .op = NULL };
}

tn_status tn__resource_place_init(tn__resource_place *place, const tn_operation *op, tn_error *err)
{
  *place =
      (tn__resource_place){ .container = attr_text(op, "container"), .name = attr_text(op, "shared_name"), .op = op };
  if (place->name != NULL && place->name[0] == 0) {
    tn__strfree((char *)place->name);
    place->name = tn__strdup(tn__operation_own_name(op));
  }
  if (place->container != NULL && place->name != NULL) return TN_OK;
  tn__resource_place_fini(place);
  return tn__no_memory(err, "kernel", sizeof *place);
}

tn_status tn__resource_input(const tn_kernel_ctx *ctx, uint32_t i, const tn_resource_class *cls, void **object,
                             tn_resource **resource)
{
  const tn_view *v = ctx->inputs[i];
  tn_handle *h = v->count == 1 && v->dtype == TN_RESOURCE ? *(tn_handle *const *)v->data : NULL;
  tn_resource *r = tn_handle_resource(h);
  *object = NULL;
  if (resource != NULL) *resource = r;
  if (r != NULL && tn_resource_class_of(r) == cls) {
    *object = tn_resource_object(r);
    return TN_OK;
  }
  if (r == NULL)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "input %u is not a handle of a %s", i, cls->name);
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "input %u is a handle of %s '%s', wanted a %s", i,
                      tn_resource_class_of(r)->name, tn_resource_name(r), cls->name);
}

tn_status tn__prepare_handle(tn_prepare_ctx *ctx, uint32_t i, tn_error *err)
{
  return tn_prepare_output(ctx, i, NULL, 0, err);
}

tn_status tn__give_handle(tn_kernel_ctx *ctx, uint32_t i, tn_resource *resource)
{
  tn_handle **place = ctx->outputs[i]->data, *old = *place;
  *place = tn_resource_handle(resource);
  if (old != NULL) old->cls->unref(old);
  return TN_OK;
}
