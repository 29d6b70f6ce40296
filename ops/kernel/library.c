/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <core/base/file.h>
#include <dlfcn.h>
#include <ops/kernel/library.h>
#include <string.h>

tn_status tn__library_load(const char *library, const char *what, const char *const *names, void *table, size_t n,
                         tn_error *err)
{
  if (library == NULL)
    return tn_error_set(err, TN_UNIMPLEMENTED, "%s, which was missing when this libtenon was built", what);
  if (!tn__loads_files())
    return tn_error_set(err, TN_UNIMPLEMENTED,
                        "static build: %s, which a program that is linked statically cannot load", what);
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == NULL) {
    const char *why = dlerror();
    return tn_error_set(err, TN_UNAVAILABLE, "%s, which cannot be loaded: %s", what, why != NULL ? why : library);
  }
  const char *missing = NULL;
  for (size_t i = 0; i < n; i++) {
    void *found = dlsym(handle, names[i]);
    if (found == NULL) missing = names[i];
    memcpy((char *)table + i * sizeof found, &found, sizeof found);
  }
  dlclose(handle);
  if (missing == NULL) return TN_OK;
  return tn_error_set(err, TN_UNAVAILABLE, "%s: %s has no function %s", what, library, missing);
}
