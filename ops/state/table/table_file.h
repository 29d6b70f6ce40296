/* SPDX-License-Identifier: Apache-2.0 */
/* Text files as rows of tables: each line is a row, and key and value are fields of it or its
 * number. */
#ifndef TN_OPS_STATE_TABLE_TABLE_FILE_H
#define TN_OPS_STATE_TABLE_TABLE_FILE_H

#include <ops/state/table/table_rows.h>
#include <tenon/op.h>

#define TN__LINE_NUMBER (-1) /* as key or value: the line number, plus `offset`; int64 */
#define TN__WHOLE_LINE (-2)
#define TN__ALL_LINES (-1)

typedef struct tn__table_file {
  int64_t key, value; /* a field, counted from 0, or one of the above */
  int64_t lines;      /* number of lines to read, or TN__ALL_LINES */
  int64_t offset;
  char delimiter;
} tn__table_file;

/* Reads rows. *rows must be initialised by tn__rows_init; the caller owns it also on failure.
 * Errors are TensorFlow's: TN_NOT_FOUND, TN_FAILED_PRECONDITION (a folder, or a key with two
 * values), TN_INVALID_ARGUMENT (an empty line, too few fields or lines, or a malformed number),
 * TN_OUT_OF_RANGE (no lines). */
tn_status tn__table_file_read(const tn__table_file *how, const char *path, tn__rows *rows, tn_error *err);

#endif
