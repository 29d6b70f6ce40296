/* SPDX-License-Identifier: Apache-2.0 */
/* Packing weights once into the layout that a primitive needs. Blocked float layouts are written from front to back
 * by a loop here: oneDNN's reorder is slower, and a primitive that must be made for each shape. */
#include "onednn.h"

#include <string.h>

typedef struct packing {
  const dnnl_memory_desc_t *from, *to;
} packing;

/* ---- by oneDNN ---- */

static tn_status reorder(const packing *k, void *from, void *to, tn_error *err)
{
  dnnl_engine_t engine = dnn_engine(err);
  dnnl_stream_t stream = dnn_stream(err);
  dnnl_primitive_t primitive = NULL;
  dnnl_memory_t a = NULL, b = NULL;
  if (engine == NULL || stream == NULL) return TN_INTERNAL;
  tn_status made = dnn_reorder_create(k->from, k->to, &primitive, err);
  if (made != TN_OK) return made;
  int before = dnn_one_thread();
  dnnl_status_t st = dnnl_memory_create(&a, k->from, engine, from);
  if (st == dnnl_success) st = dnnl_memory_create(&b, k->to, engine, to);
  const dnnl_exec_arg_t args[] = { { DNNL_ARG_FROM, a }, { DNNL_ARG_TO, b } };
  if (st == dnnl_success) st = dnnl_primitive_execute(primitive, stream, 2, args);
  if (st == dnnl_success) st = dnnl_stream_wait(stream);
  dnn_restore_threads(before);
  if (a != NULL) dnnl_memory_destroy(a);
  if (b != NULL) dnnl_memory_destroy(b);
  dnnl_primitive_destroy(primitive);
  return dnn_status(st, "reorder", err);
}

/* ---- by our own loop ---- */

/* A loop of the walk over the layout: `n` steps of `out` elements there, each `by` further along dimension `dim`. */
typedef struct walk_loop {
  int64_t n, out, by;
  int dim;
} walk_loop;

typedef struct walk {
  walk_loop loops[2 * DNNL_MAX_NDIMS];
  int n_loops;
  int64_t run; /* contiguous elements in both layouts */
  int run_dim;
} walk;

/* Sets the loops of a layout, outermost first: over its blocks, then within a block. False: its runs are not contiguous
 * in the source. */
static bool walk_of(const dnnl_memory_desc_t *from, const dnnl_memory_desc_t *to, walk *w)
{
  const dnnl_blocking_desc_t *b = &to->format_desc.blocking;
  int64_t block[DNNL_MAX_NDIMS], inside = 1;
  int nb = b->inner_nblks;
  if (to->data_type != dnnl_f32 || nb < 1 || from->format_desc.blocking.inner_nblks != 0) return false;
  for (int d = 0; d < to->ndims; d++) block[d] = 1;
  for (int i = 0; i < nb; i++) block[b->inner_idxs[i]] *= b->inner_blks[i];
  w->n_loops = 0;
  w->run = b->inner_blks[nb - 1];
  w->run_dim = (int)b->inner_idxs[nb - 1];
  if (from->format_desc.blocking.strides[w->run_dim] != 1) return false;
  for (int d = 0; d < to->ndims; d++) { /* by falling strides */
    walk_loop l = { to->padded_dims[d] / block[d], b->strides[d], block[d], d };
    int at = w->n_loops++;
    for (; at > 0 && w->loops[at - 1].out < l.out; at--) w->loops[at] = w->loops[at - 1];
    w->loops[at] = l;
  }
  for (int i = nb - 1; i >= 0; inside *= b->inner_blks[i], i--) {
    int64_t by = 1;
    for (int k = i + 1; k < nb; k++)
      if (b->inner_idxs[k] == b->inner_idxs[i]) by *= b->inner_blks[k];
    if (i < nb - 1) w->loops[w->n_loops + i] = (walk_loop){ b->inner_blks[i], inside, by, (int)b->inner_idxs[i] };
  }
  w->n_loops += nb - 1;
  return true;
}

