/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in texts, as TensorFlow reads them: white space around them, inf and nan, hexadecimal floats. No locale. */
#ifndef TN_OPS_STRING_STRING_NUMBER_H
#define TN_OPS_STRING_STRING_NUMBER_H

#include <core/base/text.h>
#include <tenon/op.h>

/* Blanks, tabs and line ends of ASCII at both ends are left out. */
tn__slice tn__text_strip(tn__slice text);

/* The whole text as one number of this dtype (float, double, int32, int64, uint32, uint64), rounded once; too large a
 * float is infinite. False: it is none, or does not fit. */
bool tn__text_to_number(tn_dtype dtype, tn__slice text, void *out);

#endif
