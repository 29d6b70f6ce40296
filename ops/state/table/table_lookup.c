/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on tables: LookupTableFind Insert Remove Size Export Import, of both versions. */
#include <core/base/text.h>
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/family.h>
#include <ops/state/table/table.h>
#include <ops/state/table/table_buckets.h>
#include <string.h>

/* Gets the table of input 0, and checks that inputs 1 and 2, if present, have the dtypes of its
 * keys and values. */
static tn_status open_table(const tn_kernel_ctx *ctx, tn_dtype keys, tn_dtype values, tn__table **out)
{
  void *object;
  tn_status st = tn__resource_input(ctx, 0, &tn__table_class, &object, NULL);
  *out = object;
  if (st != TN_OK) return st;
  const tn__rows *rows = &(*out)->rows;
  if (rows->key_dtype == keys && (values == TN_DTYPE_INVALID || rows->value_dtype == values)) return TN_OK;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                      "table '%s' maps %s to %s, the node has keys of %s and values of %s", (*out)->name,
                      tn_dtype_name(rows->key_dtype), tn_dtype_name(rows->value_dtype), tn_dtype_name(keys),
                      values == TN_DTYPE_INVALID ? "any type" : tn_dtype_name(values));
}

static bool has_shape(const tn_view *v, const tn__shape *s)
{
  bool same = v->rank == s->rank;
  for (int32_t i = 0; same && i < s->rank; i++) same = v->dims[i] == s->dims[i];
  return same;
}

/* ---- find ---- */

static tn_status find_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  ctx->cost_ns = 50 + 20 * (double)ctx->inputs[1].count;
  return tn_prepare_dynamic(ctx, 0, err);
}

/* The default must be one value, or one per key. */
static tn_status check_default(const tn_kernel_ctx *ctx, const tn__table *t, const tn__shape *all)
{
  const tn_view *d = ctx->inputs[2];
  if (has_shape(d, &t->value_shape) || has_shape(d, all)) return TN_OK;
  char found[96], one[96], many[96];
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "table '%s': the default value has shape %s, wanted %s or %s",
                      t->name, tn__format_shape(found, sizeof found, d->dims, d->rank),
                      tn__format_shape(one, sizeof one, t->value_shape.dims, t->value_shape.rank),
                      tn__format_shape(many, sizeof many, all->dims, all->rank));
}

static tn_status find_compute(tn_kernel_ctx *ctx)
{
  const tn_view *keys = ctx->inputs[1], *otherwise = ctx->inputs[2];
  tn__table *t;
  tn__shape all;
  size_t n;
  tn_status st = open_table(ctx, keys->dtype, otherwise->dtype, &t);
  if (st == TN_OK) st = tn__table_values_shape(t, keys, &all, ctx->err);
  if (st == TN_OK) st = check_default(ctx, t, &all);
  if (st == TN_OK) st = tn__table_keys(t, keys, &n, ctx->err);
  if (st == TN_OK) st = tn_kernel_allocate(ctx, 0, all.dims, all.rank);
  if (st != TN_OK) return st;
  /* As in TensorFlow, only mutable tables use a default per key. */
  bool each = t->kind == TN__TABLE_MUTABLE && has_shape(otherwise, &all) && !has_shape(otherwise, &t->value_shape);
  return tn__table_find(t, ctx, keys->data, n, otherwise->data, each, ctx->outputs[0]->data);
}

/* ---- insert, remove, import, size ---- */

static tn_status no_output_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  (void)err;
  ctx->cost_ns = 100 + 50 * (double)ctx->inputs[1].count;
  return TN_OK;
}

static tn_status bad_values(const tn_kernel_ctx *ctx, const tn__table *t, const tn__shape *wanted)
{
  char found[96], want[96];
  const tn_view *v = ctx->inputs[2];
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "table '%s': values have shape %s, wanted %s", t->name,
                      tn__format_shape(found, sizeof found, v->dims, v->rank),
                      tn__format_shape(want, sizeof want, wanted->dims, wanted->rank));
}

static tn_status insert_compute(tn_kernel_ctx *ctx)
{
  const tn_view *keys = ctx->inputs[1], *values = ctx->inputs[2];
  tn__table *t;
  tn__shape wanted;
  size_t n;
  tn_status st = open_table(ctx, keys->dtype, values->dtype, &t);
  if (st == TN_OK) st = tn__table_values_shape(t, keys, &wanted, ctx->err);
  if (st == TN_OK && !has_shape(values, &wanted)) st = bad_values(ctx, t, &wanted);
  if (st == TN_OK) st = tn__table_keys(t, keys, &n, ctx->err);
  return st == TN_OK ? tn__table_insert(t, keys->data, values->data, n, ctx->err) : st;
}

