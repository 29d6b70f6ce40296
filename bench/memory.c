/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of this process as reported by the system. */
#include <bench/memory.h>
#include <stdio.h>
#include <string.h>

long long bench_memory_kb(const char *field)
{
  char line[256];
  long long kb = 0;
  FILE *f = fopen("/proc/self/status", "r");
  while (f != NULL && fgets(line, sizeof line, f) != NULL)
    if (strncmp(line, field, strlen(field)) == 0) sscanf(line + strlen(field), ": %lld", &kb);
  if (f != NULL) fclose(f);
  return kb;
}
