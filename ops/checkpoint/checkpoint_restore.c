/* SPDX-License-Identifier: Apache-2.0 */
/* Reading checkpoints: RestoreV2, and of version 1 Restore and RestoreSlice. Either all tensors of a node are read, or
 * none. */
#include <ops/checkpoint/prefix.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <string.h>

#define RESTORE_NS 100000

/* ---- one node ---- */

/* A tensor to be read. */
typedef struct wanted {
  const tn__stored *entry;
  tn__region region; /* of the tensor; rank -1: all of it */
} wanted;

typedef struct job {
  tn_kernel_ctx *ctx;
  tn__store *store;
  tn__arena arena;
  uint32_t n;
  wanted *wanted;   /* n */
  tn_tensor **read; /* n references */
} job;

static int text_size(tn__slice text) { return (int)(text.size < 200 ? text.size : 200); }

static tn_status open_store(job *j, bool old)
{
  tn_status st = tn__prefix_open(j->ctx, 0, &j->store);
  if (st != TN_OK || !old || j->store->kind->version == 1) return st;
  return tn_error_set(j->ctx->err, TN_NOT_FOUND, "checkpoint '%s' has version %d, wanted 1", j->store->prefix,
                      (int)j->store->kind->version);
}

static tn_status check_dtype(const job *j, uint32_t i, tn__slice name)
{
  tn_dtype found = j->wanted[i].entry->dtype, want = j->ctx->outputs[i]->dtype;
  if (found == want) return TN_OK;
  return tn_error_set(j->ctx->err, TN_INVALID_ARGUMENT, "tensor '%.*s' of checkpoint '%s' has dtype %s, wanted %s",
                      text_size(name), name.data, j->store->prefix, tn_dtype_name(found), tn_dtype_name(want));
}

static tn_status check_cover(job *j, const wanted *w, tn__slice name)
{
  char text[200];
  bool covers = false;
  const tn__stored *e = w->entry;
  if (!e->sliced) return TN_OK;
  tn__region whole = w->region, *regions = tn__arena_array(&j->arena, e->n_parts, sizeof *regions);
  if (regions == NULL) return tn__no_memory(j->ctx->err, "slices of a tensor", e->n_parts);
  for (size_t i = 0; i < e->n_parts; i++) regions[i] = e->parts[i].region;
  tn_status st = TN_OK;
  if (whole.rank < 0) st = tn__region_all(e->rank, e->dims, &j->arena, &whole, j->ctx->err);
  if (st == TN_OK) st = tn__regions_cover(regions, e->n_parts, &whole, &covers, j->ctx->err);
  if (st != TN_OK || covers) return st;
  return tn_error_set(j->ctx->err, TN_INVALID_ARGUMENT,
                      "the slices of tensor '%.*s' in checkpoint '%s' do not make up its slice %s", text_size(name),
                      name.data, j->store->prefix, tn__region_format(text, sizeof text, &whole));
}

/* Sets the region of tensor i from the text of its specification. */
static tn_status read_spec(job *j, uint32_t i, tn__slice name, tn__slice spec)
{
  char want[200], found[200];
  wanted *w = &j->wanted[i];
  const tn__stored *e = w->entry;
  int32_t rank;
  const int64_t *dims;
  tn_status st = tn__slice_spec_parse(spec, &j->arena, &rank, &dims, &w->region, j->ctx->err);
  if (st != TN_OK) return tn_error_prefix(j->ctx->err, "tensor '%.*s'", text_size(name), name.data);
  if (rank < 0) w->region.rank = -1;
  else if (rank != e->rank || (rank > 0 && memcmp(dims, e->dims, (size_t)rank * sizeof *dims) != 0))
    return tn_error_set(j->ctx->err, TN_INVALID_ARGUMENT,
                        "tensor '%.*s' of checkpoint '%s' has shape %s, but the specification '%.*s' is for shape %s",
                        text_size(name), name.data, j->store->prefix,
                        tn__format_shape(found, sizeof found, e->dims, e->rank), text_size(spec), spec.data,
                        tn__format_shape(want, sizeof want, dims, rank));
  return check_cover(j, w, name);
}

/* Reads all whole tensors at once, and each slice. */
static tn_status read_all(job *j, unsigned threads)
{
  const tn__stored **entries = tn__arena_array(&j->arena, j->n, sizeof *entries);
  tn_tensor **whole = tn__arena_array(&j->arena, j->n, sizeof *whole);
  size_t n = 0;
  if (entries == NULL || whole == NULL) return tn__no_memory(j->ctx->err, "list of tensors", j->n);
  for (uint32_t i = 0; i < j->n; i++)
    if (j->wanted[i].region.rank < 0) entries[n++] = j->wanted[i].entry;
  tn_status st = n > 0 ? tn__store_read_many(j->store, entries, n, threads, whole, j->ctx->err) : TN_OK;
  for (uint32_t i = 0, k = 0; st == TN_OK && i < j->n; i++) {
    const wanted *w = &j->wanted[i];
    if (w->region.rank < 0) j->read[i] = whole[k++];
  }
  for (uint32_t i = 0; st == TN_OK && i < j->n; i++) {
    const wanted *w = &j->wanted[i];
    if (w->region.rank >= 0)
      st = tn__store_read_region(j->store, w->entry, &w->region, &j->read[i], j->ctx->err);
  }
  return st;
}

