/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a signature's settings. */
#include <core/plan/spec.h>

#include <string.h>

/* Whether a comma-separated list has this name. NULL is an empty list. */
static bool is_listed(const char *list, const char *name)
{
  size_t size = strlen(name);
  for (const char *at = list; at != NULL && *at != 0; at += *at == ',') {
    size_t n = strcspn(at, ",");
    if (n == size && memcmp(at, name, size) == 0) return true;
    at += n;
  }
  return false;
}

bool tn__pass_is_off(const tn__signature_spec *spec, const char *name) { return is_listed(spec->disabled, name); }
