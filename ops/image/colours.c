/* SPDX-License-Identifier: Apache-2.0 */
/* Colour spaces of pixels of red, green and blue: RGBToHSV HSVToRGB AdjustHue AdjustSaturation. Half and bfloat16 are
 * computed in float, double in double. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <math.h>
#include <ops/kernel/elements/convert.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <string.h>

enum { BLOCK = 256 }; /* pixels that are converted at a time */

#define MOST(a, b) ((a) > (b) ? (a) : (b))
#define LEAST(a, b) ((a) < (b) ? (a) : (b))
#define LIMIT(a) ((a) < 0 ? 0 : LEAST(a, 1))

/* The functions of pixels for one type. `by` is the number that an adjustment has. */
#define COLOURS(T, NAME, ABS, MOD)                                             \
  static T NAME##_hue(const T *p, T value, T range)                            \
  {                                                                            \
    T norm = 1 / (6 * range), hue = norm * (p[0] - p[1]) + (T)4 / 6;           \
    if (!(range > 0)) return 0;                                                \
    if (p[0] == value) hue = norm * (p[1] - p[2]);                             \
    else if (p[1] == value) hue = norm * (p[2] - p[0]) + (T)2 / 6;             \
    return hue < 0 ? hue + 1 : hue;                                            \
  }                                                                            \
  static void NAME##_to_hsv(T *p, int64_t n, T by)                             \
  {                                                                            \
    (void)by;                                                                  \
    for (; n-- > 0; p += 3) {                                                  \
      T value = MOST(p[0], MOST(p[1], p[2])), low = LEAST(p[0], LEAST(p[1], p[2])); \
      T range = value - low, hue = NAME##_hue(p, value, range);                \
      p[0] = hue;                                                              \
      p[1] = value > 0 ? range / value : 0;                                    \
      p[2] = value;                                                            \
    }                                                                          \
  }                                                                            \
  static void NAME##_to_rgb(T *p, int64_t n, T by)                             \
  {                                                                            \
    (void)by;                                                                  \
    for (; n-- > 0; p += 3) {                                                  \
      T h = p[0] * 6, s = p[1], v = p[2];                                      \
      T r = ABS(h - 3) - 1, g = 2 - ABS(h - 2), b = 2 - ABS(h - 4);            \
      p[0] = ((1 - s) + s * LIMIT(r)) * v;                                     \
      p[1] = ((1 - s) + s * LIMIT(g)) * v;                                     \
      p[2] = ((1 - s) + s * LIMIT(b)) * v;                                     \
    }                                                                          \
  }                                                                            \
  static void NAME##_add_hue(T *p, int64_t n, T by)                            \
  {                                                                            \
    for (; n-- > 0; p += 3) {                                                  \
      NAME##_to_hsv(p, 1, 0);                                                  \
      T low = p[2] - p[1] * p[2], h = MOD(p[0] + by, 1);                       \
      if (h < 0) h += 1;                                                       \
      T range = p[2] - low;                                                    \
      p[0] = h;                                                                \
      p[1] = range;                                                            \
      T value = p[2], r = ABS(h * 6 - 3) - 1, g = 2 - ABS(h * 6 - 2), b = 2 - ABS(h * 6 - 4); \
      p[0] = value - range * (1 - LIMIT(r));                                   \
      p[1] = value - range * (1 - LIMIT(g));                                   \
      p[2] = value - range * (1 - LIMIT(b));                                   \
    }                                                                          \
  }                                                                            \
  static void NAME##_scale_saturation(T *p, int64_t n, T by)                   \
  {                                                                            \
    for (; n-- > 0; p += 3) {                                                  \
      NAME##_to_hsv(p, 1, 0);                                                  \
      p[1] = LIMIT(p[1] * by);                                                 \
      NAME##_to_rgb(p, 1, 0);                                                  \
    }                                                                          \
  }

COLOURS(float, single, fabsf, fmodf)
COLOURS(double, twice, fabs, fmod)

typedef struct colours {
  const char *op;
  bool adjusts; /* input 1 is the number; images have rank 3 or more */
  void (*single)(float *p, int64_t n, float by);
  void (*twice)(double *p, int64_t n, double by);
} colours;

static const colours functions[] = {
  { "AdjustHue", true, single_add_hue, twice_add_hue },
  { "AdjustSaturation", true, single_scale_saturation, twice_scale_saturation },
  { "HSVToRGB", false, single_to_rgb, twice_to_rgb },
  { "RGBToHSV", false, single_to_hsv, twice_to_hsv },
};

typedef struct colours_state {
  const colours *function;
  tn__convert load, store; /* to and from float; not for double */
} colours_state;

