/* SPDX-License-Identifier: Apache-2.0 */
/* Memory figures, read from system files. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <tools/tool.h>

uint64_t tool_number_in(const char *path, const char *word)
{
  uint64_t value = UINT64_MAX;
  char line[256];
  FILE *file = fopen(path, "r");
  if (file == NULL) return value;
  while (value == UINT64_MAX && fgets(line, sizeof(line), file) != NULL) {
    if (strncmp(line, word, strlen(word)) != 0) continue;
    const char *digits = line + strcspn(line, "0123456789");
    if (*digits != '\0') value = strtoull(digits, NULL, 10);
    break;
  }
  fclose(file);
  return value;
}

/* On Linux getrusage includes the parent's peak before exec. */
uint64_t tool_peak_memory(void)
{
#ifdef __linux__
  uint64_t kilobytes = tool_number_in("/proc/self/status", "VmHWM:");
  return kilobytes < UINT64_MAX / 1024 ? kilobytes * 1024 : 0;
#else
  struct rusage use;
  if (getrusage(RUSAGE_SELF, &use) != 0 || use.ru_maxrss <= 0) return 0;
#ifdef __APPLE__
  return (uint64_t)use.ru_maxrss;
#else
  return (uint64_t)use.ru_maxrss * 1024;
#endif
#endif
}
