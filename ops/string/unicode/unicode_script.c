/* SPDX-License-Identifier: Apache-2.0 */
/* The script that each character belongs to: UnicodeScript. */
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <ops/string/unicode/unicode_script_table.h>

#define NO_SCRIPT (-1) /* of numbers that are not code points */

static int32_t script_of(int32_t c)
{
  size_t low = 0, high = tn__script_ranges_n;
  if (c < 0 || c > 0x10ffff) return NO_SCRIPT;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if ((uint32_t)c > tn__script_ranges[middle].last) low = middle + 1;
    else high = middle;
  }
  bool found = low < tn__script_ranges_n && (uint32_t)c >= tn__script_ranges[low].first;
  return found ? tn__script_ranges[low].script : TN__SCRIPT_UNKNOWN;
}

static void script_part(void *user, int64_t begin, int64_t end)
{
  tn_kernel_ctx *ctx = user;
  const int32_t *x = ctx->inputs[0]->data;
  int32_t *y = ctx->outputs[0]->data;
  for (int64_t i = begin; i < end; i++) y[i] = script_of(x[i]);
}

static tn_status script_compute(tn_kernel_ctx *ctx)
{
  int64_t n = ctx->outputs[0]->count;
  if (n <= TN__SERIAL_ELEMENTS / 16) script_part(ctx, 0, n);
  else tn_parallel_for(ctx, n, TN__SERIAL_ELEMENTS / 16, 20, script_part, ctx);
  return TN_OK;
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "UnicodeScript", .inputs = "input: int32", .outputs = "output: int32",
    .attrs = "", .infer = tn__infer_unchanged, .summary = "scripts of characters" },
};

static const tn_kernel_def kernels[] = {
  TN__KERNEL("UnicodeScript", "unicode_script_cpu", NULL, NULL, tn__prepare_unchanged, script_compute),
};

TN_OP_FAMILY(unicode_script)