static tn_status remove_compute(tn_kernel_ctx *ctx)
{
  const tn_view *keys = ctx->inputs[1];
  tn__table *t;
  size_t n;
  tn_status st = open_table(ctx, keys->dtype, TN_DTYPE_INVALID, &t);
  if (st == TN_OK) st = tn__table_keys(t, keys, &n, ctx->err);
  return st == TN_OK ? tn__table_remove(t, keys->data, n, ctx->err) : st;
}

/* The shape of an export. A dense table exports scalars as vectors of one element. */
static void export_shape(const tn__table *t, size_t n, const tn__shape *one, tn__shape *out)
{
  out->rank = 1;
  out->dims[0] = (int64_t)n;
  if (t->kind == TN__TABLE_DENSE && one->rank == 0) tn__shape_append(out, 1);
  for (int32_t i = 0; i < one->rank; i++) tn__shape_append(out, one->dims[i]);
}

/* A dense table imports the shapes that it exports. */
static tn_status check_dense_import(const tn_kernel_ctx *ctx, const tn__table *t, size_t n)
{
  tn__shape wanted;
  const tn_view *keys = ctx->inputs[1];
  export_shape(t, n, &t->key_shape, &wanted);
  if (!has_shape(keys, &wanted)) {
    char found[96], want[96];
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "table '%s': keys have shape %s, wanted %s", t->name,
                        tn__format_shape(found, sizeof found, keys->dims, keys->rank),
                        tn__format_shape(want, sizeof want, wanted.dims, wanted.rank));
  }
  export_shape(t, n, &t->value_shape, &wanted);
  return has_shape(ctx->inputs[2], &wanted) ? TN_OK : bad_values(ctx, t, &wanted);
}

static tn_status import_compute(tn_kernel_ctx *ctx)
{
  const tn_view *keys = ctx->inputs[1], *values = ctx->inputs[2];
  tn__table *t;
  tn__shape wanted;
  tn_status st = open_table(ctx, keys->dtype, values->dtype, &t);
  if (st != TN_OK) return st;
  size_t n = (size_t)(keys->count / t->rows.key_elements);
  if (t->kind == TN__TABLE_DENSE) {
    st = check_dense_import(ctx, t, n);
  } else {
    st = tn__table_values_shape(t, keys, &wanted, ctx->err);
    if (st == TN_OK && !has_shape(values, &wanted)) st = bad_values(ctx, t, &wanted);
  }
  return st == TN_OK ? tn__table_import(t, keys->data, values->data, n, ctx->err) : st;
}

static tn_status size_compute(tn_kernel_ctx *ctx)
{
  void *table;
  tn_status st = tn__resource_input(ctx, 0, &tn__table_class, &table, NULL);
  if (st == TN_OK) *(int64_t *)ctx->outputs[0]->data = tn__table_size(table);
  return st;
}

/* ---- export ---- */

static tn_status export_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn_prepare_dynamic(ctx, 0, err);
  return st == TN_OK ? tn_prepare_dynamic(ctx, 1, err) : st;
}

/* Copies the keys or values of n rows: row i, or, if there are buckets, the row of bucket i. Free buckets have the
 * empty key and a zero value. */
static tn_status copy_column(const tn__rows *rows, bool of_keys, const size_t *buckets, size_t n, const void *empty,
                             char *to, tn_error *err)
{
  tn_dtype dtype = of_keys ? rows->key_dtype : rows->value_dtype;
  int64_t elements = of_keys ? rows->key_elements : rows->value_elements;
  size_t bytes = of_keys ? rows->key_bytes : rows->value_bytes;
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < n; i++, to += bytes) {
    size_t row = buckets == NULL ? i : buckets[i];
    if (row != SIZE_MAX)
      st = tn__copy_elements(dtype, to, of_keys ? tn__rows_key(rows, row) : tn__rows_value(rows, row), elements, err);
    else if (of_keys) st = tn__copy_elements(dtype, to, empty, elements, err);
    else if (tn__dtype_is_managed(dtype)) tn__elements_clear(dtype, to, elements);
    else memset(to, 0, bytes);
  }
  return st;
}

static tn_status export_rows(tn_kernel_ctx *ctx, const tn__table *t, const size_t *buckets, size_t n)
{
  tn__shape keys, values;
  export_shape(t, n, &t->key_shape, &keys);
  export_shape(t, n, &t->value_shape, &values);
  tn_status st = tn_kernel_allocate(ctx, 0, keys.dims, keys.rank);
  if (st == TN_OK) st = tn_kernel_allocate(ctx, 1, values.dims, values.rank);
  if (st == TN_OK) st = copy_column(&t->rows, true, buckets, n, t->empty_key, ctx->outputs[0]->data, ctx->err);
  return st == TN_OK ? copy_column(&t->rows, false, buckets, n, NULL, ctx->outputs[1]->data, ctx->err) : st;
}

