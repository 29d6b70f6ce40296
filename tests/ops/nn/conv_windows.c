/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions, depthwise convolutions and pooling by the library's own kernels, on awkward
 * sizes: bits equal those of sums in the same order, on every kind of vectors, with constant and
 * fed filters, alone and with fused ops. */
#include <math.h>
#include <float.h>
#include <ops/kernel/elements/vectors.h>
#include <stdio.h>
#include <stdlib.h>

#include "conformance/support/plan_kit.h"

typedef enum window_kind { CONV, DEPTHWISE, MAX, MEAN } window_kind;

/* explicit: TN_EXPLICIT paddings top, bottom, left, right; after: ops after a product: b(ias),
 * a(dd), r(elu), 6 */
typedef struct shape {
  window_kind kind;
  int64_t n, h, w, c;      /* images */
  int64_t kh, kw, kc, out; /* window, channels of a group, outputs; of a depthwise one: per channel */
  int64_t stride[2], dilation[2];
  const char *padding;
  int64_t explicit[4];
  bool fed; /* the filter is fed */
  const char *after;

  int64_t before[2], oh, ow, oc; /* computed */
} shape;

static bool fit(shape *s)
{
  const int64_t in[] = { s->h, s->w }, size[] = { s->kh, s->kw };
  int64_t *out[] = { &s->oh, &s->ow };
  for (int k = 0; k < 2; k++) {
    int64_t reach = (size[k] - 1) * s->dilation[k] + 1, needed, room;
    switch (s->padding[0]) {
    case 'S':
      *out[k] = (in[k] + s->stride[k] - 1) / s->stride[k];
      needed = (*out[k] - 1) * s->stride[k] + reach - in[k];
      s->before[k] = needed > 0 ? needed / 2 : 0;
      break;
    default:
      s->before[k] = s->padding[0] == 'E' ? s->explicit[2 * k] : 0;
      room = in[k] + s->before[k] + (s->padding[0] == 'E' ? s->explicit[2 * k + 1] : 0) - reach;
      if (room < 0) return false;
      *out[k] = room / s->stride[k] + 1;
    }
  }
  s->oc = s->c;
  if (s->kind == CONV) s->oc = s->out;
  if (s->kind == DEPTHWISE) s->oc = s->c * s->out;
  return true;
}

/* Numbers whose sums depend on their order. */
static tn_tensor *tensor(int32_t rank, const int64_t *dims, uint32_t seed)
{
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, dims, rank, &t, NULL), NULL);
  for (int64_t i = 0; i < tn_tensor_elements(t); i++) {
    seed = seed * 1664525u + 1013904223u;
    ((float *)tn_tensor_data(t))[i] = (float)((int32_t)(seed >> 9) - (1 << 22)) / 3e6f;
  }
  return t;
}

/* ---- reference ---- */

static float one(const shape *s, const float *x, const float *f, int64_t n, int64_t y, int64_t u, int64_t o)
{
  float sum = s->kind == MAX ? -FLT_MAX : 0;
  int64_t cells = 0, group = s->kind == CONV ? o / (s->out / (s->c / s->kc)) : 0;
  for (int64_t i = 0; i < s->kh; i++)
    for (int64_t j = 0; j < s->kw; j++) {
      int64_t h = y * s->stride[0] - s->before[0] + i * s->dilation[0];
      int64_t w = u * s->stride[1] - s->before[1] + j * s->dilation[1];
      if (h < 0 || h >= s->h || w < 0 || w >= s->w) continue;
      const float *at = x + ((n * s->h + h) * s->w + w) * s->c;
      cells++;
      for (int64_t c = 0; c < s->kc && s->kind == CONV; c++)
        sum += at[group * s->kc + c] * f[((i * s->kw + j) * s->kc + c) * s->out + o];
      if (s->kind == DEPTHWISE) sum += at[o / s->out] * f[(i * s->kw + j) * s->oc + o];
      if (s->kind == MAX) sum = at[o] > sum ? at[o] : sum;
      if (s->kind == MEAN) sum += at[o];
    }
  return s->kind == MEAN ? sum / (float)cells : sum;
}

