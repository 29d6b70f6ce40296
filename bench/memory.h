/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TENON_BENCH_MEMORY_H
#define TENON_BENCH_MEMORY_H

/* A field of /proc/self/status in kB, 0 if there is none. VmHWM is the peak of this program alone: it is reset by
 * exec. */
long long bench_memory_kb(const char *field);

#endif