static tn_status colours_create(const tn_operation *op, void **state, tn_error *err)
{
  tn_dtype dtype = tn_operation_input_dtype(op, 0);
  colours_state s = { 0 };
  *state = NULL;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (strcmp(functions[i].op, tn_operation_type(op)) == 0) s.function = &functions[i];
  if (s.function == NULL ||
      (dtype != TN_DOUBLE && (!tn__convert_find(dtype, TN_FLOAT, false, &s.load) ||
                              !tn__convert_find(TN_FLOAT, dtype, false, &s.store))))
    return tn__no_kernel(err, op, dtype);
  return tn__keep_state(&s, sizeof s, "colours", state, err);
}

static void colours_destroy(void *state) { tn__free(state, sizeof(colours_state)); }

static tn_status colours_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const colours_state *s = ctx->state;
  const tn_view *in = &ctx->inputs[0];
  tn_status st = tn__want_rank_at_least(ctx, 0, s->function->adjusts ? 3 : 1, err);
  if (st == TN_OK && s->function->adjusts) st = tn__want_rank(ctx, 1, 0, err);
  if (st != TN_OK) return st;
  char shape[100];
  if (in->dims[in->rank - 1] != 3)
    return tn_error_set(err, s->function->adjusts ? TN_INVALID_ARGUMENT : TN_FAILED_PRECONDITION,
                        "%s: input 0 has shape %s, wanted 3 channels", s->function->op,
                        tn__format_shape(shape, sizeof shape, in->dims, in->rank));
  ctx->cost_ns = 20 + (double)in->count * 3;
  st = tn_prepare_output_like(ctx, 0, 0, err);
  return st != TN_OK ? st : tn_prepare_in_place(ctx, 0, 0, err);
}

typedef struct colours_run {
  const colours_state *state;
  const char *in;
  char *out;
  float by;
} colours_run;

static void run_doubles(const colours_run *r, int64_t begin, int64_t end)
{
  double *to = (double *)r->out + 3 * begin;
  const double *from = (const double *)r->in + 3 * begin;
  if (to != from) memcpy(to, from, (size_t)(end - begin) * 3 * sizeof *to);
  r->state->function->twice(to, end - begin, (double)r->by);
}

static void run_floats(const colours_run *r, int64_t begin, int64_t end)
{
  const tn__convert *load = &r->state->load, *store = &r->state->store;
  float block[BLOCK * 3];
  for (int64_t at = begin; at < end; at += BLOCK) {
    int64_t n = end - at < BLOCK ? end - at : BLOCK;
    tn__convert_run(load, r->in + (size_t)at * 3 * load->from_size, block, 3 * n);
    r->state->function->single(block, n, r->by);
    tn__convert_run(store, block, r->out + (size_t)at * 3 * store->to_size, 3 * n);
  }
}

static void colours_part(void *user, int64_t begin, int64_t end)
{
  const colours_run *r = user;
  if (r->state->load.from_size == 0) run_doubles(r, begin, end);
  else run_floats(r, begin, end);
}

static tn_status colours_compute(tn_kernel_ctx *ctx)
{
  const colours_state *s = ctx->state;
  colours_run r = { s, ctx->inputs[0]->data, ctx->outputs[0]->data, 0 };
  if (s->function->adjusts) r.by = *(const float *)ctx->inputs[1]->data;
  tn_parallel_for(ctx, ctx->inputs[0]->count / 3, 4096, 8, colours_part, &r);
  return TN_OK;
}

/* ---- tables ---- */

static tn_status infer_colours(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape unused;
  bool adjusts = tn_infer_n_inputs(ctx) > 1;
  tn_status st = tn__infer_rank_at_least(ctx, 0, adjusts ? 3 : 1, &unused, err);
  if (st == TN_OK && adjusts) st = tn__infer_rank(ctx, 1, 0, &unused, err);
  return st != TN_OK ? st : tn__infer_unchanged(ctx, err);
}

#define OP(op, in, types, text)                                                                      \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = "output: T", .attrs = types, \
    .infer = infer_colours, .summary = text }
#define TWO "T: {half, float} = float"
#define FOUR "T: {half, bfloat16, float, double} = float"

static const tn_op_def ops[] = {
  OP("AdjustHue", "images: T, delta: float", TWO, "turns the hue of each pixel"),
  OP("AdjustSaturation", "images: T, scale: float", TWO, "multiplies the saturation of each pixel"),
  OP("HSVToRGB", "images: T", FOUR, "converts hue, saturation and value to red, green and blue"),
  OP("RGBToHSV", "images: T", FOUR, "converts red, green and blue to hue, saturation and value"),
};

static const tn_kernel_def kernels[] = {
  TN__KERNEL("AdjustHue", "adjust_hue_cpu", colours_create, colours_destroy, colours_prepare, colours_compute),
  TN__KERNEL("AdjustSaturation", "adjust_saturation_cpu", colours_create, colours_destroy, colours_prepare,
             colours_compute),
  TN__KERNEL("HSVToRGB", "hsv_to_rgb_cpu", colours_create, colours_destroy, colours_prepare, colours_compute),
  TN__KERNEL("RGBToHSV", "rgb_to_hsv_cpu", colours_create, colours_destroy, colours_prepare, colours_compute),
};

TN_OP_FAMILY(colours)
