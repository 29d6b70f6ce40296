/* SPDX-License-Identifier: Apache-2.0 */
/* NAME.conf beside a plugin. Any bytes give settings or a status whose message names the file and a line; a target
 * accepts the settings that were read. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <core/registry/registry_internal.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A target with these settings has each of them. */
static void use(const tn__text *settings)
{
  tn_session_options *options;
  tn__text target;
  size_t commas = 0, n = 0;
  const char *key, *value;
  if (tn_session_options_create(&options, NULL) != TN_OK) abort();
  tn__text_init(&target, 65536);
  tn__text_printf(&target, "acme.fast:%s", settings->data);
  if (target.failed || tn_session_options_set_target(options, target.data, NULL) != TN_OK) abort();
  for (size_t i = 0; i < settings->size; i++) commas += settings->data[i] == ',';
  while ((key = tn_session_options_setting_at(options, n, &value)) != NULL) {
    if (strlen(key) > TN_NAME_BYTES || strcmp(tn_session_options_setting(options, key), value) != 0) abort();
    n++;
  }
  if (n != commas + 1) abort();
  tn__text_fini(&target);
  tn_session_options_destroy(options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  tn_error err = TN_ERROR_INIT;
  tn__sidecar read = { .path = "/plugins/fast.conf", .rank = -1 };
  char *copy = malloc(size > 0 ? size : 1); /* of the exact size, so that a read beyond it is detected */
  if (copy == NULL || size > 16384) { /* larger files are not read */
    free(copy);
    return 0;
  }
  if (size > 0) memcpy(copy, data, size);
  tn__text_init(&read.settings, 65536);
  tn_status status = tn__sidecar_parse(&read, copy, size, &err);
  if ((status == TN_OK) != (tn_error_code(&err) == TN_OK)) abort();
  if (status != TN_OK && strncmp(tn_error_message(&err), "'/plugins/fast.conf', line ", 27) != 0) abort();
  if (status == TN_OK && (read.rank < -1 || read.rank > 1000 || (read.off && !read.says_enabled))) abort();
  if (status == TN_OK && read.settings.size > 0) use(&read.settings);
  tn__text_fini(&read.settings);
  tn_error_clear(&err);
  free(copy);
  return 0;
}