static tn_status export_compute(tn_kernel_ctx *ctx)
{
  tn__table *t;
  size_t n, *buckets = NULL;
  tn_status st = open_table(ctx, ctx->outputs[0]->dtype, ctx->outputs[1]->dtype, &t);
  if (st == TN_OK) st = tn__table_begin_export(t, &n, ctx->err);
  if (st != TN_OK) return st;
  bool dense = t->kind == TN__TABLE_DENSE;
  if (dense && (buckets = tn__alloc_array(n, sizeof *buckets)) == NULL)
    st = tn__no_memory(ctx->err, "buckets of a table", n);
  if (dense && st == TN_OK) tn__rows_place(&t->rows, buckets, n);
  if (st == TN_OK) st = export_rows(ctx, t, buckets, n);
  tn__free(buckets, n * sizeof *buckets);
  tn__table_end_export(t);
  return st;
}

/* ---- tables ---- */

#define OP(op, in, out, attributes, trait, shapes, text)                                                     \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes,            \
    .traits = TN_TRAIT_STATEFUL | (trait), .infer = shapes, .summary = text }
#define V1 "table_handle: Ref(string)"
#define V2 "table_handle: resource"
#define BOTH "Tin: type; Tout: type"
#define PAIRS ", keys: Tin, values: Tout"
#define FIND(op, handle)                                                                                     \
  OP(op, handle ", keys: Tin, default_value: Tout", "values: Tout", BOTH, TN_TRAIT_DYNAMIC | TN_TRAIT_READS, \
     tn__infer_unknown, "looks up keys, with a default for missing ones")
#define INSERT(op, handle) OP(op, handle PAIRS, "", BOTH, 0, tn__infer_nothing, "inserts keys and values into a table")
#define IMPORT(op, handle) OP(op, handle PAIRS, "", BOTH, 0, tn__infer_nothing, "replaces the contents of a table")
#define SIZE(op, handle) \
  OP(op, handle, "size: int64", "", TN_TRAIT_READS, tn__infer_scalar, "number of keys in a table")
#define EXPORT(op, handle)                                                                                        \
  OP(op, handle, "keys: Tkeys, values: Tvalues", "Tkeys: type; Tvalues: type", TN_TRAIT_DYNAMIC | TN_TRAIT_READS, \
     tn__infer_unknown, "all keys and values of a table")

static const tn_op_def ops[] = {
  FIND("LookupTableFind", V1),
  FIND("LookupTableFindV2", V2),
  INSERT("LookupTableInsert", V1),
  INSERT("LookupTableInsertV2", V2),
  OP("LookupTableRemoveV2", V2 ", keys: Tin", "", "Tin: type", 0, tn__infer_nothing, "removes keys"),
  SIZE("LookupTableSize", V1),
  SIZE("LookupTableSizeV2", V2),
  EXPORT("LookupTableExport", V1),
  EXPORT("LookupTableExportV2", V2),
  IMPORT("LookupTableImport", V1),
  IMPORT("LookupTableImportV2", V2),
};

#define KERNEL(which, title, ready, run)                                                                      \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C,         \
    .prepare = ready, .compute = run }

static const tn_kernel_def kernels[] = {
  KERNEL("LookupTableFind", "lookup_table_find_cpu", find_prepare, find_compute),
  KERNEL("LookupTableFindV2", "lookup_table_find_v2_cpu", find_prepare, find_compute),
  KERNEL("LookupTableInsert", "lookup_table_insert_cpu", no_output_prepare, insert_compute),
  KERNEL("LookupTableInsertV2", "lookup_table_insert_v2_cpu", no_output_prepare, insert_compute),
  KERNEL("LookupTableRemoveV2", "lookup_table_remove_v2_cpu", no_output_prepare, remove_compute),
  KERNEL("LookupTableSize", "lookup_table_size_cpu", tn__prepare_scalar, size_compute),
  KERNEL("LookupTableSizeV2", "lookup_table_size_v2_cpu", tn__prepare_scalar, size_compute),
  KERNEL("LookupTableExport", "lookup_table_export_cpu", export_prepare, export_compute),
  KERNEL("LookupTableExportV2", "lookup_table_export_v2_cpu", export_prepare, export_compute),
  KERNEL("LookupTableImport", "lookup_table_import_cpu", no_output_prepare, import_compute),
  KERNEL("LookupTableImportV2", "lookup_table_import_v2_cpu", no_output_prepare, import_compute),
};

TN_OP_FAMILY(table_lookup)