static void right(const shape *s, const float *x, const float *f, const float *bias, const float *added, float *out)
{
  for (int64_t i = 0; i < s->n * s->oh * s->ow * s->oc; i++) {
    int64_t pixel = i / s->oc;
    float v = one(s, x, f, pixel / s->ow / s->oh, pixel / s->ow % s->oh, pixel % s->ow, i % s->oc);
    for (const char *a = s->after; *a != 0; a++) {
      if (*a == 'b') v += bias[i % s->oc];
      if (*a == 'a') v += added[i];
      if (*a == 'r' || *a == '6') v = v < 0 ? 0 : v;
      if (*a == '6') v = v > 6 ? 6 : v;
      if (*a == 'l') v = v < 0 ? v * 0.25f : v;
    }
    out[i] = v;
  }
}

/* ---- the graph ---- */

static tn_output finish(tn_operation_builder *b)
{
  tn_operation *op = NULL;
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(tn_operation_finish(b, &op, &err), &err);
  return (tn_output){ op, 0 };
}

static void set_ints(tn_operation_builder *b, const char *name, int64_t h, int64_t w)
{
  const int64_t v[] = { 1, h, w, 1 };
  tn_operation_set_ints(b, name, v, 4);
}

static tn_output windows(tn_graph *graph, const shape *s, tn_output x, tn_output f)
{
  static const char *const ops[] = { "Conv2D", "DepthwiseConv2dNative", "MaxPool", "AvgPool" };
  tn_operation_builder *b = tn_operation_begin(graph, ops[s->kind], "product", 0);
  tn_operation_add_input(b, x);
  set_ints(b, "strides", s->stride[0], s->stride[1]);
  tn_operation_set_string(b, "padding", s->padding, strlen(s->padding));
  if (s->padding[0] == 'E') {
    const int64_t *e = s->explicit, all[] = { 0, 0, e[0], e[1], e[2], e[3], 0, 0 };
    tn_operation_set_ints(b, "explicit_paddings", all, 8);
  }
  if (s->kind <= DEPTHWISE) {
    tn_operation_add_input(b, f);
    set_ints(b, "dilations", s->dilation[0], s->dilation[1]);
  } else {
    set_ints(b, "ksize", s->kh, s->kw);
  }
  return finish(b);
}

static const char *op_of(char letter)
{
  switch (letter) {
  case 'b': return "BiasAdd";
  case 'a': return "AddV2";
  case 'r': return "Relu";
  case 'l': return "LeakyRelu";
  default: return "Relu6";
  }
}

static tn_output follow(tn_graph *graph, const shape *s, tn_output y, tn_output bias, tn_output added)
{
  for (const char *a = s->after; *a != 0; a++) {
    char name[] = { 's', (char)('0' + (a - s->after)), 0 };
    tn_operation_builder *b = tn_operation_begin(graph, op_of(*a), name, 0);
    tn_operation_add_input(b, y);
    if (*a == 'b') tn_operation_add_input(b, bias);
    if (*a == 'a') tn_operation_add_input(b, added);
    if (*a == 'l') tn_operation_set_float(b, "alpha", 0.25f);
    y = finish(b);
  }
  return y;
}

typedef struct operands {
  tn_tensor *x, *f, *bias, *added;
} operands;

static tn_tensor *run(const shape *s, const operands *o, int level, bool reproducible)
{
  ts t;
  tn_tensor *out = NULL;
  ts_init(&t, level);
  REQUIRE_OK(tn_session_options_parse(t.options, "kernel_plugins", "never", &t.err), &t.err);
  REQUIRE_OK(tn_session_options_set_bool(t.options, "reproducible", reproducible, &t.err), &t.err);
  tn_output x = ts_placeholder(t.graph, "x", TN_FLOAT);
  tn_output f = s->fed ? ts_placeholder(t.graph, "f", TN_FLOAT) : ts_const_tensor(t.graph, "f", o->f);
  tn_output bias = ts_const_tensor(t.graph, "bias", o->bias), added = ts_placeholder(t.graph, "added", TN_FLOAT);
  tn_output y = follow(t.graph, s, windows(t.graph, s, x, f), bias, added);
  char fetch[80];
  snprintf(fetch, sizeof fetch, "%s:0", tn_operation_name(y.op));
  ts_start(&t);
  const char *names[] = { "x:0", "added:0", "f:0" }, *fetches[] = { fetch };
  tn_tensor *feeds[] = { o->x, o->added, o->f };
  CHECK_OK(tn_session_run(t.session, NULL, names, feeds, s->fed ? 3 : 2, fetches, &out, 1, NULL, 0, NULL, &t.err),
           &t.err);
  ts_fini(&t);
  return out;
}

