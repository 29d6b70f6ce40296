/* SPDX-License-Identifier: Apache-2.0 */
/* Feature crosses: all combinations of the values in a row of several columns, the last column fastest. The columns are
 * dense, sparse or ragged matrices of int64 or strings. Rows are visited in ascending order. */
#ifndef TN_OPS_SPARSE_CROSS_H
#define TN_OPS_SPARSE_CROSS_H

#include <core/base/text.h>
#include <ops/kernel/shapes.h>

/* How a value becomes a part of a cross. */
typedef enum tn__cross_kind {
  TN__CROSS_TEXT,        /* a text, the decimal digits of a number */
  TN__CROSS_HASH,        /* the fingerprint of a text, a number itself */
  TN__CROSS_HASH_KEYED,  /* of SparseCrossHashed: of a number in a sparse column, the fingerprint of its low 4 bytes */
  TN__CROSS_HASH_STRONG  /* the keyed hash of a text, or of a number's low 4 bytes */
} tn__cross_kind;

typedef struct tn__cross_column {
  const tn_view *values;
  const int64_t *indices;  /* of a sparse column: pairs of row and position; else NULL */
  const tn_view *splits;   /* of a ragged column; else NULL */
  int64_t width;           /* of a dense column */
  bool skip_low;           /* of a sparse column: entries of rows that are below the current one belong to it */
  /* the current row has the values [at, at + count), of which value k is in the combination */
  int64_t at, count, k, row; /* row: of a sparse column, the last one visited, -1 at first */
  uint64_t hash;
  tn__slice text;
  char digits[24];
} tn__cross_column;

typedef struct tn__cross {
  tn__cross_column *columns;
  uint32_t n;
  tn__cross_kind kind;
  uint64_t key[2];
} tn__cross;

/* Starts before row 0, or over again. */
void tn__cross_rewind(tn__cross *cross);
/* Moves to a row. *count is the number of its combinations. TN_INVALID_ARGUMENT if there are too many, or if the splits
 * of a column descend. */
tn_status tn__cross_row(tn__cross *cross, int64_t row, int64_t *count, tn_error *err);
/* The next row that may have combinations; INT64_MAX if there is none. */
int64_t tn__cross_next_row(const tn__cross *cross, int64_t row);

/* Moves to the first and to the next combination of the row, which must have one. */
void tn__cross_first(tn__cross *cross);
void tn__cross_next(tn__cross *cross);
/* The combination as a text, with a separator between its parts. */
tn_status tn__cross_text(const tn__cross *cross, tn__slice separator, tn_string *out, tn_error *err);
/* The combination as a number from 0 on, less than `buckets` if that is above 0. *start is the hash to start from;
 * NULL: that of the first column. */
int64_t tn__cross_number(const tn__cross *cross, const uint64_t *start, int64_t buckets);

#endif
