/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks: the calls in the queue of an asynchronous session. Slots find their error in them. */
#include <core/eager/task.h>

size_t tn__eager_task_size(size_t n)
{
  return sizeof(tn__eager_task) + n * (sizeof(tn__eager_slot *) + sizeof(tn_tensor *));
}

tn__eager_task *tn__eager_task_create(tn__eager_slot *const *inputs, size_t n, size_t n_outputs)
{
  size_t all = n + n_outputs;
  tn__eager_task *t = tn__zalloc(tn__eager_task_size(all));
  if (t == NULL) return NULL;
  atomic_init(&t->refs, 1 + (uint32_t)n_outputs);
  tn_error_init(&t->error);
  t->n_inputs = n;
  t->n_outputs = n_outputs;
  t->slots = (tn__eager_slot **)(t + 1);
  t->tensors = (tn_tensor **)(t->slots + all);
  if (n > 0) memcpy(t->slots, inputs, n * sizeof(tn__eager_slot *));
  return t;
}

void tn__eager_task_unref(tn__eager_task *t)
{
  if (t == NULL || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1) return;
  tn_error_clear(&t->error);
  tn__free(t, tn__eager_task_size(t->n_inputs + t->n_outputs));
}
