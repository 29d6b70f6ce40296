/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes of texts that are the same in every process and on every machine: trained models depend on
 * them. */
#ifndef TN_OPS_STRING_HASH_FINGERPRINT_H
#define TN_OPS_STRING_HASH_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

/* FarmHash's Fingerprint64. */
uint64_t tn__fingerprint64(const void *data, size_t size);
/* FarmHash's Fingerprint128: the low half, the high half. */
void tn__fingerprint128(const void *data, size_t size, uint64_t out[2]);
/* MurmurHash64A with the seed of TensorFlow's original string hash. */
uint64_t tn__murmur64(const void *data, size_t size);
/* SipHash-2-4. */
uint64_t tn__siphash(const uint64_t key[2], const void *data, size_t size);

#endif
