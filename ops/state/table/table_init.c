/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that are initialised once: InitializeTable and InitializeTableFromTextFile, of both
 * versions. */
#include <core/base/text.h>
#include <ops/kernel/family.h>
#include <ops/state/table/table.h>
#include <ops/state/table/table_file.h>
#include <ops/string/string_path.h>
#include <stdatomic.h>

static tn_status open_fixed(const tn_kernel_ctx *ctx, tn__table **out)
{
  void *table = NULL;
  tn_status st = tn__resource_input(ctx, 0, &tn__table_class, &table, NULL);
  *out = table;
  if (st != TN_OK || (*out)->kind == TN__TABLE_FIXED) return st;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "table '%s' cannot be initialised, its values are inserted",
                      (*out)->name);
}

/* ---- from tensors ---- */

static tn_status init_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 1, 1, err);
  if (st == TN_OK) st = tn__want_same_shape(ctx, 1, 2, err);
  ctx->cost_ns = 200 + 60 * (double)ctx->inputs[1].count;
  return st;
}

static tn_status init_compute(tn_kernel_ctx *ctx)
{
  const tn_view *keys = ctx->inputs[1], *values = ctx->inputs[2];
  tn__table *t;
  tn_status st = open_fixed(ctx, &t);
  if (st != TN_OK) return st;
  if (t->rows.key_dtype != keys->dtype || t->rows.value_dtype != values->dtype)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "table '%s' maps %s to %s, it is initialised with %s and %s",
                        t->name, tn_dtype_name(t->rows.key_dtype), tn_dtype_name(t->rows.value_dtype),
                        tn_dtype_name(keys->dtype), tn_dtype_name(values->dtype));
  return tn__table_init(t, keys->data, values->data, (size_t)keys->count, ctx->err);
}

/* ---- from a file ---- */

static void file_destroy(void *state) { tn__free(state, sizeof(tn__table_file)); }

static tn_status file_create(const tn_operation *op, void **state, tn_error *err)
{
  const char *delimiter = "\t";
  size_t n = 1;
  *state = NULL;
  if (tn_operation_attr_string(op, "delimiter", &delimiter, &n, NULL) != TN_OK) delimiter = "\t", n = 1;
  if (n != 1)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: attribute 'delimiter' has %zu bytes, wanted one",
                        tn_operation_type(op), n);
  tn__table_file *how = tn__alloc(sizeof *how);
  if (how == NULL) return tn__no_memory(err, "kernel", sizeof *how);
  *how = (tn__table_file){ .key = tn__attr_int(op, "key_index", 0), .value = tn__attr_int(op, "value_index", 0),
                           .lines = tn__attr_int(op, "vocab_size", TN__ALL_LINES),
                           .offset = tn__attr_int(op, "offset", 0), .delimiter = delimiter[0] };
  *state = how;
  return TN_OK;
}

static tn_status file_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  ctx->cost_ns = 100000;
  return tn__want_rank(ctx, 1, 0, err);
}

/* An initialised table is left as it is, but the file must exist, as in TensorFlow. */
static tn_status init_again(const char *path, tn_error *err)
{
  tn__file file;
  tn_status st = tn__named_file_open(path, &file, err);
  if (st == TN_OK) tn__file_close(&file);
  return st;
}

static tn_status init_from_file(tn__table *t, const tn__table_file *how, const char *path, tn_error *err)
{
  tn__rows rows;
  if (path[0] == 0) return tn_error_set(err, TN_INVALID_ARGUMENT, "table '%s': the file name is empty", t->name);
  if (atomic_load_explicit(&t->ready, memory_order_acquire)) return init_again(path, err);
  tn_status st = tn__rows_init(&rows, t->rows.key_dtype, 1, t->rows.value_dtype, 1, err);
  if (st != TN_OK) return st;
  st = tn__table_file_read(how, path, &rows, err);
  if (st != TN_OK) {
    tn__rows_fini(&rows);
    return tn_error_prefix(err, "table '%s'", t->name);
  }
  st = tn__table_init_rows(t, &rows, err); /* if two files are read at once, the second is dropped */
  if (st != TN_FAILED_PRECONDITION) return st;
  tn__error_reset(err);
  return TN_OK;
}

static tn_status file_compute(tn_kernel_ctx *ctx)
{
  tn__table *t;
  char *path;
  tn_status st = open_fixed(ctx, &t);
  if (st == TN_OK) st = tn__file_name(ctx, ctx->inputs[1], TN__TO_READ, &path);
  if (st != TN_OK) return st;
  st = init_from_file(t, ctx->state, path, ctx->err);
  tn__strfree(path);
  return st;
}

/* ---- tables ---- */

#define OP(op, in, attributes, text)                                                                       \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = "", .attrs = attributes,            \
    .traits = TN_TRAIT_STATEFUL, .infer = tn__infer_nothing, .summary = text }
#define V1 "table_handle: Ref(string)"
#define V2 "table_handle: resource"
#define PAIRS ", keys: Tkey, values: Tval"
#define FROM_FILE                                                                                  \
  "key_index: int >= -2; value_index: int >= -2; vocab_size: int >= -1 = -1; delimiter: string = '\t'; offset: int = 0"

static const tn_op_def ops[] = {
  OP("InitializeTable", V1 PAIRS, "Tkey: type; Tval: type", "initialises a table from keys and values"),
  OP("InitializeTableV2", V2 PAIRS, "Tkey: type; Tval: type", "initialises a table from keys and values"),
  OP("InitializeTableFromTextFile", V1 ", filename: string", FROM_FILE,
     "initialises a table from the lines of a text file"),
  OP("InitializeTableFromTextFileV2", V2 ", filename: string", FROM_FILE,
     "initialises a table from the lines of a text file"),
};

#define KERNEL(which, title)                                                                          \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C, \
    .prepare = init_prepare, .compute = init_compute }
#define FILE_KERNEL(which, title)                                                                     \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C, \
    .create = file_create, .destroy = file_destroy, .prepare = file_prepare, .compute = file_compute }

static const tn_kernel_def kernels[] = {
  KERNEL("InitializeTable", "initialize_table_cpu"),
  KERNEL("InitializeTableV2", "initialize_table_v2_cpu"),
  FILE_KERNEL("InitializeTableFromTextFile", "initialize_table_from_text_file_cpu"),
  FILE_KERNEL("InitializeTableFromTextFileV2", "initialize_table_from_text_file_v2_cpu"),
};

TN_OP_FAMILY(table_init)
