/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of this machine, measured: multiply-adds of floats in registers, and repeated reading of a block of
 * memory. Also used by bench/model, so this file depends on nothing else of the command. */
#ifndef TENON_TOOLS_COMMON_MACHINE_H
#define TENON_TOOLS_COMMON_MACHINE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct machine_limits {
  double flops;     /* operations per second of all threads together; a multiply-add is two */
  double bandwidth; /* bytes per second of all threads together */
  const char *isa;  /* "AVX2", ...: the vectors that were used */
} machine_limits;

/* Number of CPUs that this process may run on, at least 1. */
int machine_cpus(void);

/* Each of `threads` threads, the caller among them, reads its own part of `bytes` bytes. Takes about a tenth of a
 * second, and longer for large blocks. False: no memory, or a thread could not be created. */
bool machine_measure(size_t bytes, int threads, machine_limits *out);
/* The same, but measures the bandwidth only and leaves the other fields. */
bool machine_measure_reading(size_t bytes, int threads, machine_limits *out);

#endif
