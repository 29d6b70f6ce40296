/* SPDX-License-Identifier: Apache-2.0 */
/* Text files as rows of tables: a line is a row, its fields or its number are key and value. */
#ifndef TN_OPS_STATE_TABLE_TABLE_FILE_H
#define TN_OPS_STATE_TABLE_TABLE_FILE_H

#include <ops/state/table/table_rows.h>
#include <tenon/op.h>

#define TN__LINE_NUMBER (-1) /* for a key or value: the number of the line, plus `offset`; int64 */
#define TN__WHOLE_LINE (-2)
#define TN__ALL_LINES (-1)

typedef struct tn__table_file {
  int64_t key, value; /* a field from 0, or one of the above */
  int64_t lines;      /* how many are read; TN__ALL_LINES */
  int64_t offset;
  char delimiter;
} tn__table_file;

/* Reads rows; *rows was made by tn__rows_init and is the caller's also on failure. The status is TensorFlow's:
 * TN_NOT_FOUND, TN_FAILED_PRECONDITION (a folder, a key with two values), TN_INVALID_ARGUMENT (an empty line, too few
 * fields or lines, no number where one is wanted), TN_OUT_OF_RANGE (no line at all). */
tn_status tn__table_file_read(const tn__table_file *how, const char *path, tn__rows *rows, tn_error *err);

#endif
