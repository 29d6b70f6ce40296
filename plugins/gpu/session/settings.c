/* SPDX-License-Identifier: Apache-2.0 */
/* The target's settings, and the options that speak of a GPU. */
#include "session/settings.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MOST_QUEUES 64

static const char *const keys[] = { "device", "platform", "type",   "placement", "fetch",
                                    "memory", "queues",   "copies", "blas" };
static const char *const types[] = { "any", "gpu", "accelerator", "cpu", NULL };
static const char *const placements[] = { "cost", "device", "host", NULL };
static const char *const fetches[] = { "host", "device", NULL };
static const char *const copies[] = { "auto", "always", NULL };
static const char *const blases[] = { "auto", "clblast", "own", NULL };

/* The parsed settings, before devices are searched. */
typedef struct request {
  int type, placement, fetch, copies, queues, blas;
  const char *devices, *platform; /* NULL: not set; borrowed from the options */
  int64_t memory, total, gpus; /* gpus: device_count, -1: not set */
  double fraction;
} request;

/* ---- texts ---- */

static tn_status refuse(const char *key, const char *text, const char *wanted, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "setting %s=%.40s of runtime 'gpu': wanted %s", key, text, wanted);
}

static tn_status read_word(const tn_session_options *o, const char *key, const char *const *words, const char *wanted,
                           int *out, tn_error *err)
{
  const char *text = tn_session_options_setting(o, key);
  if (text == NULL) return TN_OK;
  for (int i = 0; words[i] != NULL; i++)
    if (strcmp(text, words[i]) == 0) {
      *out = i;
      return TN_OK;
    }
  return refuse(key, text, wanted, err);
}

/* A number of bytes, optionally with the suffix K, M or G. */
static tn_status read_memory(const tn_session_options *o, int64_t *out, tn_error *err)
{
  static const char units[] = "KMG";
  const char *text = tn_session_options_setting(o, "memory"), *unit;
  if (text == NULL) return TN_OK;
  char *end;
  errno = 0;
  long long n = isdigit((unsigned char)*text) ? strtoll(text, &end, 10) : 0;
  if (errno != 0 || n < 1) return refuse("memory", text, "bytes, as in 500000000 or 512M", err);
  int shift = 0;
  if (*end != '\0' && (unit = strchr(units, *end)) != NULL) {
    shift = 10 * (int)(unit - units + 1);
    end++;
  }
  if (*end != '\0' || n > INT64_MAX >> shift) return refuse("memory", text, "bytes, as in 500000000 or 512M", err);
  *out = (int64_t)n << shift;
  return TN_OK;
}

static tn_status read_queues(const tn_session_options *o, int *out, tn_error *err)
{
  const char *text = tn_session_options_setting(o, "queues");
  if (text == NULL || strcmp(text, "auto") == 0) return TN_OK;
  char *end;
  errno = 0;
  unsigned long n = isdigit((unsigned char)*text) ? strtoul(text, &end, 10) : 0;
  if (n < 1 || n > MOST_QUEUES || errno != 0 || *end != '\0')
    return refuse("queues", text, "a number from 1 to 64, or auto", err);
  *out = (int)n;
  return TN_OK;
}

/* Reads one number of "0+2" and steps over it; SIZE_MAX for what is none. */
static size_t next_index(const char **text)
{
  char *end;
  errno = 0;
  unsigned long n = isdigit((unsigned char)**text) ? strtoul(*text, &end, 10) : ULONG_MAX;
  if (n == ULONG_MAX || errno != 0 || (*end != '\0' && *end != '+') || (*end == '+' && end[1] == '\0')) return SIZE_MAX;
  *text = *end == '+' ? end + 1 : end;
  return n;
}

static bool occurs_again(const char *text, size_t index)
{
  while (*text != '\0') {
    size_t i = next_index(&text);
    if (i == index || i == SIZE_MAX) return i == index;
  }
  return false;
}

static tn_status check_devices(const char *text, tn_error *err)
{
  if (text == NULL || strcmp(text, "all") == 0) return TN_OK;
  const char *p = text;
  if (*p == '\0') return refuse("device", text, "a number, several as in 0+1, or all", err);
  while (*p != '\0') {
    size_t index = next_index(&p);
    if (index == SIZE_MAX) return refuse("device", text, "a number, several as in 0+1, or all", err);
    if (occurs_again(p, index)) return refuse("device", text, "each device once", err);
  }
  return TN_OK;
}

