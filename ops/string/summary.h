/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors as text, for ops that show what they were given. What cannot be kept shows as to->failed. */
#ifndef TN_OPS_STRING_SUMMARY_H
#define TN_OPS_STRING_SUMMARY_H

#include <core/base/text.h>
#include <tenon/op.h>

/* Appends the first `most` elements, all when it is negative: "[1 2 3...]", "[[1 2][3...]...]", "[7]" for a scalar. */
void tn__summarize_first(tn__text *to, const tn_view *view, int64_t most);

/* Appends the first and the last `most` entries of each dimension, all when it is negative, as StringFormat has them:
 * "[[0 1 ... 8 9]\n [...". Texts are in quotes. */
void tn__summarize_ends(tn__text *to, const tn_view *view, int64_t most);

#endif
