/* SPDX-License-Identifier: Apache-2.0 */
/* The script of each character, a number as in ICU's UScriptCode. */
#ifndef TN_OPS_STRING_UNICODE_UNICODE_SCRIPT_TABLE_H
#define TN_OPS_STRING_UNICODE_UNICODE_SCRIPT_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define TN__SCRIPT_UNKNOWN 103 /* of characters that are in no range */

typedef struct tn__script_range {
  uint32_t first, last;
  uint8_t script;
} tn__script_range;

/* Ascending. */
extern const tn__script_range tn__script_ranges[];
extern const size_t tn__script_ranges_n;

#endif
