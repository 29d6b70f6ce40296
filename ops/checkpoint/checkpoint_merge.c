/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints in parts, which several savers write: MergeV2Checkpoints, and the names of the parts: ShardedFilename
 * ShardedFilespec. */
#define _GNU_SOURCE
#include <core/formats/bundle/bundle.h>
#include <ops/checkpoint/prefix.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <string.h>
#include <unistd.h>

/* ---- MergeV2Checkpoints ---- */

typedef struct merge {
  bool remove;        /* the folders of the parts */
  bool allow_missing;
} merge;

static void merge_destroy(void *state) { tn__free(state, sizeof(merge)); }

static tn_status merge_create(const tn_operation *op, void **state, tn_error *err)
{
  merge m = { tn__attr_bool(op, "delete_old_dirs", true), tn__attr_bool(op, "allow_missing_files", false) };
  return tn__keep_state(&m, sizeof m, "kernel", state, err);
}

static tn_status merge_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 0, 1, err);
  ctx->cost_ns = 200000;
  return st == TN_OK ? tn__want_rank(ctx, 1, 0, err) : st;
}

/* The prefixes of the parts. */
typedef struct parts {
  char **prefixes; /* owned; room for the elements of input 0 */
  size_t n;
} parts;

static tn_status exists(const char *prefix, bool *out, tn_error *err)
{
  char *index = tn__bundle_index_name(prefix);
  if (index == NULL) return tn__no_memory(err, "file name", strlen(prefix));
  *out = access(index, F_OK) == 0;
  tn__strfree(index);
  return TN_OK;
}

static tn_status add_part(const tn_kernel_ctx *ctx, int64_t i, parts *p)
{
  const merge *m = ctx->state;
  bool there = false;
  char *prefix;
  tn_status st = tn__prefix_of(ctx, 0, i, TN__TO_WRITE, &prefix);
  if (st == TN_OK) st = exists(prefix, &there, ctx->err);
  if (st == TN_OK && !there && !m->allow_missing)
    st = tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                      "checkpoint '%s' does not exist, and allow_missing_files is false", prefix);
  if (st == TN_OK && there) p->prefixes[p->n++] = prefix;
  else tn__strfree(prefix);
  return st;
}

/* A part of the destination's own name would be overwritten by itself. */
static tn_status check_destination(const parts *p, const char *destination, tn_error *err)
{
  for (size_t i = 0; i < p->n; i++)
    if (strcmp(p->prefixes[i], destination) == 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "checkpoint '%s' is merged into itself", destination);
  if (p->n > 0) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "none of the checkpoints to be merged into '%s' exists", destination);
}

static tn_status merge_parts(const tn_kernel_ctx *ctx, parts *p)
{
  const merge *m = ctx->state;
  char *destination = NULL;
  tn_status st = TN_OK;
  for (int64_t i = 0; st == TN_OK && i < ctx->inputs[0]->count; i++) st = add_part(ctx, i, p);
  if (st == TN_OK) st = tn__prefix_of(ctx, 1, 0, TN__TO_WRITE, &destination);
  if (st == TN_OK) st = check_destination(p, destination, ctx->err);
  if (st == TN_OK) st = tn__prefix_make_folder(destination, ctx->err);
  if (st == TN_OK) st = tn__bundle_merge((const char *const *)p->prefixes, p->n, destination, m->remove, ctx->err);
  tn__strfree(destination);
  return st;
}

static tn_status merge_compute(tn_kernel_ctx *ctx)
{
  size_t room = (size_t)ctx->inputs[0]->count;
  parts p = { tn__alloc_array(room, sizeof(char *)), 0 };
  if (p.prefixes == NULL && room > 0) return tn__no_memory(ctx->err, "list of prefixes", room);
  tn_status st = merge_parts(ctx, &p);
  for (size_t i = 0; i < p.n; i++) tn__strfree(p.prefixes[i]);
  tn__free(p.prefixes, room * sizeof(char *));
  return st;
}

/* ---- ShardedFilename, ShardedFilespec ---- */

static tn_status name_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < ctx->n_inputs; i++) st = tn__want_rank(ctx, i, 0, err);
  ctx->cost_ns = 300;
  return st == TN_OK ? tn_prepare_output(ctx, 0, NULL, 0, err) : st;
}

static tn_status give_name(const tn_kernel_ctx *ctx, const char *end)
{
  tn__text name;
  tn__slice base = tn__text_input(ctx, 0, 0);
  tn__text_init(&name, SIZE_MAX / 2);
  tn__text_append(&name, base.data, base.size);
  tn__text_puts(&name, end);
  tn_status st = name.failed ? tn__no_memory(ctx->err, "file name", base.size)
                             : tn_string_set(ctx->outputs[0]->data, tn__text_get(&name), name.size, ctx->err);
  tn__text_fini(&name);
  return st;
}

static int32_t number(const tn_kernel_ctx *ctx, uint32_t i) { return *(const int32_t *)ctx->inputs[i]->data; }

static tn_status name_compute(tn_kernel_ctx *ctx)
{
  char end[48];
  tn__snprintf(end, sizeof end, "-%05d-of-%05d", (int)number(ctx, 1), (int)number(ctx, 2));
  return give_name(ctx, end);
}

static tn_status spec_compute(tn_kernel_ctx *ctx)
{
  char end[32];
  tn__snprintf(end, sizeof end, "-%s-of-%05d", "?????", (int)number(ctx, 1));
  return give_name(ctx, end);
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "MergeV2Checkpoints",
    .inputs = "checkpoint_prefixes: string, destination_prefix: string", .outputs = "",
    .attrs = "delete_old_dirs: bool = true; allow_missing_files: bool = false", .traits = TN_TRAIT_STATEFUL,
    .infer = tn__infer_nothing, .summary = "makes one checkpoint of several" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "ShardedFilename",
    .inputs = "basename: string, shard: int32, num_shards: int32", .outputs = "filename: string", .attrs = "",
    .infer = tn__infer_scalar, .summary = "the name of one part of a checkpoint" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "ShardedFilespec", .inputs = "basename: string, num_shards: int32",
    .outputs = "filename: string", .attrs = "", .infer = tn__infer_scalar,
    .summary = "a pattern of the names of all parts of a checkpoint" },
};

static const tn_kernel_def kernels[] = {
  TN__KERNEL("MergeV2Checkpoints", "merge_v2_checkpoints_cpu", merge_create, merge_destroy, merge_prepare,
             merge_compute),
  TN__KERNEL("ShardedFilename", "sharded_filename_cpu", NULL, NULL, name_prepare, name_compute),
  TN__KERNEL("ShardedFilespec", "sharded_filespec_cpu", NULL, NULL, name_prepare, spec_compute),
};

TN_OP_FAMILY(checkpoint_merge)
