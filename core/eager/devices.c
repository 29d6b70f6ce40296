/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of an eager session. All memory is the host's so far, so that a tensor is on every device of type CPU at once. */
#include <core/eager/eager.h>

#define HOST_NAME "/job:localhost/replica:0/task:0/device:" TN__HOST_DEVICE ":"

static int64_t host_devices(const tn_eager_session *s)
{
  int64_t number = 1;
  for (size_t i = 0; i < tn__option_n_items(s->options, TN__OPTION_device_count); i++) {
    const char *type = tn__option_item_at(s->options, TN__OPTION_device_count, i, &number);
    if (strcmp(type, TN__HOST_DEVICE) == 0) return number;
  }
  return 1;
}

static bool matches(const tn__device_name *asked, const char *name)
{
  tn__device_name parsed;
  return name != NULL && tn__device_parse(name, strlen(name), &parsed) && tn__device_matches(asked, &parsed);
}

static bool is_host(const tn_eager_session *s, const tn__device_name *asked)
{
  char name[sizeof HOST_NAME + 24];
  for (int64_t i = 0; s->slots->list_devices == NULL && i < host_devices(s); i++) {
    tn__snprintf(name, sizeof name, HOST_NAME "%lld", (long long)i);
    if (matches(asked, name)) return true;
  }
  for (size_t i = 0; s->slots->list_devices != NULL; i++) {
    tn_device_info info = { .struct_size = sizeof info };
    if (s->slots->list_devices(s->self, s->runtime, i, &info, NULL) != TN_OK) return false;
    if (info.type != NULL && strcmp(info.type, TN__HOST_DEVICE) == 0 && matches(asked, info.name)) return true;
  }
  return false;
}

tn_status tn__eager_device_check(tn_eager_session *s, const char *device, tn_error *err)
{
  tn__device_name asked;
  if (device == NULL || device[0] == 0) return TN_OK;
  if (!tn__device_parse(device, strlen(device), &asked))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "malformed device '%.200s', wanted as '/device:CPU:0'", device);
  if (is_host(s, &asked)) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "the eager session on runtime '%s' has no device '%.200s' that it can run "
                      "operations on", s->info.name, device);
}
