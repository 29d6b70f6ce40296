/* SPDX-License-Identifier: Apache-2.0 */
/* A step of a kernel that reads messages: its inputs, and loops over messages whose items may fail. */
#ifndef TN_OPS_EXAMPLE_MESSAGES_H
#define TN_OPS_EXAMPLE_MESSAGES_H

#include <ops/example/features.h>
#include <stdatomic.h>

typedef struct tn__messages {
  tn_kernel_ctx *ctx;
  const tn__features *features;
  tn__key_index index;
  const tn_view *in, *names; /* of strings; names is NULL if there are none */
  int64_t n;
  bool single;               /* a message, not a vector of them */
  double bytes;              /* mean size of a message */
  void *memory;              /* scratch of the kernel's own, aligned to 16 */
  _Atomic int64_t bad;       /* the first message with an error, INT64_MAX = none */
  _Atomic bool no_memory;
} tn__messages;

/* For `prepare`: requests scratch memory for the keys and for `each` bytes for each feature of each message. */
tn_status tn__messages_scratch(tn_prepare_ctx *ctx, const tn__features *features, size_t each, tn_error *err);
/* For `compute`. Messages are input 0; `names` is an input, or UINT32_MAX. */
void tn__messages_init(tn__messages *m, tn_kernel_ctx *ctx, uint32_t names);

static inline tn__slice tn__messages_at(const tn__messages *m, int64_t i)
{
  tn__slice s;
  s.data = tn_string_data((const tn_string *)m->in->data + i, &s.size);
  return s;
}

/* Runs items in parallel if that pays. `user` of part is `m`. */
void tn__messages_loop(tn__messages *m, int64_t n, double cost_ns,
                       void (*part)(void *user, int64_t begin, int64_t end));
/* Records that message i has an error. Any thread. */
void tn__messages_fail(tn__messages *m, int64_t i);
/* Prepends the message's number and name to the error. */
tn_status tn__messages_error(const tn__messages *m, int64_t i);

/* Arguments for "%.*s": the key of feature i, cut to 100 bytes. */
#define TN__KEY(m, i) \
  (int)((m)->index.keys[i].size < 100 ? (m)->index.keys[i].size : 100), (m)->index.keys[i].data

/* Element i of an output. */
static inline char *tn__messages_element(const tn_view *out, int64_t i)
{
  return (char *)out->data + (size_t)i * tn_dtype_size(out->dtype);
}

#endif
