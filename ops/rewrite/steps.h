/* SPDX-License-Identifier: Apache-2.0 */
/* Checks on the inputs of consecutive steps, for rewrites that join them. */
#ifndef TN_OPS_REWRITE_STEPS_H
#define TN_OPS_REWRITE_STEPS_H

#include <stdbool.h>
#include <tenon/rewrite.h>

/* True if all inputs are available as soon as the first one is, and have the same shape: they are the same value,
 * or outputs of one node that splits a tensor or is a layer itself. */
bool tn__steps_from_one(const tn_rewriter *rw, const uint32_t *x, size_t n);
/* True if all are known to have the same number of rows. */
bool tn__steps_same_rows(const tn_rewriter *rw, const uint32_t *x, size_t n);

/* Tries to join the steps that end with the producer of x into a layer, so that its outputs come from one node
 * before the steps that read them are joined. This is needed because a rewrite is offered nodes from the end, hence
 * the upper layer first. depth: number of layers above. */
tn_status tn__steps_fuse_below(tn_rewriter *rw, uint32_t x, int depth, tn_error *err);
tn_status tn__fuse_lstm_layer(tn_rewriter *rw, uint32_t node, int depth, tn_error *err);
tn_status tn__fuse_gru_layer(tn_rewriter *rw, uint32_t node, int depth, tn_error *err);

#endif
