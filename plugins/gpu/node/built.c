/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes whose launches are built: the end of planning, and properties of a node for planning. */
#include "node/built.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- the end of planning ---- */

static void free_launch(gpu_launch *l)
{
  tn_free(l->text);
  tn_free(l->kernel);
  tn_free(l->options);
  tn_free(l->args);
  tn_free(l->values);
  tn_free(l);
}

void gpu_built_destroy(gpu_built *built)
{
  if (built == NULL) return;
  for (gpu_launch *l = built->launches, *next; l != NULL; l = next) {
    next = l->next;
    free_launch(l);
  }
  for (gpu_pack *p = built->packs, *next; p != NULL; p = next) {
    next = p->next;
    tn_free(p->data);
    tn_free(p->user);
    tn_free(p);
  }
  tn_error_clear(&built->error);
  tn_free(built);
}

static bool is_empty(const gpu_launch *l)
{
  bool empty = false;
  for (cl_uint i = 0; i < l->n_dims; i++) empty |= l->global[i] == 0;
  return empty;
}

/* Takes launches that have nothing to do out of the list. */
static tn_status check_launches(gpu_built *b, tn_error *err)
{
  gpu_launch **at = &b->launches;
  b->last_launch = NULL;
  while (*at != NULL) {
    gpu_launch *l = *at;
    if (gpu_has_kernel(l) && l->n_dims == 0)
      return tn_error_set(err, TN_INTERNAL, "gpu: kernel '%s' has no range", l->kernel);
    if (is_empty(l)) {
      *at = l->next;
      free_launch(l);
    } else {
      b->last_launch = l;
      at = &l->next;
    }
  }
  return TN_OK;
}

tn_status gpu_node_done(gpu_node *n, tn_error *err)
{
  gpu_built *b = n->built;
  if (b->status != TN_OK) {
    tn_error_copy(err, &b->error);
    return b->status;
  }
  return check_launches(b, err);
}

tn_status gpu_node_plan(gpu_node *n, const gpu_op *op, tn_error *err)
{
  n->built = tn_alloc(sizeof *n->built);
  if (n->built == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a node");
  *n->built = (gpu_built){ .error = TN_ERROR_INIT };
  tn_status st = op->plan(n, err);
  if (st == TN_OK) return TN_OK;
  gpu_built_destroy(n->built);
  n->built = NULL;
  return st;
}

tn_status gpu_decline(tn_error *err, const char *format, ...)
{
  char text[256];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return tn_error_set(err, TN_UNIMPLEMENTED, "%s", text);
}

/* ---- properties for planning ---- */

const char *gpu_type(tn_dtype dtype)
{
  switch (dtype) {
  case TN_FLOAT: return "float";
  case TN_DOUBLE: return "double";
  case TN_HALF: return "half";
  case TN_INT8: case TN_QINT8: return "char";
  case TN_UINT8: case TN_QUINT8: case TN_BOOL: return "uchar";
  case TN_INT16: case TN_QINT16: return "short";
  case TN_UINT16: case TN_QUINT16: return "ushort";
  case TN_INT32: case TN_QINT32: return "int";
  case TN_UINT32: return "uint";
  case TN_INT64: return "long";
  case TN_UINT64: return "ulong";
  default: return NULL;
  }
}

int64_t gpu_attr_int(const gpu_node *n, const char *name, int64_t otherwise)
{
  int64_t value;
  return tn_operation_attr_int(n->op, name, &value, NULL) == TN_OK ? value : otherwise;
}

bool gpu_attr_bool(const gpu_node *n, const char *name, bool otherwise)
{
  tn_bool value;
  return tn_operation_attr_bool(n->op, name, &value, NULL) == TN_OK ? value != 0 : otherwise;
}

float gpu_attr_float(const gpu_node *n, const char *name, float otherwise)
{
  float value;
  return tn_operation_attr_float(n->op, name, &value, NULL) == TN_OK ? value : otherwise;
}

bool gpu_attr_text_is(const gpu_node *n, const char *name, const char *text)
{
  const char *found;
  size_t size;
  return tn_operation_attr_string(n->op, name, &found, &size, NULL) == TN_OK && size == strlen(text) &&
         memcmp(found, text, size) == 0;
}