/* specs: the input with the specifications; 0: there is none. */
static tn_status restore(job *j, uint32_t specs, unsigned threads)
{
  const tn__slice none = { "", 0 };
  tn_status st = TN_OK;
  j->wanted = tn__arena_array(&j->arena, j->n, sizeof *j->wanted);
  j->read = tn__arena_array(&j->arena, j->n, sizeof *j->read);
  if (j->wanted == NULL || j->read == NULL) return tn__no_memory(j->ctx->err, "list of tensors", j->n);
  for (uint32_t i = 0; st == TN_OK && i < j->n; i++)
    st = tn__store_get(j->store, tn__text_input(j->ctx, 1, i), &j->wanted[i].entry, j->ctx->err);
  for (uint32_t i = 0; st == TN_OK && i < j->n; i++) st = check_dtype(j, i, tn__text_input(j->ctx, 1, i));
  for (uint32_t i = 0; st == TN_OK && i < j->n; i++)
    st = read_spec(j, i, tn__text_input(j->ctx, 1, i), specs == 0 ? none : tn__text_input(j->ctx, specs, i));
  if (st == TN_OK) st = read_all(j, threads);
  for (uint32_t i = 0; st == TN_OK && i < j->n; i++) st = tn_kernel_set_output(j->ctx, i, j->read[i]);
  for (uint32_t i = 0; i < j->n; i++) tn_tensor_unref(j->read[i]);
  return st;
}

static tn_status run(tn_kernel_ctx *ctx, bool old, uint32_t specs)
{
  job j = { .ctx = ctx, .n = ctx->n_outputs };
  const unsigned *threads = ctx->shape_state;
  tn__arena_init(&j.arena, 1024);
  tn_status st = open_store(&j, old);
  if (st == TN_OK) st = restore(&j, specs, *threads);
  tn__store_close(j.store);
  tn__arena_fini(&j.arena);
  return st;
}

/* ---- kernels ---- */

static void destroy_threads(void *threads) { tn__free(threads, sizeof(unsigned)); }

static tn_status prepare_outputs(tn_prepare_ctx *ctx, tn_error *err)
{
  unsigned threads = ctx->threads;
  ctx->cost_ns = RESTORE_NS;
  tn_status st = tn__keep_state(&threads, sizeof threads, "kernel", &ctx->shape_state, err);
  return st == TN_OK ? tn__prepare_all_dynamic(ctx, err) : st;
}

static tn_status restore_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_one(ctx, 0, err);
  if (st == TN_OK) st = tn__want_names(ctx, 1, 2, ctx->n_outputs, "dtypes", err);
  return st == TN_OK ? prepare_outputs(ctx, err) : st;
}

/* Of several names TensorFlow takes the first. */
static tn_status restore_v1_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_one(ctx, 0, err);
  for (uint32_t i = 1; st == TN_OK && i < ctx->n_inputs; i++)
    if (ctx->inputs[i].count < 1)
      st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %u is empty", tn_operation_type(ctx->op), (unsigned)i);
  return st == TN_OK ? prepare_outputs(ctx, err) : st;
}

static tn_status restore_compute(tn_kernel_ctx *ctx) { return run(ctx, false, 2); }
static tn_status restore_v1_compute(tn_kernel_ctx *ctx) { return run(ctx, true, 0); }
static tn_status restore_slice_compute(tn_kernel_ctx *ctx) { return run(ctx, true, 2); }

/* ---- shapes ---- */

/* The slice of a constant specification, if there is one. */
static tn_status infer_output(tn_infer_ctx *ctx, size_t output, const tn_tensor *specs, int64_t i, tn_error *err)
{
  tn__arena arena;
  int32_t rank = -1;
  const int64_t *dims;
  tn__region region;
  tn__slice spec = { "", 0 };
  if (specs != NULL && i < specs->count)
    spec.data = tn_string_data((const tn_string *)specs->data + i, &spec.size);
  tn__arena_init(&arena, 256);
  tn_status st = tn__slice_spec_parse(spec, &arena, &rank, &dims, &region, NULL);
  if (st != TN_OK) rank = -1; /* an error of the step */
  st = tn_infer_output(ctx, output, rank < 0 ? NULL : region.lengths, rank, err);
  tn__arena_fini(&arena);
  return st;
}

static tn_status infer_slices(tn_infer_ctx *ctx, tn_error *err)
{
  const tn_tensor *specs = tn_infer_input_value(ctx, 2);
  size_t n = tn_operation_n_outputs(tn_infer_operation(ctx));
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < n; i++) st = infer_output(ctx, i, specs, (int64_t)i, err);
  return st;
}

/* ---- tables ---- */

#define OP(op, in, out, attributes, shapes, text)                                                 \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .traits = TN_TRAIT_STATEFUL | TN_TRAIT_READS | TN_TRAIT_DYNAMIC, .infer = shapes, .summary = text }

static const tn_op_def ops[] = {
  OP("RestoreV2", "prefix: string, tensor_names: string, shape_and_slices: string", "tensors: dtypes",
     "dtypes: list(type) >= 1", infer_slices, "tensors of a checkpoint, or slices of them"),
  OP("Restore", "file_pattern: string, tensor_name: string", "tensor: dt", "dt: type; preferred_shard: int = -1",
     tn__infer_unknown, "a tensor of a checkpoint of version 1"),
  OP("RestoreSlice", "file_pattern: string, tensor_name: string, shape_and_slice: string", "tensor: dt",
     "dt: type; preferred_shard: int = -1", infer_slices, "a slice of a tensor of a checkpoint of version 1"),
};

#define KERNEL(which, title, prepare_fn, compute_fn)                                                   \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C, \
    .prepare = prepare_fn, .destroy_shape_state = destroy_threads, .compute = compute_fn }

static const tn_kernel_def kernels[] = {
  KERNEL("RestoreV2", "restore_v2_cpu", restore_prepare, restore_compute),
  KERNEL("Restore", "restore_cpu", restore_v1_prepare, restore_v1_compute),
  KERNEL("RestoreSlice", "restore_slice_cpu", restore_v1_prepare, restore_slice_compute),
};

TN_OP_FAMILY(checkpoint_restore)
