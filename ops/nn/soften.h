/* SPDX-License-Identifier: Apache-2.0 */
/* Exponentials of a row, for softmax and for the losses that contain one. */
#ifndef TN_OPS_NN_SOFTEN_H
#define TN_OPS_NN_SOFTEN_H

#include <stdbool.h>
#include <stdint.h>

/* out = exp(x - *most), where *most is the largest of n > 0 elements, and the sum of all of them. out may be x. NaN in
 * any element makes the sum NaN. Sums have 16 lanes, so that every processor gives the same bits. */
typedef double (*tn__soften_fn)(const float *x, int64_t n, float *out, float *most);

/* The function to use; reproducible: as in tn_kernel_ctx. */
tn__soften_fn tn__soften_for(bool reproducible);

#endif
