/* SPDX-License-Identifier: Apache-2.0 */
/* Status codes and error objects.
 *
 * An error object stores its texts in sequence, each with its NUL: the node's name, the message, then the causes from
 * the nearest to the deepest. They are in inline_text, or on the heap in `spill` if that is not NULL. Every change is
 * an insertion: a new message inserted before the old one turns the old one into the first cause.
 *
 * Invariant: used is 0, or used is at least 2 and code is not TN_OK.
 *
 * Errors about memory must work without memory. A text that neither fits nor gets memory is cut and ends in "...". */
#define _GNU_SOURCE
#include <core/base/text.h>

#include <string.h>

#define TEXT_LIMIT ((size_t)32 << 10)   /* bytes of one text */
#define TOTAL_LIMIT ((size_t)512 << 10) /* bytes of all texts of an object */

/* ---- codes ---- */

static const struct {
  tn_status code;
  const char *name;
  const char *text;
} statuses[] = {
#define STATUS_ROW(name, number, text) { number, #name, text },
  TN_STATUS_MAP(STATUS_ROW)
#undef STATUS_ROW
};
#define N_STATUSES (sizeof(statuses) / sizeof(statuses[0]))

/* The codes are 0, 1, 2, ..., so a code is its own row. */
static size_t status_row(tn_status code)
{
  return code >= 0 && (size_t)code < N_STATUSES ? (size_t)code : (size_t)TN_UNKNOWN;
}

const char *tn_status_name(tn_status code) { return statuses[status_row(code)].name; }

const char *tn_status_text(tn_status code) { return statuses[status_row(code)].text; }

tn_status tn_status_from_name(const char *name, tn_status *out)
{
  for (size_t i = 0; name != NULL && i < N_STATUSES; i++)
    if (strcmp(statuses[i].name, name) == 0) {
      if (out != NULL) *out = statuses[i].code;
      return TN_OK;
    }
  if (out != NULL) *out = TN_UNKNOWN;
  return TN_NOT_FOUND;
}

/* ---- location of the texts ---- */

static char *texts(tn_error *err) { return err->spill != NULL ? err->spill : err->inline_text; }

static size_t room(const tn_error *err)
{
  if (err->spill != NULL) return err->spill_size;
  /* struct_size is the size of the object in a program built with other headers, which may differ from ours. */
  size_t n = err->struct_size;
  if (n < offsetof(tn_error, inline_text) + 16 || n > sizeof(tn_error)) n = sizeof(tn_error);
  return n - offsetof(tn_error, inline_text);
}

enum { NODE = 0, MESSAGE = 1, CAUSES = 2 };

/* Returns the i-th text, "" past the end. */
static const char *text_at(const tn_error *err, size_t i)
{
  if (err == NULL || err->used == 0) return "";
  const char *p = err->spill != NULL ? err->spill : err->inline_text, *end = p + err->used;
  for (; i > 0 && p < end; i--) p += strlen(p) + 1;
  return p < end ? p : "";
}

/* ---- changing the texts ---- */

/* Makes room for `wanted` bytes in all. False: out of memory, or above TOTAL_LIMIT; nothing changed. */
static bool reserve(tn_error *err, size_t wanted)
{
  if (wanted <= room(err)) return true;
  if (wanted > TOTAL_LIMIT) return false;
  size_t size = wanted + wanted / 2;
  char *fresh = tn__alloc(size);
  if (fresh == NULL) return false;
  memcpy(fresh, texts(err), err->used);
  tn__free(err->spill, err->spill_size);
  err->spill = fresh;
  err->spill_size = (uint32_t)size;
  return true;
}

/* Replaces the last three bytes of the text that ends at p[end] by "...", but none before `begin` or an earlier NUL. */
static void put_dots(char *p, size_t begin, size_t end)
{
  for (int i = 0; i < 3 && end > begin && p[end - 1] != 0; i++) p[--end] = '.';
}

/* Inserts text[n], and a NUL if `nul` is 1, at byte `at` of the texts. `text` must not point into the object. Without
 * memory the new text is cut to the available room, of which it gets at least half; the texts after it lose their end.
 */
