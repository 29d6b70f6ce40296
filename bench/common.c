/* SPDX-License-Identifier: Apache-2.0 */
/* Clock, memory and fatal errors for bench/bench and bench/check. */
#include <bench/bench.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

double bench_now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void *bench_alloc(size_t bytes)
{
  void *p = malloc(bytes);
  if (p == NULL) {
    fprintf(stderr, "bench: no memory\n");
    exit(1);
  }
  return p;
}

void bench_check(tn_status status, const tn_error *err, const char *what)
{
  if (status == TN_OK) return;
  fprintf(stderr, "bench: %s: %s: %s\n", what, tn_status_name(status), tn_error_message(err));
  exit(1);
}
