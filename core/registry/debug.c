/* SPDX-License-Identifier: Apache-2.0 */
/* TENON_DEBUG=load: a line for each file examined, with the verdict, the reason and the time it took. A line is logged
 * only once in a process, however often the folders are read (P-65). */
#include <string.h>

#include <core/base/map.h>
#include <core/registry/registry_internal.h>

/* The lines logged so far; never freed. Guarded by the mutex of first_time. */
static tn__map said;
static tn__arena texts;

/* Whether "load" is in the list of TENON_DEBUG. Read each time, as the program may change the environment. */
static bool wanted(void)
{
  for (const char *at = tn__getenv("TENON_DEBUG"); at != NULL && *at != 0;) {
    size_t size = strcspn(at, ",");
    if (size == 4 && memcmp(at, "load", 4) == 0) return true;
    at += size + (at[size] == ',');
  }
  return false;
}

/* Records the line; false if it was logged before. If memory runs out, it may be logged again. */
static bool first_time(const tn__text *line)
{
  static tn__mutex mu = TN__MUTEX_INIT("lines of TENON_DEBUG", TN_RANK_REGISTRY);
  tn__mutex_lock(&mu);
  bool first = tn__map_get(&said, line->data, line->size) == NULL;
  if (first) {
    char *copy = tn__arena_string(&texts, line->data, line->size);
    if (copy != NULL) tn__map_put(&said, copy, line->size, copy, NULL);
  }
  tn__mutex_unlock(&mu);
  return first;
}

void tn__debug_load(const char *path, const char *verdict, const char *reason, int64_t begin)
{
  tn__text line;
  if (!wanted()) return;
  int64_t end = tn__now_ns();
  tn__text_init(&line, 65536);
  tn__text_printf(&line, "load: '%s': %s%s%s", path, verdict, reason[0] != 0 ? ": " : "", reason);
  if (!line.failed && first_time(&line)) {
    if (begin > 0)
      tn__log_asked("%s (%.2f ms)", line.data, (double)(end - begin) / 1e6);
    else
      tn__log_asked("%s", line.data);
  }
  tn__text_fini(&line);
}
