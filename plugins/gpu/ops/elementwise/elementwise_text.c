/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise programs as OpenCL C. */
#include "ops/elementwise/elementwise.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- text that grows ---- */

typedef struct text {
  char *at; /* NULL after memory ran out */
  size_t n, room;
} text;

static void put_bytes(text *t, const char *bytes, size_t n)
{
  if (t->at == NULL) return;
  if (t->n + n + 1 > t->room) {
    size_t room = 2 * (t->n + n + 1);
    char *more = tn_alloc(room);
    if (more != NULL) memcpy(more, t->at, t->n);
    tn_free(t->at);
    t->at = more;
    t->room = room;
    if (more == NULL) return;
  }
  memcpy(t->at + t->n, bytes, n);
  t->n += n;
  t->at[t->n] = 0;
}

static void put(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(text *t, const char *format, ...)
{
  char piece[512];
  va_list list;
  va_start(list, format);
  int n = vsnprintf(piece, sizeof piece, format, list);
  va_end(list);
  if (n > 0) put_bytes(t, piece, (size_t)n < sizeof piece ? (size_t)n : sizeof piece - 1);
}

/* ---- the steps ---- */

static bool is_wordy(char c) { return isalnum((unsigned char)c) || c == '_'; }

static const gpu_element *computed(const gpu_ew *e) { return gpu_element_of(e->dtype); }

/* An expression with its operands' names in it. An attribute is as the elements are in memory. */
static void put_expression(text *t, const gpu_ew *e, const char *from, const gpu_ew_step *s, uint32_t index)
{
  const char *access = computed(e)->access;
  while (*from != 0) {
    size_t n = 1;
    if (is_wordy(*from))
      while (is_wordy(from[n])) n++;
    if (n == 1 && *from >= 'x' && *from <= 'z') put(t, "v%u", s->at[*from - 'x']);
    else if (n == 1 && *from == 'A') put(t, "ROUND_%s(alpha%u)", access, (unsigned)index);
    else put_bytes(t, from, n);
    from += n;
  }
}

static const char *text_of(const gpu_ew *e, const gpu_ew_step *s)
{
  return s->text != NULL ? s->text : gpu_step_text(s->info, computed(e)->kind);
}

static bool has_attr(const gpu_ew_step *s) { return s->info != NULL && s->info->attr != NULL; }

/* The function that makes one element's result, or with `four` that of four. */
static void put_function(text *t, const gpu_ew *e, bool four)
{
  const char *times = four ? "4" : "";
  const gpu_element *to = gpu_element_of(e->result);
  bool rounds = computed(e)->kind == GPU_FLOATING && strcmp(computed(e)->access, "PLAIN") != 0;
  put(t, "#define V %s%s\nstatic %s%s %s(", computed(e)->computed, times, to->computed, times, four ? "four" : "one");
  for (uint32_t i = 0; i < e->n_args; i++)
    put(t, "%sconst %s%s v%u", i == 0 ? "" : ", ", gpu_element_of(e->args[i].dtype)->computed, times, (unsigned)i);
  bool any = e->n_args > 0;
  for (uint32_t i = 0; i < e->n_steps; i++)
    if (has_attr(&e->steps[i])) put(t, "%sconst float alpha%u", any ? ", " : "", (unsigned)i), any = true;
  put(t, "%s%s)\n{\n", any ? "" : "void", gpu_ew_faults(e) ? ", FAULT" : "");
  for (uint32_t i = 0; i < e->n_steps; i++) {
    const gpu_ew_step *s = &e->steps[i];
    bool last = i + 1 == e->n_steps, round = rounds && !last;
    if (last) put(t, "  return ");
    else put(t, "  const V v%u = ", (unsigned)(e->n_args + i));
    if (round) put(t, "ROUND%s_%s(", times, computed(e)->access);
    put_expression(t, e, text_of(e, s), s, i);
    put(t, "%s;\n", round ? ")" : "");
  }
  put(t, "}\n#undef V\n");
}

static bool mentions(const gpu_ew *e, const char *word)
{
  for (uint32_t i = 0; i < e->n_steps; i++)
    if (strstr(text_of(e, &e->steps[i]), word) != NULL) return true;
  return false;
}

/* The index of a type in the tables of put_constants. */
static int precision_of(tn_dtype dtype)
{
  switch (dtype) {
  case TN_DOUBLE: return 0;
  case TN_FLOAT: return 1;
  case TN_HALF: return 2;
  default: return 3;
  }
}

/* Softplus's limit is -2 less the logarithm of the type's epsilon; Selu's constants are those of the type. Erf of a
 * double whose square overflows is NaN, as the CPU's kernel has it. */
static void put_constants(text *t, const gpu_ew *e)
{
  static const char *const limits[] = { "34.0436533891171556", "13.9423847", "7.0078125", "2.84375" };
  static const char *const scales[] = { "1.05070098735548049342", "1.05070099", "1.05078125", "1.046875" };
  static const char *const alphas[] = { "1.75809934084737685994", "1.75809934", "1.7578125", "1.7578125" };
  int k = precision_of(computed(e)->dtype);
  if (mentions(e, "ERF_LIMIT")) put(t, "#define ERF_LIMIT %s\n", k == 0 ? "DBL_MAX" : "INFINITY");
  if (mentions(e, "SOFTPLUS_LIMIT")) put(t, "#define SOFTPLUS_LIMIT %s\n", limits[k]);
  if (mentions(e, "SELU_SCALE")) put(t, "#define SELU_SCALE %s\n#define SELU_SCALE_ALPHA %s\n", scales[k], alphas[k]);
}

/* The smallest number divided by -1 wraps, as on the CPU. */
static const char division[] =
    "static N int_div(const N x, const N y, FAULT)\n{\n  if (y == 0) FAULT_AT(0, 0);\n"
    "  return y == 0 ? (N)0 : IS_MINUS_ONE(y) ? (N)(0 - (W)x) : (N)(x / y);\n}\n"
    "static N int_mod(const N x, const N y, FAULT)\n{\n  if (y == 0) FAULT_AT(0, 0);\n"
    "  return y == 0 || IS_MINUS_ONE(y) ? (N)0 : (N)(x % y);\n}\n"
    "static N int_floor_div(const N x, const N y, FAULT)\n{\n"
    "  const N q = int_div(x, y, fault_words, fault_call), r = int_mod(x, y, fault_words, fault_call);\n"
    "  return r != 0 && (r < 0) != (y < 0) ? (N)(q - 1) : q;\n}\n"
    "static N int_floor_mod(const N x, const N y, FAULT)\n{\n"
    "  const N r = int_mod(x, y, fault_words, fault_call);\n  return r != 0 && (r < 0) != (y < 0) ? (N)(r + y) : "
    "r;\n}\n";
static const char power[] =
    "static N int_pow(const N x, N y, FAULT)\n{\n  W base = (W)x, r = 1;\n  if (y < 0) FAULT_AT(0, 0);\n"
    "  for (; y > 0; y = (N)(y / 2)) {\n    if (y % 2 != 0) r *= base;\n    base *= base;\n  }\n  return (N)r;\n}\n";

static void put_division(text *t, const gpu_ew *e)
{
  const gpu_element *c = computed(e);
  put(t, "#define N %s\n#define IS_MINUS_ONE(y) %s\n", c->computed, c->kind == GPU_SIGNED ? "((y) == -1)" : "0");
  const char *functions = mentions(e, "int_pow") ? power : division;
  put_bytes(t, functions, strlen(functions));
}

static void put_helpers(text *t, const gpu_ew *e)
{
  const gpu_element *c = computed(e);
  put(t, "#pragma OPENCL FP_CONTRACT OFF\n");
  if (c->kind != GPU_FLOATING) {
    put(t, "#define W %s\n#define BITS %d\n", c->bits == 64 ? "ulong" : "uint", c->bits);
    if (gpu_ew_faults(e)) put_division(t, e);
    return;
  }
  put(t, "#define K_(c) ((V)(c%s))\n#define K(c) K_(c)\n", c->dtype == TN_DOUBLE ? "" : "##f");
  put_constants(t, e);
  if (mentions(e, "NEAREST_QUOTIENT"))
    put(t,
        "static %s NEAREST_QUOTIENT(%s x, %s y)\n{\n  const %s q = x / y, t = q + fma(-q, y, x) / y;\n"
        "  return ROUND_%s(isfinite(t) ? t : q);\n}\n",
        c->computed, c->computed, c->computed, c->computed, c->access);
  if (mentions(e, "FLOOR_MOD"))
    put(t,
        "static %s FLOOR_MOD(%s x, %s y)\n{\n  const %s r = fmod(x, y);\n"
        "  return r != 0 && (r < 0) != (y < 0) ? r + y : r;\n}\n",
        c->computed, c->computed, c->computed, c->computed);
}

/* ---- the kernel's arguments, in the order in which ops/elementwise/elementwise.c sets them ---- */

static bool in_rows(const gpu_ew *e) { return e->rank > 1; }

/* The number of dimensions for which an argument that is not flat has a separate stride. */
static int32_t own_strides(const gpu_ew *e) { return e->rank - 1; }

static void put_parameters(text *t, const gpu_ew *e)
{
  put(t, "__kernel void elementwise(");
  for (uint32_t i = 0; i < e->n_args; i++)
    for (uint32_t k = 0; k < (gpu_ew_is_joined(&e->args[i]) ? e->slots : 1); k++)
      put(t, "IN(a%u_%u), ", (unsigned)i, (unsigned)k);
  put(t, "OUT(to), const I n");
  if (e->n_joined > 0) put(t, ", const I columns, const I first");
  for (int32_t d = 1; d < e->rank; d++) put(t, ", const I d%d", (int)d);
  for (uint32_t i = 0; i < e->n_args; i++) {
    const gpu_ew_arg *a = &e->args[i];
    for (int32_t d = 0; d < own_strides(e) && !gpu_ew_is_flat(e, a); d++)
      if (a->strides[d] != 0) put(t, ", const I s%u_%d", (unsigned)i, (int)d);
    for (uint32_t k = 0; k < e->slots && gpu_ew_is_joined(a); k++)
      put(t, ", const I b%u_%u, const I w%u_%u", (unsigned)i, (unsigned)k, (unsigned)i, (unsigned)k);
  }
  for (uint32_t i = 0; i < e->n_steps; i++)
    if (has_attr(&e->steps[i])) put(t, ", const float alpha%u", (unsigned)i);
  put(t, "%s)\n{\n", gpu_ew_faults(e) ? ", FAULT" : "");
  for (uint32_t i = 0; i < e->n_args; i++)
    for (uint32_t k = 0; k < (gpu_ew_is_joined(&e->args[i]) ? e->slots : 1); k++)
      put(t, "  GET_IN(%s, a%u_%u);\n", gpu_element_of(e->args[i].dtype)->stored, (unsigned)i, (unsigned)k);
  put(t, "  GET_OUT(%s, to);\n", gpu_element_of(e->result)->stored);
}

/* ---- places ---- */

/* Coordinates c0, c1, ... of the element, or of the first of four; `at` is its place in the result. */
static void put_coordinates(text *t, const gpu_ew *e)
{
  int last = (int)e->rank - 1;
  if (e->n_joined > 0)
    put(t, "  const I row = i / columns, c%d = i - row * columns + first, at = row * d%d + c%d;\n", last, last, last);
  else if (in_rows(e)) put(t, "  const I at = i, row = i / d%d, c%d = i - row * d%d;\n", last, last, last);
  else put(t, "  const I at = i;\n");
  if (!in_rows(e)) return;
  const char *left = "row";
  char name[16];
  for (int d = last - 1; d > 0; d--) {
    put(t, "  const I r%d = %s / d%d, c%d = %s - r%d * d%d;\n", d, left, d, d, left, d, d);
    snprintf(name, sizeof name, "r%d", d);
    left = name;
  }
  put(t, "  const I c0 = %s;\n", left);
}

static void put_sum(text *t, const gpu_ew *e, uint32_t i)
{
  const gpu_ew_arg *a = &e->args[i];
  const char *plus = "";
  for (int32_t d = 0; d < own_strides(e); d++) {
    if (a->strides[d] == 0) continue;
    put(t, "%sc%d * s%u_%d", plus, (int)d, (unsigned)i, (int)d);
    plus = " + ";
  }
  if (*plus == 0) put(t, "0");
}

static void put_place(text *t, const gpu_ew *e, uint32_t i)
{
  const gpu_ew_arg *a = &e->args[i];
  unsigned k = (unsigned)i;
  if (gpu_ew_is_joined(a)) {
    put(t, "  __global const %s *p%u = a%u_0;\n  I b%u = b%u_0, w%u = w%u_0;\n", gpu_element_of(a->dtype)->stored, k, k,
        k, k, k, k);
    for (unsigned s = 1; s < e->slots; s++)
      put(t, "  if (c%d >= b%u_%u) p%u = a%u_%u, b%u = b%u_%u, w%u = w%u_%u;\n", (int)e->rank - 1, k, s, k, k, s, k, k,
          s, k, k, s);
    put(t, "  const I i%u = (", k);
    if (gpu_ew_is_flat(e, a)) put(t, "row");
    else put_sum(t, e, i);
    put(t, ") * w%u + c%d - b%u;\n", k, (int)e->rank - 1, k);
    return;
  }
  put(t, "  __global const %s *p%u = a%u_0;\n  const I i%u = ", gpu_element_of(a->dtype)->stored, k, k, k);
  if (gpu_ew_is_flat(e, a)) put(t, "at");
  else if (!in_rows(e)) put(t, "0");
  else put_sum(t, e, i);
  if (!gpu_ew_is_flat(e, a) && gpu_ew_last_moves(e, a)) put(t, " + c%d", (int)e->rank - 1);
  put(t, ";\n");
}

/* ---- reading, computing, writing ---- */

/* The parameters of one(...) after the elements. */
static void put_alphas(text *t, const gpu_ew *e)
{
  bool any = e->n_args > 0;
  for (uint32_t i = 0; i < e->n_steps; i++)
    if (has_attr(&e->steps[i])) put(t, "%salpha%u", any ? ", " : "", (unsigned)i), any = true;
  if (gpu_ew_faults(e)) put(t, ", fault_words, fault_call");
}

/* one(...) of single elements, `further` places ahead in arguments that move. */
static void put_one(text *t, const gpu_ew *e, const char *further)
{
  put(t, "one(");
  for (uint32_t i = 0; i < e->n_args; i++)
    put(t, "%sLOAD_%s(p%u, i%u%s)", i == 0 ? "" : ", ", gpu_element_of(e->args[i].dtype)->access, (unsigned)i,
        (unsigned)i, gpu_ew_last_moves(e, &e->args[i]) || gpu_ew_is_joined(&e->args[i]) ? further : "");
  put_alphas(t, e);
  put(t, ")");
}

static void put_four(text *t, const gpu_ew *e)
{
  const gpu_element *to = gpu_element_of(e->result);
  for (uint32_t i = 0; i < e->n_args; i++) {
    const gpu_element *a = gpu_element_of(e->args[i].dtype);
    unsigned k = (unsigned)i;
    put(t, "  const %s4 x%u = ", a->computed, k);
    if (gpu_ew_last_moves(e, &e->args[i]) || gpu_ew_is_joined(&e->args[i]))
      put(t, "LOAD4_%s(p%u, i%u);\n", a->access, k, k);
    else put(t, "(%s4)(LOAD_%s(p%u, i%u));\n", a->computed, a->access, k, k);
  }
  put(t, "  STORE4_%s(to, at, ", to->access);
  if (!e->vectors) put(t, "(%s4)(", to->computed);
  for (int lane = 0; lane < (e->vectors ? 1 : 4); lane++) {
    put(t, "%s%s(", lane == 0 ? "" : ", ", e->vectors ? "four" : "one");
    for (uint32_t i = 0; i < e->n_args; i++) {
      put(t, "%sx%u", i == 0 ? "" : ", ", (unsigned)i);
      if (!e->vectors) put(t, ".s%d", lane);
    }
    put_alphas(t, e);
    put(t, ")");
  }
  put(t, e->vectors ? ");\n" : "));\n");
}

char *gpu_ew_text(const gpu_ew *e)
{
  text all = { tn_alloc(4096), 0, 4096 }, *t = &all;
  const char *access = gpu_element_of(e->result)->access;
  put_helpers(t, e);
  put_function(t, e, false);
  if (e->vectors && e->width == 4) put_function(t, e, true);
  put_parameters(t, e);
  put(t, "  const I i = (I)get_global_id(0) * %d;\n  if (i >= n) return;\n", e->width);
  put_coordinates(t, e);
  for (uint32_t i = 0; i < e->n_args; i++) put_place(t, e, i);
  if (e->width == 4 && !in_rows(e)) {
    put(t, "  if (n - i < 4) {\n    for (I k = 0; k < n - i; k++) STORE_%s(to, at + k, ", access);
    put_one(t, e, " + k");
    put(t, ");\n    return;\n  }\n");
  }
  if (e->width == 4) {
    put_four(t, e);
  } else {
    put(t, "  STORE_%s(to, at, ", access);
    put_one(t, e, "");
    put(t, ");\n");
  }
  put(t, "}\n");
  return t->at;
}
