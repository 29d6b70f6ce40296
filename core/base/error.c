/* SPDX-License-Identifier: Apache-2.0 */
/* Status codes and error objects.
 *
 * An error object holds its texts one behind the other, each with its NUL: the node's name, the message, the causes
 * from the nearest to the deepest. They lie in inline_text, or at spill when there is one. Every change is an
 * insertion, as the message so far becomes a cause by what is put before it. used is 0, or at least 2 and then code is
 * not TN_OK. */
#define _GNU_SOURCE
#include <core/base/text.h>

#include <string.h>

#define TEXT_LIMIT ((size_t)32 << 10)   /* of one text */
#define TOTAL_LIMIT ((size_t)512 << 10) /* of all texts of an object */

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

/* Numbers are 0, 1, 2, ... */
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

/* ---- where the texts are ---- */

static char *texts(tn_error *err) { return err->spill != NULL ? err->spill : err->inline_text; }

static size_t room(const tn_error *err)
{
  if (err->spill != NULL) return err->spill_size;
  /* A program that was built with other headers says how large its object is. */
  size_t n = err->struct_size;
  if (n < offsetof(tn_error, inline_text) + 16 || n > sizeof(tn_error)) n = sizeof(tn_error);
  return n - offsetof(tn_error, inline_text);
}

enum { NODE = 0, MESSAGE = 1, CAUSES = 2 };

/* The i-th text, "" past the end. */
static const char *text_at(const tn_error *err, size_t i)
{
  if (err == NULL || err->used == 0) return "";
  const char *p = err->spill != NULL ? err->spill : err->inline_text, *end = p + err->used;
  for (; i > 0 && p < end; i--) p += strlen(p) + 1;
  return p < end ? p : "";
}

/* ---- changing the texts ---- */

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

/* Turns the last bytes before `end` of the text that begins at `begin` or later into "...". */
static void put_dots(char *p, size_t begin, size_t end)
{
  for (int i = 0; i < 3 && end > begin && p[end - 1] != 0; i++) p[--end] = '.';
}

/* Puts text[n], and a NUL when `nul` is 1, at byte `at` of the texts; it does not lie in the object itself. Without
 * memory it is cut to the room that there is: half of it at least is left to the new text, what follows loses its end.
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

/* The words are put together before the object changes: the arguments may point into it. */
typedef struct words {
  char *text;
  size_t n;
  size_t heap_size; /* 0: text is `small` */
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
  w->n = strlen(w->text); /* a %c may have made a NUL */
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
  reserve(to, from->used); /* without memory each of these is cut */
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
  /* A copy, as it may be a part of a text in the object. */
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