/* The same bits, or close to them: with fewer products, terms of neighbouring results mix. */
static bool equal(const shape *s, const tn_tensor *found, const tn_tensor *wanted, bool same)
{
  const float most = s->kind == CONV ? 2e-6f * (float)(s->kh * s->kw * s->kc) / 9 : 0;
  if (found == NULL || tn_tensor_bytes(found) != tn_tensor_bytes(wanted)) return false;
  const float *a = tn_tensor_data(found), *b = tn_tensor_data(wanted);
  if (same) return memcmp(a, b, tn_tensor_bytes(wanted)) == 0;
  for (int64_t i = 0; i < tn_tensor_elements(wanted); i++)
    if (!(fabsf(a[i] - b[i]) <= most + 2e-5f * (1 + fabsf(b[i])))) return false;
  return true;
}

static void check(shape s)
{
  if (s.after == NULL) s.after = "";
  if (!fit(&s)) return;
  const int64_t x[] = { s.n, s.h, s.w, s.c }, y[] = { s.n, s.oh, s.ow, s.oc };
  const int64_t f[] = { s.kh, s.kw, s.kind == CONV ? s.kc : s.c, s.kind <= DEPTHWISE ? s.out : 1 };
  operands o = { tensor(4, x, 1), tensor(4, f, 2), tensor(1, y + 3, 3), tensor(4, y, 4) };
  tn_tensor *wanted = tensor(4, y, 0);
  right(&s, tn_tensor_data(o.x), tn_tensor_data(o.f), tn_tensor_data(o.bias), tn_tensor_data(o.added),
        tn_tensor_data(wanted));
  for (int vectors = 0; vectors < TN__VECTORS; vectors++) {
    if (tn__vectors_limit(vectors) != vectors) continue;
    FOR_LEVELS(level) {
      const bool fused = vectors > TN__AVX512;
      tn_tensor *found = run(&s, &o, level, !fused);
      CHECK_MSG(equal(&s, found, wanted, !fused),
                "kind %d, images %d %d %d %d, window %d %d %d %d, strides %d %d, dilations %d %d, %s, '%s', "
                "vectors %d, level %d",
                s.kind, (int)s.n, (int)s.h, (int)s.w, (int)s.c, (int)s.kh, (int)s.kw, (int)s.kc, (int)s.out,
                (int)s.stride[0], (int)s.stride[1], (int)s.dilation[0], (int)s.dilation[1], s.padding, s.after, vectors,
                level);
      tn_tensor_unref(found);
    }
  }
  tn__vectors_limit(TN__VECTORS);
  tn_tensor_unref(o.x), tn_tensor_unref(o.f), tn_tensor_unref(o.bias), tn_tensor_unref(o.added);
  tn_tensor_unref(wanted);
}

/* ---- cases ---- */

static uint32_t state;
static int64_t any(int64_t from, int64_t to)
{
  state = state * 1664525u + 1013904223u;
  return from + (int64_t)(state >> 10) % (to - from + 1);
}

static const char *const paddings[] = { "SAME", "VALID", "EXPLICIT" };

