/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers to texts and back, independent of the locale: AsString StringToNumber. */
#include <core/base/alloc.h>
#include <core/tensor/tensor_internal.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/family.h>
#include <ops/kernel/poll.h>
#include <ops/kernel/shapes.h>
#include <ops/string/string_number.h>

#include <inttypes.h>
#include <string.h>

/* ---- AsString: attributes ---- */

/* `format` is a printf format built from the attributes; for integers it contains PRId64 or PRIu64. */
typedef struct as_state {
  char format[48];
  bool left;  /* for texts: pad on the right */
  int width;  /* for texts */
} as_state;

static void as_destroy(void *state) { tn__free(state, sizeof(as_state)); }

typedef struct as_attrs {
  int64_t precision, width;
  bool scientific, shortest;
  char fill[2]; /* "" for none */
} as_attrs;

static tn_status read_fill(const tn_operation *op, char *fill, tn_error *err)
{
  const char *text = "";
  size_t n = 0;
  fill[0] = fill[1] = 0;
  if (tn_operation_attr_string(op, "fill", &text, &n, NULL) != TN_OK || n == 0) return TN_OK;
  if (n > 1 || memchr("+ 0-#", text[0], 5) == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "AsString: attribute 'fill' is '%.*s', wanted one of ' ', '0', '+', "
                        "'-', '#' or nothing", n > 20 ? 20 : (int)n, text);
  fill[0] = text[0];
  return TN_OK;
}

static bool is_float(tn_dtype d)
{
  return d == TN_FLOAT || d == TN_DOUBLE || d == TN_HALF || d == TN_BFLOAT16 || d == TN_COMPLEX64 || d == TN_COMPLEX128;
}

static tn_status read_attrs(const tn_operation *op, tn_dtype dtype, as_attrs *a, tn_error *err)
{
  a->precision = tn__attr_int(op, "precision", -1);
  a->width = tn__attr_int(op, "width", -1);
  a->scientific = tn__attr_bool(op, "scientific", false);
  a->shortest = tn__attr_bool(op, "shortest", false);
  tn_status st = read_fill(op, a->fill, err);
  if (st != TN_OK) return st;
  if (a->scientific && a->shortest)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "AsString: 'scientific' and 'shortest' are set, only one can be");
  if (a->precision > INT32_MAX || a->width > INT32_MAX)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "AsString: precision %lld or width %lld is too large",
                        (long long)a->precision, (long long)a->width);
  if (is_float(dtype) || dtype == TN_STRING) return TN_OK;
  if (a->precision < 0 && !a->scientific && !a->shortest) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "AsString: %s has no 'precision', 'scientific' and 'shortest'",
                      tn_dtype_name(dtype));
}

static bool is_unsigned(tn_dtype d) { return d == TN_UINT8 || d == TN_UINT16 || d == TN_UINT32 || d == TN_UINT64; }

static void make_format(as_state *s, const as_attrs *a, tn_dtype dtype)
{
  char width[16] = "", precision[16] = "";
  const char *kind = is_unsigned(dtype) ? PRIu64 : PRId64;
  if (is_float(dtype)) kind = a->shortest ? "g" : "f";
  if (is_float(dtype) && a->scientific) kind = "e";
  if (a->width > 0) tn__snprintf(width, sizeof width, "%d", (int)a->width);
  if (is_float(dtype) && a->precision >= 0) tn__snprintf(precision, sizeof precision, ".%d", (int)a->precision);
  bool flag = a->fill[0] != '#' || is_float(dtype); /* has no effect on decimal integers */
  tn__snprintf(s->format, sizeof s->format, "%%%s%s%s%s", flag ? a->fill : "", width, precision, kind);
  s->left = a->fill[0] == '-';
  s->width = a->width > 0 ? (int)a->width : 0;
}

static tn_status as_create(const tn_operation *op, void **state, tn_error *err)
{
  as_attrs a;
  tn_dtype dtype = tn__attr_type(op, "T");
  *state = NULL;
  tn_status st = read_attrs(op, dtype, &a, err);
  if (st != TN_OK) return st;
  as_state *s = tn__zalloc(sizeof *s);
  if (s == NULL) return tn__no_memory(err, "kernel", sizeof *s);
  make_format(s, &a, dtype);
  *state = s;
  return TN_OK;
}

/* ---- AsString: elements ---- */

static tn_status unchanged_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  ctx->cost_ns = 20 + 200 * (double)ctx->inputs[0].count;
  return tn_prepare_output_like(ctx, 0, 0, err);
}

