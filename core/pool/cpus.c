/* SPDX-License-Identifier: Apache-2.0 */
/* The CPUs that this process may use: its affinity and its quota, and the placement of workers. */
#define _GNU_SOURCE
#include <core/pool/pool_internal.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint32_t online(void)
{
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n < 1 ? 1 : (uint32_t)n;
}

#if defined(__linux__)
#define TEXT_ROOM 4096

/* Reads the affinity of this thread. The kernel refuses masks that are smaller than its own, so the
 * size is doubled until it accepts one. */
void tn__cpus_read(tn__cpus *out)
{
  *out = (tn__cpus){ 0, NULL };
  for (size_t n = CPU_SETSIZE; n <= 1 << 20; n *= 2) {
    size_t bytes = CPU_ALLOC_SIZE(n);
    cpu_set_t *set = tn__zalloc(bytes);
    if (set == NULL) return;
    int rc = sched_getaffinity(0, bytes, set), error = errno;
    if (rc == 0 && CPU_COUNT_S(bytes, set) > 0) {
      *out = (tn__cpus){ bytes, set };
      return;
    }
    tn__free(set, bytes);
    if (rc == 0 || error != EINVAL) return;
  }
}

void tn__cpus_fini(tn__cpus *cpus)
{
  tn__free(cpus->mask, cpus->bytes);
  *cpus = (tn__cpus){ 0, NULL };
}

static uint32_t affinity(void)
{
  tn__cpus cpus;
  tn__cpus_read(&cpus);
  uint32_t n = cpus.mask == NULL ? online() : (uint32_t)CPU_COUNT_S(cpus.bytes, (cpu_set_t *)cpus.mask);
  tn__cpus_fini(&cpus);
  return n;
}

void tn__cpus_pin(const tn__cpus *cpus, uint32_t number)
{
  if (cpus->mask == NULL) return;
  const cpu_set_t *all = cpus->mask;
  uint32_t wanted = number % (uint32_t)CPU_COUNT_S(cpus->bytes, all);
  for (size_t cpu = 0; cpu < cpus->bytes * 8; cpu++) {
    if (!CPU_ISSET_S(cpu, cpus->bytes, all) || wanted-- != 0) continue;
    cpu_set_t *one = tn__zalloc(cpus->bytes);
    if (one == NULL) return;
    CPU_SET_S(cpu, cpus->bytes, one);
    sched_setaffinity(0, cpus->bytes, one);
    tn__free(one, cpus->bytes);
    return;
  }
}

int tn__cpu_now(void) { return sched_getcpu(); }

bool tn__cpus_keep_off(tn__cpus *room, pthread_t thread, int before, int cpu)
{
  cpu_set_t *set = room->mask;
  if (set == NULL || pthread_getaffinity_np(thread, room->bytes, set) != 0) return false;
  if (before >= 0) CPU_SET_S((size_t)before, room->bytes, set);
  if (!CPU_ISSET_S((size_t)cpu, room->bytes, set) || CPU_COUNT_S(room->bytes, set) < 2) return false;
  CPU_CLR_S((size_t)cpu, room->bytes, set);
  return pthread_setaffinity_np(thread, room->bytes, set) == 0;
}

/* Reads the beginning of a small file as text; false if it cannot be read. */
static bool read_text(const char *path, char *text, size_t room)
{
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  size_t used = 0;
  ssize_t n;
  while (used < room - 1 && ((n = read(fd, text + used, room - 1 - used)) > 0 || (n < 0 && errno == EINTR)))
    if (n > 0) used += (size_t)n;
  close(fd);
  text[used] = 0;
  return used > 0;
}

/* The number of CPUs to which `quota` microseconds in each `period` amount, rounded up; 0 = no
 * limit. */
static uint32_t whole(long long quota, long long period)
{
  if (quota <= 0 || period <= 0) return 0;
  long long n = quota / period + (quota % period != 0);
  return n > INT32_MAX ? 0 : (uint32_t)n;
}

/* The quota of one control group: cpu.max in version 2, two files in version 1. 0 = no limit. */
static uint32_t quota_at(const char *folder)
{
  char path[TEXT_ROOM + 64], text[128], *end;
  snprintf(path, sizeof path, "%s/cpu.max", folder);
  if (read_text(path, text, sizeof text)) {
    long long quota = strtoll(text, &end, 10); /* "max 100000": 0 */
    return end == text ? 0 : whole(quota, strtoll(end, NULL, 10));
  }
  snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
  if (!read_text(path, text, sizeof text)) return 0;
  long long quota = strtoll(text, NULL, 10);
  snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
  return read_text(path, text, sizeof text) ? whole(quota, strtoll(text, NULL, 10)) : 0;
}

/* Whether a list of names, separated by commas, has this one. */
static bool has_controller(const char *list, size_t size, const char *name)
{
  size_t n = strlen(name);
  for (size_t i = 0; i + n <= size; i++)
    if ((i == 0 || list[i - 1] == ',') && memcmp(list + i, name, n) == 0 && (i + n == size || list[i + n] == ','))
      return true;
  return false;
}

/* The smallest quota from the group of one line of /proc/self/cgroup ("number:controllers:path") up
 * to the root; 0 = no limit. */
static uint32_t quota_of_line(const char *line)
{
  const char *list = strchr(line, ':');
  const char *group = list == NULL ? NULL : strchr(list + 1, ':');
  if (group == NULL) return 0;
  size_t size = (size_t)(group - list - 1);
  if (size > 0 && !has_controller(list + 1, size, "cpu")) return 0;
  char folder[TEXT_ROOM];
  const char *root = size == 0 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
  if (snprintf(folder, sizeof folder, "%s%s", root, group + 1) >= (int)sizeof folder) return 0;
  uint32_t least = 0;
  for (;;) {
    uint32_t n = quota_at(folder);
    if (n != 0 && (least == 0 || n < least)) least = n;
    char *slash = strrchr(folder, '/');
    if (slash == NULL || (size_t)(slash - folder) < strlen(root)) return least;
    *slash = 0;
  }
}

/* The smallest quota of all hierarchies; 0 = no limit. */
static uint32_t quota(void)
{
  char text[TEXT_ROOM], *rest = NULL;
  uint32_t least = 0;
  if (!read_text("/proc/self/cgroup", text, sizeof text)) return 0;
  for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
    uint32_t n = quota_of_line(line);
    if (n != 0 && (least == 0 || n < least)) least = n;
  }
  return least;
}

uint32_t tn__usable_cpus(void)
{
  uint32_t cpus = affinity(), limit = quota();
  return limit != 0 && limit < cpus ? limit : cpus;
}
#else
uint32_t tn__usable_cpus(void) { return online(); }
void tn__cpus_read(tn__cpus *out) { *out = (tn__cpus){ 0, NULL }; }
void tn__cpus_fini(tn__cpus *cpus) { (void)cpus; }
void tn__cpus_pin(const tn__cpus *cpus, uint32_t number) { (void)cpus, (void)number; }
int tn__cpu_now(void) { return -1; }

bool tn__cpus_keep_off(tn__cpus *room, pthread_t thread, int before, int cpu)
{
  (void)room, (void)thread, (void)before, (void)cpu;
  return false;
}
#endif
