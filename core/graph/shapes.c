/* SPDX-License-Identifier: Apache-2.0 */
/* Packs the shapes of an operation's outputs into one block, and merges two shapes of an output. */
#include <core/graph/graph_structs.h>

static void free_shapes(tn__owned *owned)
{
  tn__op_shapes *s = (tn__op_shapes *)owned;
  tn__free(s, s->size);
}

/* Layout of the block: the struct, n shapes, n ints if there are any, then all dims and items. */
tn__op_shapes *tn__shapes_pack(const tn__shape *outputs, const tn__ints *ints, size_t n)
{
  size_t n_dims = 0;
  for (size_t i = 0; i < n; i++) {
    if (outputs[i].rank > 0) n_dims += (size_t)outputs[i].rank;
    if (ints != NULL && ints[i].n > 0) n_dims += (size_t)ints[i].n;
  }
  size_t per_output = sizeof(tn__shape) + (ints != NULL ? sizeof(tn__ints) : 0);
  size_t size = sizeof(tn__op_shapes) + n * per_output + n_dims * sizeof(int64_t);
  tn__op_shapes *s = tn__alloc(size);
  if (s == NULL) return NULL;
  s->owned = (tn__owned){ NULL, free_shapes };
  s->size = size;
  s->failed = false;
  atomic_init(&s->epoch, 0);
  s->ints = ints != NULL ? (tn__ints *)&s->outputs[n] : NULL;
  int64_t *dims = ints != NULL ? (int64_t *)&s->ints[n] : (int64_t *)&s->outputs[n];
  for (size_t i = 0; i < n; i++) {
    s->outputs[i] = (tn__shape){ outputs[i].rank > 0 ? dims : NULL, outputs[i].rank };
    for (int64_t k = 0; k < outputs[i].rank; k++) *dims++ = outputs[i].dims[k];
    if (ints == NULL) continue;
    s->ints[i] = (tn__ints){ dims, ints[i].n };
    for (int64_t k = 0; k < ints[i].n; k++) *dims++ = ints[i].items[k];
  }
  return s;
}

bool tn__shapes_merge(const tn__shape *a, const tn__shape *b, int64_t dims[TN_MAX_RANK], tn__shape *out)
{
  if (a->rank < 0 || b->rank < 0) {
    *out = a->rank < 0 ? *b : *a;
    return true;
  }
  if (a->rank != b->rank) return false;
  for (int64_t k = 0; k < a->rank; k++) {
    if (a->dims[k] >= 0 && b->dims[k] >= 0 && a->dims[k] != b->dims[k]) return false;
    dims[k] = a->dims[k] >= 0 ? a->dims[k] : b->dims[k];
  }
  *out = (tn__shape){ dims, a->rank };
  return true;
}
