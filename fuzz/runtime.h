/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by fuzz targets that run steps: a runtime, and options for its sessions at each level. */
#ifndef TENON_FUZZ_RUNTIME_H
#define TENON_FUZZ_RUNTIME_H

#include <fuzz/memory.h>
#include <string.h>
#include <tenon/runtime.h>

static struct tn_runtime_session {
  char unused;
} fuzz_session;

static tn_status fuzz_new_session(const tn_session_factory *self, const tn_session_options *options,
                                  tn_runtime_session **out, tn_error *err)
{
  (void)self, (void)options, (void)err;
  *out = &fuzz_session;
  return TN_OK;
}

static tn_bool fuzz_accepts_options(const tn_session_factory *self, const tn_session_options *options)
{
  (void)self, (void)options;
  return 1;
}

static void fuzz_destroy_session(const tn_session_factory *self, tn_runtime_session *session)
{
  (void)self, (void)session;
}

static tn_status fuzz_reset(const tn_session_factory *self, const tn_session_options *options,
                            const char *const *containers, size_t n, uint32_t flags, tn_error *err)
{
  (void)options;
  return tn_kit_reset(self, containers, n, flags, err);
}

/* Single operations run like steps. */
static const void *fuzz_extension(const tn_session_factory *self, const char *name, uint32_t version)
{
  static const tn_eager_runtime eager = { .struct_size = TN_EAGER_RUNTIME_SIZE };
  (void)self;
  return version == 1 && name != NULL && strcmp(name, TN_EAGER_EXTENSION) == 0 ? &eager : NULL;
}

/* The runtime consists of the kit's defaults, so no plugin has to be found. */
static const tn_session_factory fuzz_factory = { .struct_size = TN_SESSION_FACTORY_SIZE,
                                                 .name = "fuzz",
                                                 .new_session = fuzz_new_session,
                                                 .accepts_options = fuzz_accepts_options,
                                                 .destroy_session = fuzz_destroy_session,
                                                 .reset = fuzz_reset,
                                                 .get_extension = fuzz_extension };
static tn_session_options *options_of[2]; /* by level */

static inline void fuzz_make_options(void)
{
  if (tn_runtime_register("fuzz", &fuzz_factory, NULL) != TN_OK) abort();
  for (int level = 0; level < 2; level++) {
    if (tn_session_options_create(&options_of[level], NULL) != TN_OK ||
        tn_session_options_set_target(options_of[level], "fuzz", NULL) != TN_OK ||
        tn_session_options_set_bool(options_of[level], "isolate_session_state", 1, NULL) != TN_OK ||
        tn_session_options_set_int(options_of[level], "level", level, NULL) != TN_OK)
      abort();
  }
}

#endif
