/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes texts to bucket numbers: StringToHashBucket StringToHashBucketFast
 * StringToHashBucketStrong. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/kernel/poll.h>
#include <ops/kernel/shapes.h>
#include <ops/string/hash/fingerprint.h>

typedef struct hash_state {
  uint64_t buckets;
  uint64_t key[2]; /* for StringToHashBucketStrong */
} hash_state;

static void hash_destroy(void *state) { tn__free(state, sizeof(hash_state)); }

static tn_status hash_create(const tn_operation *op, void **state, tn_error *err)
{
  int64_t buckets = tn__attr_int(op, "num_buckets", 1);
  *state = NULL;
  if (buckets < 1)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: attribute 'num_buckets' is %lld, wanted at least 1",
                        tn_operation_type(op), (long long)buckets);
  hash_state *h = tn__zalloc(sizeof *h);
  if (h == NULL) return tn__no_memory(err, "kernel", sizeof *h);
  h->buckets = (uint64_t)buckets;
  *state = h;
  return TN_OK;
}

static tn_status strong_create(const tn_operation *op, void **state, tn_error *err)
{
  const int64_t *key = NULL;
  size_t n = 0;
  tn_status st = hash_create(op, state, err);
  if (st == TN_OK) st = tn_operation_attr_ints(op, "key", &key, &n, err);
  if (st == TN_OK && n != 2)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: attribute 'key' has %zu numbers, wanted 2", tn_operation_type(op),
                      n);
  if (st != TN_OK) {
    hash_destroy(*state);
    *state = NULL;
    return st;
  }
  hash_state *h = *state;
  h->key[0] = (uint64_t)key[0];
  h->key[1] = (uint64_t)key[1];
  return TN_OK;
}

static tn_status hash_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  ctx->cost_ns = 20 + 15 * (double)ctx->inputs[0].count;
  return tn_prepare_output_like(ctx, 0, 0, err);
}

#define COMPUTE(name, expression)                                   \
  static tn_status name(tn_kernel_ctx *ctx)                         \
  {                                                                 \
    const hash_state *h = ctx->state;                               \
    const tn_string *x = ctx->inputs[0]->data;                      \
    int64_t *to = ctx->outputs[0]->data;                            \
    tn__poll poll = tn__poll_of(ctx);                               \
    for (int64_t i = 0; i < ctx->inputs[0]->count; i++) {           \
      if (tn__poll_over(&poll, 30)) return TN_CANCELLED;            \
      size_t n;                                                     \
      const char *text = tn_string_data(x + i, &n);                 \
      to[i] = (int64_t)((expression) % h->buckets);                 \
    }                                                               \
    return TN_OK;                                                   \
  }
COMPUTE(first_compute, tn__murmur64(text, n))
COMPUTE(fast_compute, tn__fingerprint64(text, n))
COMPUTE(strong_compute, tn__siphash(h->key, text, n))

#define OP(op, in, attributes, text)                                                                       \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in ": string", .outputs = "output: int64",         \
    .attrs = "num_buckets: int >= 1" attributes, .infer = tn__infer_unchanged, .summary = text }

static const tn_op_def ops[] = {
  OP("StringToHashBucket", "string_tensor", "", "hash buckets of strings, by the legacy hash"),
  OP("StringToHashBucketFast", "input", "", "hash buckets of strings, by a fast hash"),
  OP("StringToHashBucketStrong", "input", "; key: list(int)", "hash buckets of strings, by a keyed hash"),
};

#define KERNEL(which, title, make, run)                                                                      \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C,        \
    .create = make, .destroy = hash_destroy, .prepare = hash_prepare, .compute = run }

static const tn_kernel_def kernels[] = {
  KERNEL("StringToHashBucket", "string_to_hash_bucket_cpu", hash_create, first_compute),
  KERNEL("StringToHashBucketFast", "string_to_hash_bucket_fast_cpu", hash_create, fast_compute),
  KERNEL("StringToHashBucketStrong", "string_to_hash_bucket_strong_cpu", strong_create, strong_compute),
};

TN_OP_FAMILY(string_hash)
