/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/alloc.h>
#include <ops/kernel/product/gemm_kernel.h>
#include <ops/kernel/shapes.h>
#include <ops/kernel/window/volume.h>
#include <ops/nn/conv/conv_phases.h>
#include <string.h>

#define MOST_STRIDE 16 /* of an axis: there are as many phases */
#define ROW_NS 0.1     /* of an element that is copied */

/* The pixels of an axis that are alike: pixel `first` + i stride, for i < n, reads y's places from (q + i) - (taps - 1)
 * to q + i, the last one with tap `tap`, the one before it with the next tap of the phase. */
typedef struct line {
  int64_t first, n, tap, taps, q;
} line;

typedef struct phase {
  line line[2];
  tn__gemm_plan gemm;
  size_t at_filter; /* of its matrix [taps, c], in scratch or in the packed filter */
} phase;

struct tn__conv_phases {
  const tn__conv_sizes *z;
  size_t element, bytes;        /* bytes: of this allocation */
  int64_t most[2];              /* taps of a phase, at most */
  int64_t padded[2], copied[2]; /* places of y with the margin; those that are copied */
  bool empty;                   /* some pixels are read by no window */
  const char *packed;           /* the constant filter, or NULL */
  size_t at_y, at_filter, at_gemm;
  double cost_ns;
  int64_t n;
  phase phases[];
};

/* ---- the filter ---- */

/* Sets the matrix of a phase: its rows are the taps in descending order, each with y's channels; its columns are the
 * image's channels. */
#define TURN(name, T)                                                                                               \
  static void name(const tn__conv_sizes *z, const phase *p, const T *from, T *to)                                   \
  {                                                                                                                 \
    const tn__window_axis *v = &z->window.axis[1], *u = &z->window.axis[2];                                         \
    const line *down = &p->line[0], *along = &p->line[1];                                                           \
    for (int64_t i = down->taps - 1; i >= 0; i--)                                                                   \
      for (int64_t j = along->taps - 1; j >= 0; j--) {                                                              \
        const T *tap = from + ((down->tap + i * v->stride) * u->size + along->tap + j * u->stride) * z->fc * z->fo; \
        for (int64_t o = 0; o < z->fo; o++)                                                                         \
          for (int64_t c = 0; c < z->fc; c++) *to++ = tap[c * z->fo + o];                                           \
      }                                                                                                             \
  }
TURN(turn_32, uint32_t)
TURN(turn_64, uint64_t)

static void turn(const tn__conv_phases *p, const phase *one, const void *from, void *to)
{
  if (p->element == 4) turn_32(p->z, one, from, to);
  else turn_64(p->z, one, from, to);
}

static tn_status pack_filter(void *user, const tn_view *from, void *to, tn_error *err)
{
  const tn__conv_phases *p = user;
  size_t most = 0;
  for (int64_t i = 0; i < p->n; i++) {
    const size_t bytes = (size_t)(p->phases[i].gemm.k * p->phases[i].gemm.n) * p->element;
    if (bytes > most) most = bytes;
  }
  void *matrix = tn__alloc(most);
  if (matrix == NULL) return tn__no_memory(err, "filter", most);
  for (int64_t i = 0; i < p->n; i++) {
    turn(p, &p->phases[i], from->data, matrix);
    tn__gemm_pack(&p->phases[i].gemm, matrix, (char *)to + p->phases[i].at_filter);
  }
  tn__free(matrix, most);
  return TN_OK;
}

/* ---- rows ---- */

typedef struct rows {
  const tn__conv_phases *plan;
  const phase *phase;
  const char *y; /* with its margin */
} rows;

/* Indices into tn__gemm_window.place: the next group, and the position of its first row. */
enum { NEXT, IMAGE, H, K };

static void find_place(const phase *p, int64_t group, int64_t *at)
{
  const line *down = &p->line[0], *along = &p->line[1];
  const int64_t row = tn__gemm_group_begin(&p->gemm, p->gemm.m, group);
  at[K] = row % along->n;
  at[H] = row / along->n % down->n;
  at[IMAGE] = row / along->n / down->n;
}

