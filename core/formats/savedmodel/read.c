/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the readers of a SavedModel: errors, texts, arrays, entries of maps. */
#include <core/formats/savedmodel/reader.h>

#include <string.h>

/* The bytes of a text are its translation, in which a position would say nothing. */
tn_status tn__sm_malformed(const tn__sm_reader *r, const void *at, const char *what)
{
  if (r->model->is_text) return tn_error_set(r->err, TN_DATA_LOSS, "%s: %s", r->model->name, what);
  return tn_error_set(r->err, TN_DATA_LOSS, "%s: byte %zu: %s", r->model->name,
                      (size_t)((const char *)at - r->file.data), what);
}

tn_status tn__sm_no_memory(const tn__sm_reader *r) { return tn__no_memory(r->err, r->model->name, 0); }

tn_status tn__sm_damage(tn_status st, tn_error *err)
{
  if (st != TN_INVALID_ARGUMENT) return st;
  if (err != NULL) err->code = TN_DATA_LOSS;
  return TN_DATA_LOSS;
}

tn_status tn__sm_after(const tn__sm_reader *r, const tn__wire *w)
{
  return w->error == NULL ? TN_OK : tn__sm_malformed(r, w->at, w->error);
}

/* ---- texts ---- */

static tn_status bad_text(const tn__sm_reader *r, const void *at, const char *what, const char *wrong)
{
  char text[200];
  tn__snprintf(text, sizeof text, "%s %s", what, wrong);
  return tn__sm_malformed(r, at, text);
}

tn_status tn__sm_text(const tn__sm_reader *r, tn__slice text, const char *what, const char **out)
{
  const unsigned char *p = (const unsigned char *)text.data;
  *out = NULL;
  for (size_t i = 0, n; i < text.size; i += n) {
    if ((n = tn__utf8_size(p + i, text.size - i)) == 0) return bad_text(r, p + i, what, "is not UTF-8");
    if (p[i] < 0x20 || p[i] == 0x7f) return bad_text(r, p + i, what, "has a control character");
  }
  *out = text.size == 0 ? "" : tn__arena_string(&r->model->arena, text.data, text.size);
  return *out == NULL ? tn__sm_no_memory(r) : TN_OK;
}

/* ---- parts of messages ---- */

tn_status tn__sm_array(const tn__sm_reader *r, size_t n, size_t size, void *out)
{
  void *array = tn__arena_array(&r->model->arena, n, size);
  memcpy(out, &array, sizeof array); /* to a pointer of any type */
  return array == NULL ? tn__sm_no_memory(r) : TN_OK;
}

tn_status tn__sm_count(const tn__sm_reader *r, tn__slice message, uint32_t field, size_t *n)
{
  *n = 0;
  tn__wire w = tn__wire_read(message);
  while (tn__wire_next(&w)) *n += tn__wire_is(&w, field, TN__WIRE_BYTES);
  return tn__sm_after(r, &w);
}

tn_status tn__sm_entry(const tn__sm_reader *r, tn__slice entry, tn__slice *key, tn__slice *value)
{
  *key = *value = (tn__slice){ entry.data, 0 };
  tn__wire w = tn__wire_read(entry);
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, TN__SM_KEY, TN__WIRE_BYTES)) *key = w.bytes;
    if (tn__wire_is(&w, TN__SM_VALUE, TN__WIRE_BYTES)) *value = w.bytes;
  }
  return tn__sm_after(r, &w);
}
