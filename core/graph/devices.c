/* SPDX-License-Identifier: Apache-2.0 */
/* Complete and partial device names. A device type is any word: the library knows no type by name. */
#include <core/graph/graph_structs.h>

#include <string.h>

static bool take(const char **p, const char *end, const char *prefix)
{
  size_t n = strlen(prefix);
  if ((size_t)(end - *p) < n || memcmp(*p, prefix, n) != 0) return false;
  *p += n;
  return true;
}

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Takes a letter and any letters, digits and _ after it; or a star, for which *out has no data. */
static bool take_word(const char **p, const char *end, tn__slice *out)
{
  const char *from = *p;
  *out = (tn__slice){ NULL, 0 };
  if (take(p, end, "*")) return true;
  if (*p == end || !is_letter(**p)) return false;
  while (*p < end && (is_letter(**p) || is_digit(**p) || **p == '_')) ++*p;
  *out = (tn__slice){ from, (size_t)(*p - from) };
  return true;
}

static bool take_number(const char **p, const char *end, int32_t *out)
{
  *out = -1;
  if (take(p, end, "*")) return true;
  int64_t value = 0;
  const char *start = *p;
  while (*p < end && is_digit(**p)) {
    value = value * 10 + (**p - '0');
    if (value > INT32_MAX) return false;
    ++*p;
  }
  *out = (int32_t)value;
  return *p > start;
}

static bool take_part(const char **p, const char *end, tn__device_name *d)
{
  if (take(p, end, "/job:")) return take_word(p, end, &d->job);
  if (take(p, end, "/replica:")) return take_number(p, end, &d->replica);
  if (take(p, end, "/task:")) return take_number(p, end, &d->task);
  d->any_case = !take(p, end, "/device:");
  if (!d->any_case) return take_word(p, end, &d->type) && (!take(p, end, ":") || take_number(p, end, &d->id));
  /* The old short form "/cpu:0", always with a number. */
  return take(p, end, "/") && take_word(p, end, &d->type) && take(p, end, ":") && take_number(p, end, &d->id);
}

bool tn__device_parse(const char *text, size_t size, tn__device_name *out)
{
  const char *p = text, *end = text + size;
  *out = (tn__device_name){ .replica = -1, .task = -1, .id = -1 };
  if (size == 1 && *p == '/') return true;
  while (p < end)
    if (!take_part(&p, end, out)) return false;
  return true;
}

bool tn__device_is_valid(const char *device, size_t size)
{
  tn__device_name unused;
  return size == 0 || tn__device_parse(device, size, &unused);
}

/* ---- matching ---- */

static bool number_fits(int32_t asked, int32_t found) { return asked < 0 || asked == found; }

static bool type_fits(const tn__device_name *asked, tn__slice type)
{
  if (asked->type.data == NULL) return true;
  if (!asked->any_case) return tn__slice_equal(asked->type, type);
  if (asked->type.size != type.size) return false;
  for (size_t i = 0; i < type.size; i++) {
    char a = asked->type.data[i], b = type.data[i];
    if (a != b && !(is_letter(a) && (a ^ b) == 0x20)) return false; /* 0x20 is the case bit of ASCII letters */
  }
  return true;
}

bool tn__device_same_task(const tn__device_name *asked, const tn__device_name *device)
{
  return (asked->job.data == NULL || tn__slice_equal(asked->job, device->job)) &&
         number_fits(asked->replica, device->replica) && number_fits(asked->task, device->task);
}

bool tn__device_matches(const tn__device_name *asked, const tn__device_name *device)
{
  return tn__device_same_task(asked, device) && number_fits(asked->id, device->id) && type_fits(asked, device->type);
}
