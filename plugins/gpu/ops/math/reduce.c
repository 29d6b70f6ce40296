/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over axes: All Any EuclideanNorm Max Mean Min Prod Sum L2Loss, and ArgMax ArgMin along one axis. */
#include "ops/kernel/move.h"

#include <string.h>

enum { GROUP = 64, ROW_LEAST = 32 /* shorter rows are done by one work item */ };

/* The dimensions kept and those reduced, each merged as far as possible. */
typedef struct axes {
  int32_t n[2]; /* [0]: kept, [1]: reduced */
  int64_t dims[2][GPU_MOVE_DIMS], steps[2][GPU_MOVE_DIMS];
  int64_t count[2];
  bool last_gone; /* the last dimension is reduced: adjacent elements are combined */
} axes;

static void find_axes(const gpu_value *in, const bool *gone, axes *a)
{
  int64_t strides[GPU_MOVE_DIMS];
  int before = -1; /* whether the dimension before is reduced */
  *a = (axes){ .count = { 1, 1 } };
  (void)gpu_strides(in->dims, in->rank, strides);
  for (int32_t d = 0; d < in->rank; d++) {
    int k = gone[d];
    a->count[k] *= in->dims[d];
    if (in->dims[d] == 1) continue;
    int32_t at = before == k ? a->n[k] - 1 : a->n[k]++;
    a->dims[k][at] = before == k ? a->dims[k][at] * in->dims[d] : in->dims[d];
    a->steps[k][at] = strides[d];
    before = k;
  }
  a->last_gone = before == 1;
  for (int k = 0; k < 2; k++) {
    if (a->n[k] > 0) continue;
    a->n[k] = 1;
    a->dims[k][0] = 1;
    a->steps[k][0] = 0;
  }
}

/* The type in which an op accumulates. Sums of integers wrap, so unsigned types are used. */
static const char *gathered(const gpu_element *t, const char *op)
{
  if (t->kind == GPU_FLOATING) return t->computed;
  if (t->kind == GPU_TRUTH) return "uchar";
  if (strcmp(op, "MEAN") == 0) return t->dtype == TN_UINT64 ? "ulong" : "long";
  if (strcmp(op, "SUM") == 0 || strcmp(op, "PROD") == 0) return t->bits == 64 ? "ulong" : "uint";
  return t->computed;
}

static int size_index(int bits)
{
  switch (bits) {
  case 8: return 0;
  case 16: return 1;
  case 32: return 2;
  default: return 3;
  }
}

static void define_limits(gpu_launch *l, const gpu_element *t)
{
  static const char *const lowest[] = { "CHAR_MIN", "SHRT_MIN", "INT_MIN", "LONG_MIN" };
  static const char *const highest[] = { "CHAR_MAX", "SHRT_MAX", "INT_MAX", "LONG_MAX" };
  static const char *const most[] = { "UCHAR_MAX", "USHRT_MAX", "UINT_MAX", "ULONG_MAX" };
  int size = size_index(t->bits);
  const char *low = "0", *high = most[size];
  if (t->kind == GPU_FLOATING) {
    low = "-INFINITY";
    high = "INFINITY";
  } else if (t->kind == GPU_SIGNED) {
    low = lowest[size];
    high = highest[size];
  }
  gpu_define(l, "LOWEST", "%s", low);
  gpu_define(l, "HIGHEST", "%s", high);
}

static gpu_launch *begin(gpu_node *n, const gpu_element *t, const char *kernel, const char *op, int64_t places)
{
  gpu_launch *l = gpu_launch_file(n, "reduce", kernel);
  gpu_define_elements(l, "", t->dtype);
  gpu_define(l, "OP", "%s", op);
  gpu_define(l, "A", "%s", gathered(t, op));
  gpu_define(l, "GROUP", "%d", GROUP);
  if (t->kind != GPU_FLOATING) gpu_define(l, "WHOLE", "1");
  define_limits(l, t);
  gpu_define_places(l, places);
  return l;
}

static void put_walk(gpu_launch *l, const axes *a)
{
  cl_long w[4 * GPU_MOVE_DIMS];
  size_t n = 0;
  for (int k = 0; k < 2; k++) {
    for (int32_t d = 0; d < a->n[k]; d++) w[n++] = a->dims[k][d];
    for (int32_t d = 0; d < a->n[k]; d++) w[n++] = a->steps[k][d];
  }
  gpu_arg_bytes(l, w, n * sizeof *w);
}

/* How many chunks the elements of a result are cut into: so that there is work for a whole device, and sums stay
 * short. */
static int64_t chunks_of(const axes *a, bool rows)
{
  int64_t outs = a->count[0], n = a->count[1], least = rows ? 4096 : 256;
  int64_t chunks = n / least;
  if (chunks > 256) chunks = 256;
  if (outs > 16384) chunks = 1;
  return chunks < 1 ? 1 : chunks;
}

