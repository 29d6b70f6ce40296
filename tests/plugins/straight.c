/* SPDX-License-Identifier: Apache-2.0 */
/* Level (c) of the kit: a runtime that knows a few ops on float scalars and executes plans by
 * itself. It accepts straight plans only. With the setting "blind=1" it does not check first,
 * and reads instructions until one is refused. */
#include <string.h>

#include <tenon/runtime.h>

#include "runtime.h"

TN_PLUGIN_MANIFEST("runtime", "test.straight", "CPU", "0", "1.0.0", "Tests", "")

enum { MOST_VALUES = 64 };

struct tn_runtime_session {
  int blind;
};

struct tn_executable {
  const tn_plan *plan;
};

static const char *const settings[] = { "blind" };

static tn_status new_session(const tn_session_factory *self, const tn_session_options *options,
                             tn_runtime_session **out, tn_error *err)
{
  (void)self;
  *out = tn_alloc(sizeof **out);
  if (*out == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a session");
  (*out)->blind = tn_session_options_setting(options, "blind") != NULL;
  return TN_OK;
}

static tn_bool accepts_options(const tn_session_factory *self, const tn_session_options *options)
{
  (void)self;
  return tn_session_options_check_settings(options, settings, 1, NULL) == TN_OK;
}

static void destroy_session(const tn_session_factory *self, tn_runtime_session *session)
{
  (void)self;
  tn_free(session);
}

static tn_status knows_all(const tn_plan *plan, tn_error *err)
{
  static const char *const known[] = { "AddV2", "Mul", "Neg", "Identity" };
  for (size_t i = 0; i < tn_plan_n_instructions(plan); i++) {
    tn_plan_instruction in = { .struct_size = sizeof in };
    size_t k = 0;
    tn_status st = tn_plan_get_instruction(plan, i, &in, err);
    if (st != TN_OK) return st;
    while (k < 4 && strcmp(tn_operation_type(in.op), known[k]) != 0) k++;
    if (k == 4) return tn_error_set(err, TN_UNIMPLEMENTED, "op '%s' is not supported", tn_operation_type(in.op));
  }
  return tn_plan_n_values(plan) <= MOST_VALUES ? TN_OK : tn_error_set(err, TN_UNIMPLEMENTED, "too many values");
}

static tn_status prepare(const tn_session_factory *self, tn_runtime_session *session, const tn_plan *plan,
                         tn_executable **out, tn_error *err)
{
  (void)self;
  tn_status st = session->blind ? TN_OK : tn_plan_check_straight(plan, err);
  if (st == TN_OK) st = knows_all(plan, err);
  if (st != TN_OK) return st;
  *out = tn_alloc(sizeof **out);
  if (*out == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a plan");
  (*out)->plan = plan;
  return TN_OK;
}

static void release(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable)
{
  (void)self, (void)session;
  tn_free(executable);
}

static tn_status compute(const tn_plan *plan, tn_step *step, float *values, tn_error *err)
{
  for (size_t i = 0; i < tn_plan_n_values(plan); i++) {
    tn_plan_value v = { .struct_size = sizeof v };
    tn_status st = tn_plan_get_value(plan, i, &v, err);
    if (st != TN_OK) return st;
    const tn_tensor *t = v.kind == TN_VALUE_FEED ? tn_step_input(step, v.index) : v.constant;
    if (v.kind != TN_VALUE_COMPUTED && (v.dtype != TN_FLOAT || tn_tensor_rank(t) != 0))
      return tn_error_set(err, TN_UNIMPLEMENTED, "value %zu is not a float scalar", i);
    if (v.kind != TN_VALUE_COMPUTED) values[i] = *(const float *)tn_tensor_data((tn_tensor *)t);
  }
  for (size_t i = 0; i < tn_plan_n_instructions(plan); i++) {
    tn_plan_instruction in = { .struct_size = sizeof in };
    tn_status st = tn_plan_get_instruction(plan, i, &in, err);
    if (st != TN_OK) return st;
    const char *op = tn_operation_type(in.op);
    float a = values[in.inputs[0]], b = in.n_inputs > 1 ? values[in.inputs[1]] : 0;
    float *out = &values[in.outputs[0]];
    switch (*op) {
    case 'A': *out = a + b; break;
    case 'M': *out = a * b; break;
    case 'N': *out = -a; break;
    default: *out = a; break;
    }
  }
  return TN_OK;
}

static tn_status step(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable,
                      tn_step *s, tn_error *err)
{
  (void)self, (void)session;
  float values[MOST_VALUES];
  tn_status st = compute(executable->plan, s, values, err);
  for (size_t o = 0; st == TN_OK && o < tn_plan_n_outputs(executable->plan); o++) {
    tn_tensor *t = NULL;
    const float *value = &values[tn_plan_output(executable->plan, o)];
    st = tn_tensor_from_data(TN_FLOAT, NULL, 0, value, sizeof *value, &t, err);
    if (st == TN_OK) tn_step_set_output(s, o, t);
  }
  return st;
}

TEST_RUNTIME("test.straight", .prepare = prepare, .release = release, .step = step)
