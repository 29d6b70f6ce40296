/* SPDX-License-Identifier: Apache-2.0 */
/* libsnappy: loads it on demand. configure finds its name (TN_LIBSNAPPY). */
#define _GNU_SOURCE
#include <core/base/file.h>
#include <core/formats/table/snappy.h>
#include <core/formats/wire.h>

#ifdef TN_LIBSNAPPY
#include <dlfcn.h>

tn_status tn__snappy_load(const char *path, tn__snappy_uncompress **out, tn_error *err)
{
  *out = NULL;
  if (!tn__loads_files())
    return tn_error_set(err, TN_UNIMPLEMENTED,
                        "static build: this program is linked statically and cannot load libsnappy, which the "
                        "compressed blocks of '%s' need",
                        path);
  void *library = dlopen(TN_LIBSNAPPY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == NULL) {
    const char *why = dlerror();
    return tn_error_set(err, TN_UNAVAILABLE,
                        "'%s' has compressed blocks, which need libsnappy (install libsnappy1v5, or your system's "
                        "package of %s); it cannot be loaded: %s",
                        path, TN_LIBSNAPPY, why != NULL ? why : "unknown reason");
  }
  void *found = dlsym(library, "snappy_uncompress");
  __builtin_memcpy(out, &found, sizeof(found));
  dlclose(library);
  if (found == NULL)
    return tn_error_set(err, TN_UNAVAILABLE,
                        "'%s' has compressed blocks, which need libsnappy: %s has no function snappy_uncompress", path,
                        TN_LIBSNAPPY);
  return TN_OK;
}
#else
tn_status tn__snappy_load(const char *path, tn__snappy_uncompress **out, tn_error *err)
{
  *out = NULL;
  return tn_error_set(err, TN_UNIMPLEMENTED,
                      "'%s' has compressed blocks: this libtenon was built without support of them, because libsnappy "
                      "was missing",
                      path);
}
#endif

/* The densest elements are copies of 64 bytes, which take 3 bytes each. */
bool tn__snappy_size(tn__slice packed, size_t *size)
{
  const uint8_t *p = (const uint8_t *)packed.data, *end = p + packed.size;
  uint64_t unpacked;
  if (!tn__wire_varint(&p, end, &unpacked) || unpacked > UINT32_MAX) return false;
  *size = (size_t)unpacked;
  return unpacked <= (uint64_t)(end - p) / 3 * 64 + 64;
}
