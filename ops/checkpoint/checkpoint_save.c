/* SPDX-License-Identifier: Apache-2.0 */
/* Writing checkpoints: SaveV2, and of version 1 Save and SaveSlices. A former checkpoint of the name stays whole until
 * the new one is complete. */
#include <core/formats/bundle/bundle.h>
#include <core/formats/checkpoint_v1/write.h>
#include <ops/checkpoint/prefix.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <ops/string/string_path.h>
#include <string.h>

#define SAVE_NS 200000 /* of files that are synced */

/* ---- slices ---- */

/* The slice that input i is, by the text of its specification. rank -1: the whole tensor. */
typedef struct slice {
  int32_t rank;
  const int64_t *dims; /* of the tensor to which it belongs */
  tn__region region;
} slice;

/* Dimensions of which the slice has everything are written as whole ones. */
static void widen(slice *s)
{
  for (int32_t d = 0; d < s->rank; d++)
    if (s->region.starts[d] == 0 && s->region.lengths[d] == s->dims[d]) s->region.lengths[d] = -1;
}

static tn_status read_slice(const tn_kernel_ctx *ctx, tn__slice spec, tn__slice name, const tn_view *value,
                            tn__arena *arena, slice *out)
{
  char wanted[200], found[200];
  tn_status st = tn__slice_spec_parse(spec, arena, &out->rank, &out->dims, &out->region, ctx->err);
  int n = (int)(name.size < 200 ? name.size : 200);
  if (st != TN_OK) return tn_error_prefix(ctx->err, "tensor '%.*s'", n, name.data);
  if (out->rank < 0) return TN_OK;
  size_t bytes = (size_t)value->rank * sizeof *value->dims;
  if (out->rank == value->rank && (bytes == 0 || memcmp(out->region.lengths, value->dims, bytes) == 0)) {
    widen(out);
    return TN_OK;
  }
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                      "tensor '%.*s': the specification '%.*s' is of a slice of shape %s, the value has shape %s", n,
                      name.data, (int)(spec.size < 200 ? spec.size : 200), spec.data,
                      tn__format_shape(wanted, sizeof wanted, out->region.lengths, out->rank),
                      tn__format_shape(found, sizeof found, value->dims, value->rank));
}

/* ---- SaveV2 ---- */

static tn_status save_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_one(ctx, 0, err);
  if (st == TN_OK) st = tn__want_names(ctx, 1, 2, ctx->n_inputs - 3, "tensors", err);
  ctx->cost_ns = SAVE_NS;
  return st;
}

/* Adds the tensor of input 3 + i. */
static tn_status add_tensor(tn_kernel_ctx *ctx, tn__bundle_writer *w, uint32_t i)
{
  tn__arena arena;
  tn_tensor *tensor = NULL;
  slice s;
  tn__slice name = tn__text_input(ctx, 1, i), spec = tn__text_input(ctx, 2, i);
  tn__arena_init(&arena, 256);
  tn_status st = read_slice(ctx, spec, name, ctx->inputs[3 + i], &arena, &s);
  if (st == TN_OK) st = tn_kernel_keep_input(ctx, 3 + i, &tensor);
  if (st == TN_OK && s.rank < 0) st = tn__bundle_writer_add(w, name, tensor, ctx->err);
  else if (st == TN_OK) st = tn__bundle_writer_add_slice(w, name, s.rank, s.dims, &s.region, tensor, ctx->err);
  tn_tensor_unref(tensor);
  tn__arena_fini(&arena);
  return st;
}

static tn_status write_bundle(tn_kernel_ctx *ctx, const char *prefix)
{
  tn__bundle_writer *w;
  tn_status st = tn__bundle_writer_open(prefix, 1, &w, ctx->err);
  if (st != TN_OK) return st;
  for (uint32_t i = 0; st == TN_OK && i < ctx->n_inputs - 3; i++) {
    st = add_tensor(ctx, w, i);
    if (st == TN_OK && tn_kernel_cancelled(ctx)) st = tn_error_set(ctx->err, TN_CANCELLED, "the step is over");
  }
  if (st == TN_OK) return tn__bundle_writer_commit(w, ctx->err);
  tn__bundle_writer_abandon(w);
  return st;
}

static tn_status save_compute(tn_kernel_ctx *ctx)
{
  char *prefix;
  tn_status st = tn__prefix_of(ctx, 0, 0, TN__TO_WRITE, &prefix);
  if (st == TN_OK) st = tn__prefix_make_folder(prefix, ctx->err);
  if (st == TN_OK) st = write_bundle(ctx, prefix);
  tn__strfree(prefix);
  return st;
}

