/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors as texts for people, as TensorFlow's StringFormat and PrintV2 give them: "[[0 1 ... 8 9]\n [...". */
#ifndef TN_OPS_SUPPORT_STRING_SUMMARY_H
#define TN_OPS_SUPPORT_STRING_SUMMARY_H

#include <core/base/text.h>
#include <tenon/op.h>

/* Appends a tensor: of each dimension the first and the last `most` entries; all when it is negative. What cannot be
 * kept shows as t->failed. */
void tn__summarise(tn__text *t, const tn_view *view, int64_t most);

#endif