static void check_many(window_kind kind, int count, uint32_t seed)
{
  static const char *const after[] = { "", "b", "br", "b6", "bar", "a", "r", "bl", "bra" };
  static const int64_t widths[] = { 1, 2, 3, 4, 7, 8, 10, 12, 16, 17, 24, 33, 40 };
  state = seed;
  for (int i = 0; i < count; i++) {
    shape s = { .kind = kind, .n = any(1, 3), .h = any(1, 11), .w = any(1, 14), .kh = any(1, 5), .kw = any(1, 5) };
    int64_t groups = any(0, 5) == 0 ? 2 : 1;
    s.kc = widths[any(0, 9)];
    s.c = s.kc * (kind == CONV ? groups : 1);
    if (kind == DEPTHWISE) s.out = any(0, 3) == 0 ? 2 : 1;
    else s.out = widths[any(0, 12)] * groups;
    if (kind == DEPTHWISE) s.c = widths[any(0, 12)] + any(0, 1) * 70;
    if (kind >= MAX) s.c = widths[any(0, 12)] + any(0, 1) * 130;
    for (int k = 0; k < 2; k++) {
      s.stride[k] = any(0, 2) == 0 ? any(2, 3) : 1;
      s.dilation[k] = kind <= DEPTHWISE && any(0, 3) == 0 ? 2 : 1;
    }
    if (kind == DEPTHWISE) s.stride[1] = s.stride[0];
    s.padding = paddings[any(0, kind == MEAN ? 1 : 2)];
    for (int k = 0; k < 4; k++) s.explicit[k] = any(0, (k < 2 ? s.kh : s.kw) - 1);
    s.fed = any(0, 3) == 0;
    s.after = kind <= DEPTHWISE ? after[any(0, 8)] : "";
    check(s);
  }
}

static void conv__is_right_for_any_window(void) { check_many(CONV, 120, 1); }
static void depthwise__is_right_for_any_window(void) { check_many(DEPTHWISE, 120, 2); }
static void pooling__is_right_for_any_window(void)
{
  check_many(MAX, 60, 3);
  check_many(MEAN, 60, 4);
}

#define ONE { 1, 1 }, { 1, 1 }

static void conv__batches_are_divided_into_blocks(void)
{
  /* blocks of images, the last one smaller; no image; a single pixel from many */
  check((shape){ CONV, 70, 8, 8, 16, 3, 3, 16, 32, ONE, "SAME", .after = "br" });
  check((shape){ CONV, 27, 4, 4, 32, 3, 3, 32, 64, ONE, "SAME", .after = "b6" });
  check((shape){ CONV, 0, 8, 8, 16, 3, 3, 16, 32, ONE, "SAME", .after = "br" });
  check((shape){ CONV, 13, 5, 5, 3, 5, 5, 3, 10, ONE, "VALID" });
  check((shape){ DEPTHWISE, 0, 8, 8, 16, 3, 3, 0, 1, ONE, "SAME", .after = "br" });
  check((shape){ MAX, 0, 8, 8, 16, 2, 2, 0, 0, ONE, "SAME" });
}

static void conv__many_terms_and_columns(void)
{
  /* more terms than one block has, rows a page apart, more columns than are computed at a time */
  check((shape){ CONV, 1, 3, 5, 300, 2, 3, 300, 40, ONE, "SAME", .after = "bar" });
  check((shape){ CONV, 1, 4, 4, 1024, 1, 1, 1024, 70, ONE, "VALID", .after = "br" });
  check((shape){ CONV, 1, 2, 3, 40, 3, 3, 40, 700, ONE, "SAME", .after = "b" });
  check((shape){ CONV, 1, 6, 6, 1024, 1, 1, 1024, 20, { 2, 2 }, { 1, 1 }, "SAME", .fed = true });
}

/* ---- fewer products ---- */

#define LARGE { CONV, 1, 30, 33, 24, 3, 3, 24, 40, ONE, "SAME" }

