/* SPDX-License-Identifier: Apache-2.0 */
/* Releases layouts. */
#include <core/layout/layout.h>

_Atomic(tn__offloaded_destroy_fn) tn__offloaded_destroy;

void tn__layout_unref(tn__layout *l)
{
  if (l == NULL || atomic_fetch_sub_explicit(&l->refs, 1, memory_order_acq_rel) != 1) return;
  struct tn__offloaded *offloaded = atomic_load_explicit(&l->offloaded, memory_order_acquire);
  if (offloaded != NULL) atomic_load_explicit(&tn__offloaded_destroy, memory_order_acquire)(offloaded);
  for (uint32_t i = l->segment->begin; l->shape_states != NULL && i < l->segment->end; i++) {
    void *state = l->shape_states[i - l->segment->begin];
    if (state == NULL) continue;
    const tn_kernel_def *kernel = tn__layout_kernel(l, i)->def;
    if (kernel->destroy_shape_state != NULL) kernel->destroy_shape_state(state);
  }
  tn__packs_release(l);
  tn__layout *base = l->base;
  for (uint32_t i = 0; base == NULL && l->slots != NULL && i < l->n_slots; i++) tn_tensor_unref(l->slots[i].elements);
  tn__arena_fini(&l->arena);
  tn__free((void *)l->key.bytes, l->key.n_bytes);
  tn__free(l, sizeof *l);
  tn__layout_unref(base);
}
