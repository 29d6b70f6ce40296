/* SPDX-License-Identifier: Apache-2.0 */
/* Factorisations and solutions of one matrix, for float, double, complex64 and complex128, stored by rows. */
#ifndef TN_OPS_LINALG_MATRIX_H
#define TN_OPS_LINALG_MATRIX_H

#include <stdbool.h>
#include <stdint.h>
#include <tenon/op.h>

/* One matrix of a batch, with its right side and its results. */
typedef struct tn__matrix {
  const void *a, *b; /* inputs: m x n, and a right side with k columns */
  void *x, *y, *z;   /* outputs; NULL: not wanted */
  void *work;        /* as many elements as the operation wants */
  int64_t m, n, k;
  bool lower, adjoint, full, fast;
  double l2;
} tn__matrix;

typedef enum tn__matrix_op {
  TN__CHOLESKY,
  TN__DETERMINANT,
  TN__LOG_DETERMINANT,
  TN__INVERSE,
  TN__SOLVE,
  TN__SOLVE_TRIANGULAR,
  TN__SOLVE_LEAST,
  TN__QR,
  TN__EIGEN,
  TN__SINGULAR,
  TN__MATRIX_OPS
} tn__matrix_op;

/* False if the matrix is singular and the operation wants one that is not. */
typedef bool (*tn__matrix_fn)(const tn__matrix *m);
/* NULL if there is none for the dtype. */
tn__matrix_fn tn__matrix_find(tn__matrix_op op, tn_dtype dtype);
/* Elements of work that any operation on a matrix of these sizes wants; false if they overflow. */
bool tn__matrix_work(int64_t m, int64_t n, int64_t k, size_t *elements);

#endif