static void conv__fewer_products(void)
{
  /* any size modulo a tile; channels that fill neither lanes nor panels; all paddings; several images and blocks */
  static const char *const after[] = { "", "b", "br", "b6", "bar", "bra", "bl" };
  state = 7;
  for (int i = 0; i < 40; i++) {
    shape s = LARGE;
    s.n = any(1, 3);
    s.h = any(13, 34);
    s.w = any(13, 34);
    s.c = s.kc = any(16, 50);
    s.out = any(16, 70);
    s.padding = paddings[i % 3];
    for (int k = 0; k < 4; k++) s.explicit[k] = any(0, 4);
    s.after = after[i % 7];
    s.fed = i % 5 == 0;
    check(s);
  }
  check((shape){ CONV, 40, 14, 14, 64, 3, 3, 64, 64, ONE, "SAME", .after = "br" });
  check((shape){ CONV, 1, 1, 700, 32, 3, 3, 32, 32, ONE, "SAME", .after = "br" });
}

static bool alike(float found, float wanted, float most)
{
  if (isnan(wanted) || isinf(wanted)) return isnan(wanted) ? isnan(found) : found == wanted;
  return fabsf(found - wanted) <= most * (1 + fabsf(wanted));
}

/* Elements that are not finite affect the results that they contribute to, as in the direct sum. where: in the images,
 * in a constant filter, in a fed one. */
static void check_not_finite(int where, float value)
{
  shape s = LARGE;
  s.after = where == 0 ? "b6" : "b";
  s.fed = where == 2;
  REQUIRE(fit(&s));
  const int64_t x[] = { s.n, s.h, s.w, s.c }, f[] = { 3, 3, s.c, s.out }, y[] = { s.n, s.oh, s.ow, s.oc };
  operands o = { tensor(4, x, 1), tensor(4, f, 2), tensor(1, y + 3, 3), tensor(4, y, 4) };
  tn_tensor *wanted = tensor(4, y, 0);
  float *in = tn_tensor_data(o.x), *filter = tn_tensor_data(o.f), *right_at = tn_tensor_data(wanted);
  for (int64_t i = 0; i < 9 && where == 0; i++) in[(i * 3 * s.w + i * 2 + 1) * s.c + i] = i % 2 == 0 ? value : -value;
  if (where == 0) in[0] = value;
  else filter[4 * s.c * s.out + 5] = value;
  right(&s, in, filter, tn_tensor_data(o.bias), tn_tensor_data(o.added), right_at);
  tn_tensor *found = run(&s, &o, 1, false);
  const float *at = tn_tensor_data(found);
  int64_t wrong = 0;
  for (int64_t i = 0; i < tn_tensor_elements(found); i++) wrong += !alike(at[i], right_at[i], 1e-4f);
  CHECK_MSG(wrong == 0, "%g in operand %d: %d elements are wrong", (double)value, where, (int)wrong);
  tn_tensor_unref(found), tn_tensor_unref(wanted);
  tn_tensor_unref(o.x), tn_tensor_unref(o.f), tn_tensor_unref(o.bias), tn_tensor_unref(o.added);
}

static void conv__fewer_products_keep_what_is_not_finite(void)
{
  static const float values[] = { NAN, INFINITY, -INFINITY, 3e38f };
  for (int where = 0; where < 3; where++)
    for (size_t v = 0; v < sizeof values / sizeof *values; v++) check_not_finite(where, values[v]);
}

/* ---- gradients with fewer products ---- */

/* Element [n, h, w, c] of the gradient for images: the results that read it, times their taps. */
static double image_at(const shape *s, const float *f, const float *y, int64_t k)
{
  const int64_t c = k % s->c, w = k / s->c % s->w, h = k / s->c / s->w % s->h, n = k / s->c / s->w / s->h;
  double sum = 0;
  for (int64_t i = 0; i < s->kh; i++)
    for (int64_t j = 0; j < s->kw; j++) {
      int64_t top = h + s->before[0] - i, left = w + s->before[1] - j;
      if (top < 0 || left < 0 || top % s->stride[0] != 0 || left % s->stride[1] != 0) continue;
      top /= s->stride[0];
      left /= s->stride[1];
      if (top >= s->oh || left >= s->ow) continue;
      for (int64_t o = 0; o < s->oc; o++)
        sum += (double)f[((i * s->kw + j) * s->c + c) * s->oc + o] *
               y[((n * s->oh + top) * s->ow + left) * s->oc + o];
    }
  return sum;
}

