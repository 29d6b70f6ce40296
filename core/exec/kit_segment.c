/* SPDX-License-Identifier: Apache-2.0 */
/* Level (c) of the kit: segments of a plan before there are shapes. */
#include <core/exec/exec.h>

tn_bool tn_plan_value_gives_shapes(const tn_plan *plan, size_t i)
{
  if (plan == NULL || i >= plan->n_values) return 0;
  for (uint32_t k = 0; k < plan->n_segments; k++) {
    const tn__segment *s = &plan->segments[k];
    for (uint32_t o = 0; o < s->n_operands; o++)
      if (s->entries[s->operands[o]] == i) return 1;
  }
  return 0;
}

size_t tn_plan_n_segments(const tn_plan *plan) { return plan == NULL ? 0 : plan->n_segments; }

tn_status tn_plan_get_segment(const tn_plan *plan, size_t i, tn_plan_segment *out, tn_error *err)
{
  tn__error_reset(err);
  if (plan == NULL || out == NULL || out->struct_size < sizeof(size_t))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_plan_get_segment: plan or out is NULL, or its struct_size is not set");
  tn_status st = tn_plan_check_straight(plan, err);
  if (st != TN_OK) return st;
  if (i >= plan->n_segments)
    return tn_error_set(err, TN_OUT_OF_RANGE, "segment %zu asked of a plan with %u", i, plan->n_segments);
  const tn__segment *s = &plan->segments[i];
  const tn_plan_segment full = { .struct_size = sizeof full, .begin = s->begin, .end = s->end, .n_entries = s->n_entries,
                                 .entries = s->entries };
  tn__copy_sized(out, &full, sizeof full, out->struct_size);
  return TN_OK;
}
