/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the targets that read tables: a table's entries from a fuzzer's bytes, so that all checksums are right. */
#ifndef TENON_FUZZ_TABLE_H
#define TENON_FUZZ_TABLE_H

#include <core/formats/table/table.h>

/* Each entry is the sizes of key and value, two bytes each, and their bytes. Those that do not ascend are left out. */
static inline void fuzz_add_entries(tn__table_writer *w, const uint8_t *p, const uint8_t *end)
{
  while (end - p >= 4) {
    size_t key = p[0] | (size_t)p[1] << 8, value = p[2] | (size_t)p[3] << 8;
    p += 4;
    if (key > (size_t)(end - p)) key = (size_t)(end - p);
    if (value > (size_t)(end - p) - key) value = (size_t)(end - p) - key;
    const char *text = (const char *)p;
    tn__table_writer_add(w, (tn__slice){ text, key }, (tn__slice){ text + key, value }, NULL);
    p += key + value;
  }
}

#endif