/* Element [i, j, c, o] of the gradient for the filter: the pixels that it multiplies, times the results' gradients. */
static double filter_at(const shape *s, const float *x, const float *y, int64_t k)
{
  const int64_t o = k % s->oc, c = k / s->oc % s->c, j = k / s->oc / s->c % 3, i = k / s->oc / s->c / 3;
  double sum = 0;
  for (int64_t n = 0; n < s->n; n++)
    for (int64_t u = 0; u < s->oh; u++)
      for (int64_t v = 0; v < s->ow; v++) {
        int64_t h = u - s->before[0] + i, w = v - s->before[1] + j;
        if (h < 0 || h >= s->h || w < 0 || w >= s->w) continue;
        sum += (double)x[((n * s->h + h) * s->w + w) * s->c + c] * y[((n * s->oh + u) * s->ow + v) * s->oc + o];
      }
  return sum;
}

/* other: the filter, or the images. */
static tn_tensor *run_gradient(const shape *s, bool filter, tn_tensor *other, tn_tensor *y, bool reproducible)
{
  ts t;
  tn_tensor *out = NULL, *size = NULL;
  ts_init(&t, 1);
  REQUIRE_OK(tn_session_options_parse(t.options, "kernel_plugins", "never", &t.err), &t.err);
  REQUIRE_OK(tn_session_options_set_bool(t.options, "reproducible", reproducible, &t.err), &t.err);
  const int32_t sizes[][4] = { { (int32_t)s->n, (int32_t)s->h, (int32_t)s->w, (int32_t)s->c },
                               { (int32_t)s->kh, (int32_t)s->kw, (int32_t)s->c, (int32_t)s->oc } };
  const int64_t four = 4, *e = s->explicit, all[] = { 0, 0, e[0], e[1], e[2], e[3], 0, 0 };
  REQUIRE_OK(tn_tensor_create(TN_INT32, &four, 1, &size, NULL), NULL);
  memcpy(tn_tensor_data(size), sizes[filter], sizeof *sizes);
  tn_output shape_of = ts_const_tensor(t.graph, "sizes", size), operand;
  tn_output gradient = ts_placeholder(t.graph, "y", TN_FLOAT);
  operand = s->fed ? ts_placeholder(t.graph, "other", TN_FLOAT) : ts_const_tensor(t.graph, "other", other);
  tn_operation_builder *b =
      tn_operation_begin(t.graph, filter ? "Conv2DBackpropFilter" : "Conv2DBackpropInput", "gradient", 0);
  tn_operation_add_input(b, filter ? operand : shape_of);
  tn_operation_add_input(b, filter ? shape_of : operand);
  tn_operation_add_input(b, gradient);
  set_ints(b, "strides", s->stride[0], s->stride[1]);
  tn_operation_set_string(b, "padding", s->padding, strlen(s->padding));
  if (s->padding[0] == 'E') tn_operation_set_ints(b, "explicit_paddings", all, 8);
  finish(b);
  ts_start(&t);
  const char *names[] = { "y:0", "other:0" }, *fetches[] = { "gradient:0" };
  tn_tensor *feeds[] = { y, other };
  tn_status st = tn_session_run(t.session, NULL, names, feeds, s->fed ? 2 : 1, fetches, &out, 1, NULL, 0, NULL, &t.err);
  CHECK_OK(st, &t.err);
  ts_fini(&t);
  tn_tensor_unref(size);
  return out;
}

