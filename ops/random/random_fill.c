/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of random numbers: blocks of words in a small buffer are converted to elements, with one
 * loop per distribution and dtype. Element i depends only on the words at its position, so the
 * result does not depend on how the tensor is divided into parts. */
#include <math.h>
#include <ops/kernel/elements/half.h>
#include <ops/random/random_source.h>

#define WORDS 256        /* in the buffer: 64 blocks */
#define CHUNKS_A_PART 16 /* of WORDS words; smaller parts are not worth another thread */
#define TWO_PI 6.283185307179586476925
#define SMALLEST 1e-7 /* lower bound before a logarithm, to avoid log(0) */

/* Makes elements from n words, a multiple of four except at the end. */
typedef void (*convert_fn)(const uint32_t *words, void *out, int64_t count, uint64_t low, uint64_t range);
typedef void (*truncated_fn)(const tn__philox *from, void *out, int64_t count);

/* ---- distributions ---- */

void tn__normal_floats(const uint32_t *words, float *out)
{
  float u = tn__uniform_float(words[0]), angle = (float)(TWO_PI * (double)tn__uniform_float(words[1]));
  if (u < (float)SMALLEST) u = (float)SMALLEST;
  float radius = sqrtf(-2.0f * logf(u));
  out[0] = sinf(angle) * radius;
  out[1] = cosf(angle) * radius;
}

void tn__normal_doubles(const uint32_t *words, double *out)
{
  double u = tn__uniform_double(words[0], words[1]), angle = TWO_PI * tn__uniform_double(words[2], words[3]);
  if (u < SMALLEST) u = SMALLEST;
  double radius = sqrt(-2.0 * log(u));
  out[0] = sin(angle) * radius;
  out[1] = cos(angle) * radius;
}

static inline uint16_t uniform_half(uint32_t word)
{
  return tn__half_from_float(tn__half_to_float((uint16_t)((word & 0x3ffu) | 0x3c00u)) - 1.0f);
}

static inline uint16_t uniform_bfloat16(uint32_t word)
{
  return tn__bfloat16_from_float(tn__bfloat16_to_float((uint16_t)((word & 0x7fu) | 0x3f80u)) - 1.0f);
}

#define PARAMETERS const uint32_t *w, void *out_, int64_t count, uint64_t low, uint64_t range
#define CONVERT(name, T, expression)                           \
  static void name(PARAMETERS)                                 \
  {                                                            \
    T *out = out_;                                             \
    (void)low;                                                 \
    (void)range;                                               \
    for (int64_t i = 0; i < count; i++) out[i] = (expression); \
  }
#define WORD_64(i) ((uint64_t)w[2 * (i) + 1] << 32 | w[2 * (i)])

CONVERT(uniform_floats, float, tn__uniform_float(w[i]))
CONVERT(uniform_doubles, double, tn__uniform_double(w[2 * i], w[2 * i + 1]))
CONVERT(uniform_halves, uint16_t, uniform_half(w[i]))
CONVERT(uniform_bfloats, uint16_t, uniform_bfloat16(w[i]))
CONVERT(range_32, uint32_t, (uint32_t)low + w[i] % (uint32_t)range)
CONVERT(range_64, uint64_t, low + WORD_64(i) % range)
CONVERT(bits_32, uint32_t, w[i])
CONVERT(bits_64, uint64_t, WORD_64(i))

#define AS_IS(x) (x)
#define NORMAL(name, T, N, pair, words_each, as)                              \
  static void name(PARAMETERS)                                                \
  {                                                                           \
    T *out = out_;                                                            \
    (void)low;                                                                \
    (void)range;                                                              \
    for (int64_t i = 0; i < count; i += 2) {                                  \
      N two[2];                                                               \
      pair(w + i * (words_each), two);                                        \
      out[i] = as(two[0]);                                                    \
      if (i + 1 < count) out[i + 1] = as(two[1]);                             \
    }                                                                         \
  }
NORMAL(normal_floats, float, float, tn__normal_floats, 1, AS_IS)
NORMAL(normal_halves, uint16_t, float, tn__normal_floats, 1, tn__half_from_float)
NORMAL(normal_bfloats, uint16_t, float, tn__normal_floats, 1, tn__bfloat16_from_float)
NORMAL(normal_doubles, double, double, tn__normal_doubles, 2, AS_IS)

/* ---- truncated normal: the number of words per element varies ---- */

/* Each group of four elements (two of double) has its own range of the generator. Returns after
 * `count` elements. */
#define TRUNCATED(name, T, N, pair, n_words, as)                            \
  static void name(const tn__philox *from, void *out_, int64_t count)       \
  {                                                                         \
    T *out = out_;                                                          \
    tn__philox_words source;                                                \
    tn__philox_words_init(&source, from);                                   \
    for (int64_t i = 0; i < count;) {                                       \
      uint32_t w[n_words];                                                  \
      N two[2];                                                             \
      for (int k = 0; k < (n_words); k++) w[k] = tn__philox_word(&source);  \
      pair(w, two);                                                         \
      for (int k = 0; k < 2 && i < count; k++)                              \
        if (two[k] > -2 && two[k] < 2) out[i++] = as(two[k]);               \
    }                                                                       \
  }
