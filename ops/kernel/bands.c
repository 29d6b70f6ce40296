/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/alloc.h>
#include <ops/kernel/bands.h>
#include <ops/kernel/poll.h>

#define MOST_BANDS 32
#define BAND_NS 20000.0

tn_status tn__bands_plan(tn_prepare_ctx *ctx, int64_t lines, double line_ns, size_t bytes, tn__bands *bands,
                         tn_error *err)
{
  double cost = line_ns * (double)lines;
  int64_t n = cost < BAND_NS * MOST_BANDS ? (int64_t)(cost / BAND_NS) : MOST_BANDS;
  if (n > lines) n = lines;
  if (n < 1) n = 1;
  bands->lines = lines;
  bands->band = (lines + n - 1) / n;
  bands->n = lines == 0 ? 0 : (lines + bands->band - 1) / bands->band;
  bands->bytes = tn__round_up(bytes, TN_ALIGN);
  bands->cost_ns = line_ns * (double)bands->band;
  ctx->cost_ns = 100 + cost;
  if (bands->bytes < bytes || !tn__size_mul(bands->bytes, (size_t)bands->n, &ctx->scratch_bytes))
    return tn__no_memory(err, "buffers of rows", SIZE_MAX);
  return TN_OK;
}

bool tn__band_buffer(int64_t n, size_t element, size_t *bytes)
{
  size_t size;
  if (!tn__size_mul((size_t)n, element, &size) || !tn__size_add(size, 16 + TN_ALIGN, &size)) return false;
  *bytes = size & ~(size_t)(TN_ALIGN - 1);
  return true;
}

typedef struct band_run {
  const tn__bands *bands;
  char *scratch;
  tn__band_fn fn;
  void *user;
} band_run;

static void band_part(void *user, int64_t begin, int64_t end)
{
  const band_run *r = user;
  const tn__bands *b = r->bands;
  double line_ns = b->cost_ns / (double)b->band, lines = 4.0 * TN__POLL_NS / (line_ns > 1 ? line_ns : 1);
  int64_t some = lines < 1 ? 1 : (int64_t)lines; /* per call: fn drops rows it kept from earlier lines at each call */
  tn__poll poll = tn__poll_here();
  for (int64_t i = begin; i < end; i++) {
    int64_t first = i * b->band, last = first + b->band < b->lines ? first + b->band : b->lines;
    for (; first < last && !tn__poll_over(&poll, TN__POLL_NS / 2); first += some)
      r->fn(r->user, first, last - first > some ? first + some : last, r->scratch + (size_t)i * b->bytes);
  }
}

void tn__bands_run(tn_kernel_ctx *ctx, const tn__bands *bands, tn__band_fn fn, void *user)
{
  band_run run = { bands, ctx->scratch, fn, user };
  tn_parallel_for(ctx, bands->n, 1, bands->cost_ns, band_part, &run);
}