static void insert(tn_error *err, size_t at, const char *text, size_t n, size_t nul)
{
  size_t tail = err->used - at, more = n + nul, kept = tail;
  if (!reserve(err, err->used + more)) {
    size_t left = room(err) - at, half = tail == 0 ? left : left / 2;
    size_t most = tail < left && left - tail > half ? left - tail : half;
    if (more > most) more = most;
    if (more < nul) more = 0;
    if (kept > left - more) kept = left - more;
  }
  char *p = texts(err);
  memmove(p + at + more, p + at, kept);
  if (kept < tail && kept > 0) {
    p[at + more + kept - 1] = 0;
    put_dots(p, at + more, at + more + kept - 1);
  }
  if (more > 0) {
    memcpy(p + at, text, more - nul);
    if (more < n + nul) put_dots(p, at, at + more - nul);
    if (nul) p[at + more - 1] = 0;
  }
  err->used = (uint32_t)(at + more + kept);

  uint32_t n_texts = 0;
  for (size_t i = 0; i < err->used; i++) n_texts += p[i] == 0;
  err->n_causes = n_texts > CAUSES ? n_texts - CAUSES : 0;
}

static void start(tn_error *err, tn_status code, const char *message, size_t n)
{
  err->code = code;
  texts(err)[0] = 0; /* no node yet */
  err->used = 1;
  insert(err, 1, message, n, 1);
}

static size_t message_offset(const tn_error *err) { return strlen(text_at(err, NODE)) + 1; }

/* ---- formatting ---- */

/* A formatted message. It is formatted before the object changes, because the arguments may point into the object. */
typedef struct words {
  char *text;
  size_t n;         /* length, without the NUL */
  size_t heap_size; /* bytes at `text`, to be freed; 0: text is `small` */
  char small[512];
} words;

static void words_init(words *w, const char *format, va_list args)
{
  va_list again;
  va_copy(again, args);
  w->text = w->small;
  w->heap_size = 0;
  int n = tn__vsnprintf(w->small, sizeof(w->small), format, args);
  if (n < 0) n = tn__snprintf(w->small, sizeof(w->small), "(a message that cannot be formatted)");
  w->n = (size_t)n;
  if (w->n >= sizeof(w->small)) {
    size_t size = (w->n < TEXT_LIMIT ? w->n : TEXT_LIMIT) + 1, whole = w->n;
    char *heap = tn__alloc(size);
    if (heap != NULL) {
      tn__vsnprintf(heap, size, format, again);
      w->text = heap;
      w->heap_size = size;
    }
    w->n = (heap != NULL ? size : sizeof(w->small)) - 1;
    if (w->n < whole) put_dots(w->text, 0, w->n);
  }
  w->n = strlen(w->text); /* a %c may have written a NUL */
  va_end(again);
}

static void words_fini(words *w)
{
  if (w->heap_size != 0) tn__free(w->text, w->heap_size);
}

/* ---- public ---- */

void tn_error_init(tn_error *err)
{
  if (err == NULL) return;
  tn_error empty = { .struct_size = sizeof(*err) };
  memcpy(err, &empty, offsetof(tn_error, inline_text) + 1);
}

void tn_error_clear(tn_error *err)
{
  if (err == NULL) return;
  tn__free(err->spill, err->spill_size);
  err->spill = NULL;
  err->spill_size = err->used = err->n_causes = 0;
  err->code = TN_OK;
  err->inline_text[0] = 0;
}

tn_status tn_error_code(const tn_error *err) { return err == NULL ? TN_OK : err->code; }

const char *tn_error_message(const tn_error *err) { return text_at(err, MESSAGE); }

const char *tn_error_node(const tn_error *err) { return text_at(err, NODE); }

size_t tn_error_n_causes(const tn_error *err) { return err == NULL ? 0 : err->n_causes; }

const char *tn_error_cause(const tn_error *err, size_t i)
{
  return i < tn_error_n_causes(err) ? text_at(err, CAUSES + i) : "";
}