static void next_rows(const void *user, int64_t group, tn__gemm_window *out)
{
  const rows *r = user;
  const tn__conv_phases *p = r->plan;
  const tn__conv_sizes *z = p->z;
  const line *down = &r->phase->line[0], *along = &r->phase->line[1];
  const int64_t stride[] = { z->window.axis[1].stride, z->window.axis[2].stride };
  const size_t pixel = (size_t)z->fo * p->element;
  int64_t *at = out->place;
  if (at[NEXT] != group) find_place(r->phase, group, at);
  const int64_t done = (at[IMAGE] * down->n + at[H]) * along->n + at[K];
  out->rows = tn__gemm_group_rows(&r->phase->gemm, r->phase->gemm.m - done);
  out->outer = down->taps;
  out->inner = 1;
  out->terms = along->taps * z->fo;
  out->a_outer = p->padded[1] * z->fo;
  out->a_inner = out->b_inner = 0;
  out->b = 0;
  out->b_outer = along->taps * z->fo;
  for (int i = 0; i < out->rows;) {
    const int64_t top = down->q + at[H] + p->most[0] - down->taps, left = along->q + at[K] + p->most[1] - along->taps;
    const char *from = r->y + (size_t)((at[IMAGE] * p->padded[0] + top) * p->padded[1] + left) * pixel;
    int64_t to = (at[IMAGE] * z->x.size[1] + down->first + at[H] * stride[0]) * z->x.size[2] + along->first +
                 at[K] * stride[1];
    int64_t n = along->n - at[K] < out->rows - i ? along->n - at[K] : out->rows - i;
    for (at[K] += n; n > 0; n--, i++, from += pixel, to += stride[1]) {
      out->a[i] = from;
      out->c[i] = to;
    }
    if (at[K] < along->n) break;
    at[K] = 0;
    if (++at[H] < down->n) continue;
    at[H] = 0;
    at[IMAGE]++;
  }
  at[NEXT] = group + 1;
}

/* ---- the plan ---- */

/* The pixels of an axis of `length` whose position, counted from the padding's begin, is `rest` modulo the stride. */
static line line_of(const tn__window_axis *a, int64_t length, int64_t rest)
{
  const int64_t first = (rest - a->before % a->stride + a->stride) % a->stride;
  return (line){ .first = first,
                 .n = first < length ? (length - first + a->stride - 1) / a->stride : 0,
                 .tap = rest,
                 .taps = rest < a->size ? (a->size - rest + a->stride - 1) / a->stride : 0,
                 .q = (first + a->before) / a->stride };
}

static bool fits(const tn__conv_sizes *z)
{
  const tn__window_axis *depth = &z->window.axis[0];
  if (z->window.directions != 2 || z->groups != 1 || depth->size != 1 || z->x_pixels == 0 || z->y_pixels == 0)
    return false;
  for (int k = 1; k < 3; k++) {
    const tn__window_axis *a = &z->window.axis[k];
    if (a->dilation != 1 || a->before < 0 || a->after < 0 || a->stride > MOST_STRIDE) return false;
  }
  return true;
}

/* Sizes of y with its margin: the places before the first one and after the last one that a pixel reads. */
static void set_margin(tn__conv_phases *p)
{
  for (int k = 0; k < 2; k++) {
    const tn__window_axis *a = &p->z->window.axis[k + 1];
    const int64_t last = (p->z->x.size[k + 1] - 1 + a->before) / a->stride + 1, places = p->z->y.size[k + 1];
    p->most[k] = (a->size + a->stride - 1) / a->stride;
    p->padded[k] = p->most[k] - 1 + last;
    p->copied[k] = places < last ? places : last;
  }
}

static void add_phase(tn__conv_phases *p, const line *down, const line *along, tn__gemm_type type, bool reproducible)
{
  const tn__conv_sizes *z = p->z;
  if (down->n == 0 || along->n == 0) return;
  if (down->taps == 0 || along->taps == 0) {
    p->empty = true;
    return;
  }
  phase *one = &p->phases[p->n++];
  one->line[0] = *down;
  one->line[1] = *along;
  one->gemm = (tn__gemm_plan){ .type = type, .m = z->x.n * down->n * along->n, .n = z->fc,
                               .k = down->taps * along->taps * z->fo, .b_row = z->fc, .b_col = 1, .c_row = z->fc,
                               .windows = next_rows, .reproducible = reproducible };
  tn__gemm_plan_choose(&one->gemm);
  one->gemm.groups = tn__gemm_groups(&one->gemm, one->gemm.m);
  p->cost_ns += one->gemm.cost_ns;
}

/* Packs a constant filter, and sets the places of all matrices. Returns the bytes of those in scratch. */
static size_t place_filters(tn__conv_phases *p, tn_prepare_ctx *ctx, bool constant)
{
  const tn__conv_sizes *z = p->z;
  size_t packed = 0, plain = 0;
  for (int64_t i = 0; i < p->n; i++)
    p->phases[i].at_filter = tn__take(&packed, tn__gemm_packed_bytes(&p->phases[i].gemm));
  const uint64_t strides = (uint64_t)z->window.axis[1].stride << 16 | (uint64_t)z->window.axis[2].stride << 8;
  const uint64_t key = 0x7068617300000000u | strides | (uint64_t)p->phases[0].gemm.kernel->nr;
  const void *made = NULL;
  if (constant && tn_prepare_pack(ctx, 1, key, packed, pack_filter, p, &made, NULL) == TN_OK) p->packed = made;
  for (int64_t i = 0; i < p->n; i++) {
    tn__gemm_plan *g = &p->phases[i].gemm;
    g->packed = p->packed != NULL;
    tn__gemm_plan_choose(g);
    if (p->packed == NULL) p->phases[i].at_filter = tn__take(&plain, (size_t)(g->k * g->n) * p->element);
  }
  return plain;
}