static void check_gradient(const shape *s, bool filter, float poison)
{
  const int64_t x[] = { s->n, s->h, s->w, s->c }, f[] = { s->kh, s->kw, s->c, s->out };
  const int64_t y[] = { s->n, s->oh, s->ow, s->oc };
  tn_tensor *other = tensor(4, filter ? x : f, 2), *gradient = tensor(4, y, 3), *wanted = tensor(4, filter ? f : x, 0);
  float *at = tn_tensor_data(other), *right_at = tn_tensor_data(wanted);
  if (poison != 0) at[s->c + 3] = poison;
  for (int64_t k = 0; k < tn_tensor_elements(wanted); k++)
    right_at[k] = (float)(filter ? filter_at : image_at)(s, at, tn_tensor_data(gradient), k);
  const float most = 1e-4f * sqrtf((float)(filter ? s->n * s->oh * s->ow : s->kh * s->kw * s->oc) / 100);
  for (int reproducible = 0; reproducible < 2; reproducible++) {
    tn_tensor *found = run_gradient(s, filter, other, gradient, reproducible);
    const float *got = tn_tensor_data(found);
    int64_t wrong = 0;
    for (int64_t k = 0; k < tn_tensor_elements(wanted); k++) wrong += !alike(got[k], right_at[k], most);
    CHECK_MSG(wrong == 0, "filter %d, images %d %d %d %d, window %d %d %d, strides %d %d, %s: %d elements are wrong",
              filter, (int)s->n, (int)s->h, (int)s->w, (int)s->c, (int)s->kh, (int)s->kw, (int)s->out,
              (int)s->stride[0], (int)s->stride[1], s->padding, (int)wrong);
    tn_tensor_unref(found);
  }
  tn_tensor_unref(other), tn_tensor_unref(gradient), tn_tensor_unref(wanted);
}

static void gradients__with_fewer_products(void)
{
  state = 11;
  for (int i = 0; i < 24; i++) {
    shape s = LARGE;
    s.n = any(3, 6);
    s.h = any(9, 30);
    s.w = any(9, 30);
    s.c = s.kc = any(16, 40);
    s.out = any(16, 50);
    s.padding = paddings[i % 3];
    for (int k = 0; k < 4; k++) s.explicit[k] = any(0, 4);
    s.fed = i % 4 < 2;
    REQUIRE(fit(&s));
    check_gradient(&s, i % 2 == 0, i < 22 ? 0 : INFINITY);
  }
}

/* With strides, not all taps contribute to a pixel; with strides above the window's size, none to some. */
static void gradient__for_images_of_any_window(void)
{
  state = 12;
  for (int i = 0; i < 60; i++) {
    shape s = { CONV, any(1, 3), any(1, 14), any(1, 14), any(1, 40), any(1, 5), any(1, 5), 0, any(1, 20), ONE };
    s.kc = s.c;
    for (int k = 0; k < 2; k++) s.stride[k] = any(1, 4);
    s.padding = paddings[i % 3];
    for (int k = 0; k < 4; k++) s.explicit[k] = any(0, (k < 2 ? s.kh : s.kw) - 1);
    s.fed = i % 2 == 0;
    if (fit(&s)) check_gradient(&s, false, 0);
  }
}

static void conv__windows_outside_the_image(void)
{
  /* some windows do not overlap it */
  check((shape){ CONV, 2, 2, 2, 5, 3, 3, 5, 9, { 1, 1 }, { 4, 4 }, "EXPLICIT", { 7, 7, 8, 7 }, .after = "br" });
  check((shape){ DEPTHWISE, 2, 2, 2, 20, 3, 3, 0, 1, { 1, 1 }, { 4, 4 }, "EXPLICIT", { 7, 7, 8, 7 }, .after = "b6" });
}

static void products__are_fused(void)
{
  shape s = { CONV, 1, 6, 6, 4, 3, 3, 4, 8, ONE, "SAME", .after = "br" };
  REQUIRE(fit(&s));
  for (s.kind = CONV; s.kind <= DEPTHWISE; s.kind++) {
    const int64_t x[] = { 1, 6, 6, 4 }, f[] = { 3, 3, 4, 8 }, y[] = { 1, 6, 6, s.kind == CONV ? 8 : 32 };
    operands o = { tensor(4, x, 1), tensor(4, f, 2), tensor(1, y + 3, 3), tensor(4, y, 4) };
    ts t;
    ts_init(&t, 1);
    tn_output in = ts_placeholder(t.graph, "x", TN_FLOAT), filter = ts_const_tensor(t.graph, "f", o.f);
    tn_output bias = ts_const_tensor(t.graph, "bias", o.bias);
    follow(t.graph, &s, windows(t.graph, &s, in, filter), bias, bias);
    ts_start(&t);
    tn_plan_report *report = tp_report(&t, "x:0", "s1:0");
    CHECK_INT(tp_calls(report, s.kind == CONV ? "_TnConv2D" : "_TnDepthwiseConv2D"), 1);
    tn_plan_report_release(report);
    ts_fini(&t);
    tn_tensor_unref(o.x), tn_tensor_unref(o.f), tn_tensor_unref(o.bias), tn_tensor_unref(o.added);
  }
}

