/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/alloc.h>
#include <ops/kernel/slots.h>

static size_t aligned(size_t n) { return (n + 63) / 64 * 64; }

bool tn__slots_plan(tn__slots *s, const tn_prepare_ctx *ctx, size_t bytes, size_t *scratch)
{
  size_t all;
  s->n = ctx->threads > 0 ? ctx->threads : 1;
  if (bytes > SIZE_MAX - 64 || *scratch > SIZE_MAX - 64) return false;
  s->bytes = aligned(bytes);
  s->at = aligned(*scratch);
  if (!tn__size_mul(s->bytes, s->n, &all) || !tn__size_add(s->at, all, &s->at_taken)) return false;
  return tn__size_add(s->at_taken, aligned(s->n * sizeof(atomic_bool)), scratch);
}

static atomic_bool *flags_of(const tn__slots *s, char *scratch) { return (atomic_bool *)(scratch + s->at_taken); }

void tn__slots_begin(const tn__slots *s, char *scratch)
{
  for (uint32_t i = 0; i < s->n; i++) atomic_init(&flags_of(s, scratch)[i], false);
}

/* At most as many parts run at a time as there are slots, so one is free. */
void *tn__slots_take(const tn__slots *s, char *scratch)
{
  atomic_bool *taken = flags_of(s, scratch);
  for (uint32_t i = 0;; i = (i + 1) % s->n)
    if (!atomic_exchange_explicit(&taken[i], true, memory_order_acquire)) return scratch + s->at + i * s->bytes;
}

void tn__slots_give(const tn__slots *s, char *scratch, const void *slot)
{
  size_t i = (size_t)((const char *)slot - scratch - s->at) / s->bytes;
  atomic_store_explicit(&flags_of(s, scratch)[i], false, memory_order_release);
}
