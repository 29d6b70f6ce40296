/* SPDX-License-Identifier: Apache-2.0 */
/* A destination of written bytes: memory that grows, a file (written in large pieces), or a counter. The first error is
 * kept and later calls do nothing, so a writer of messages checks `status` once, at the end. One thread at a time. */
#ifndef TN_CORE_FORMATS_SINK_H
#define TN_CORE_FORMATS_SINK_H

#include <core/base/file.h>
#include <core/base/text.h>

/* The size of a file sink's memory, and so the maximum for tn__sink_reserve; in bytes. */
#define TN__SINK_PIECE ((size_t)256 << 10)

typedef struct tn__sink {
  char *data;        /* from tn_alloc, owned */
  size_t used, room; /* bytes of data in use, and allocated */
  size_t before;     /* bytes already counted or written to the file; the sink's size is before + used */
  tn__writer *file;  /* borrowed; NULL: memory or a counter */
  bool counts;       /* a counter */
  tn_status status;  /* of the first error, which is in *err */
  tn_error *err;
} tn__sink;

static inline tn__sink tn__sink_counter(tn_error *err) { return (tn__sink){ .counts = true, .err = err }; }
static inline tn__sink tn__sink_memory(tn_error *err) { return (tn__sink){ .err = err }; }
static inline tn__sink tn__sink_file(tn__writer *file, tn_error *err) { return (tn__sink){ .file = file, .err = err }; }
static inline size_t tn__sink_size(const tn__sink *s) { return s->before + s->used; }

/* Frees the memory. For a file, call tn__sink_flush first: it writes the remaining bytes. */
void tn__sink_fini(tn__sink *s);
tn_status tn__sink_flush(tn__sink *s);

/* Returns room for at least n bytes, at s->data + s->used. The caller adds the bytes that it wrote to s->used. NULL
 * after an error. Not for a counter. */
char *tn__sink_reserve(tn__sink *s, size_t n);

void tn__sink_put_slow(tn__sink *s, const void *data, size_t n);
static inline void tn__sink_put(tn__sink *s, const void *data, size_t n)
{
  if (n > s->room - s->used) {
    tn__sink_put_slow(s, data, n);
  } else if (n > 0) {
    __builtin_memcpy(s->data + s->used, data, n);
    s->used += n;
  }
}

/* ---- protobuf's wire format ---- */

void tn__sink_varint(tn__sink *s, uint64_t value);
static inline void tn__sink_tag(tn__sink *s, uint32_t field, int type)
{
  tn__sink_varint(s, (uint64_t)field << 3 | (unsigned)type);
}
/* Write a whole field: a varint, or bytes. */
void tn__sink_int(tn__sink *s, uint32_t field, uint64_t value);
void tn__sink_bytes(tn__sink *s, uint32_t field, tn__slice bytes);

/* Writes a nested message with `body`, which is called twice: first with a counter, to get the size of the message. */
typedef void (*tn__sink_body)(tn__sink *s, const void *what);
void tn__sink_message(tn__sink *s, uint32_t field, tn__sink_body body, const void *what);

/* Writes a length-prefixed message whose size is not known in advance; in a memory sink only. Returns the place to pass
 * to tn__sink_end. */
size_t tn__sink_begin(tn__sink *s);
void tn__sink_end(tn__sink *s, size_t place);

#endif
