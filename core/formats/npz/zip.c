/* SPDX-License-Identifier: Apache-2.0 */
/* libzip: loads it on demand, and translates its errors. configure finds its name (TN_LIBZIP). */
#define _GNU_SOURCE
#include <core/base/file.h>
#include <core/formats/npz/npz.h>

#ifdef TN_LIBZIP
#include <dlfcn.h>

tn_status tn__zip_load(tn__zip *zip, const char *name, tn_error *err)
{
  /* Never unloaded: other tables may refer to its functions, and a program that reads one .npz file reads more. */
  const char *missing = NULL;
  if (!tn__loads_files())
    return tn_error_set(
        err, TN_UNIMPLEMENTED,
        "static build: this program is linked statically and cannot load libzip, which .npz files need: '%s'", name);
  void *library = dlopen(TN_LIBZIP, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == NULL) {
    const char *why = dlerror();
    return tn_error_set(err, TN_UNAVAILABLE, "'%s': .npz files need libzip, which cannot be loaded: %s", name,
                        why != NULL ? why : TN_LIBZIP);
  }
#define FIND(function)                                                        \
  {                                                                           \
    void *found = dlsym(library, "zip_" #function);                           \
    if (found == NULL) missing = "zip_" #function;                            \
    __builtin_memcpy(&zip->function, &found, sizeof(found));                  \
  }
  TN_ZIP_MAP(FIND)
#undef FIND
  dlclose(library);
  if (missing != NULL)
    return tn_error_set(err, TN_UNAVAILABLE, "'%s': .npz files need libzip 1.5 or newer: %s has no function %s", name,
                        TN_LIBZIP, missing);
  return TN_OK;
}
#else
tn_status tn__zip_load(tn__zip *zip, const char *name, tn_error *err)
{
  (void)zip;
  return tn_error_set(err, TN_UNIMPLEMENTED,
                      "'%s': this libtenon was built without support of .npz files, because libzip was missing", name);
}
#endif

#define Z_MEM (-4) /* zlib's code for "out of memory" */

/* The status for an error of libzip. `system` is an errno or zlib's code. */
static tn_status code_of(int zip, int system)
{
  switch (zip) {
  case ZIP_ER_MEMORY: return TN_RESOURCE_EXHAUSTED;
  case ZIP_ER_ZLIB: return system == Z_MEM ? TN_RESOURCE_EXHAUSTED : TN_DATA_LOSS;
  case ZIP_ER_CRC:
  case ZIP_ER_EOF:
  case ZIP_ER_INCONS:
  case ZIP_ER_NOENT:
  case ZIP_ER_NOZIP:
  case ZIP_ER_READ:
  case ZIP_ER_SEEK:
#ifdef ZIP_ER_COMPRESSED_DATA
  case ZIP_ER_COMPRESSED_DATA:
#endif
#ifdef ZIP_ER_TRUNCATED_ZIP
  case ZIP_ER_TRUNCATED_ZIP:
#endif
    return TN_DATA_LOSS;
  case ZIP_ER_COMPNOTSUPP:
  case ZIP_ER_ENCRNOTSUPP:
  case ZIP_ER_MULTIDISK:
  case ZIP_ER_NOPASSWD:
  case ZIP_ER_OPNOTSUPP: return TN_UNIMPLEMENTED;
  case ZIP_ER_INVAL: return TN_INVALID_ARGUMENT;
  default: return TN_UNKNOWN;
  }
}

tn_status tn__zip_failed(const tn__zip *zip, zip_error_t *error, const char *name, const char *what, tn_error *err)
{
  tn_status code = code_of(zip->error_code_zip(error), zip->error_code_system(error));
  /* libzip's text for an inconsistent directory is "No such file", which would be misleading. */
  const char *why = zip->error_code_zip(error) == ZIP_ER_NOENT ? "it is inconsistent" : zip->error_strerror(error);
  return tn_error_set(err, code, "'%s': %s: %s", name, what, why);
}
