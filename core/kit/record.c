/* SPDX-License-Identifier: Apache-2.0 */
/* Records in a step's trace for instructions that a runtime ran by itself (level (c)), on the host
 * or on a device. */
#include <core/exec/step/env.h>
#include <core/kit/layout.h>
#include <core/exec/step/trace.h>

tn_bool tn_step_wants_records(const tn_step *step) { return tn__step_trace(step) != NULL; }

/* The shape of a value; a scalar if it is not known. */
static tn_layout_value describe(const tn_plan_layout *layout, uint32_t value)
{
  tn_layout_value v = { .struct_size = sizeof v };
  bool known = tn_kit_layout_value(layout, value, &v, NULL) == TN_OK && v.rank >= 0;
  return known ? v : (tn_layout_value){ .struct_size = sizeof v, .dtype = v.dtype };
}

static size_t bytes_of(const tn_plan_layout *layout, const uint32_t *values, uint32_t n)
{
  size_t bytes = 0;
  for (uint32_t k = 0; k < n; k++) bytes += tn__trace_output_bytes(describe(layout, values[k]).rank);
  return bytes;
}

static tn__trace_output *put(tn__trace_output *o, const tn_plan_layout *layout, const uint32_t *values, uint32_t n)
{
  for (uint32_t k = 0; k < n; k++) {
    tn_layout_value v = describe(layout, values[k]);
    o = tn__trace_put_output(o, v.dtype, v.dims, v.rank, v.bytes);
  }
  return o;
}

/* Any thread of the step: the record is made on this thread's lane. device: NULL = the kernel ran
 * on the host. */
void tn_step_record(tn_step *step, const tn_plan_layout *layout, size_t instruction, const char *device,
                    int64_t start_ns, int64_t end_ns, tn_status status)
{
  tn__trace *trace = step == NULL ? NULL : tn__step_trace(step);
  tn_layout_instruction in = { .struct_size = sizeof in };
  if (trace == NULL || layout == NULL || tn_kit_layout_instruction(layout, instruction, &in, NULL) != TN_OK) return;
  const tn_plan *plan = tn__kit_layout_plan(layout);
  const tn__plan_instr *instr = &plan->instrs[instruction];
  const uint32_t *outputs = tn__instr_outputs(plan, instr), *inputs = tn__instr_inputs(plan, instr);
  uint32_t n = status == TN_OK ? instr->n_outputs : 0, n_inputs = status == TN_OK ? instr->n_inputs : 0;
  size_t bytes = bytes_of(layout, outputs, n) + bytes_of(layout, inputs, n_inputs);
  tn__trace_record *r = tn__trace_record_create(trace, sizeof(tn__trace_record) + bytes);
  if (r == NULL) return;
  r->op = instr->op;
  r->kernel = device == NULL ? in.kernel : NULL;
  r->device = device;
  r->kind = in.computes ? TN_RECORD_NODE : TN_RECORD_EMPTY;
  r->start_ns = start_ns;
  r->end_ns = end_ns;
  r->status = status;
  r->scratch_bytes = device == NULL ? in.scratch_bytes : 0;
  r->n_outputs = n;
  r->n_inputs = n_inputs;
  put(put((tn__trace_output *)(r + 1), layout, outputs, n), layout, inputs, n_inputs);
}
