/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions: a pattern, a byte 0xfe, and a text. The pattern is compiled or refused with a message. A match
 * is inside of the text; a text that matches as a whole has a match that begins at its first byte; a second search
 * finds the same. */
#include <fuzz/bytes.h>

#include <fuzz/memory.h>
#include <ops/string/regex/regex.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  (void)argc, (void)argv;
  fuzz_limit_memory((size_t)256 << 20);
  return 0;
}

/* Finds all matches, and returns their number. */
static size_t search(tn__re_run *run, tn__slice text, int32_t slots)
{
  size_t at = 0, n = 0, found[TN__RE_SLOTS];
  while (at <= text.size && n < 100 && tn__regex_find(run, text, at, found)) {
    if (found[0] < at || found[1] < found[0] || found[1] > text.size) abort();
    for (int32_t i = 2; i < slots; i += 2) {
      if ((found[i] == TN__RE_NOWHERE) && found[i + 1] == TN__RE_NOWHERE) continue;
      if (found[i] != TN__RE_NOWHERE && found[i + 1] != TN__RE_NOWHERE && found[i + 1] > text.size) abort();
    }
    at = found[1] > at ? found[1] : at + 1;
    n++;
  }
  return n;
}

static void match(const tn__regex *re, tn__slice text)
{
  tn__re_run *whole = NULL, *run = NULL;
  tn__poll poll = tn__poll_here();
  size_t found[TN__RE_SLOTS];
  int32_t slots = 2 * ((re->groups < 9 ? re->groups : 9) + 1);
  if (tn__re_run_create(re, 0, &poll, &whole, NULL) == TN_OK &&
      tn__re_run_create(re, slots, &poll, &run, NULL) == TN_OK) {
    if (tn__regex_matches(whole, text) && (!tn__regex_find(run, text, 0, found) || found[0] != 0)) abort();
    if (search(run, text, slots) != search(run, text, slots)) abort();
  }
  tn__re_run_destroy(whole);
  tn__re_run_destroy(run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  tn_error err = TN_ERROR_INIT;
  tn__regex *re;
  if (size > 4096) return 0;
  char *bytes = malloc(size + 1); /* of nearly the exact size, so that a read beyond it is detected */
  if (bytes == NULL) return 0;
  memcpy(bytes, data, size);
  char *mark = size == 0 ? NULL : memchr(bytes, 0xfe, size);
  size_t n = mark == NULL ? size : (size_t)(mark - bytes);
  tn__slice text = { bytes + n, mark == NULL ? 0 : size - n - 1 };
  if (mark != NULL) text.data++;
  tn_status st = tn__regex_compile((tn__slice){ bytes, n }, &re, &err);
  check_status(st, &err);
  if ((re != NULL) != (st == TN_OK)) abort();
  if (re != NULL) match(re, text);
  tn__regex_destroy(re);
  tn_error_clear(&err);
  free(bytes);
  return 0;
}