tn_status tn__conv_phases_plan(tn_prepare_ctx *ctx, const tn__conv_sizes *z, tn__gemm_type type, bool constant,
                               tn__conv_phases **out, size_t *scratch, tn_error *err)
{
  *out = NULL;
  if (!fits(z)) return TN_OK;
  const tn__window_axis *v = &z->window.axis[1], *u = &z->window.axis[2];
  const size_t bytes = sizeof(tn__conv_phases) + (size_t)(v->stride * u->stride) * sizeof(phase);
  tn__conv_phases *p = tn__zalloc(bytes);
  if (p == NULL) return tn__no_memory(err, "convolution plan", bytes);
  *out = p;
  p->z = z;
  p->bytes = bytes;
  p->element = type == TN__GEMM_F32 || type == TN__GEMM_I32 ? 4 : 8;
  set_margin(p);
  for (int64_t i = 0; i < v->stride; i++)
    for (int64_t j = 0; j < u->stride; j++) {
      const line down = line_of(v, z->x.size[1], i), along = line_of(u, z->x.size[2], j);
      add_phase(p, &down, &along, type, ctx->reproducible);
    }
  if (p->n == 0) return TN_OK;
  size_t y, gemm = 0;
  if (!tn__size_mul((size_t)(p->padded[0] * p->padded[1]), (size_t)z->fo * p->element, &y) ||
      !tn__size_mul(y, (size_t)z->x.n, &y))
    return tn__no_memory(err, "convolution", SIZE_MAX);
  p->at_y = tn__take(scratch, y);
  p->at_filter = tn__take(scratch, place_filters(p, ctx, constant));
  for (int64_t i = 0; i < p->n; i++)
    if (p->phases[i].gemm.scratch > gemm) gemm = p->phases[i].gemm.scratch;
  p->at_gemm = tn__take(scratch, gemm);
  p->cost_ns += (double)(z->x.n * p->padded[0] * p->padded[1] * z->fo) * ROW_NS;
  return TN_OK;
}

void tn__conv_phases_destroy(tn__conv_phases *p)
{
  if (p != NULL) tn__free(p, p->bytes);
}

double tn__conv_phases_cost(const tn__conv_phases *p) { return p->cost_ns; }

/* ---- running ---- */

typedef struct copying {
  const tn__conv_phases *plan;
  const char *from;
  char *to;
} copying;

/* Copies lines [begin, end) of y, with its margin. */
static void copy_lines(void *user, int64_t begin, int64_t end)
{
  const copying *c = user;
  const tn__conv_phases *p = c->plan;
  const tn__conv_sizes *z = p->z;
  const size_t pixel = (size_t)z->fo * p->element, width = (size_t)p->padded[1] * pixel;
  const size_t before = (size_t)(p->most[1] - 1) * pixel, inside = (size_t)p->copied[1] * pixel;
  for (int64_t i = begin; i < end; i++) {
    const int64_t image = i / p->padded[0], row = i % p->padded[0] - (p->most[0] - 1);
    char *to = c->to + (size_t)i * width;
    if (row < 0 || row >= p->copied[0]) {
      memset(to, 0, width);
      continue;
    }
    memset(to, 0, before);
    memcpy(to + before, c->from + (size_t)((image * z->y.size[1] + row) * z->y.size[2]) * pixel, inside);
    memset(to + before + inside, 0, width - before - inside);
  }
}

void tn__conv_phases_run(const tn__conv_phases *p, tn_kernel_ctx *ctx, const void *y, const void *filter, void *x)
{
  const tn__conv_sizes *z = p->z;
  char *scratch = ctx->scratch;
  if (p->empty || p->n == 0) memset(x, 0, (size_t)(z->x_pixels * z->fc) * p->element);
  if (p->n == 0) return;
  copying c = { p, y, scratch + p->at_y };
  tn_parallel_for(ctx, z->x.n * p->padded[0], 1, (double)(p->padded[1] * z->fo) * ROW_NS, copy_lines, &c);
  for (int64_t i = 0; i < p->n; i++) {
    const phase *one = &p->phases[i];
    const rows r = { p, one, c.to };
    char *matrix = scratch + p->at_filter + one->at_filter;
    if (p->packed == NULL) turn(p, one, filter, matrix);
    tn__gemm_run(&one->gemm, ctx, &r, p->packed != NULL ? p->packed + one->at_filter : matrix, x,
                 scratch + p->at_gemm);
  }
}
