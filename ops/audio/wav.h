/* SPDX-License-Identifier: Apache-2.0 */
/* RIFF/WAVE files with 16 bits per sample. */
#ifndef TN_OPS_AUDIO_WAV_H
#define TN_OPS_AUDIO_WAV_H

#include <stdint.h>
#include <tenon/types.h>

typedef struct tn__wav {
  int64_t samples; /* of each channel */
  int32_t channels, rate;
  const uint8_t *data; /* points into the file: 16 bits, little-endian, channels interleaved */
} tn__wav;

/* Parses the headers. TN_INVALID_ARGUMENT if the file is malformed; the error names the offset. */
tn_status tn__wav_read(const void *file, size_t size, tn__wav *wav, tn_error *err);

#define TN__WAV_HEADER 44
/* Writes the header of a file with `bytes` of data. */
void tn__wav_header(uint8_t *to, uint32_t channels, uint32_t rate, uint32_t bytes);

#endif
