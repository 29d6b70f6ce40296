/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/alloc.h>
#include <core/base/lock.h>

#include <stdatomic.h>

const char *tn_version(void) { return TN_VERSION_STRING; }

/* ---- the program's lock around libltdl ---- */

/* Set before the first use of a plugin only, so it needs no lock of its own. */
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
                        "tn_set_ltdl_lock: plugins are in use already; give the lock before the first session");
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
