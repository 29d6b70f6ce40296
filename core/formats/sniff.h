/* SPDX-License-Identifier: Apache-2.0 */
/* Names the format of a file that is no GraphDef, so that an error can say which file was given. */
#ifndef TN_CORE_FORMATS_SNIFF_H
#define TN_CORE_FORMATS_SNIFF_H

#include <core/base/text.h>

typedef struct tn__kind {
  const char *name;   /* "a NumPy array (.npy)" */
  const char *advice; /* a remedy, NULL: none is known */
} tn__kind;

/* The kind of some bytes, by signatures and structure; path, which may be NULL, decides where the bytes have
 * neither. NULL: they look like a GraphDef, or like none of the kinds that are known. as_text: they were read as
 * text, and the place of the error in it says more than that they are text. Reads the head, the end and the tags of
 * fields. */
const tn__kind *tn__sniff(tn__slice bytes, const char *path, bool as_text);
/* The kind of a folder, by the names in it; NULL also for what is no folder. */
const tn__kind *tn__sniff_folder(const char *path);

#endif
