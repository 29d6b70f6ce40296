/* SPDX-License-Identifier: Apache-2.0 */
/* String elements in TensorFlow's TF_TString layout. An element has one of four forms: a short text inside it, a long
 * one on the heap, at an offset from the element, or a view of foreign memory. The two low bits of the first byte give
 * the form; on a little-endian machine they are also the low bits of the length word of the other forms, so lengths are
 * stored times four. Only LARGE owns memory. `capacity` does not count the NUL. */
#include <core/tensor/tensor_internal.h>

#include <string.h>

_Static_assert(sizeof(tn_string) == 24, "24 bytes, as TF_TString");
#if defined(__BYTE_ORDER__)
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first byte must have the low bits of the length");
#endif

enum { SMALL = 0, LARGE = 1, OFFSET = 2, VIEW = 3 };
#define SMALL_MAX 22 /* bytes: 24 less the first byte and the NUL */

static int form(const tn_string *s) { return s->u.small[0] & 3; }

const char *tn_string_data(const tn_string *s, size_t *length)
{
  size_t n = 0;
  const char *data = "";
  if (s != NULL) switch (form(s)) {
    case SMALL:
      n = s->u.small[0] >> 2;
      if (n > SMALL_MAX) n = SMALL_MAX;
      data = (const char *)s->u.small + 1;
      break;
    case LARGE:
      n = s->u.large.size >> 2;
      data = s->u.large.data;
      break;
    case OFFSET:
      n = s->u.offset.size >> 2;
      data = (const char *)s + s->u.offset.offset;
      break;
    default: n = s->u.view.size >> 2; data = s->u.view.data;
    }
  if (length != NULL) *length = n;
  return data;
}

void tn_string_clear(tn_string *s)
{
  if (s == NULL) return;
  if (form(s) == LARGE) tn__free(s->u.large.data, s->u.large.capacity + 1);
  memset(s, 0, sizeof(*s));
}

/* Whether the heap block of an element is reused for a text of this length: it fits, and needs at least a quarter of
 * the block, so that a short text does not keep a large block. */
static bool can_reuse(const tn_string *s, size_t length)
{
  return form(s) == LARGE && length > SMALL_MAX && length <= s->u.large.capacity && s->u.large.capacity / 4 <= length;
}

static char *set_length(tn_string *s, size_t length)
{
  s->u.large.size = length << 2 | LARGE;
  s->u.large.data[length] = 0;
  return s->u.large.data;
}

/* Allocates a heap block for a text; NULL: out of memory. */
static char *large_alloc(size_t length, size_t *capacity)
{
  if (length > PTRDIFF_MAX / 8) return NULL; /* the length is stored times four */
  *capacity = tn__round_up(length + 1, 16) - 1;
  return tn__alloc(*capacity + 1);
}

/* Allocates before it frees the old text, so that a failure changes nothing. */
char *tn__string_reserve(tn_string *s, size_t length)
{
  if (can_reuse(s, length)) return set_length(s, length);
  char *data = NULL;
  size_t capacity = 0;
  if (length > SMALL_MAX && (data = large_alloc(length, &capacity)) == NULL) return NULL;
  tn_string_clear(s);
  if (data == NULL) {
    s->u.small[0] = (uint8_t)(length << 2);
    return (char *)s->u.small + 1;
  }
  s->u.large.capacity = capacity;
  s->u.large.data = data;
  return set_length(s, length);
}

/* `data` may be a part of the element's old text, which is therefore freed last. */
static bool set(tn_string *s, const void *data, size_t length)
{
  tn_string fresh;
  if (can_reuse(s, length)) {
    memmove(s->u.large.data, data, length);
    set_length(s, length);
    return true;
  }
  memset(&fresh, 0, sizeof(fresh));
  char *to = tn__string_reserve(&fresh, length);
  if (to == NULL) return false;
  if (length > 0) memcpy(to, data, length);
  tn_string_clear(s);
  *s = fresh;
  return true;
}

tn_status tn_string_set(tn_string *s, const void *data, size_t length, tn_error *err)
{
  tn__error_reset(err);
  if (s == NULL || (data == NULL && length > 0))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "no %s is given", s == NULL ? "string element" : "text");
  return set(s, data, length) ? TN_OK : tn__no_memory(err, "a string element", length);
}

/* ---- elements that own memory ---- */

static tn_handle *get_handle(const void *data, int64_t i)
{
  tn_handle *h;
  memcpy(&h, (const char *)data + i * 8, sizeof(h));
  return h;
}

/* Elements of the other managed types are handles; NULL is a valid element. */
void tn__elements_clear(tn_dtype dtype, void *data, int64_t count)
{
  if (dtype == TN_STRING) {
    tn_string *s = data;
    for (int64_t i = 0; i < count; i++)
      if (form(&s[i]) != SMALL) tn_string_clear(&s[i]);
  } else if (tn__dtype_is_managed(dtype)) {
    for (int64_t i = 0; i < count; i++) {
      tn_handle *h = get_handle(data, i);
      if (h != NULL) h->cls->unref(h);
    }
  }
  if (tn__dtype_is_managed(dtype) && count > 0) memset(data, 0, (size_t)count * tn_dtype_size(dtype));
}

tn_status tn__elements_copy(tn_dtype dtype, void *to, const void *from, int64_t count, tn_error *err)
{
  if (dtype == TN_STRING) {
    for (int64_t i = 0; i < count; i++) {
      size_t length;
      const char *text = tn_string_data((const tn_string *)from + i, &length);
      if (!set((tn_string *)to + i, text, length)) {
        tn__elements_clear(dtype, to, i);
        return tn__no_memory(err, "a copy of a string element", length);
      }
    }
  } else if (tn__dtype_is_managed(dtype)) {
    for (int64_t i = 0; i < count; i++) {
      tn_handle *h = get_handle(from, i);
      if (h != NULL) h->cls->ref(h);
    }
    if (count > 0) memcpy(to, from, (size_t)count * 8);
  }
  return TN_OK;
}
