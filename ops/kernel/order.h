/* SPDX-License-Identifier: Apache-2.0 */
/* Maps numbers to unsigned keys in the same order, so that code that compares or sorts is written once for all dtypes.
 * 0 and -0 have the same key; NaN has the largest key. */
#ifndef TN_OPS_KERNEL_ORDER_H
#define TN_OPS_KERNEL_ORDER_H

#include <stdbool.h>
#include <tenon/op.h>

/* The functions compute the keys of n elements starting at element `at` of data. A key uses as many bits as an element.
 * Dtypes of up to 4 bytes have `narrow`, those of 8 bytes have `wide`; the other pointer is NULL. */
typedef struct tn__order {
  tn_dtype dtype;
  uint32_t size; /* bytes per element */
  void (*narrow)(const void *data, int64_t at, int64_t n, uint32_t *keys);
  void (*wide)(const void *data, int64_t at, int64_t n, uint64_t *keys);
} tn__order;

/* The static entry for a real dtype; NULL for other dtypes. */
const tn__order *tn__order_of(tn_dtype dtype);

#define TN__ORDER_BLOCK 256 /* keys per block: they stay in the L1 cache */

#endif
