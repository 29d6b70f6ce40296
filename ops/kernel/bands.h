/* SPDX-License-Identifier: Apache-2.0 */
/* Lines (rows of all images, frames of a sound) divided into bands, so that each band has its own buffers in the scratch
 * memory. Bands run on several threads where that pays. */
#ifndef TN_OPS_KERNEL_BANDS_H
#define TN_OPS_KERNEL_BANDS_H

#include <stdbool.h>
#include <tenon/op.h>

typedef struct tn__bands {
  int64_t lines; /* of all bands */
  int64_t band;  /* lines of one, the last may have fewer */
  int64_t n;
  size_t bytes; /* of the buffers of one */
  double cost_ns;
} tn__bands;

/* line_ns: of one line. Sets ctx->scratch_bytes and ctx->cost_ns. */
tn_status tn__bands_plan(tn_prepare_ctx *ctx, int64_t lines, double line_ns, size_t bytes, tn__bands *bands,
                         tn_error *err);
/* fn(user, lines begin to end, buffers) for each band, on several threads where that pays. */
typedef void (*tn__band_fn)(void *user, int64_t begin, int64_t end, char *buffers);
void tn__bands_run(tn_kernel_ctx *ctx, const tn__bands *bands, tn__band_fn fn, void *user);

/* Bytes of a buffer for n elements: loops may write up to 16 bytes past the last one. */
bool tn__band_buffer(int64_t n, size_t element, size_t *bytes);

#endif
