/* SPDX-License-Identifier: Apache-2.0 */
/* A destination of written bytes: memory that grows, a file (in large pieces), or a counter. The first error is
 * kept and later calls do nothing, so a writer of messages checks `status` once. */
#ifndef TN_CORE_FORMATS_SINK_H
#define TN_CORE_FORMATS_SINK_H

#include <core/base/file.h>
#include <core/base/text.h>

/* The most that tn__sink_reserve can be asked for. */
#define TN__SINK_PIECE ((size_t)256 << 10)

typedef struct tn__sink {
  char *data; /* memory of tn_alloc */
  size_t used, room;
  size_t before;    /* bytes that are counted or in the file already; the sink's size is before + used */
  tn__writer *file; /* NULL: memory */
  bool counts;
  tn_status status;
  tn_error *err;
} tn__sink;

static inline tn__sink tn__sink_counter(tn_error *err) { return (tn__sink){ .counts = true, .err = err }; }
static inline tn__sink tn__sink_memory(tn_error *err) { return (tn__sink){ .err = err }; }
static inline tn__sink tn__sink_file(tn__writer *file, tn_error *err) { return (tn__sink){ .file = file, .err = err }; }
static inline size_t tn__sink_size(const tn__sink *s) { return s->before + s->used; }

/* Frees the memory. Call tn__sink_flush before, which writes the remaining bytes to the file. */
void tn__sink_fini(tn__sink *s);
tn_status tn__sink_flush(tn__sink *s);

/* At least n bytes at s->data + s->used. The caller adds the bytes it wrote to s->used. NULL after an error. Not
 * for a counter. */
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
/* Fields: a number, a run of bytes. */
void tn__sink_int(tn__sink *s, uint32_t field, uint64_t value);
void tn__sink_bytes(tn__sink *s, uint32_t field, tn__slice bytes);

/* A message written by `body`, which is called twice: the first call only counts, which gives the size of the
 * message. */
typedef void (*tn__sink_body)(tn__sink *s, const void *what);
void tn__sink_message(tn__sink *s, uint32_t field, tn__sink_body body, const void *what);

/* A message whose size is not known, in a memory sink only. Returns the place to pass to _end. */
size_t tn__sink_begin(tn__sink *s);
void tn__sink_end(tn__sink *s, size_t place);

#endif
