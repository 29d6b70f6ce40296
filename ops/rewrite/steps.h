/* SPDX-License-Identifier: Apache-2.0 */
/* What rewrites of steps in a row ask about their inputs. */
#ifndef TN_OPS_REWRITE_STEPS_H
#define TN_OPS_REWRITE_STEPS_H

#include <stdbool.h>
#include <tenon/rewrite.h>

/* All inputs are there as soon as the first one is, and have one shape: one value, or outputs of a node that takes a tensor
 * apart or is a layer itself. */
bool tn__steps_from_one(const tn_rewriter *rw, const uint32_t *x, size_t n);
/* All are known to have the same number of rows. */
bool tn__steps_same_rows(const tn_rewriter *rw, const uint32_t *x, size_t n);

/* Tries to make a layer of the steps that end with the one that makes x, so that its outputs come from one node, before those
 * that read it become one: who is offered nodes from the end meets the upper layer first. depth: of layers above. */
tn_status tn__steps_fuse_below(tn_rewriter *rw, uint32_t x, int depth, tn_error *err);
tn_status tn__fuse_lstm_layer(tn_rewriter *rw, uint32_t node, int depth, tn_error *err);
tn_status tn__fuse_gru_layer(tn_rewriter *rw, uint32_t node, int depth, tn_error *err);

#endif