/* ---- Save, SaveSlices ---- */

static bool has_slices(const tn_prepare_ctx *ctx) { return strcmp(tn_operation_type(ctx->op), "SaveSlices") == 0; }

static tn_status save_v1_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  uint32_t first = has_slices(ctx) ? 3 : 2, n = ctx->n_inputs - first;
  tn_status st = tn__want_one(ctx, 0, err);
  for (uint32_t i = 1; st == TN_OK && i < first; i++)
    if (ctx->inputs[i].count != n)
      st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %u has %lld elements for %u tensors",
                        tn_operation_type(ctx->op), (unsigned)i, (long long)ctx->inputs[i].count, (unsigned)n);
  ctx->cost_ns = SAVE_NS;
  return st;
}

static tn_status whole(const tn_kernel_ctx *ctx, const tn_view *value, tn__arena *arena, slice *out)
{
  *out = (slice){ value->rank, value->dims, { 0 } };
  tn_status st = tn__region_all(value->rank, value->dims, arena, &out->region, ctx->err);
  for (int32_t d = 0; st == TN_OK && d < value->rank; d++) out->region.lengths[d] = -1;
  return st;
}

static tn_status fill_part(const tn_kernel_ctx *ctx, uint32_t i, uint32_t first, tn__arena *arena, tn__v1_part *part)
{
  slice s = { .rank = -1 };
  const tn_view *value = ctx->inputs[first + i];
  tn__slice name = tn__text_input(ctx, 1, i);
  tn_status st = first == 3 ? read_slice(ctx, tn__text_input(ctx, 2, i), name, value, arena, &s) : TN_OK;
  if (st == TN_OK && s.rank < 0) st = whole(ctx, value, arena, &s);
  *part = (tn__v1_part){ name, value->dtype, s.dims, s.region, value->data, value->count };
  return st;
}

static tn_status write_v1(const tn_kernel_ctx *ctx, uint32_t first, const char *path)
{
  tn__arena arena;
  uint32_t n = ctx->n_inputs - first;
  tn__arena_init(&arena, 1024);
  tn__v1_part *parts = tn__arena_array(&arena, n, sizeof *parts);
  tn_status st = parts == NULL ? tn__no_memory(ctx->err, "list of tensors", n) : TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < n; i++) st = fill_part(ctx, i, first, &arena, &parts[i]);
  if (st == TN_OK) st = tn__v1_write(path, parts, n, ctx->err);
  tn__arena_fini(&arena);
  return st;
}

static tn_status save_v1(const tn_kernel_ctx *ctx, uint32_t first)
{
  char *path;
  tn_status st = tn__file_name(ctx, ctx->inputs[0], TN__TO_WRITE, &path);
  if (st != TN_OK) return st;
  if (path[0] == 0) st = tn_error_set(ctx->err, TN_NOT_FOUND, "the file name is empty");
  if (st == TN_OK) st = tn__named_file_check(path, ctx->err);
  if (st == TN_OK) st = write_v1(ctx, first, path);
  tn__strfree(path);
  return st;
}

static tn_status save_v1_compute(tn_kernel_ctx *ctx) { return save_v1(ctx, 2); }
static tn_status save_slices_compute(tn_kernel_ctx *ctx) { return save_v1(ctx, 3); }

/* ---- tables ---- */

#define OP(op, in, attributes, text)                                                             \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = "", .attrs = attributes, \
    .traits = TN_TRAIT_STATEFUL, .infer = tn__infer_nothing, .summary = text }

static const tn_op_def ops[] = {
  OP("SaveV2", "prefix: string, tensor_names: string, shape_and_slices: string, tensors: dtypes",
     "dtypes: list(type) >= 1", "writes tensors, or slices of them, as a checkpoint"),
  OP("Save", "filename: string, tensor_names: string, data: T", "T: list(type) >= 1",
     "writes tensors as a checkpoint of version 1"),
  OP("SaveSlices", "filename: string, tensor_names: string, shapes_and_slices: string, data: T", "T: list(type) >= 1",
     "writes tensors, or slices of them, as a checkpoint of version 1"),
};

#define KERNEL(which, title, prepare_fn, compute_fn)                                                   \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C, \
    .prepare = prepare_fn, .compute = compute_fn }

static const tn_kernel_def kernels[] = {
  KERNEL("SaveV2", "save_v2_cpu", save_prepare, save_compute),
  KERNEL("Save", "save_cpu", save_v1_prepare, save_v1_compute),
  KERNEL("SaveSlices", "save_slices_cpu", save_v1_prepare, save_slices_compute),
};

TN_OP_FAMILY(checkpoint_save)
