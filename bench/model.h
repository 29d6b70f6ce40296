/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of bench/model: one model on Tenon in a separate process, controlled by bench/compare.
 *
 * model.c          options, the protocol with bench/compare
 * model_case.c     case.json: inputs, expected outputs, the comparison
 * model_machine.c  peak FLOP/s and bandwidth of this machine
 *
 * If anything fails, the program ends with a message. */
#ifndef TENON_BENCH_MODEL_H
#define TENON_BENCH_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <tenon/tenon.h>

/* Inputs or outputs of a case, `n` of each. */
typedef struct model_tensors {
  size_t n;
  const char **names; /* "node:0" */
  tn_tensor **values; /* of a feed the value fed, of a fetch the expected value */
} model_tensors;

typedef struct model_case {
  char *model; /* path of the GraphDef */
  model_tensors feeds, fetches;
  double rtol, atol;
  void *json; /* owns the names */
} model_case;

/* Ends the program. */
void model_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void model_check(tn_status status, const tn_error *err, const char *what);
void *model_alloc(size_t bytes); /* zeroed */
double model_now(void);          /* seconds, monotonic */

/* Reads a folder with a case.json. tile: how often to repeat the batch (dimension 0 of all values with one). */
void model_case_read(model_case *c, const char *folder, int tile);
void model_case_free(model_case *c);

/* Ends the program if a fetched value differs from the expected one; returns the largest difference in tolerances. */
double model_case_compare(const model_case *c, tn_tensor *const *fetched);

/* Prints {"flops": FLOP/s, "bandwidth": bytes/s, "isa": name}, both with `threads` threads; the bandwidth is
 * measured by reading `bytes` bytes repeatedly. */
void model_machine(size_t bytes, int threads);

#endif
