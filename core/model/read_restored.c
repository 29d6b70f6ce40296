/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the values of many variables from a checkpoint: whole tensors together, on several threads, then slices. */
#include <core/model/model.h>

#include <string.h>

bool tn__restored_fits(const tn__restored *item, const tn__stored *entry)
{
  if (entry == NULL) return false;
  if (item->spec.size == 0) return tn__variable_fits(item->variable, entry->dtype, entry->dims, entry->rank);
  tn_dtype dtype;
  const int64_t *dims;
  int32_t rank;
  return tn__variable_declared(item->variable, &dtype, &dims, &rank, NULL) == TN_OK && dtype == entry->dtype;
}

/* Reads the slice that an item names. *fits: false if the tensor or the variable has another shape. */
static tn_status read_slice(tn__store *store, const tn__restored *item, const tn__stored *entry, tn_tensor **out,
                            bool *fits, tn_error *err)
{
  tn__arena arena;
  tn__region region;
  int32_t rank;
  const int64_t *dims;
  tn__arena_init(&arena, 1024);
  tn_status st = tn__slice_spec_parse(item->spec, &arena, &rank, &dims, &region, NULL);
  if (st == TN_RESOURCE_EXHAUSTED) {
    tn__arena_fini(&arena);
    return tn__no_memory(err, "a slice of a variable", item->spec.size);
  }
  *fits = st == TN_OK && rank == entry->rank && memcmp(dims, entry->dims, (size_t)rank * sizeof *dims) == 0 &&
          tn__variable_fits(item->variable, entry->dtype, region.lengths, rank);
  st = *fits ? tn__store_read_region(store, entry, &region, out, err) : TN_OK;
  tn__arena_fini(&arena);
  return st;
}

/* Reads the items that are whole tensors. `entries` and `tensors` have room for n. */
static tn_status read_whole(tn__store *store, const tn__restored *items, size_t n, const tn__stored **entries,
                            tn_tensor **tensors, tn_tensor **values, tn_error *err)
{
  size_t n_whole = 0;
  for (size_t i = 0; i < n; i++)
    if (items[i].spec.size == 0) entries[n_whole++] = tn__store_find(store, items[i].key);
  tn_status st = tn__store_read_many(store, entries, n_whole, 0, tensors, err);
  for (size_t i = 0, k = 0; st == TN_OK && i < n; i++)
    if (items[i].spec.size == 0) values[i] = tensors[k++];
  return st;
}

tn_status tn__restored_read(tn__store *store, const tn__restored *items, size_t n, tn_tensor **values, bool *fits,
                            tn_error *err)
{
  *fits = true;
  if (n > 0) memset(values, 0, n * sizeof *values);
  for (size_t i = 0; i < n; i++)
    if (!(*fits = tn__restored_fits(&items[i], tn__store_find(store, items[i].key)))) return TN_OK;
  const tn__stored **entries = tn__alloc(n * sizeof *entries);
  tn_tensor **tensors = tn__alloc(n * sizeof *tensors);
  tn_status st = n > 0 && (entries == NULL || tensors == NULL)
                     ? tn__no_memory(err, "variables to restore", n)
                     : read_whole(store, items, n, entries, tensors, values, err);
  for (size_t i = 0; st == TN_OK && *fits && i < n; i++)
    if (items[i].spec.size > 0)
      st = read_slice(store, &items[i], tn__store_find(store, items[i].key), &values[i], fits, err);
  tn__free(entries, n * sizeof *entries);
  tn__free(tensors, n * sizeof *tensors);
  for (size_t i = 0; (st != TN_OK || !*fits) && i < n; i++) {
    tn_tensor_unref(values[i]);
    values[i] = NULL;
  }
  return st;
}

/* ---- assigning ---- */

tn_status tn__restored_assign(tn_session *session, tn__store *store, const tn__restored *items, size_t n, bool *fits,
                              tn_error *err)
{
  tn_operation **variables = tn__alloc(n * sizeof *variables);
  tn_tensor **values = tn__alloc(n * sizeof *values);
  tn_status st = n > 0 && (variables == NULL || values == NULL)
                     ? tn__no_memory(err, "variables to restore", n)
                     : tn__restored_read(store, items, n, values, fits, err);
  for (size_t i = 0; variables != NULL && i < n; i++) variables[i] = items[i].variable;
  if (st == TN_OK && *fits) st = tn__variables_assign(session, variables, values, n, err);
  tn__free(variables, n * sizeof *variables);
  tn__free(values, n * sizeof *values);
  return st;
}
