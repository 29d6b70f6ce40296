/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/example/messages.h>

#define MEMORY_ALIGN 16
#define PART_NS 20000 /* the least work of a part of a loop */

static size_t index_bytes(const tn__features *features)
{
  return tn__round_up(tn__key_index_bytes(features->n), MEMORY_ALIGN);
}

tn_status tn__messages_scratch(tn_prepare_ctx *ctx, const tn__features *features, size_t each, tn_error *err)
{
  size_t bytes;
  if (!tn__size_mul((size_t)ctx->inputs[0].count, features->n, &bytes) || !tn__size_mul(bytes, each, &bytes) ||
      !tn__size_add(bytes, index_bytes(features), &bytes))
    return tn__no_memory(err, "positions of features", SIZE_MAX);
  ctx->scratch_bytes = bytes;
  ctx->cost_ns = 500 + 100.0 * (double)ctx->inputs[0].count * (double)(features->n + 1);
  return TN_OK;
}

void tn__messages_init(tn__messages *m, tn_kernel_ctx *ctx, uint32_t names)
{
  *m = (tn__messages){ .ctx = ctx, .features = ctx->state, .in = ctx->inputs[0], .n = ctx->inputs[0]->count,
                       .single = ctx->inputs[0]->rank == 0, .bad = INT64_MAX };
  if (names != UINT32_MAX && ctx->inputs[names]->count > 0) m->names = ctx->inputs[names];
  tn__key_index_init(&m->index, ctx->scratch, m->features, ctx->inputs);
  m->memory = (char *)ctx->scratch + index_bytes(m->features);
  for (int64_t i = 0; i < m->n; i++) m->bytes += (double)tn__messages_at(m, i).size / (double)m->n;
}

void tn__messages_loop(tn__messages *m, int64_t n, double cost_ns, void (*part)(void *user, int64_t begin, int64_t end))
{
  if (n == 1) part(m, 0, 1);
  else if (n > 0)
    tn_parallel_for(m->ctx, n, cost_ns < PART_NS ? (int64_t)(PART_NS / cost_ns) + 1 : 1, cost_ns, part, m);
}

void tn__messages_fail(tn__messages *m, int64_t i)
{
  int64_t bad = atomic_load(&m->bad);
  while (i < bad && !atomic_compare_exchange_weak(&m->bad, &bad, i)) {}
}

tn_status tn__messages_error(const tn__messages *m, int64_t i)
{
  tn__slice name = { "", 0 };
  if (m->names != NULL && i < m->names->count)
    name.data = tn_string_data((const tn_string *)m->names->data + i, &name.size);
  if (name.size == 0) return tn_error_prefix(m->ctx->err, "example %lld", (long long)i);
  return tn_error_prefix(m->ctx->err, "example %lld, '%.*s'", (long long)i, (int)(name.size < 100 ? name.size : 100),
                         name.data);
}