TRUNCATED(truncated_floats, float, float, tn__normal_floats, 2, AS_IS)
TRUNCATED(truncated_halves, uint16_t, float, tn__normal_floats, 2, tn__half_from_float)
TRUNCATED(truncated_bfloats, uint16_t, float, tn__normal_floats, 2, tn__bfloat16_from_float)
TRUNCATED(truncated_doubles, double, double, tn__normal_doubles, 4, AS_IS)

/* ---- parts ---- */

typedef struct job {
  tn__philox from;
  convert_fn convert;
  truncated_fn truncated;
  char *out;
  int64_t count, each; /* elements; elements made of a chunk of WORDS words, or of a group */
  size_t size;         /* of an element */
  uint64_t blocks;     /* of a group */
  uint64_t low, range;
} job;

static void fill_chunks(void *user, int64_t begin, int64_t end)
{
  const job *j = user;
  uint32_t words[WORDS];
  tn__philox p = j->from;
  tn__philox_skip(&p, (uint64_t)begin * (WORDS / 4));
  for (int64_t c = begin; c < end; c++) {
    int64_t at = c * j->each, n = j->count - at < j->each ? j->count - at : j->each;
    int64_t wanted = n * (WORDS / j->each);
    tn__philox_blocks(&p, words, (wanted + 3) / 4);
    j->convert(words, j->out + (size_t)at * j->size, n, j->low, j->range);
  }
}

static void fill_groups(void *user, int64_t begin, int64_t end)
{
  const job *j = user;
  for (int64_t g = begin; g < end; g++) {
    int64_t at = g * j->each, n = j->count - at < j->each ? j->count - at : j->each;
    tn__philox p = j->from;
    tn__philox_skip(&p, (uint64_t)g * j->blocks);
    j->truncated(&p, j->out + (size_t)at * j->size, n);
  }
}

/* The column of the tables in choose(). */
static int real_of(tn_dtype dtype)
{
  switch (dtype) {
  case TN_DOUBLE: return 1;
  case TN_HALF: return 2;
  case TN_BFLOAT16: return 3;
  default: return 0;
  }
}

static void choose(job *j, tn__random_kind kind, tn_dtype dtype)
{
  static const convert_fn uniform[] = { uniform_floats, uniform_doubles, uniform_halves, uniform_bfloats },
                          normal[] = { normal_floats, normal_doubles, normal_halves, normal_bfloats };
  static const truncated_fn truncated[] = { truncated_floats, truncated_doubles, truncated_halves, truncated_bfloats };
  bool wide = j->size == 8;
  switch (kind) {
  case TN__RANDOM_UNIFORM: j->convert = uniform[real_of(dtype)]; break;
  case TN__RANDOM_NORMAL: j->convert = normal[real_of(dtype)]; break;
  case TN__RANDOM_TRUNCATED: j->truncated = truncated[real_of(dtype)]; break;
  case TN__RANDOM_RANGE: j->convert = wide ? range_64 : range_32; break;
  case TN__RANDOM_BITS: j->convert = wide ? bits_64 : bits_32; break;
  }
}

double tn__random_cost(tn__random_kind kind)
{
  if (kind == TN__RANDOM_TRUNCATED) return 25;
  return kind == TN__RANDOM_NORMAL ? 12 : 1.5;
}

void tn__random_fill(tn_kernel_ctx *ctx, tn__random_kind kind, const tn__philox *from, const tn_view *out, uint64_t low,
                     uint64_t range)
{
  job j = { .from = *from, .out = out->data, .count = out->count, .size = tn_dtype_size(out->dtype), .low = low,
            .range = range };
  choose(&j, kind, out->dtype);
  bool groups = j.truncated != NULL;
  j.each = (groups ? 4 : WORDS) / (j.size == 8 ? 2 : 1);
  j.blocks = (uint64_t)j.each * (TN__RANDOM_BLOCKS / 4);
  int64_t n = j.count / j.each + (j.count % j.each != 0), grain = CHUNKS_A_PART * (groups ? WORDS / 4 : 1);
  void (*fill)(void *user, int64_t begin, int64_t end) = groups ? fill_groups : fill_chunks;
  if (n <= 2 * grain)
    fill(&j, 0, n);
  else
    tn_parallel_for(ctx, n, grain, tn__random_cost(kind) * (double)j.each, fill, &j);
}

static uint64_t integer(const tn_view *v)
{
  switch (v->dtype) {
  case TN_INT32: return (uint64_t)*(const int32_t *)v->data;
  case TN_UINT32: return *(const uint32_t *)v->data;
  default: return *(const uint64_t *)v->data;
  }
}

tn_status tn__random_fill_between(tn_kernel_ctx *ctx, const tn__philox *from, uint32_t i, const char *op)
{
  const tn_view *out = ctx->outputs[0];
  if (out->count == 0) return TN_OK; /* then even an empty range is valid */
  uint64_t low = integer(ctx->inputs[i]), high = integer(ctx->inputs[i + 1]);
  bool has_sign = out->dtype == TN_INT32 || out->dtype == TN_INT64;
  if (has_sign ? (int64_t)low >= (int64_t)high : low >= high)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                        has_sign ? "%s: minval is %lld and must be below maxval, which is %lld"
                                 : "%s: minval is %llu and must be below maxval, which is %llu",
                        op, (long long)low, (long long)high);
  tn__random_fill(ctx, TN__RANDOM_RANGE, from, out, low, high - low);
  return TN_OK;
}
