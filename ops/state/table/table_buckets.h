/* SPDX-License-Identifier: Apache-2.0 */
/* The buckets of a dense table as TensorFlow has them: a saved dense table is its array of buckets, in which TensorFlow
 * looks keys up without moving them. */
#ifndef TN_OPS_STATE_TABLE_TABLE_BUCKETS_H
#define TN_OPS_STATE_TABLE_TABLE_BUCKETS_H

#include <ops/state/table/table_rows.h>

/* Assigns each row a bucket. buckets: n numbers, a power of two greater than that of the rows; receives the row in each
 * bucket, SIZE_MAX for a free one. */
void tn__rows_place(const tn__rows *rows, size_t *buckets, size_t n);

#endif
