/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes give an archive or a status. The last byte, part of a comment's length, chooses the requested dtype;
 * tensors that were read are written. */
#include <string.h>

#include <tenon/tensor.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(tn_status s, const tn_error *err, int gave)
{
  if ((s == TN_OK) != (gave != 0) || s != tn_error_code(err) || (s != TN_OK && tn_error_message(err)[0] == 0))
    __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  tn_error err = TN_ERROR_INIT;
  tn_npz *npz = NULL;
  if (size == 0) return 0;
  tn_status s = tn_npz_open_bytes(data, size, "fuzz.npz", &npz, &err);
  check(s, &err, npz != NULL);
  if (s == TN_UNAVAILABLE || s == TN_UNKNOWN || s == TN_INTERNAL) __builtin_trap();
  if (npz != NULL) tn_npz_set_budget(npz, (uint64_t)1 << 24);
  for (size_t i = 0; npz != NULL && i < tn_npz_count(npz) && i < 16; i++) {
    tn_tensor *t = NULL;
    const char *key = tn_npz_key(npz, i);
    s = tn_npz_load(npz, key, data[size - 1] % 33, &t, &err);
    check(s, &err, t != NULL);
    if (s == TN_NOT_FOUND || s == TN_INTERNAL) __builtin_trap();
    if (t != NULL) {
      s = tn_npz_save(&key, &t, 1, i % 2 == 0 ? 0 : TN_NPZ_DEFLATE, "/dev/null", &err);
      if (s != TN_OK && s != TN_UNIMPLEMENTED && s != TN_INVALID_ARGUMENT) __builtin_trap();
    }
    tn_tensor_unref(t);
  }
  tn_npz_close(npz);
  tn_error_clear(&err);
  return 0;
}
