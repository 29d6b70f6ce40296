/* SPDX-License-Identifier: Apache-2.0 */
/* StringFormat: a template text with tensors inserted. */
#include <core/tensor/tensor_internal.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <ops/string/summary.h>

#include <string.h>

/* Texts are borrowed from the node. */
typedef struct format_state {
  tn__slice template_text, placeholder;
  int64_t most;
} format_state;

static void format_destroy(void *state) { tn__free(state, sizeof(format_state)); }

static tn__slice attr_slice(const tn_operation *op, const char *name)
{
  tn__slice s;
  if (tn_operation_attr_string(op, name, &s.data, &s.size, NULL) != TN_OK) s = tn__slice_of("%s");
  return s;
}

/* Removes the part up to and including the next placeholder. Returns false if there is none. */
static bool next_part(tn__slice *left, tn__slice placeholder, tn__slice *part)
{
  for (size_t i = 0; i + placeholder.size <= left->size; i++) {
    if (memcmp(left->data + i, placeholder.data, placeholder.size) != 0) continue;
    *part = (tn__slice){ left->data, i };
    left->data += i + placeholder.size;
    left->size -= i + placeholder.size;
    return true;
  }
  return false;
}

static tn_status format_create(const tn_operation *op, void **state, tn_error *err)
{
  size_t n = 0, wanted = tn_operation_n_inputs(op);
  format_state *s = tn__zalloc(sizeof *s);
  *state = NULL;
  if (s == NULL) return tn__no_memory(err, "kernel", sizeof *s);
  s->template_text = attr_slice(op, "template");
  s->placeholder = attr_slice(op, "placeholder");
  s->most = tn__attr_int(op, "summarize", 3);
  tn__slice left = s->template_text, part;
  while (s->placeholder.size > 0 && next_part(&left, s->placeholder, &part)) n++;
  if (s->placeholder.size > 0 && n == wanted) {
    *state = s;
    return TN_OK;
  }
  bool empty = s->placeholder.size == 0;
  format_destroy(s);
  return empty ? tn_error_set(err, TN_INVALID_ARGUMENT, "StringFormat: attribute 'placeholder' is empty")
               : tn_error_set(err, TN_INVALID_ARGUMENT,
                              "StringFormat: the template has %zu placeholders for %zu inputs", n, wanted);
}

static tn_status format_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  ctx->cost_ns = 200 + 500 * (double)ctx->n_inputs;
  return tn_prepare_output(ctx, 0, NULL, 0, err);
}

static tn_status format_compute(tn_kernel_ctx *ctx)
{
  const format_state *s = ctx->state;
  tn__slice left = s->template_text, part;
  tn__text t;
  tn__text_init(&t, PTRDIFF_MAX / 8);
  for (uint32_t i = 0; i < ctx->n_inputs && next_part(&left, s->placeholder, &part); i++) {
    tn__text_append(&t, part.data, part.size);
    tn__summarize_ends(&t, ctx->inputs[i], s->most);
  }
  tn__text_append(&t, left.data, left.size);
  tn_status st = t.failed ? tn__no_memory(ctx->err, "formatted text", t.size)
                          : tn_string_set(ctx->outputs[0]->data, tn__text_get(&t), t.size, ctx->err);
  tn__text_fini(&t);
  return st;
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "StringFormat", .inputs = "inputs: T", .outputs = "output: string",
    .attrs = "T: list(type) >= 0; template: string = '%s'; placeholder: string = '%s'; summarize: int = 3",
    .infer = tn__infer_scalar, .summary = "formats tensors into a string" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "StringFormat", .device = "CPU", .name = "string_format_cpu",
    .rank = TN_RANK_C, .create = format_create, .destroy = format_destroy, .prepare = format_prepare,
    .compute = format_compute },
};

TN_OP_FAMILY(string_format)
