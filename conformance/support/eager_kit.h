/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of eager sessions: sessions on each runtime under test, scalars, tensors that report their
 * deletion. */
#ifndef TENON_CONFORMANCE_SUPPORT_EAGER_KIT_H
#define TENON_CONFORMANCE_SUPPORT_EAGER_KIT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "conformance/support/session_kit.h"

/* Only the runtime named by TENON_TEST_RUNTIME, or else both of the library's own. NULL past the end. */
static inline const char *te_runtime(int i)
{
  static const char *const own[] = { "direct", "threaded:threads=3", NULL };
  if (getenv("TENON_TEST_RUNTIME") == NULL) return own[i];
  return i == 0 ? ts_runtime() : NULL;
}
#define FOR_RUNTIMES(r)                   \
  for (int i_##r = 0; i_##r < 2; i_##r++) \
    for (const char *r = te_runtime(i_##r), *once_##r = r; once_##r != NULL; once_##r = NULL)

typedef struct te {
  tn_eager_session *session;
  tn_eager_options options; /* te_init: change them before te_start */
  tn_session_options *session_options;
  tn_error err;
} te;

static inline void te_init(te *t, const char *runtime, int32_t strategy)
{
  memset(t, 0, sizeof *t);
  tn_error_init(&t->err);
  ts_register_ops();
  ts_watch_reset();
  REQUIRE_OK(tn_session_options_create(&t->session_options, &t->err), &t->err);
  REQUIRE_OK(tn_session_options_set_target(t->session_options, runtime, &t->err), &t->err);
  tn_eager_options_init(&t->options);
  t->options.strategy = strategy;
  t->options.session = t->session_options;
}

static inline void te_start(te *t)
{
  REQUIRE_OK(tn_eager_session_create(&t->options, &t->session, &t->err), &t->err);
}

static inline void te_open(te *t, const char *runtime, int32_t strategy)
{
  te_init(t, runtime, strategy);
  te_start(t);
}

static inline void te_fini(te *t)
{
  tn_eager_session_destroy(t->session);
  tn_session_options_destroy(t->session_options);
  tn_error_clear(&t->err);
}

static inline tn_eager_handle te_scalar(te *t, float value)
{
  tn_eager_handle h;
  REQUIRE_OK(tn_eager_from_data(t->session, TN_FLOAT, NULL, 0, &value, sizeof value, &h, &t->err), &t->err);
  return h;
}

static inline tn_eager_handle te_ints(te *t, const int32_t *values, int64_t n)
{
  tn_eager_handle h;
  REQUIRE_OK(tn_eager_from_data(t->session, TN_INT32, &n, 1, values, (size_t)n * sizeof *values, &h, &t->err), &t->err);
  return h;
}

/* Element 0; NAN on failure. */
static inline float te_value(te *t, tn_eager_handle h)
{
  tn_tensor *tensor;
  CHECK_OK(tn_eager_tensor(t->session, h, &tensor, &t->err), &t->err);
  float value = ts_float(tensor);
  tn_tensor_unref(tensor);
  return value;
}

static inline tn_eager_handle te_add(te *t, tn_eager_handle x, tn_eager_handle y)
{
  tn_eager_handle z;
  REQUIRE_OK(tn_eager_add(t->session, x, y, &z, &t->err), &t->err);
  return z;
}

static inline tn_eager_counters te_counters(const te *t)
{
  tn_eager_counters c = { .struct_size = TN_EAGER_COUNTERS_SIZE };
  CHECK_OK(tn_eager_get_counters(t->session, &c, NULL), NULL);
  return c;
}

#define te_release(t, h) CHECK_OK(tn_eager_release((t)->session, h, &(t)->err), &(t)->err)

/* Waits until the given number were deleted; false after ten seconds. Only reads the counters. */
static inline bool te_wait_deleted(const te *t, uint64_t n)
{
  for (int64_t end = ts_now_ms() + 10000; te_counters(t).deleted < n; ts_sleep_ms(1))
    if (ts_now_ms() > end) return false;
  return true;
}

/* ---- tensors that report their deletion ---- */

typedef struct te_told {
  atomic_int n;
  atomic_uintptr_t thread;  /* thread of the last deletion */
  atomic_int wait;          /* the deletion blocks until this is 0 */
  atomic_int waiting;
  void (*also)(void *user); /* also called; may be NULL */
  void *user;
  float value;
} te_told;

static inline void te_tell(void *user, void *data, size_t bytes)
{
  te_told *told = user;
  (void)data, (void)bytes;
  atomic_store(&told->thread, ts_this_thread());
  atomic_fetch_add(&told->waiting, 1);
  while (atomic_load(&told->wait) != 0) ts_sleep_ms(1);
  atomic_fetch_sub(&told->waiting, 1);
  if (told->also != NULL) told->also(told->user);
  atomic_fetch_add(&told->n, 1);
}

static inline tn_eager_handle te_telling(te *t, te_told *told)
{
  tn_tensor *tensor;
  tn_eager_handle h;
  REQUIRE_OK(tn_tensor_wrap(TN_FLOAT, NULL, 0, &told->value, sizeof(float), te_tell, told, &tensor, &t->err), &t->err);
  REQUIRE_OK(tn_eager_from_tensor(t->session, tensor, &h, &t->err), &t->err);
  tn_tensor_unref(tensor);
  return h;
}

/* Waits until a number reaches n; false after ten seconds. */
static inline bool te_wait_for(atomic_int *number, int n)
{
  for (int64_t end = ts_now_ms() + 10000; atomic_load(number) < n; ts_sleep_ms(1))
    if (ts_now_ms() > end) return false;
  return true;
}

#endif
