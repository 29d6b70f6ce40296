/* SPDX-License-Identifier: Apache-2.0 */
/* Splits lines (rows of all images, frames of a sound) into bands. Each band has its own buffers in scratch memory.
 * Bands run on several threads if the work is large enough. */
#ifndef TN_OPS_KERNEL_BANDS_H
#define TN_OPS_KERNEL_BANDS_H

#include <stdbool.h>
#include <tenon/op.h>

typedef struct tn__bands {
  int64_t lines; /* in all bands together */
  int64_t band;  /* lines per band; the last band may have fewer */
  int64_t n;
  size_t bytes; /* of one band's buffers */
  double cost_ns;
} tn__bands;

/* line_ns is the cost of one line, `bytes` the size of one band's buffers. Sets ctx->scratch_bytes and ctx->cost_ns. */
tn_status tn__bands_plan(tn_prepare_ctx *ctx, int64_t lines, double line_ns, size_t bytes, tn__bands *bands,
                         tn_error *err);
/* Processes lines [begin, end) of one band with that band's buffers. A long band takes several calls, in order. */
typedef void (*tn__band_fn)(void *user, int64_t begin, int64_t end, char *buffers);
void tn__bands_run(tn_kernel_ctx *ctx, const tn__bands *bands, tn__band_fn fn, void *user);

/* Bytes of a buffer for n elements, including padding: loops may write up to 16 bytes past the last element. */
bool tn__band_buffer(int64_t n, size_t element, size_t *bytes);

#endif
