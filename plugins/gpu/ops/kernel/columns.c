/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over everything but the channels. */
#include "ops/kernel/columns.h"

void gpu_arg_ref(gpu_launch *l, gpu_ref ref)
{
  switch (ref.kind) {
  case GPU_ARG_INPUT: gpu_arg_input(l, (uint32_t)ref.at); break;
  case GPU_ARG_OUTPUT: gpu_arg_output(l, (uint32_t)ref.at); break;
  default: gpu_arg_scratch(l, ref.at);
  }
}

gpu_columns gpu_columns_of(const gpu_value *v, bool channels_first)
{
  gpu_columns c = { .dtype = v->dtype, .inner = 1 };
  c.channels = v->dims[channels_first ? 1 : v->rank - 1];
  if (channels_first)
    for (int32_t i = 2; i < v->rank; i++) c.inner *= v->dims[i];
  c.terms = c.channels > 0 ? v->count / c.channels : 0;
  return c;
}

#define CHANNELS 16
#define SHARES 16

/* The number of terms of a group: enough groups for the whole device, and enough work for each. */
static int64_t terms_of_group(const gpu_node *n, const gpu_columns *c)
{
  const int64_t blocks = (c->channels + CHANNELS - 1) / CHANNELS;
  int64_t wanted = 4 * (int64_t)n->device->compute_units, most = c->terms / (16 * SHARES);
  if (wanted < 16) wanted = 16;
  if (wanted > 1024) wanted = 1024;
  if (blocks > 0) wanted /= blocks;
  if (wanted > most) wanted = most;
  return wanted <= 1 ? c->terms : (c->terms + wanted - 1) / wanted;
}

void gpu_columns_sum(gpu_node *n, const gpu_columns *c, int kind, gpu_ref x, gpu_ref y, gpu_ref mean, float by,
                     gpu_ref to, tn_dtype as)
{
  const gpu_element *e = gpu_element_of(c->dtype);
  const int64_t each = terms_of_group(n, c), parts = each > 0 ? (c->terms + each - 1) / each : 0;
  const size_t wide = e != NULL && e->bits > 32 ? 8 : 4;
  const size_t at = gpu_scratch(n, (size_t)(parts * c->channels) * wide);
  gpu_launch *l = gpu_launch_file(n, "columns", "columns");
  gpu_define(l, "SUMS", "1");
  gpu_define_elements(l, "", c->dtype);
  if (c->inner > 1) gpu_define(l, "INNER", "1");
  if (kind == GPU_SUM_SQUARES) gpu_define(l, "SQUARES", "1");
  if (kind == GPU_SUM_WITH) gpu_define(l, "WITH", "1");
  gpu_arg_ref(l, x);
  gpu_arg_ref(l, kind == GPU_SUM_WITH ? y : x);
  gpu_arg_ref(l, kind == GPU_SUM_PLAIN ? x : mean);
  gpu_arg_scratch(l, at);
  gpu_arg_long(l, c->channels);
  gpu_arg_long(l, c->inner);
  gpu_arg_long(l, c->terms);
  gpu_arg_long(l, each);
  gpu_range_1d(l, parts * ((c->channels + CHANNELS - 1) / CHANNELS) * CHANNELS * SHARES, CHANNELS * SHARES);

  l = gpu_launch_file(n, "columns", "columns_sum");
  gpu_define(l, "FINISH", "1");
  gpu_define_elements(l, "", c->dtype);
  gpu_define_elements(l, "2", as);
  if (by != 1) gpu_define(l, "BY", "1");
  gpu_arg_scratch(l, at);
  gpu_arg_ref(l, to);
  gpu_arg_long(l, c->channels);
  gpu_arg_long(l, parts);
  gpu_arg_float(l, by);
  gpu_range_1d(l, c->channels, 64);
}