size_t tn_error_format(const tn_error *err, char *buffer, size_t size)
{
  size_t used = 0;
  if (buffer == NULL) size = 0;
  if (size > 0) buffer[0] = 0;
  const char *parts[4] = { tn_status_name(tn_error_code(err)), "", "", "" };
  for (size_t i = 0; i <= tn_error_n_causes(err); i++) {
    if (i > 0) {
      parts[0] = "\n  caused by: ";
      parts[1] = tn_error_cause(err, i - 1);
      parts[2] = "";
    } else if (tn_error_code(err) != TN_OK) {
      parts[1] = ": ";
      parts[2] = tn_error_message(err);
    }
    for (const char **part = parts; *part != NULL && part < parts + 3; part++) {
      size_t n = strlen(*part), left = used < size ? size - used - 1 : 0;
      if (left > 0) memcpy(buffer + used, *part, n < left ? n : left);
      used += n;
    }
  }
  if (size > 0) buffer[used < size ? used : size - 1] = 0;
  return used;
}

void tn_error_copy(tn_error *to, const tn_error *from)
{
  if (to == NULL || to == from) return;
  tn_error_clear(to);
  if (from == NULL || from->code == TN_OK) return;
  reserve(to, from->used); /* if this fails, insert() cuts the texts */
  const char *message = tn_error_message(from), *node = tn_error_node(from);
  start(to, from->code, message, strlen(message));
  insert(to, 0, node, strlen(node), 0);
  for (size_t i = 0; i < from->n_causes; i++) {
    const char *cause = tn_error_cause(from, i);
    insert(to, to->used, cause, strlen(cause), 1);
  }
}

void tn_error_set_node(tn_error *err, const char *node)
{
  if (err == NULL || node == NULL || err->code == TN_OK || *tn_error_node(err) != 0) return;
  /* Insert a copy, because `node` may point into the object. */
  char small[256], *heap = NULL;
  size_t n = strnlen(node, TEXT_LIMIT), cut = n < sizeof(small) ? n : sizeof(small) - 1;
  if (n > cut) heap = tn__strndup(node, n);
  if (heap == NULL) {
    memcpy(small, node, cut);
    small[cut] = 0;
    if (cut < n) put_dots(small, 0, cut);
    n = cut;
  }
  insert(err, 0, heap != NULL ? heap : small, n, 0);
  tn__strfree(heap);
}

tn_status tn_error_set(tn_error *err, tn_status code, const char *format, ...)
{
  if (err == NULL || code == TN_OK || err->code != TN_OK) return code;
  words w;
  va_list args;
  va_start(args, format);
  words_init(&w, format, args);
  va_end(args);
  start(err, code, w.text, w.n);
  words_fini(&w);
  return code;
}

tn_status tn_error_wrap(tn_error *err, tn_status code, const char *format, ...)
{
  if (err == NULL) return code == TN_OK ? TN_UNKNOWN : code;
  if (err->code == TN_OK && code == TN_OK) return TN_OK;
  words w;
  va_list args;
  va_start(args, format);
  words_init(&w, format, args);
  va_end(args);
  if (err->code == TN_OK)
    start(err, code, w.text, w.n);
  else
    insert(err, message_offset(err), w.text, w.n, 1);
  if (code != TN_OK) err->code = code;
  words_fini(&w);
  return err->code;
}

tn_status tn_error_prefix(tn_error *err, const char *format, ...)
{
  if (err == NULL) return TN_UNKNOWN;
  if (err->code == TN_OK) return TN_OK;
  words w;
  va_list args;
  va_start(args, format);
  words_init(&w, format, args);
  va_end(args);
  size_t at = message_offset(err);
  insert(err, at, ": ", 2, 0);
  insert(err, at, w.text, w.n, 0);
  words_fini(&w);
  return err->code;
}

void tn__error_in_call(tn_error *err, const char *path)
{
  static const char begin[] = "node '";
  if (err == NULL || err->used == 0) return;
  size_t n = strlen(path);
  if (*tn_error_node(err) != 0) insert(err, 0, path, n, 0);
  if (strncmp(tn_error_message(err), begin, sizeof begin - 1) == 0)
    insert(err, message_offset(err) + sizeof begin - 1, path, n, 0);
}

void tn__error_add_cause(tn_error *err, const char *format, ...)
{
  if (err == NULL || err->code == TN_OK) return;
  words w;
  va_list args;
  va_start(args, format);
  words_init(&w, format, args);
  va_end(args);
  insert(err, err->used, w.text, w.n, 1);
  words_fini(&w);
}
