/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the threads' settings from a session's options. A setting of the target overrides the field of the same
 * meaning. */
#include "settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_THREADS 4096
#define MAX_SPIN_US 1000000

static const char *const keys[] = { "threads", "pin", "spin_us", "linger_us" };

/* Reads a setting as a number from `least` to `most`. If the target does not have it, *out is unchanged. */
static tn_status read_number(const tn_session_options *options, const char *key, int64_t least, int64_t most,
                             int64_t *out, tn_error *err)
{
  const char *text = tn_session_options_setting(options, key);
  if (text == NULL) return TN_OK;
  char *end;
  errno = 0;
  long long n = strtoll(text, &end, 10);
  if (errno == 0 && end != text && *end == 0 && n >= least && n <= most) {
    *out = n;
    return TN_OK;
  }
  return tn_error_set(err, TN_INVALID_ARGUMENT,
                      "setting %s=%.40s of runtime 'threaded': wanted a number from %lld to %lld", key, text,
                      (long long)least, (long long)most);
}

/* Limits n to -1..INT32_MAX; every negative number means the same. */
static int32_t limited(int64_t n)
{
  if (n < -1) return -1;
  return n > INT32_MAX ? INT32_MAX : (int32_t)n;
}

static tn_status get(const tn_session_options *options, const char *field, int32_t *out, tn_error *err)
{
  int64_t n = 0;
  tn_status st = tn_session_options_get_int(options, field, &n, err);
  *out = limited(n);
  return st;
}

/* S-CFG-10 to 15 */
static tn_status read_all(const tn_session_options *options, tn_kit_workers_config *out, tn_error *err)
{
  int64_t threads = -1, pin = 0, spin = -1, linger = -1;
  tn_status st = tn_session_options_check_settings(options, keys, sizeof keys / sizeof *keys, err);
  if (st == TN_OK) st = read_number(options, "threads", 1, MAX_THREADS, &threads, err);
  if (st == TN_OK) st = read_number(options, "pin", 0, 1, &pin, err);
  if (st == TN_OK) st = read_number(options, "spin_us", 0, MAX_SPIN_US, &spin, err);
  if (st == TN_OK) st = read_number(options, "linger_us", 0, MAX_SPIN_US, &linger, err);
  if (st == TN_OK) st = get(options, "inter_op_threads", &out->threads, err);
  if (st == TN_OK) st = get(options, "intra_op_threads", &out->loop_threads, err);
  if (st == TN_OK) st = tn_session_options_get_bool(options, "use_per_session_threads", &out->own_pool, err);
  if (st != TN_OK) return st;
  if (threads > 0) out->threads = (int32_t)threads;
  out->own_pool |= pin != 0; /* workers of shared pools are not pinned */
  out->pin = pin != 0;
  out->spin_us = (int32_t)spin;
  out->linger_us = (int32_t)linger;
  return TN_OK;
}

size_t threaded_pools(const tn_session_options *options)
{
  int64_t threads;
  const char *name;
  tn_error why = TN_ERROR_INIT;
  size_t n = 0;
  while (tn_session_options_get_item(options, "session_inter_op_pools", n, &name, &threads, &why) == TN_OK) n++;
  tn_error_clear(&why);
  return n;
}

tn_status threaded_settings(const tn_session_options *options, size_t i, tn_kit_workers_config *out, tn_error *err)
{
  *out = (tn_kit_workers_config){ .struct_size = TN_KIT_WORKERS_CONFIG_SIZE };
  tn_status st = read_all(options, out, err);
  if (st != TN_OK) return st;
  if (i == 0 && threaded_pools(options) == 0) return TN_OK;
  int64_t threads;
  const char *name;
  st = tn_session_options_get_item(options, "session_inter_op_pools", i, &name, &threads, err);
  if (st != TN_OK) return st;
  out->threads = limited(threads);
  out->name = name; /* S-CFG-13 */
  out->own_pool = name == NULL || *name == 0;
  return TN_OK;
}