static tn_status set_text(tn_string *to, tn__text *t, tn_error *err)
{
  tn_status st = t->failed ? tn__no_memory(err, "printed number", t->size) : tn_string_set(to, t->data, t->size, err);
  tn__text_fini(t);
  return st;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* the formats are built above */

static tn_status set_printed(tn_string *to, const char *format, double v, tn_error *err)
{
  char text[64];
  int n = tn__snprintf(text, sizeof text, format, v);
  if (n >= 0 && (size_t)n < sizeof text) return tn_string_set(to, text, (size_t)n, err);
  tn__text t;
  tn__text_init(&t, PTRDIFF_MAX / 8);
  tn__text_printf(&t, format, v);
  return set_text(to, &t, err);
}

static tn_status print_complex(tn_string *to, const char *format, double re, double im, tn_error *err)
{
  tn__text t;
  tn__text_init(&t, PTRDIFF_MAX / 8);
  tn__text_puts(&t, "(");
  tn__text_printf(&t, format, re);
  tn__text_puts(&t, ",");
  tn__text_printf(&t, format, im);
  tn__text_puts(&t, ")");
  return set_text(to, &t, err);
}

static tn_status print_int(tn_string *to, const as_state *s, uint64_t v, tn_error *err)
{
  char text[64];
  int n = tn__snprintf(text, sizeof text, s->format, v);
  if (n >= 0 && (size_t)n < sizeof text) return tn_string_set(to, text, (size_t)n, err);
  tn__text t;
  tn__text_init(&t, PTRDIFF_MAX / 8);
  tn__text_printf(&t, s->format, v);
  return set_text(to, &t, err);
}
#pragma GCC diagnostic pop

/* Pads a text with blanks to a width. */
static tn_status pad_text(tn_string *to, const as_state *s, const tn_string *from, tn_error *err)
{
  size_t n, width = (size_t)s->width;
  const char *text = tn_string_data(from, &n);
  if (n >= width) return tn_string_set(to, text, n, err);
  char *place = tn__string_reserve(to, width);
  if (place == NULL) return tn__no_memory(err, "text", width);
  if (n > 0) memcpy(place + (s->left ? 0 : width - n), text, n);
  memset(place + (s->left ? n : 0), ' ', width - n);
  return TN_OK;
}

static uint64_t int_at(const tn_view *x, int64_t i)
{
  switch (x->dtype) {
  case TN_INT8: return (uint64_t)(int64_t)((const int8_t *)x->data)[i];
  case TN_UINT8: return ((const uint8_t *)x->data)[i];
  case TN_INT16: return (uint64_t)(int64_t)((const int16_t *)x->data)[i];
  case TN_UINT16: return ((const uint16_t *)x->data)[i];
  case TN_INT32: return (uint64_t)(int64_t)((const int32_t *)x->data)[i];
  case TN_UINT32: return ((const uint32_t *)x->data)[i];
  default: return ((const uint64_t *)x->data)[i];
  }
}

static tn_status as_element(const as_state *s, const tn_view *x, int64_t i, tn_string *to, tn_error *err)
{
  const float *f = x->data;
  const double *d = x->data;
  const uint16_t *h = x->data;
  const char *format = s->format;
  switch (x->dtype) {
  case TN_FLOAT: return set_printed(to, format, (double)f[i], err);
  case TN_DOUBLE: return set_printed(to, format, d[i], err);
  case TN_HALF: return set_printed(to, format, (double)tn__half_to_float(h[i]), err);
  case TN_BFLOAT16: return set_printed(to, format, (double)tn__bfloat16_to_float(h[i]), err);
  case TN_COMPLEX64: return print_complex(to, format, (double)f[2 * i], (double)f[2 * i + 1], err);
  case TN_COMPLEX128: return print_complex(to, format, d[2 * i], d[2 * i + 1], err);
  case TN_BOOL: {
    bool b = ((const uint8_t *)x->data)[i] != 0;
    return tn_string_set(to, b ? "true" : "false", b ? 4 : 5, err);
  }
  case TN_STRING: return pad_text(to, s, (const tn_string *)x->data + i, err);
  default: return print_int(to, s, int_at(x, i), err);
  }
}

static tn_status as_compute(tn_kernel_ctx *ctx)
{
  const tn_view *x = ctx->inputs[0];
  tn_string *to = ctx->outputs[0]->data;
  tn_status st = TN_OK;
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; st == TN_OK && i < x->count; i++) {
    if (tn__poll_over(&poll, 100)) return TN_CANCELLED;
    st = as_element(ctx->state, x, i, to + i, ctx->err);
  }
  return st;
}

/* ---- StringToNumber ---- */

static tn_status number_compute(tn_kernel_ctx *ctx)
{
  const tn_view *x = ctx->inputs[0], *out = ctx->outputs[0];
  size_t size = tn_dtype_size(out->dtype);
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; i < x->count; i++) {
    if (tn__poll_over(&poll, 100)) return TN_CANCELLED;
    tn__slice text;
    text.data = tn_string_data((const tn_string *)x->data + i, &text.size);
    if (!tn__text_to_number(out->dtype, text, (char *)out->data + (size_t)i * size))
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "StringToNumber: '%.*s' at %lld is no %s",
                          text.size > 100 ? 100 : (int)text.size, text.data, (long long)i, tn_dtype_name(out->dtype));
  }
  return TN_OK;
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "AsString", .inputs = "input: T", .outputs = "output: string",
    .attrs = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, complex64, "
             "complex128, bool, variant, string}; precision: int = -1; scientific: bool = false; "
             "shortest: bool = false; width: int = -1; fill: string = ''",
    .infer = tn__infer_unchanged, .summary = "converts numbers to strings" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "StringToNumber", .inputs = "string_tensor: string",
    .outputs = "output: out_type", .attrs = "out_type: {float, double, int32, int64, uint32, uint64} = float",
    .infer = tn__infer_unchanged, .summary = "converts strings to numbers" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "AsString", .device = "CPU", .name = "as_string_cpu", .rank = TN_RANK_C,
    .types = "T=float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64|complex64|complex128|bool|"
             "string",
    .create = as_create, .destroy = as_destroy, .prepare = unchanged_prepare, .compute = as_compute },
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "StringToNumber", .device = "CPU", .name = "string_to_number_cpu",
    .rank = TN_RANK_C, .prepare = unchanged_prepare, .compute = number_compute },
};

TN_OP_FAMILY(string_numbers)
