/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises the format of a file that is not a GraphDef, so that an error can say what was given instead. */
#ifndef TN_CORE_FORMATS_SNIFF_H
#define TN_CORE_FORMATS_SNIFF_H

#include <core/base/text.h>

typedef struct tn__kind {
  const char *name;   /* "a NumPy array (.npy)" */
  const char *advice; /* a remedy, NULL = none is known */
} tn__kind;

/* Returns the kind of some bytes, by signature and structure, else by `path`, which may be NULL. NULL: they look like a
 * GraphDef, or like none of the known kinds. as_text: they were parsed as text, so "text" is not an answer: the
 * position of the parser's error says more. Reads only the head, the end and the tags of fields. */
const tn__kind *tn__sniff(tn__slice bytes, const char *path, bool as_text);
/* Returns the kind of a directory, by the names in it. NULL: unknown, or not a directory. */
const tn__kind *tn__sniff_folder(const char *path);

#endif
