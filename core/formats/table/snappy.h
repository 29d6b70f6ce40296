/* SPDX-License-Identifier: Apache-2.0 */
/* Snappy, the compression of a table's blocks. libsnappy is loaded with the first compressed block: few files have one,
 * and the library brings the C++ library with it. */
#ifndef TN_CORE_FORMATS_TABLE_SNAPPY_H
#define TN_CORE_FORMATS_TABLE_SNAPPY_H

#include <core/base/text.h>

/* libsnappy's snappy_uncompress: 0 is success. On entry *unpacked_size is the room at `unpacked`. */
typedef int tn__snappy_uncompress(const char *packed, size_t size, char *unpacked, size_t *unpacked_size);

/* Finds the function. The library is never unloaded. TN_UNAVAILABLE: libsnappy is not installed. TN_UNIMPLEMENTED: a
 * build without it, or linked statically. `path` is for the message. */
tn_status tn__snappy_load(const char *path, tn__snappy_uncompress **out, tn_error *err);

/* The unpacked size, from the first bytes of what was packed. False: they are no size, or one that so few bytes cannot
 * have. */
bool tn__snappy_size(tn__slice packed, size_t *size);

#endif
