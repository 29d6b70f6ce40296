/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as unsigned keys of which a larger one stands for a larger number, so that code that compares and sorts is
 * written once for all dtypes. 0 and -0 have one key; NaN has the largest one. */
#ifndef TN_OPS_KERNEL_ORDER_H
#define TN_OPS_KERNEL_ORDER_H

#include <stdbool.h>
#include <tenon/op.h>

/* Keys of n elements from element `at` of data on. A key has as many bits as an element: dtypes of up to 4 bytes have
 * `narrow`, those of 8 bytes `wide`; the other one is NULL. */
typedef struct tn__order {
  tn_dtype dtype;
  uint32_t size; /* of an element in bytes */
  void (*narrow)(const void *data, int64_t at, int64_t n, uint32_t *keys);
  void (*wide)(const void *data, int64_t at, int64_t n, uint64_t *keys);
} tn__order;

/* That of a real dtype, static; NULL for others. */
const tn__order *tn__order_of(tn_dtype dtype);

#define TN__ORDER_BLOCK 256 /* keys made at a time stay in the first cache */

#endif