/* ---- lack of memory ---- */

typedef struct trial {
  ts t;
  operands o;
  char fetch[16];
} trial;

static tn_status compile_and_run(void *arg)
{
  trial *a = arg;
  const char *feeds[] = { "x:0", "added:0" }, *fetches[] = { a->fetch };
  tn_tensor *values[] = { a->o.x, a->o.added }, *out = NULL;
  tn_callable callable;
  tn_status st = tn_session_make_callable(a->t.session, NULL, feeds, 2, fetches, 1, NULL, 0, &callable, NULL);
  if (st != TN_OK) return st;
  st = tn_session_run_callable(a->t.session, callable, values, 2, &out, 1, NULL, NULL);
  tn_tensor_unref(out);
  tn_session_release_callable(a->t.session, callable, NULL);
  return st;
}

static void conv__nothing_leaks_without_memory(void)
{
  shape shapes[] = { { CONV, 1, 7, 6, 4, 3, 3, 4, 12, ONE, "SAME", .after = "bar" },
                     { DEPTHWISE, 1, 7, 6, 4, 3, 3, 4, 1, ONE, "SAME", .after = "bar" },
                     { CONV, 1, 24, 24, 32, 3, 3, 32, 32, ONE, "SAME", .after = "bar" } };
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    shape s = shapes[i];
    REQUIRE(fit(&s));
    const int64_t x[] = { 1, s.h, s.w, s.c }, f[] = { 3, 3, s.c, s.out }, y[] = { 1, s.oh, s.ow, s.oc };
    trial a = { .o = { tensor(4, x, 1), tensor(4, f, 2), tensor(1, y + 3, 3), tensor(4, y, 4) } };
    ts_init(&a.t, 1);
    REQUIRE_OK(tn_session_options_parse(a.t.options, "kernel_plugins", "never", &a.t.err), &a.t.err);
    tn_output in = ts_placeholder(a.t.graph, "x", TN_FLOAT), filter = ts_const_tensor(a.t.graph, "f", a.o.f);
    tn_output bias = ts_const_tensor(a.t.graph, "bias", a.o.bias), added = ts_placeholder(a.t.graph, "added", TN_FLOAT);
    tn_output out = follow(a.t.graph, &s, windows(a.t.graph, &s, in, filter), bias, added);
    snprintf(a.fetch, sizeof a.fetch, "%s:0", tn_operation_name(out.op));
    ts_start(&a.t);
    CHECK_INT(compile_and_run(&a), TN_OK);
    tn_test_oom_sweep(compile_and_run, &a);
    ts_fini(&a.t);
    tn_tensor_unref(a.o.x), tn_tensor_unref(a.o.f), tn_tensor_unref(a.o.bias), tn_tensor_unref(a.o.added);
  }
}

TAP_MAIN(
  TAP_TEST(conv__is_right_for_any_window),
  TAP_TEST(depthwise__is_right_for_any_window),
  TAP_TEST(pooling__is_right_for_any_window),
  TAP_TEST(conv__batches_are_divided_into_blocks),
  TAP_TEST(conv__many_terms_and_columns),
  TAP_TEST(conv__fewer_products),
  TAP_TEST(conv__fewer_products_keep_what_is_not_finite),
  TAP_TEST(gradients__with_fewer_products),
  TAP_TEST(gradient__for_images_of_any_window),
  TAP_TEST(conv__windows_outside_the_image),
  TAP_TEST(products__are_fused),
  TAP_TEST(conv__nothing_leaks_without_memory))
