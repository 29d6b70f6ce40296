/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in texts, as TensorFlow parses them: surrounding white space, inf and nan, hexadecimal
 * floats. Independent of the locale. */
#ifndef TN_OPS_STRING_STRING_NUMBER_H
#define TN_OPS_STRING_STRING_NUMBER_H

#include <core/base/text.h>
#include <tenon/op.h>

/* Removes ASCII white space (blanks, tabs, line ends) from both ends. */
tn__slice tn__text_strip(tn__slice text);

/* Parses the whole text as a number of this dtype (float, double, int32, int64, uint32, uint64),
 * rounded once; a float that is too large becomes infinite. Returns false if the text is no number,
 * or an integer that does not fit. */
bool tn__text_to_number(tn_dtype dtype, tn__slice text, void *out);

#endif
