/* SPDX-License-Identifier: Apache-2.0 */
/* Products: the kernel or library that computes them, the tile, the number of groups, and the launches. */
#include "device/clblast.h"
#include "ops/kernel/product.h"

#include <string.h>

/* ---- what follows ---- */

enum { BIAS, ADD };
static const char *const names[] = { "BiasAdd", "Add", "Relu", "Relu6", "LeakyRelu", "Tanh", "Sigmoid" };
enum { N_NAMES = sizeof names / sizeof *names };

/* Whether an argument has the last dimension of the output, or all. */
static bool arg_fits(const gpu_value *arg, const gpu_value *out, int kind)
{
  int32_t skip = kind == BIAS ? out->rank - 1 : 0;
  if (arg->rank != out->rank - skip || arg->dtype != out->dtype) return false;
  for (int32_t d = 0; d < arg->rank; d++)
    if (arg->dims[d] != out->dims[d + skip]) return false;
  return true;
}

tn_status gpu_after_read(const gpu_node *n, uint32_t first, gpu_after *out, tn_error *err)
{
  const char *text;
  size_t size, steps = 0;
  *out = (gpu_after){ .alpha = gpu_attr_float(n, "leakyrelu_alpha", 0.2f) };
  if (tn_operation_attr_kind(n->op, "fused_ops") == TN_ATTR_NONE) return TN_OK;
  tn_status st = tn_operation_attr_string_at(n->op, "fused_ops", 0, &text, &size, &steps, err);
  if (st == TN_OK && steps > GPU_STEPS) return gpu_decline(err, "%zu fused steps, at most %d wanted", steps, GPU_STEPS);
  for (size_t i = 0; st == TN_OK && i < steps; i++) {
    int kind = 0;
    st = tn_operation_attr_string_at(n->op, "fused_ops", i, &text, &size, NULL, err);
    while (st == TN_OK && kind < N_NAMES && (strlen(names[kind]) != size || memcmp(names[kind], text, size) != 0))
      kind++;
    if (st != TN_OK) break;
    if (kind == N_NAMES) return gpu_decline(err, "no fused step '%.*s'", (int)(size > 99 ? 99 : size), text);
    out->kinds[out->n++] = (uint8_t)kind;
    if (kind > ADD) continue;
    uint32_t arg = first + out->n_args++;
    if (out->n_args > GPU_STEP_ARGS) return gpu_decline(err, "more than %d fused tensors", GPU_STEP_ARGS);
    if (arg >= n->n_inputs || !arg_fits(&n->inputs[arg], &n->outputs[0], kind))
      return gpu_decline(err, "the tensor of fused step '%s' does not fit the result", names[kind]);
  }
  return st;
}

void gpu_after_define(gpu_launch *l, const gpu_after *a)
{
  static const char *const steps[] = { "STEP_0", "STEP_1", "STEP_2", "STEP_3", "STEP_4", "STEP_5", "STEP_6", "STEP_7" };
  int arg = 0;
  if (a->n == 0) return;
  gpu_define(l, "STEPS", "%d", a->n);
  gpu_define(l, "ARGS", "%u", (unsigned)a->n_args);
  for (int i = 0; i < a->n; i++) {
    gpu_define(l, steps[i], "%d", a->kinds[i] + (a->kinds[i] <= ADD ? 16 * arg++ : 0));
    if (strcmp(names[a->kinds[i]], "LeakyRelu") == 0) gpu_define(l, "ALPHA", "%af", (double)a->alpha);
  }
}

void gpu_after_args(gpu_launch *l, const gpu_after *a, uint32_t first)
{
  for (uint32_t i = 0; i < a->n_args; i++) gpu_arg_input(l, first + i);
}

/* ---- tiles ---- */

typedef struct sizes { /* of product.cl */
  cl_long a_row, b_row, out_row, a_batch, b_batch, out_batch;
  cl_int m, n, k, tiles_m, tiles_n, splits, split;
  cl_int unused;
} sizes;

typedef struct tile {
  int m, n, k;
  double speed; /* of full ones, as a part of what the fastest has */
} tile;

#define ITEMS 256
#define MOST ((int64_t)1 << 30)

static int64_t tiles(int64_t n, int64_t size) { return (n + size - 1) / size; }

/* The number of groups that keeps the whole device busy. */
static int64_t groups_wanted(const gpu_device *d)
{
  int64_t n = 2 * (int64_t)d->compute_units;
  if (n < 16) return 16;
  return n > 512 ? 512 : n;
}

