/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/rewrite/steps.h>

bool tn__steps_from_one(const tn_rewriter *rw, const uint32_t *x, size_t n)
{
  static const char *const sources[] = { "Unpack", "Split", "_TnLSTMLayer", "_TnGRULayer" };
  uint32_t from = tn_rewrite_producer(rw, x[0], NULL);
  bool found = false, same = true;
  for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) found = found || tn_rewrite_is(rw, from, sources[i]);
  for (size_t i = 1; i < n && (found || same); i++) {
    same = same && x[i] == x[0];
    found = found && tn_rewrite_producer(rw, x[i], NULL) == from;
  }
  return found || same;
}

bool tn__steps_same_rows(const tn_rewriter *rw, const uint32_t *x, size_t n)
{
  int64_t first[TN_MAX_RANK], dims[TN_MAX_RANK];
  if (tn_rewrite_shape(rw, x[0], first) < 1) return false;
  for (size_t i = 1; i < n; i++)
    if (tn_rewrite_shape(rw, x[i], dims) < 1 || dims[0] < 0 || dims[0] != first[0]) return false;
  return true;
}

#define MAX_LAYERS 64

tn_status tn__steps_fuse_below(tn_rewriter *rw, uint32_t x, int depth, tn_error *err)
{
  uint32_t node = tn_rewrite_producer(rw, x, NULL);
  if (node == TN_NO_NODE || depth == MAX_LAYERS) return TN_OK;
  if (tn_rewrite_is(rw, node, "_TnLSTMCell")) return tn__fuse_lstm_layer(rw, node, depth + 1, err);
  return tn_rewrite_is(rw, node, "_TnGRULayer") ? tn__fuse_gru_layer(rw, node, depth + 1, err) : TN_OK;
}
