/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors as text, for ops that print their inputs. Allocation failures set to->failed. */
#ifndef TN_OPS_STRING_SUMMARY_H
#define TN_OPS_STRING_SUMMARY_H

#include <core/base/text.h>
#include <tenon/op.h>

/* Appends the first `most` elements, or all if negative: "[1 2 3...]", "[[1 2][3...]...]", "[7]"
 * for a scalar. */
void tn__summarize_first(tn__text *to, const tn_view *view, int64_t most);

/* Appends the first and the last `most` entries of each dimension, or all if negative, as
 * StringFormat does: "[[0 1 ... 8 9]\n [...". Texts are quoted. */
void tn__summarize_ends(tn__text *to, const tn_view *view, int64_t most);

#endif