/* Rates a tile by the bytes read for the work done, the useful share of all tiles, and the number of tiles. */
static double worth(const tile *t, const gpu_product *p, double wanted)
{
  const double down = (double)tiles(p->m, t->m), along = (double)tiles(p->n, t->n);
  const double filled = (double)p->m * (double)p->n / (down * t->m * along * t->n);
  const double groups = down * along * (double)p->batch * (double)(p->k / 512 + 1); /* terms can be shared */
  return t->speed * filled * (groups < wanted ? 0.3 + 0.7 * groups / wanted : 1);
}

static tile choose(const gpu_node *n, const gpu_product *p)
{
  static const tile all[] = {
    { 128, 128, 16, 1 }, { 64, 64, 16, 0.8 }, { 128, 32, 16, 0.7 }, { 128, 16, 16, 0.5 }, { 32, 32, 16, 0.5 },
  };
  const double wanted = (double)groups_wanted(n->device);
  const tile *best = NULL;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (i == 0 && tn_dtype_size(n->outputs[0].dtype) > 4) continue; /* local memory has 32 KB at least */
    if (best == NULL || worth(&all[i], p, wanted) > worth(best, p, wanted)) best = &all[i];
  }
  return *best;
}

static tn_status fill_sizes(const gpu_node *n, const gpu_product *p, tile t, sizes *z, tn_error *err)
{
  if (p->m > MOST || p->n > MOST || p->k > MOST)
    return gpu_decline(err, "a product of more than 2^30 rows, columns or terms");
  *z = (sizes){ .a_row = p->a_row, .b_row = p->b_row, .out_row = p->out_row, .a_batch = p->a_batch,
                .b_batch = p->b_batch, .out_batch = p->out_batch,
                .m = (cl_int)p->m, .n = (cl_int)p->n, .k = (cl_int)p->k,
                .tiles_m = (cl_int)tiles(p->m, t.m), .tiles_n = (cl_int)tiles(p->n, t.n), .splits = 1 };
  double groups = (double)z->tiles_m * (double)z->tiles_n * (double)p->batch, wanted = (double)groups_wanted(n->device);
  int64_t most = p->k / 128, splits = groups < 1 || groups >= wanted ? 1 : (int64_t)(wanted / groups);
  if (splits > most) splits = most;
  if (splits < 1) splits = 1;
  int64_t each = tiles(tiles(p->k, splits), t.k) * t.k;
  z->split = (cl_int)(each > 0 ? each : t.k);
  z->splits = (cl_int)(each > 0 ? tiles(p->k, each) : 1);
  if (z->splits < 1) z->splits = 1;
  if (groups * z->splits * ITEMS > 9e15) return gpu_decline(err, "a product of too many tiles");
  return TN_OK;
}

static void define_elements(gpu_launch *l, tn_dtype dtype)
{
  const gpu_element *e = gpu_element_of(dtype);
  gpu_define_elements(l, "", dtype);
  if (e != NULL && e->kind == GPU_FLOATING) gpu_define(l, "FLOATING", "1");
}

static void launch_tiles(gpu_node *n, const gpu_product *p, tile t, const sizes *z, size_t parts)
{
  gpu_launch *l = gpu_launch_file(n, "product", "product");
  define_elements(l, n->outputs[0].dtype);
  gpu_define(l, "MODE", "%d", p->mode);
  gpu_define(l, "TILE_M", "%d", t.m);
  gpu_define(l, "TILE_N", "%d", t.n);
  gpu_define(l, "TILE_K", "%d", t.k);
  if (p->across_a) gpu_define(l, "ACROSS_A", "1");
  if (p->across_b) gpu_define(l, "ACROSS_B", "1");
  if (p->batches.rank > 0) gpu_define(l, "BATCHES", "1");
  if (z->splits > 1) gpu_define(l, "SPLIT", "1");
  else gpu_after_define(l, &p->after);
  gpu_arg_input(l, p->a);
  gpu_arg_input(l, p->b);
  if (z->splits > 1) {
    gpu_arg_scratch(l, parts);
  } else {
    gpu_arg_output(l, 0);
    gpu_after_args(l, &p->after, p->first_arg);
  }
  gpu_arg_bytes(l, z, sizeof *z);
  gpu_arg_bytes(l, &p->window, sizeof p->window);
  gpu_arg_bytes(l, &p->batches, sizeof p->batches);
  gpu_range_1d(l, (int64_t)z->tiles_m * z->tiles_n * z->splits * p->batch * ITEMS, ITEMS);
}

