/* SPDX-License-Identifier: Apache-2.0 */
/* Walks that move elements: dimensions are merged, and the kernel that fits is launched. */
#include "ops/kernel/move.h"

#define TILE 16
#define LEAST 8 /* rows and columns for which a tile is worth it */

void gpu_move_add(gpu_move *m, int64_t size, int64_t from, int64_t to)
{
  int32_t d = m->rank++;
  m->dims[d] = size;
  m->from[d] = from;
  m->to[d] = to;
}

int64_t gpu_int_at(const gpu_value *v, int64_t k)
{
  switch (v->dtype) {
  case TN_INT64: return ((const int64_t *)v->host)[k];
  case TN_INT16: return ((const int16_t *)v->host)[k];
  default: return ((const int32_t *)v->host)[k];
  }
}

bool gpu_strides(const int64_t *dims, int32_t rank, int64_t *strides)
{
  int64_t stride = 1;
  if (rank > GPU_MOVE_DIMS) return false;
  for (int32_t d = rank - 1; d >= 0; d--) {
    strides[d] = stride;
    stride *= dims[d];
  }
  return true;
}

/* Dimensions that are one on both sides become one; those of size 1 go. */
static void merge(gpu_move *m)
{
  int32_t n = 0;
  for (int32_t d = 0; d < m->rank; d++) {
    if (m->dims[d] == 1) continue;
    bool joins = n > 0 && m->from[n - 1] == m->from[d] * m->dims[d] && m->to[n - 1] == m->to[d] * m->dims[d];
    int32_t at = joins ? n - 1 : n++;
    m->dims[at] = joins ? m->dims[at] * m->dims[d] : m->dims[d];
    m->from[at] = m->from[d];
    m->to[at] = m->to[d];
  }
  if (n == 0) {
    m->dims[0] = 1;
    m->from[0] = m->to[0] = 1;
    n = 1;
  }
  m->rank = n;
}

/* Whether the last two dimensions are a transposed matrix, with many such matrices one after the other. */
static bool is_transpose(const gpu_move *m)
{
  int32_t r = m->rank;
  if (r != 2 && r != 3) return false;
  int64_t columns = m->dims[r - 2], rows = m->dims[r - 1]; /* of the input */
  if (m->to[r - 1] != 1 || m->to[r - 2] != rows || m->from[r - 2] != 1 || m->from[r - 1] != columns) return false;
  if (rows < LEAST || columns < LEAST) return false;
  return r == 2 || (m->dims[0] <= 65535 && m->to[0] == rows * columns && m->from[0] == rows * columns);
}

static void launch_transpose(gpu_node *n, const gpu_move *m, const gpu_element *t, int64_t places, uint32_t input,
                             uint32_t output)
{
  int32_t r = m->rank;
  int64_t columns = m->dims[r - 2], rows = m->dims[r - 1], local[3] = { TILE, 8, 1 };
  int64_t global[3] = { (columns + TILE - 1) / TILE * TILE, (rows + TILE - 1) / TILE * 8, r == 3 ? m->dims[0] : 1 };
  gpu_launch *l = gpu_launch_file(n, "move", "transpose");
  gpu_define(l, "T", "%s", t->stored);
  gpu_define(l, "R", "1");
  gpu_define(l, "TILE", "%d", TILE);
  gpu_define_places(l, places);
  gpu_arg_input(l, input);
  gpu_arg_output(l, output);
  gpu_arg_place(l, places, rows);
  gpu_arg_place(l, places, columns);
  gpu_arg_long(l, m->from_at);
  gpu_arg_long(l, m->to_at);
  gpu_range_3d(l, global, local);
}

static bool of_fours(const gpu_move *m, const gpu_element *t)
{
  int32_t last = m->rank - 1;
  return t->kind != GPU_BYTES && m->from[last] == 1 && m->to[last] == 1 && m->dims[last] % 4 == 0;
}

static void launch_walk(gpu_node *n, gpu_move *m, const gpu_element *t, int64_t count, int64_t places, uint32_t input,
                        uint32_t output)
{
  bool fours = of_fours(m, t);
  gpu_launch *l = gpu_launch_file(n, "move", "move");
  gpu_define(l, "T", "%s", t->stored);
  gpu_define(l, "R", "%d", (int)m->rank);
  if (fours) gpu_define(l, "FOURS", "1");
  gpu_define_places(l, places);
  gpu_arg_input(l, input);
  gpu_arg_output(l, output);
  if (fours) {
    m->dims[m->rank - 1] /= 4;
    m->from[m->rank - 1] = m->to[m->rank - 1] = 4;
    count /= 4;
  }
  cl_long w[3 * GPU_MOVE_DIMS + 2];
  size_t r = (size_t)m->rank;
  for (size_t d = 0; d < r; d++) {
    w[d] = m->dims[d];
    w[r + d] = m->from[d];
    w[2 * r + d] = m->to[d];
  }
  w[3 * r] = m->from_at;
  w[3 * r + 1] = m->to_at;
  gpu_arg_place(l, places, count);
  gpu_arg_bytes(l, w, (3 * r + 2) * sizeof *w);
  gpu_range_1d(l, count, 64);
}

void gpu_clear(gpu_node *n, uint32_t output)
{
  const gpu_value *out = &n->outputs[output];
  gpu_launch *l = gpu_launch_file(n, "move", "clear");
  gpu_define(l, "T", "%s", gpu_element_of(gpu_moved_as(out->dtype))->stored);
  gpu_define(l, "R", "1");
  gpu_define_places(l, out->count);
  gpu_arg_output(l, output);
  gpu_arg_place(l, out->count, out->count);
  gpu_range_1d(l, out->count, 64);
}

void gpu_move_launch(gpu_node *n, gpu_move *m, uint32_t input, uint32_t output)
{
  int64_t count = 1, places = n->inputs[input].count > n->outputs[output].count ? n->inputs[input].count
                                                                                : n->outputs[output].count;
  const gpu_element *t = gpu_element_of(gpu_moved_as(n->outputs[output].dtype));
  for (int32_t d = 0; d < m->rank; d++) count *= m->dims[d];
  if (count == 0 || t == NULL) return;
  merge(m);
  if (is_transpose(m)) launch_transpose(n, m, t, places, input, output);
  else launch_walk(n, m, t, count, places, input, output);
}