/* ---- options ---- */

/* S-CFG-22 */
static tn_status read_fraction(const tn_session_options *o, double *out, tn_error *err)
{
  tn_status st = tn_session_options_get_float(o, "memory_fraction", out, err);
  if (st != TN_OK || (*out > 0 && *out <= 1)) return st;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "option memory_fraction is %g, it must be above 0 and at most 1", *out);
}

static int64_t count_of(const tn_session_options *o, const char *type, int64_t otherwise)
{
  tn_error why = TN_ERROR_INIT;
  const char *name;
  int64_t n;
  for (size_t i = 0; tn_session_options_get_item(o, "device_count", i, &name, &n, &why) == TN_OK; i++)
    if (strcmp(name, type) == 0) otherwise = n < 0 ? 0 : n;
  tn_error_clear(&why);
  return otherwise;
}

/* Whether a filter, a part of a device's name, names a type that is not GPU. */
static bool is_of_another_type(const char *filter)
{
  const char *type = strstr(filter, "/device:");
  if (type == NULL) return strstr(filter, "/cpu:") != NULL || strstr(filter, "/CPU:") != NULL;
  type += strlen("/device:");
  size_t n = strcspn(type, ":/");
  return !(n == 1 && *type == '*') && !(n == 3 && strncmp(type, "GPU", 3) == 0);
}

/* S-CFG-19: whether filters hide every GPU, so that the session has no use for one. */
static bool hides_gpus(const tn_session_options *o)
{
  tn_error why = TN_ERROR_INIT;
  const char *filter;
  int64_t unused;
  size_t n = 0, others = 0;
  for (; tn_session_options_get_item(o, "device_filters", n, &filter, &unused, &why) == TN_OK; n++)
    others += is_of_another_type(filter);
  tn_error_clear(&why);
  return n > 0 && others == n;
}

static tn_status check_reproducible(const tn_session_options *o, tn_error *err)
{
  tn_bool reproducible;
  tn_status st = tn_session_options_get_bool(o, "reproducible", &reproducible, err);
  if (st != TN_OK || !reproducible) return st;
  return tn_error_set(err, TN_INVALID_ARGUMENT,
                      "option reproducible: runtime 'gpu' does not give the same bits on every device");
}

static tn_status check_weights(const tn_session_options *o, tn_error *err)
{
  const char *weights;
  tn_status st = tn_session_options_get_string(o, "weights", &weights, err);
  if (st != TN_OK || strcmp(weights, "float32") == 0) return st;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "option weights is '%.80s': runtime 'gpu' keeps weights in float32",
                      weights);
}

static tn_status read_all(const tn_session_options *o, request *r, tn_error *err)
{
  *r = (request){ 0 };
  tn_status st = tn_session_options_check_settings(o, keys, sizeof keys / sizeof *keys, err);
  if (st == TN_OK) st = read_word(o, "type", types, "gpu, accelerator, cpu or any", &r->type, err);
  if (st == TN_OK) st = read_word(o, "placement", placements, "cost, device or host", &r->placement, err);
  if (st == TN_OK) st = read_word(o, "fetch", fetches, "host or device", &r->fetch, err);
  if (st == TN_OK) st = read_word(o, "copies", copies, "auto or always", &r->copies, err);
  if (st == TN_OK) st = read_word(o, "blas", blases, "auto, clblast or own", &r->blas, err);
  if (st == TN_OK) st = read_memory(o, &r->memory, err);
  if (st == TN_OK) st = read_queues(o, &r->queues, err);
  r->devices = tn_session_options_setting(o, "device");
  r->platform = tn_session_options_setting(o, "platform");
  if (st == TN_OK) st = check_devices(r->devices, err);
  if (st == TN_OK && r->platform != NULL && *r->platform == '\0')
    st = refuse("platform", r->platform, "a part of a platform's name", err);
  if (st == TN_OK) st = check_reproducible(o, err);
  if (st == TN_OK) st = check_weights(o, err);
  if (st == TN_OK) st = read_fraction(o, &r->fraction, err);
  if (st == TN_OK) st = tn_session_options_get_int(o, "memory_limit_bytes", &r->total, err);
  r->gpus = hides_gpus(o) ? 0 : count_of(o, "GPU", -1);
  return st;
}