/* parts: scratch memory; OF_OUTPUT: the output, in place. */
#define OF_OUTPUT SIZE_MAX
static void launch_sum(gpu_node *n, const gpu_product *p, const sizes *z, size_t parts)
{
  const int64_t count = p->batch * p->m * p->n;
  gpu_launch *l = gpu_launch_file(n, "product", "product_sum");
  define_elements(l, n->outputs[0].dtype);
  gpu_define(l, "SUM", "1");
  gpu_after_define(l, &p->after);
  if (parts == OF_OUTPUT) gpu_arg_output(l, 0);
  else gpu_arg_scratch(l, parts);
  gpu_arg_output(l, 0);
  gpu_after_args(l, &p->after, p->first_arg);
  gpu_arg_bytes(l, z, sizeof *z);
  gpu_arg_long(l, count);
  gpu_range_1d(l, count, 64);
}

/* ---- few rows ---- */

#define FEW_ROWS 4

static bool has_few_rows(const gpu_product *p)
{
  return p->mode == GPU_MATRIX && p->batch == 1 && p->batches.rank == 0 && p->m <= FEW_ROWS;
}

static void launch_rows(gpu_node *n, const gpu_product *p, const sizes *z)
{
  int columns = p->n < 64 * groups_wanted(n->device) ? 16 : 64;
  if (p->across_b) columns = 4;
  gpu_launch *l = gpu_launch_file(n, "product", "product_rows");
  define_elements(l, n->outputs[0].dtype);
  gpu_define(l, "ROWS", "%d", (int)p->m);
  gpu_define(l, "COLUMNS", "%d", columns);
  if (p->across_a) gpu_define(l, "ACROSS_A", "1");
  if (p->across_b) gpu_define(l, "ACROSS_B", "1");
  gpu_after_define(l, &p->after);
  gpu_arg_input(l, p->a);
  gpu_arg_input(l, p->b);
  gpu_arg_output(l, 0);
  gpu_after_args(l, &p->after, p->first_arg);
  gpu_arg_bytes(l, z, sizeof *z);
  gpu_range_1d(l, tiles(p->n, columns) * ITEMS, ITEMS);
}

/* ---- CLBlast ---- */

/* Following steps are then a launch of their own over the dense output: rows and matrices one after the other. */
static bool launch_clblast(gpu_node *n, const gpu_product *p, const sizes *z)
{
  const bool dense = p->out_row == p->n && (p->batch == 1 || p->out_batch == p->m * p->n);
  const gpu_gemm g = { .dtype = n->outputs[0].dtype,
                       .across_a = p->across_a,
                       .across_b = p->across_b,
                       .batch = p->batch,
                       .m = p->m,
                       .n = p->n,
                       .k = p->k,
                       .a_row = p->a_row,
                       .b_row = p->b_row,
                       .out_row = p->out_row,
                       .a_batch = p->a_batch,
                       .b_batch = p->b_batch,
                       .out_batch = p->out_batch };
  if (p->mode != GPU_MATRIX || p->batches.rank > 0 || (p->after.n > 0 && !dense)) return false;
  gpu_clblast_product q;
  if (!gpu_clblast_takes(n->device, n->blas, &g, &q)) return false;
  gpu_launch *l = gpu_launch_library(n, "CLBlast", gpu_clblast_enqueue, &q, sizeof q);
  gpu_arg_input(l, p->a);
  gpu_arg_input(l, p->b);
  gpu_arg_output(l, 0);
  if (q.temp > 0) gpu_arg_scratch(l, gpu_scratch(n, q.temp + n->device->align_bytes));
  sizes whole = *z;
  whole.splits = 1;
  if (p->after.n > 0) launch_sum(n, p, &whole, OF_OUTPUT);
  return true;
}

tn_status gpu_product_launch(gpu_node *n, const gpu_product *p, tn_error *err)
{
  sizes z;
  n->cost_ns = 2e-3 * (double)p->batch * (double)p->m * (double)p->n * (double)p->k +
               0.01 * (double)(n->inputs[p->a].bytes + n->inputs[p->b].bytes + n->outputs[0].bytes);
  if (n->outputs[0].count == 0) return TN_OK;
  const tile t = choose(n, p);
  tn_status st = fill_sizes(n, p, t, &z, err);
  if (st != TN_OK) return st;
  if (launch_clblast(n, p, &z)) return TN_OK;
  if (has_few_rows(p)) {
    launch_rows(n, p, &z);
    return TN_OK;
  }
  const gpu_element *e = gpu_element_of(n->outputs[0].dtype);
  const size_t wide = e != NULL && e->bits > 32 ? 8 : 4;
  size_t parts = z.splits > 1 ? gpu_scratch(n, (size_t)(p->batch * p->m * p->n) * (size_t)z.splits * wide) : 0;
  launch_tiles(n, p, t, &z, parts);
  if (z.splits > 1) launch_sum(n, p, &z, parts);
  return TN_OK;
}
