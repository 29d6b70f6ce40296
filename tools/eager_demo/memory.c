/* SPDX-License-Identifier: Apache-2.0 */
/* tenon eager-demo: checks that there is enough memory for ON_SESSION_CLOSE. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <tools/eager_demo/eager_demo.h>

/* Overhead of a tensor besides its elements: slot, header and allocator overhead. */
enum { OVERHEAD = 320 };

/* ---- available memory; UINT64_MAX if unknown ---- */

static uint64_t free_of_machine(void)
{
  uint64_t kilobytes = tool_number_in("/proc/meminfo", "MemAvailable:");
  if (kilobytes < UINT64_MAX / 1024) return kilobytes * 1024;
#ifdef _SC_PHYS_PAGES
  long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  if (pages > 0 && size > 0) return (uint64_t)pages * (uint64_t)size / 2;
#endif
  return UINT64_MAX;
}

/* In a container the control group may have a lower limit than the machine. */
static uint64_t free_of_group(void)
{
  uint64_t most = tool_number_in("/sys/fs/cgroup/memory.max", ""),
           now = tool_number_in("/sys/fs/cgroup/memory.current", "");
  if (most == UINT64_MAX || now == UINT64_MAX) return UINT64_MAX;
  /* The page cache is reclaimed on demand. */
  static const char *const copies[] = { "inactive_file ", "active_file " };
  for (size_t i = 0; i < 2; i++) {
    uint64_t bytes = tool_number_in("/sys/fs/cgroup/memory.stat", copies[i]);
    if (bytes != UINT64_MAX) now = now > bytes ? now - bytes : 0;
  }
  return most > now ? most - now : 0;
}

/* What is left of `ulimit -v`: the process uses part of it, and threads need stacks. */
static uint64_t free_of_process(void)
{
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  uint64_t pages = tool_number_in("/proc/self/statm", ""), size = (uint64_t)sysconf(_SC_PAGESIZE);
  uint64_t now = pages != UINT64_MAX ? pages * size : 0;
  return limit.rlim_cur > now ? (uint64_t)limit.rlim_cur - now : 0;
}

static uint64_t free_memory(void)
{
  uint64_t ways[] = { free_of_machine(), free_of_group(), free_of_process() }, least = UINT64_MAX;
  for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
    if (ways[i] < least) least = ways[i];
  return least;
}

/* ---- required memory ---- */

/* Strategies that delete during the loop hold at most three iterations' bytes. */
static double wanted(const demo *d, const demo_run *run)
{
  double iteration = (double)d->ops * ((double)d->bytes + OVERHEAD);
  bool all = run->strategy == TN_EAGER_ON_SESSION_CLOSE || run->iterations < 3;
  return iteration * (all ? (double)run->iterations : 3);
}

static const char *text_of(char buffer[32], double bytes)
{
  return tool_bytes_text(buffer, bytes < 9e18 ? (uint64_t)bytes : UINT64_C(9000000000000000000));
}

/* Leave half of the free memory to other processes. */
static tn_status fit_run(demo *d, demo_run *run, uint64_t most, uint64_t there, tn_error *err)
{
  char need[32], have[32];
  double bytes = wanted(d, run), iteration = (double)d->ops * ((double)d->bytes + OVERHEAD);
  if (bytes <= (double)most) return TN_OK;
  uint64_t fit = (uint64_t)((double)most / iteration);
  text_of(need, bytes);
  tool_bytes_text(have, there);
  if (run->strategy != TN_EAGER_ON_SESSION_CLOSE || fit == 0)
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED,
                        "%s: %" PRIu64 " operations of %" PRIu64
                        " bytes need about %s, but %s are free, and at most half of "
                        "that is used: reduce --ops or --bytes",
                        demo_strategy_name(run->strategy), d->ops, d->bytes, need, have);
  if (d->named)
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED,
                        "%s: --iterations %" PRIu64
                        " hold about %s until the session is closed, but %s are free, and at most half "
                        "of that is used: --iterations %" PRIu64 " would fit",
                        demo_strategy_name(run->strategy), run->iterations, need, have, fit);
  tool_text_printf(&d->note,
                   "%s runs %" PRIu64 " iterations, not %" PRIu64
                   ": it would hold about %s, but %s are free, and at most half of "
                   "that is used",
                   demo_strategy_name(run->strategy), fit, run->iterations, need, have);
  fprintf(stderr, "%s\n", d->note.data);
  run->iterations = fit;
  return TN_OK;
}

tn_status demo_check_memory(demo *d, tn_error *err)
{
  uint64_t there = free_memory();
  tn_status status = TN_OK;
  for (size_t i = 0; i < d->n_runs && status == TN_OK && there != UINT64_MAX; i++)
    status = fit_run(d, &d->runs[i], there / 2, there, err);
  return status;
}
