/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors as text, for messages of ops that show what they were given. */
#ifndef TN_OPS_SUPPORT_SUMMARY_H
#define TN_OPS_SUPPORT_SUMMARY_H

#include <core/base/text.h>
#include <tenon/op.h>

/* Appends the first `most` elements, all when it is negative: "[1 2 3...]", "[[1 2][3...]...]", "[7]" for a scalar. */
void tn__summarize(tn__text *to, const tn_view *view, int64_t most);

#endif
