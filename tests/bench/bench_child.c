/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that `make bench` measures as a whole: this program is its own child. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bench/bench.h>

#include "conformance/support/tap.h"

#define CHILD "TENON_TEST_BENCH_CHILD"
#define MUCH ((size_t)300 << 20)

/* In the child: allocates the given number of bytes and ends. */
__attribute__((constructor)) static void be_a_child(void)
{
  const char *bytes = getenv(CHILD);
  if (bytes == NULL) return;
  char *taken = bench_alloc((size_t)atoll(bytes) + 1);
  memset(taken, 1, (size_t)atoll(bytes) + 1);
  bool used = taken[atoll(bytes)] == 1;
  free(taken);
  _exit(used ? bench_child_done() : 1);
}

static double peak_of_child(const char *bytes)
{
  bench b = { .self = "/proc/self/exe" };
  double seconds = 0, peak = 0;
  setenv(CHILD, bytes, 1);
  bench_run_child(&b, "--child", "", &seconds, &peak);
  unsetenv(CHILD);
  CHECK(seconds > 0);
  return peak;
}

/* The parent uses, or has used, more memory than the child. */
static void bench_child__peak_excludes_the_parent(void)
{
  if (access("/proc/self/exe", X_OK) != 0 || bench_memory_kb("VmHWM") <= 0)
    TAP_SKIP("the system does not report peak memory");
  char *much = bench_alloc(MUCH);
  memset(much, 1, MUCH);
  double little = peak_of_child("0");
  CHECK_MSG(little > 0.5 && little < 200, "%g MB with little memory, while the parent uses %d MB", little,
            much[1] * 300);
  free(much);
  little = peak_of_child("0");
  CHECK_MSG(little > 0.5 && little < 200, "%g MB after the parent had freed its own", little);
  double more = peak_of_child("52428800");
  CHECK_MSG(more >= little + 45 && more <= little + 60, "with 50 MB allocated: %g MB, without: %g MB", more, little);
}

TAP_MAIN(TAP_TEST(bench_child__peak_excludes_the_parent))
