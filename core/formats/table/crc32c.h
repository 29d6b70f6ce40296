/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (Castagnoli), by the processor's instruction where it has one. */
#ifndef TN_CORE_FORMATS_TABLE_CRC32C_H
#define TN_CORE_FORMATS_TABLE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The CRC of the bytes that gave `crc` (0: none) followed by these. */
uint32_t tn__crc32c(uint32_t crc, const void *data, size_t size);
/* The CRC of two runs of bytes one after another, from the CRC of each; size is that of the second. */
uint32_t tn__crc32c_join(uint32_t first, uint32_t second, uint64_t size);
/* tn__crc32c without the instruction, for tests. */
uint32_t tn__crc32c_by_tables(uint32_t crc, const void *data, size_t size);

/* A CRC as it is stored: rotated and offset, so that the CRC of bytes that contain a CRC is no trivial one. */
static inline uint32_t tn__crc32c_mask(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; }
static inline uint32_t tn__crc32c_unmask(uint32_t masked)
{
  uint32_t crc = masked - 0xa282ead8u;
  return crc >> 17 | crc << 15;
}

#endif
