/* SPDX-License-Identifier: Apache-2.0 */
/* Data shared by all schedules of a plan: its segments, and which segment makes and reads each value. */
#include "schedule/executable.h"

#include "device/base.h"

/* Which segment makes each value; feeds and constants count as made in the first. */
static tn_status find_makers(tn_executable *e, tn_error *err)
{
  tn_status st = TN_OK;
  for (uint32_t k = 0; k < e->n_segments; k++)
    for (uint32_t i = e->segments[k].begin; st == TN_OK && i < e->segments[k].end; i++) {
      tn_plan_instruction in = { .struct_size = sizeof in };
      st = tn_plan_get_instruction(e->plan, i, &in, err);
      for (uint32_t o = 0; st == TN_OK && o < in.n_outputs; o++) {
        e->made_in[in.outputs[o]] = k;
        e->computed_from[in.outputs[o] / 32] |= UINT32_C(1) << in.outputs[o] % 32;
      }
    }
  return st;
}

static tn_status read_segments(tn_executable *e, tn_error *err)
{
  tn_status st = TN_OK;
  for (uint32_t k = 0; st == TN_OK && k < e->n_segments; k++) {
    tn_plan_segment s = { .struct_size = sizeof s };
    if (tn_plan_n_segments(e->plan) > 0) st = tn_plan_get_segment(e->plan, k, &s, err);
    e->segments[k] = (gpu_segment){ .begin = s.begin, .end = s.end, .entries = s.entries, .n_entries = s.n_entries,
                                    .outputs = gpu_new(e->n_outputs + 1, sizeof(uint32_t)) };
    if (st == TN_OK && e->segments[k].outputs == NULL) st = gpu_no_memory(err, "a plan");
  }
  return st;
}

static tn_status read_values(tn_executable *e, tn_error *err)
{
  tn_status st = find_makers(e, err);
  for (uint32_t k = 0; k < e->n_segments; k++)
    for (uint32_t i = 0; i < e->segments[k].n_entries; i++) {
      uint32_t v = e->segments[k].entries[i];
      if (gpu_is_computed(e, v)) e->crosses[v] = true;
      e->read_in[v] = k;
    }
  for (uint32_t v = 0; st == TN_OK && v < e->n_values; v++) {
    tn_plan_value value = { .struct_size = sizeof value };
    e->gives_shapes[v] = tn_plan_value_gives_shapes(e->plan, v);
    st = tn_plan_get_value(e->plan, v, &value, err);
    if (st == TN_OK && value.kind == TN_VALUE_FEED) e->feeds[value.index] = v;
  }
  for (uint32_t o = 0; o < e->n_outputs; o++) {
    gpu_segment *g = &e->segments[e->made_in[tn_plan_output(e->plan, o)]];
    g->outputs[g->n_outputs++] = o;
  }
  return st;
}

tn_status gpu_executable_read(tn_executable *e, tn_error *err)
{
  size_t n_feeds = tn_plan_n_inputs(e->plan);
  e->n_values = (uint32_t)tn_plan_n_values(e->plan);
  e->n_outputs = (uint32_t)tn_plan_n_outputs(e->plan);
  e->n_segments = (uint32_t)tn_plan_n_segments(e->plan);
  if (e->n_segments == 0) e->n_segments = 1; /* nothing is computed */
  e->segments = gpu_new(e->n_segments, sizeof *e->segments);
  e->gives_shapes = gpu_new(e->n_values + 1, sizeof *e->gives_shapes);
  e->crosses = gpu_new(e->n_values + 1, sizeof *e->crosses);
  e->made_in = gpu_new((size_t)e->n_values + e->n_values / 32 + 2, sizeof *e->made_in);
  e->read_in = gpu_new(e->n_values + 1, sizeof *e->read_in);
  e->feeds = gpu_new(n_feeds + 1, sizeof *e->feeds);
  if (e->segments == NULL || e->gives_shapes == NULL || e->crosses == NULL || e->made_in == NULL ||
      e->read_in == NULL || e->feeds == NULL)
    return gpu_no_memory(err, "a plan");
  e->computed_from = e->made_in + e->n_values + 1;
  for (size_t i = 0; i < n_feeds; i++) e->feeds[i] = GPU_NONE;
  tn_status st = read_segments(e, err);
  return st == TN_OK ? read_values(e, err) : st;
}

void gpu_executable_fini(tn_executable *e)
{
  for (uint32_t k = 0; e->segments != NULL && k < e->n_segments; k++) tn_free(e->segments[k].outputs);
  tn_free(e->segments);
  tn_free(e->gives_shapes);
  tn_free(e->crosses);
  tn_free(e->made_in);
  tn_free(e->read_in);
  tn_free(e->feeds);
}
