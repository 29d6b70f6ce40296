/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a command line. The first byte is the type, the rest a literal, which gives a tensor or a status with a
 * message; a printed number reads back as the same number. */
#include <fuzz/bytes.h>

#include <tools/tool.h>

/* The command's exit when memory runs out. */
_Noreturn void tool_exit(int status)
{
  (void)status;
  abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The printed text of one element is a literal of the same element. */
static void read_back(const tool_text *text, const tn_tensor *value, tn_error *err)
{
  tn_tensor *again = NULL;
  if (tool_literal(text->data, tn_tensor_dtype(value), &again, err) != TN_OK) abort();
  if (tn_tensor_rank(again) != 0 || tn_tensor_bytes(again) != tn_tensor_bytes(value)) abort();
  tool_text second = { 0 };
  if (tool_text_tensor(&second, again, err) != TN_OK || strcmp(second.data, text->data) != 0) abort();
  tool_text_fini(&second);
  tn_tensor_unref(again);
}

static void look(const tn_tensor *value, tn_error *err)
{
  tool_text text = { 0 };
  int64_t n = 1;
  for (int32_t i = 0; i < tn_tensor_rank(value); i++) n *= tn_tensor_dims(value)[i];
  if (n != tn_tensor_elements(value)) abort();
  tn_status st = tool_text_tensor(&text, value, err);
  check_status(st, err);
  tn_dtype dtype = tn_tensor_dtype(value);
  if (st == TN_OK && tn_tensor_rank(value) == 0 && dtype != TN_STRING && dtype != TN_COMPLEX64 &&
      dtype != TN_COMPLEX128)
    read_back(&text, value, err);
  tool_text_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  tn_error err = TN_ERROR_INIT;
  tn_tensor *value = NULL;
  if (size == 0) return 0;
  char *text = malloc(size); /* of the exact size, so that a read beyond it is detected */
  if (text == NULL) return 0;
  memcpy(text, data + 1, size - 1);
  text[size - 1] = 0;
  tn_status st = tool_literal(text, data[0] % 40, &value, &err);
  check_status(st, &err);
  if ((value != NULL) != (st == TN_OK)) abort();
  if (value != NULL) look(value, &err);
  tn_tensor_unref(value);
  tn_error_clear(&err);
  free(text);
  return 0;
}
