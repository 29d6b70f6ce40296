/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes give a tensor or a status. The first byte chooses the requested dtype; a tensor that was read is
 * written. */
#include <string.h>

#include <tenon/tensor.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  tn_error err = TN_ERROR_INIT;
  tn_tensor *t = NULL;
  if (size == 0) return 0;
  tn_status s = tn_npy_parse(data + 1, size - 1, "fuzz.npy", data[0] % 33, &t, &err);
  if ((s == TN_OK) != (t != NULL) || s != tn_error_code(&err) || (s != TN_OK && tn_error_message(&err)[0] == 0))
    __builtin_trap();
  if (t != NULL) {
    s = tn_npy_save(t, "/dev/null", &err);
    if (s != TN_OK && s != TN_UNIMPLEMENTED) __builtin_trap();
  }
  tn_tensor_unref(t);
  tn_error_clear(&err);
  return 0;
}
