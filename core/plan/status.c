/* SPDX-License-Identifier: Apache-2.0 */
/* Completes the errors of kernels before the program sees them. */
#include <core/plan/plan.h>

#include <string.h>

/* The name up to the suffix of operations that passes made. */
void tn__plan_node_name(const tn_operation *op, tn__text *out)
{
  const char *name = tn_operation_name(op), *made = strstr(name, TN__MADE_NAME);
  tn__text_append(out, name, made == NULL || made == name ? strlen(name) : (size_t)(made - name));
}

/* Whether the message begins with a node of a function that the node called (tn__error_in_call). */
static bool names_inner(const tn_error *err, const char *node)
{
  const char *message = tn_error_message(err);
  size_t n = strlen(node);
  return strncmp(message, "node '", 6) == 0 && strncmp(message + 6, node, n) == 0 && message[6 + n] == '/';
}

tn_status tn__kernel_status(const tn_operation *op, const tn_kernel_def *def, const char *slot, tn_status st,
                            tn_error *err)
{
  const char *kernel = def->name, *node = tn_operation_name(op);
  tn__text name;
  tn__text_init(&name, SIZE_MAX);
  tn__plan_node_name(op, &name);
  if (!name.failed) node = tn__text_get(&name);
  if (st < TN_OK || st > TN_UNAUTHENTICATED)
    st = tn_error_wrap(err, TN_INTERNAL, "kernel '%s': %s returned %d, which is not a status", kernel, slot, st);
  else
    tn_error_set(err, st, "kernel '%s': %s failed without a message", kernel, slot);
  if (err != NULL) err->code = st;
  if (!names_inner(err, node)) tn_error_prefix(err, "node '%s' (%s)", node, tn_operation_type(op));
  tn_error_set_node(err, node);
  tn__text_fini(&name);
  return st;
}
