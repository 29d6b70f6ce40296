/* SPDX-License-Identifier: Apache-2.0 */
/* When a step reaches its session's memory limit: lists the values that hold its memory in the
 * error. */
#include <core/exec/step/env.h>
#include <core/exec/values.h>

#define N_LARGEST 5 /* tensors in the report */

/* A tensor, borrowed, and the value that it is of. */
typedef struct large {
  const tn_tensor *tensor;
  tn_output from;
} large;

/* Inserts a tensor if it is among the largest. The list is sorted, largest first; no memory is
 * listed twice. */
static void consider(large *list, const tn_tensor *t, tn_output from)
{
  if (t == NULL || t->bytes == 0) return;
  for (int i = 0; i < N_LARGEST; i++)
    if (list[i].tensor != NULL && list[i].tensor->data == t->data) return;
  for (int i = 0; i < N_LARGEST; i++) {
    if (list[i].tensor != NULL && list[i].tensor->bytes >= t->bytes) continue;
    for (int k = N_LARGEST - 1; k > i; k--) list[k] = list[k - 1];
    list[i] = (large){ t, from };
    return;
  }
}

/* The values that the run holds at present: those that outlive their segment, and those on the
 * heap. */
static void add_values(const tn__run *run, large *list)
{
  const tn_plan *plan = run->plan;
  for (uint32_t v = 0; v < plan->n_values; v++)
    if (plan->values[v].kind == TN_VALUE_COMPUTED && plan->values[v].held != TN__NONE)
      consider(list, run->workspace->held[plan->values[v].held], plan->values[v].output);
  for (uint32_t s = 0; s < plan->n_segments; s++) {
    const tn__instance *in = run->workspace->instances[s];
    for (uint32_t k = 0; in != NULL && k < in->layout->n_heaps; k++)
      consider(list, in->heap[in->layout->heaps[k]],
               plan->values[in->layout->slots[in->layout->heaps[k]].value].output);
  }
}

/* Whether the error is about the session's memory limit and has no report yet. */
static bool is_wanted(const tn__step_env *env, tn_status st, const tn_error *err)
{
  return st == TN_RESOURCE_EXHAUSTED && env != NULL && env->account != NULL && !env->explained && err != NULL;
}

static void explain(tn__step_env *env, const large *list, size_t other_bytes, tn_error *err)
{
  tn__text text;
  tn__text_init(&text, 4096);
  for (int i = 0; i < N_LARGEST && list[i].tensor != NULL; i++) {
    char shape[96];
    const tn_tensor *t = list[i].tensor;
    tn__text_printf(&text, "%s'%s:%d' %s %s, %zu bytes", i == 0 ? "" : "; ", tn_operation_name(list[i].from.op),
                    (int)list[i].from.index, tn_dtype_name(t->dtype),
                    tn__format_shape(shape, sizeof shape, t->dims, t->rank), t->bytes);
  }
  if (other_bytes > 0)
    tn__text_printf(&text, "%s%zu bytes for values that do not outlive their segment",
                    list[0].tensor == NULL ? "" : "; ", other_bytes);
  if (!text.failed && text.size > 0) tn_error_prefix(err, "the step's largest tensors are %s", tn__text_get(&text));
  env->explained = true;
  tn__text_fini(&text);
}

void tn__memory_explain(const tn__run *run, tn_status st)
{
  large list[N_LARGEST] = { { NULL, { NULL, 0 } } };
  if (!is_wanted(run->step->env, st, run->err)) return;
  add_values(run, list);
  explain(run->step->env, list, run->workspace->arena_bytes, run->err);
}

void tn_step_explain_memory(tn_step *step, const tn_plan *plan, tn_tensor *const *values, size_t n, size_t other_bytes,
                            tn_error *err)
{
  large list[N_LARGEST] = { { NULL, { NULL, 0 } } };
  if (step == NULL || plan == NULL || (values == NULL && n > 0) || !is_wanted(step->env, tn_error_code(err), err))
    return;
  for (size_t v = 0; v < n && v < plan->n_values; v++)
    if (plan->values[v].kind == TN_VALUE_COMPUTED) consider(list, values[v], plan->values[v].output);
  explain(step->env, list, other_bytes, err);
}
