/* SPDX-License-Identifier: Apache-2.0 */
/* Reading graphs. */
#include <bench/bench.h>
#include <stdlib.h>

static void import_once(void *user) { tn_graph_unref(bench_import(user)); }

void bench_imports(bench *b)
{
  bench_bytes bytes = { 0 };
  double median, p99;
  bench_graph_chain(&bytes, 10000);
  bench_time(b, 1, import_once, &bytes, &median, &p99);
  bench_report(b, "import_10000", median * 1e3, p99 * 1e3, "ms", "<= 10");
  free(bytes.data);
}
