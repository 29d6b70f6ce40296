/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes give options or a status. Options that were read are written as the same bytes; after a value is
 * changed, they can be read again and have that value. */
#include <stdlib.h>
#include <string.h>

#include <tenon/options.h>
#include <tenon/process.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_back(const tn_session_options *options, void **bytes, size_t *size)
{
  tn_error err = TN_ERROR_INIT;
  if (tn_session_options_to_config(options, bytes, size, &err) != TN_OK) abort();
  tn_error_clear(&err);
}

static void change(tn_session_options *options)
{
  void *bytes;
  size_t size;
  int64_t level = -1, threads = -1;
  if (tn_session_options_get_int(options, "level", &level, NULL) != TN_OK) abort();
  if (tn_session_options_set_int(options, "level", 1 - level, NULL) != TN_OK) abort();
  if (tn_session_options_set_int(options, "inter_op_threads", 77, NULL) != TN_OK) abort();
  if (tn_session_options_parse(options, "session_inter_op_pools", "3@x,4", NULL) != TN_OK) abort();
  write_back(options, &bytes, &size);
  if (tn_session_options_from_config(options, bytes, size, NULL) != TN_OK) abort();
  if (tn_session_options_get_int(options, "level", &threads, NULL) != TN_OK || threads != 1 - level) abort();
  if (tn_session_options_get_int(options, "inter_op_threads", &threads, NULL) != TN_OK || threads != 77) abort();
  if (tn_session_options_get_item(options, "session_inter_op_pools", 1, NULL, &threads, NULL) != TN_OK) abort();
  if (threads != 4) abort();
  tn_free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  tn_error err = TN_ERROR_INIT;
  tn_session_options *options;
  if (tn_session_options_create(&options, &err) != TN_OK) abort();
  if (tn_session_options_from_config(options, data, size, &err) == TN_OK) {
    void *bytes;
    size_t n;
    write_back(options, &bytes, &n);
    if (n != size || (n > 0 && memcmp(bytes, data, n) != 0)) abort();
    tn_free(bytes);
    change(options);
  } else if (tn_error_message(&err)[0] == 0) {
    abort();
  }
  tn_session_options_destroy(options);
  tn_error_clear(&err);
  return 0;
}
