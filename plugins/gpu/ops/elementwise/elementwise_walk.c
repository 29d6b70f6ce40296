/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise programs with shapes: dimensions are merged as far as all arguments allow, and it is decided how many
 * elements a work item has. */
#include "ops/elementwise/elementwise.h"

/* Whether dimensions d - 1 and d are one for this argument. */
static bool merges(const gpu_ew *e, const gpu_ew_arg *a, int32_t d)
{
  return a->strides[d - 1] == a->strides[d] * e->dims[d];
}

static void remove_dim(gpu_ew *e, int32_t d)
{
  for (int32_t i = d; i + 1 < e->rank; i++) {
    e->dims[i] = e->dims[i + 1];
    for (uint32_t k = 0; k < e->n_args; k++) e->args[k].strides[i] = e->args[k].strides[i + 1];
  }
  e->rank--;
}

static void merge_dims(gpu_ew *e)
{
  int32_t kept = e->n_joined > 0; /* the last dimension, which joined arguments share out */
  for (int32_t d = e->rank - 1 - kept; d >= 0; d--)
    if (e->dims[d] == 1) remove_dim(e, d);
  for (int32_t d = e->rank - 1 - kept; d > 0; d--) {
    bool all = true;
    for (uint32_t k = 0; k < e->n_args && all; k++) all = merges(e, &e->args[k], d);
    if (!all) continue;
    e->dims[d] *= e->dims[d - 1];
    remove_dim(e, d - 1);
  }
}

/* At least one dimension; two where arguments are joined. */
static void add_dims(gpu_ew *e)
{
  int32_t least = e->n_joined > 0 ? 2 : 1;
  while (e->rank < least) {
    for (int32_t i = e->rank; i > 0; i--) {
      e->dims[i] = e->dims[i - 1];
      for (uint32_t k = 0; k < e->n_args; k++) e->args[k].strides[i] = e->args[k].strides[i - 1];
    }
    e->dims[0] = 1;
    for (uint32_t k = 0; k < e->n_args; k++) e->args[k].strides[0] = 0;
    e->rank++;
  }
}

bool gpu_ew_is_flat(const gpu_ew *e, const gpu_ew_arg *a)
{
  int64_t stride = 1;
  for (int32_t d = e->rank - 1 - gpu_ew_is_joined(a); d >= 0; d--) {
    if (a->strides[d] != stride && e->dims[d] != 1) return false;
    stride *= e->dims[d];
  }
  return true;
}

bool gpu_ew_faults(const gpu_ew *e)
{
  int kind = gpu_element_of(e->dtype)->kind;
  return e->n_steps == 1 && e->steps[0].info != NULL && e->steps[0].info->fault != TN_OK &&
         (kind == GPU_SIGNED || kind == GPU_UNSIGNED);
}

static int64_t part_width(const gpu_ew *e, const gpu_ew_arg *a, uint32_t k)
{
  return e->n->inputs[a->input + k].count / a->rows;
}

/* Whether four neighbours are always read from one row of one part. */
static bool fours(const gpu_ew *e)
{
  for (uint32_t k = 0; k < e->n_args; k++) {
    const gpu_ew_arg *a = &e->args[k];
    if (gpu_element_of(a->dtype)->kind == GPU_BYTES) return false;
    for (uint32_t i = 0; gpu_ew_is_joined(a) && i < a->n_inputs; i++)
      if (part_width(e, a, i) % 4 != 0) return false;
  }
  if (gpu_element_of(e->result)->kind == GPU_BYTES) return false;
  return e->rank == 1 || e->dims[e->rank - 1] % 4 == 0;
}

static bool of_vectors(const gpu_ew *e)
{
  if (gpu_element_of(e->dtype)->kind != GPU_FLOATING) return false;
  for (uint32_t k = 0; k < e->n_args; k++)
    if (e->args[k].dtype != e->dtype) return false;
  for (uint32_t k = 0; k < e->n_steps; k++)
    if (e->steps[k].text != NULL || e->steps[k].info->compares || e->steps[k].info->single) return false;
  return true;
}

static tn_status count_slots(gpu_ew *e, tn_error *err)
{
  uint32_t most = 1, pointers = e->n_args - e->n_joined;
  for (uint32_t k = 0; k < e->n_args; k++)
    if (gpu_ew_is_joined(&e->args[k]) && e->args[k].n_inputs > most) most = e->args[k].n_inputs;
  e->slots = most;
  if (most > 2) e->slots = most > 4 ? 8 : 4;
  while (e->slots > 1 && pointers + e->n_joined * e->slots > GPU_EW_POINTERS / 2) e->slots /= 2;
  if (pointers + e->n_joined * e->slots > GPU_EW_POINTERS)
    return gpu_decline(err, "it has %u arguments, more than fit into a kernel's", (unsigned)e->n_args);
  return TN_OK;
}

tn_status gpu_ew_walk(gpu_ew *e, tn_error *err)
{
  for (uint32_t k = 0; k < e->n_args; k++) e->n_joined += gpu_ew_is_joined(&e->args[k]);
  tn_status st = count_slots(e, err);
  if (st != TN_OK) return st;
  merge_dims(e);
  add_dims(e);
  size_t places = 0; /* numbers among the kernel's arguments */
  for (uint32_t k = 0; k < e->n_args; k++) {
    const gpu_ew_arg *a = &e->args[k];
    if (gpu_ew_is_joined(a)) places += 2 * e->slots;
    if (!gpu_ew_is_flat(e, a)) places += (size_t)e->rank;
    if (!gpu_ew_is_joined(a) && a->strides[e->rank - 1] != 0 && a->strides[e->rank - 1] != 1)
      return gpu_decline(err, "its elements do not lie side by side");
  }
  size_t pointers = e->n_args - e->n_joined + (size_t)e->n_joined * e->slots + 1;
  size_t number = gpu_places_are_wide(e->count) ? sizeof(cl_long) : sizeof(cl_int);
  if (pointers * 16 + (places + (size_t)e->rank + 3) * number + e->n_steps * sizeof(float) > 1024)
    return gpu_decline(err, "its arguments broadcast in too many ways");
  e->width = fours(e) ? 4 : 1;
  e->vectors = of_vectors(e);
  return TN_OK;
}
