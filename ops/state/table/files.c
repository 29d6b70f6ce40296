/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files: ReadFile WriteFile. */
#include <core/base/text.h>
#include <core/tensor/tensor_internal.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <ops/string/string_path.h>

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* ---- ReadFile ---- */

static tn_status read_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 0, 0, err);
  ctx->cost_ns = 50000;
  return st == TN_OK ? tn_prepare_output(ctx, 0, NULL, 0, err) : st;
}

static tn_status read_all(const tn__file *file, tn_string *out, tn_error *err)
{
  char *to = file->size > PTRDIFF_MAX / 8 ? NULL : tn__string_reserve(out, (size_t)file->size);
  if (to == NULL) return tn__no_memory(err, "contents of a file", (size_t)file->size);
  tn_status st = tn__file_read(file, 0, to, (size_t)file->size, err);
  if (st != TN_OK) tn_string_clear(out);
  return st;
}

static tn_status read_compute(tn_kernel_ctx *ctx)
{
  char *path;
  tn__file file;
  tn_status st = tn__file_name(ctx, ctx->inputs[0], TN__TO_READ, &path);
  if (st != TN_OK) return st;
  st = tn__named_file_open(path, &file, ctx->err);
  if (st == TN_OK) {
    st = read_all(&file, ctx->outputs[0]->data, ctx->err);
    tn__file_close(&file);
  }
  tn__strfree(path);
  return st;
}

/* ---- WriteFile ---- */

static tn_status write_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 0, 0, err);
  ctx->cost_ns = 100000;
  return st == TN_OK ? tn__want_rank(ctx, 1, 0, err) : st;
}

/* Creates the folders of a path. Errors are ignored here; opening the file reports them. */
static void make_folders(char *path)
{
  for (char *at = path + 1; (at = strchr(at, '/')) != NULL; at++) {
    *at = 0;
    int failed = mkdir(path, 0777);
    int number = errno;
    *at = '/';
    if (failed != 0 && number != EEXIST) return;
  }
}

static tn_status write_all(const char *path, const void *data, size_t n, tn_error *err)
{
  tn__writer w;
  tn_status st = tn__writer_open(&w, path, err);
  if (st != TN_OK) return st;
  st = tn__writer_write(&w, data, n, err);
  if (st == TN_OK) return tn__writer_commit(&w, err);
  tn__writer_abandon(&w);
  return st;
}

static tn_status write_compute(tn_kernel_ctx *ctx)
{
  char *path;
  size_t n;
  const char *text = tn_string_data(ctx->inputs[1]->data, &n);
  tn_status st = tn__file_name(ctx, ctx->inputs[0], TN__TO_WRITE, &path);
  if (st != TN_OK) return st;
  if (path[0] == 0) st = tn_error_set(ctx->err, TN_NOT_FOUND, "the file name is empty");
  if (st == TN_OK) st = tn__named_file_check(path, ctx->err);
  if (st == TN_OK) {
    make_folders(path);
    st = write_all(path, text, n, ctx->err);
  }
  tn__strfree(path);
  return st;
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE,
    .name = "ReadFile",
    .inputs = "filename: string",
    .outputs = "contents: string",
    .attrs = "",
    .traits = TN_TRAIT_STATEFUL | TN_TRAIT_READS,
    .infer = tn__infer_scalar,
    .summary = "contents of a file" },
  { .struct_size = TN_OP_DEF_SIZE,
    .name = "WriteFile",
    .inputs = "filename: string, contents: string",
    .outputs = "",
    .attrs = "",
    .traits = TN_TRAIT_STATEFUL,
    .infer = tn__infer_nothing,
    .summary = "writes a file, creating missing folders" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "ReadFile", .device = "CPU", .name = "read_file_cpu", .rank = TN_RANK_C,
    .prepare = read_prepare, .compute = read_compute },
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "WriteFile", .device = "CPU", .name = "write_file_cpu",
    .rank = TN_RANK_C, .prepare = write_prepare, .compute = write_compute },
};

TN_OP_FAMILY(files)