static void launch_reduce(gpu_node *n, const gpu_element *t, const char *op, const axes *a)
{
  int64_t places = n->inputs[0].count > n->outputs[0].count ? n->inputs[0].count : n->outputs[0].count;
  int64_t outs = a->count[0], elements = a->count[1];
  bool rows = a->last_gone && elements >= ROW_LEAST;
  int64_t chunks = chunks_of(a, rows), chunk = (elements + chunks - 1) / chunks;
  if (chunk > 0) chunks = (elements + chunk - 1) / chunk;
  size_t part = t->bits == 64 || strcmp(op, "MEAN") == 0 ? sizeof(cl_long) : sizeof(cl_int);
  size_t scratch = chunks > 1 ? gpu_scratch(n, (size_t)(outs * chunks) * part) : 0;
  gpu_launch *l = begin(n, t, rows ? "rows" : "columns", op, places);
  gpu_define(l, "KEPT", "%d", (int)a->n[0]);
  gpu_define(l, "GONE", "%d", (int)a->n[1]);
  if (chunks > 1) gpu_define(l, "PARTIAL", "1");
  gpu_arg_input(l, 0);
  if (chunks > 1) gpu_arg_scratch(l, scratch);
  else gpu_arg_output(l, 0);
  gpu_arg_place(l, places, outs);
  gpu_arg_place(l, places, elements);
  gpu_arg_place(l, places, chunk);
  put_walk(l, a);
  int64_t global[2] = { rows ? outs * GROUP : outs, chunks > 0 ? chunks : 1 }, local[2] = { GROUP, 1 };
  gpu_range_2d(l, global, local);
  if (chunks <= 1) return;
  l = begin(n, t, "finish", op, places);
  gpu_define(l, "KEPT", "1");
  gpu_define(l, "GONE", "1");
  gpu_arg_scratch(l, scratch);
  gpu_arg_output(l, 0);
  gpu_arg_place(l, places, outs);
  gpu_arg_place(l, places, elements);
  gpu_arg_place(l, places, chunks);
  gpu_range_1d(l, outs, GROUP);
}

static const char *name_of(const gpu_node *n)
{
  static const char *const names[][2] = { { "Sum", "SUM" },   { "Prod", "PROD" },
                                          { "Mean", "MEAN" }, { "Max", "MAX" },
                                          { "Min", "MIN" },   { "All", "ALL" },
                                          { "Any", "ANY" },   { "L2Loss", "HALF_SQUARES" } };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(tn_operation_type(n->op), names[i][0]) == 0) return names[i][1];
  return "NORM";
}

static tn_status plan_reduce(gpu_node *n, tn_error *err)
{
  const gpu_value *in = &n->inputs[0];
  const gpu_element *t = gpu_element_of(in->dtype);
  bool gone[GPU_MOVE_DIMS] = { false }, all = n->n_inputs < 2;
  axes a;
  if (in->rank > GPU_MOVE_DIMS || t == NULL)
    return gpu_decline(err, "rank %d, at most %d are walked", (int)in->rank, GPU_MOVE_DIMS);
  for (int32_t d = 0; d < in->rank; d++) gone[d] = all;
  for (int64_t k = 0; !all && k < n->inputs[1].count; k++) {
    int64_t axis = gpu_int_at(&n->inputs[1], k);
    gone[axis < 0 ? axis + in->rank : axis] = true;
  }
  find_axes(in, gone, &a);
  launch_reduce(n, t, name_of(n), &a);
  return gpu_node_done(n, err);
}

/* ---- ArgMax, ArgMin ---- */

static tn_status plan_arg(gpu_node *n, tn_error *err)
{
  const gpu_value *in = &n->inputs[0];
  const gpu_element *t = gpu_element_of(in->dtype), *to = gpu_element_of(n->outputs[0].dtype);
  int64_t axis = gpu_int_at(&n->inputs[1], 0), inner = 1, outs = n->outputs[0].count;
  if (axis < 0) axis += in->rank;
  for (int32_t d = (int32_t)axis + 1; d < in->rank; d++) inner *= in->dims[d];
  bool rows = inner == 1 && in->dims[axis] >= ROW_LEAST;
  gpu_launch *l = begin(n, t, rows ? "arg_rows" : "arg_columns",
                        strcmp(tn_operation_type(n->op), "ArgMax") == 0 ? "ARGMAX" : "ARGMIN", in->count);
  gpu_define(l, "OUT_T", "%s", to->stored);
  gpu_arg_input(l, 0);
  gpu_arg_output(l, 0);
  if (!rows) gpu_arg_place(l, in->count, outs);
  gpu_arg_place(l, in->count, in->dims[axis]);
  if (!rows) gpu_arg_place(l, in->count, inner);
  gpu_range_1d(l, rows ? outs * GROUP : outs, GROUP);
  return gpu_node_done(n, err);
}

#define NUMBERS GPU_FLOATS "|" GPU_INTEGERS
#define REDUCE_OP(op, types) { op, types, plan_reduce, .host_inputs = 1u << 1 }

extern const gpu_op gpu_reduce_ops[];
const gpu_op gpu_reduce_ops[] = {
  REDUCE_OP("Sum", "T=" NUMBERS),
  REDUCE_OP("Mean", "T=" NUMBERS),
  REDUCE_OP("Max", "T=" NUMBERS),
  REDUCE_OP("Min", "T=" NUMBERS),
  REDUCE_OP("Prod", "T=" NUMBERS),
  REDUCE_OP("EuclideanNorm", "T=" GPU_FLOATS),
  { "L2Loss", "T=" GPU_FLOATS, plan_reduce },
  REDUCE_OP("All", NULL),
  REDUCE_OP("Any", NULL),
  { "ArgMax", "T=" NUMBERS "|bool,output_type=int16|uint16|int32|int64", plan_arg, .host_inputs = 1u << 1 },
  { "ArgMin", "T=" NUMBERS "|bool,output_type=int16|uint16|int32|int64", plan_arg, .host_inputs = 1u << 1 },
  { NULL },
};