/* The offset of a run in the source; false if it is outside. */
static bool place_of(const packing *k, const int64_t *at, int64_t *place)
{
  *place = 0;
  for (int d = 0; d < k->from->ndims; d++) {
    if (at[d] >= k->from->dims[d]) return false;
    *place += at[d] * k->from->format_desc.blocking.strides[d];
  }
  return true;
}

/* Copies a run of which the source has n elements; the others are padding and become 0. */
static void copy_run(const float *from, float *to, int64_t n, int64_t run)
{
  if (n == 16 && run == 16) {
    memcpy(to, from, 16 * sizeof *to);
    return;
  }
  for (int64_t i = 0; i < n; i++) to[i] = from[i];
  for (int64_t i = n < 0 ? 0 : n; i < run; i++) to[i] = 0;
}

/* The innermost loop, whose runs are at equal distances. */
static void copy_runs(const packing *k, const walk *w, const int64_t *at, const float *from, float *to)
{
  const walk_loop *l = &w->loops[w->n_loops - 1];
  int64_t place, step = l->by * k->from->format_desc.blocking.strides[l->dim];
  int64_t left = k->from->dims[w->run_dim] - at[w->run_dim], there = k->from->dims[l->dim] - at[l->dim];
  bool inside = place_of(k, at, &place);
  for (int64_t i = 0; i < l->n; i++, there -= l->by) {
    int64_t n = inside && there > 0 ? left : 0;
    copy_run(from + (n > 0 ? place + i * step : 0), to + i * l->out, n < w->run ? n : w->run, w->run);
    if (l->dim == w->run_dim) left -= l->by;
  }
}

static void copy_blocks(const packing *k, const walk *w, int depth, int64_t *at, const float *from, float *to)
{
  const walk_loop *l = &w->loops[depth];
  if (depth == w->n_loops - 1) {
    copy_runs(k, w, at, from, to);
    return;
  }
  int64_t before = at[l->dim];
  for (int64_t i = 0; i < l->n; i++, at[l->dim] += l->by) copy_blocks(k, w, depth + 1, at, from, to + i * l->out);
  at[l->dim] = before;
}

/* ---- for a plan ---- */

static tn_status pack(void *user, const tn_view *from, void *to, tn_error *err)
{
  const packing *k = user;
  int64_t at[DNNL_MAX_NDIMS] = { 0 };
  walk w;
  if (!walk_of(k->from, k->to, &w)) return reorder(k, from->data, to, err);
  copy_blocks(k, &w, 0, at, from->data, to);
  return TN_OK;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
  h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
  return h ^ h >> 29;
}

/* Hashes all fields of a layout. */
static uint64_t key_of(const dnnl_memory_desc_t *md, uint64_t h)
{
  h = mix(h, (uint64_t)md->ndims * 64 + (uint64_t)md->data_type);
  for (int i = 0; i < md->ndims; i++) {
    h = mix(mix(h, (uint64_t)md->dims[i]), (uint64_t)md->padded_dims[i]);
    h = mix(h, (uint64_t)md->format_desc.blocking.strides[i]);
  }
  for (int i = 0; i < md->format_desc.blocking.inner_nblks; i++)
    h = mix(mix(h, (uint64_t)md->format_desc.blocking.inner_blks[i]), (uint64_t)md->format_desc.blocking.inner_idxs[i]);
  return mix(h, md->extra.flags);
}

tn_status dnn_pack(tn_prepare_ctx *ctx, uint32_t index, const dnnl_memory_desc_t *from, const dnnl_memory_desc_t *to,
                   const void **packed, tn_error *err)
{
  packing k = { from, to };
  return tn_prepare_pack(ctx, index, key_of(to, key_of(from, 1)), dnnl_memory_desc_get_size(to), pack, &k, packed, err);
}