tn_status gpu_settings_check(const tn_session_options *options, tn_error *err)
{
  request r;
  return read_all(options, &r, err);
}

int64_t gpu_settings_cpus(const tn_session_options *options)
{
  int64_t n = count_of(options, "CPU", 1);
  return n < 1 ? 1 : n; /* the session refuses less than one by itself */
}

/* ---- choosing ---- */

static bool contains(const char *text, const char *part)
{
  size_t n = strlen(part);
  for (; *text != '\0'; text++) {
    size_t i = 0;
    while (i < n && tolower((unsigned char)text[i]) == tolower((unsigned char)part[i])) i++;
    if (i == n) return true;
  }
  return false;
}

static bool fits(const request *r, const gpu_device *d)
{
  if (r->type != 0 && strcmp(gpu_device_kind(d), types[r->type]) != 0) return false;
  return r->platform == NULL || contains(d->platform_name, r->platform) || contains(d->vendor, r->platform);
}

static tn_status not_found(const char *what, const char *text, tn_error *err)
{
  char there[1024];
  gpu_devices_text(there, sizeof there);
  return tn_error_set(err, TN_NOT_FOUND,
                      "setting %s=%.80s of runtime 'gpu': no device of this machine is that; there are: %s", what, text,
                      there);
}

/* The devices named by number, in the order in which they are named. */
static tn_status take_named(const request *r, gpu_settings *s, size_t most, tn_error *err)
{
  const char *p = r->devices;
  while (*p != '\0') {
    size_t index = next_index(&p);
    if (index >= gpu_devices_count()) return not_found("device", r->devices, err);
    gpu_device *d = gpu_devices_at(index);
    if (!fits(r, d))
      return not_found(r->type != 0 ? "type" : "platform", r->type != 0 ? types[r->type] : r->platform, err);
    if (s->n_devices < most) s->devices[s->n_devices++] = d;
  }
  return TN_OK;
}

static tn_status take_first(const request *r, gpu_settings *s, size_t most, tn_error *err)
{
  size_t fitting = 0;
  for (size_t i = 0; i < gpu_devices_count(); i++) {
    gpu_device *d = gpu_devices_at(i);
    if (!fits(r, d)) continue;
    fitting++;
    if (s->n_devices < most) s->devices[s->n_devices++] = d;
  }
  if (fitting > 0) return TN_OK;
  return r->platform != NULL ? not_found("platform", r->platform, err) : not_found("type", types[r->type], err);
}

static tn_status choose(const request *r, gpu_settings *s, tn_error *err)
{
  size_t n = gpu_devices_count(), most;
  bool all = r->devices != NULL && strcmp(r->devices, "all") == 0;
  if (n == 0) return tn_error_set(err, TN_UNAVAILABLE, "there is no OpenCL device");
  s->devices = tn_alloc(n * sizeof *s->devices);
  if (s->devices == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for %zu devices", n);
  most = r->devices != NULL ? SIZE_MAX : 1;
  if (r->gpus >= 0) most = (size_t)r->gpus;
  return r->devices == NULL || all ? take_first(r, s, most, err) : take_named(r, s, most, err);
}

tn_status gpu_settings_read(const tn_session_options *options, gpu_settings *out, tn_error *err)
{
  request r;
  *out = (gpu_settings){ 0 };
  tn_status st = read_all(options, &r, err);
  if (st != TN_OK) return st;
  *out = (gpu_settings){ .placement = r.placement, .fetch_device = r.fetch == 1, .copies = r.copies == 1,
                         .queues = r.queues, .blas = r.blas,
                         .memory_limit_bytes = r.memory,
                         .memory_fraction = r.fraction, .total_limit_bytes = r.total };
  st = choose(&r, out, err);
  if (st != TN_OK) gpu_settings_fini(out);
  return st;
}

int64_t gpu_settings_limit(const gpu_settings *s, const gpu_device *device)
{
  double share = s->memory_fraction * (double)device->memory_bytes;
  int64_t limit = s->memory_limit_bytes;
  if (limit == 0 && share < 1) share = 1;
  if (limit == 0) limit = share >= (double)INT64_MAX ? INT64_MAX : (int64_t)share;
  return s->total_limit_bytes > 0 && s->total_limit_bytes < limit ? s->total_limit_bytes : limit;
}

void gpu_settings_fini(gpu_settings *s)
{
  tn_free(s->devices);
  *s = (gpu_settings){ 0 };
}
