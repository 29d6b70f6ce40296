/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes of texts that mean the same in every process and on every machine: models are trained with them. */
#ifndef TN_OPS_STRING_FINGERPRINT_H
#define TN_OPS_STRING_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

/* FarmHash's Fingerprint64. */
uint64_t tn__fingerprint64(const void *data, size_t size);
/* MurmurHash64A with the seed that TensorFlow's first string hashes have. */
uint64_t tn__murmur64(const void *data, size_t size);
/* SipHash-2-4. */
uint64_t tn__siphash(const uint64_t key[2], const void *data, size_t size);

#endif
