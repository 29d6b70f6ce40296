/* SPDX-License-Identifier: Apache-2.0 */
/* Process-wide state: the version, the program's lock around libltdl, and whether the program is linked statically. */
#define _GNU_SOURCE
#include <core/base/alloc.h>
#include <core/base/file.h>
#include <core/base/threads/lock.h>

#include <stdatomic.h>
#if defined(__ELF__)
#include <link.h>
#endif

const char *tn_version(void) { return TN_VERSION_STRING; }

/* ---- the program's lock around libltdl ---- */

/* Set only before the first use of a plugin, so it needs no lock of its own. */
static struct {
  void (*lock)(void *user);
  void (*unlock)(void *user);
  void *user;
  atomic_bool used;
} ltdl;

tn_status tn_set_ltdl_lock(void (*lock)(void *user), void (*unlock)(void *user), void *user, tn_error *err)
{
  tn__error_reset(err);
  if (lock == NULL || unlock == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_set_ltdl_lock: the function to %s is missing",
                        lock == NULL ? "lock" : "unlock");
  if (atomic_load(&ltdl.used))
    return tn_error_set(err, TN_FAILED_PRECONDITION,
                        "tn_set_ltdl_lock: plugins are in use already; set the lock before the first session");
  ltdl.lock = lock;
  ltdl.unlock = unlock;
  ltdl.user = user;
  return TN_OK;
}

void tn__ltdl_enter(void)
{
  atomic_store(&ltdl.used, true);
  if (ltdl.lock != NULL) ltdl.lock(ltdl.user);
}

void tn__ltdl_leave(void)
{
  if (ltdl.unlock != NULL) ltdl.unlock(ltdl.user);
}

/* ---- static or dynamic program ---- */

#if defined(__ELF__)
/* The first object is the program itself. It names a dynamic linker (PT_INTERP) unless it is linked statically. */
static int look_for_linker(struct dl_phdr_info *info, size_t size, void *found)
{
  (void)size;
  for (size_t i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_INTERP) *(bool *)found = true;
  return 1;
}

bool tn__loads_files(void)
{
  static _Atomic int known; /* 1: no, 2: yes */
  int answer = atomic_load_explicit(&known, memory_order_relaxed);
  if (answer == 0) {
    bool found = false;
    dl_iterate_phdr(look_for_linker, &found);
    answer = found ? 2 : 1;
    atomic_store_explicit(&known, answer, memory_order_relaxed);
  }
  return answer == 2;
}
#else
bool tn__loads_files(void) { return true; }
#endif
