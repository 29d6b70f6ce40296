/* SPDX-License-Identifier: Apache-2.0 */
/* Lengths in a file are untrusted: a chunk ends with the file at the latest, and samples must be
 * present. As in TensorFlow, chunks of odd length have no padding byte. */
#include <core/base/text.h>
#include <ops/audio/wav.h>
#include <string.h>

typedef struct reader {
  const uint8_t *data;
  size_t size, at;
  tn_error *err;
} reader;

static tn_status too_short(const reader *r, size_t wanted)
{
  return tn_error_set(r->err, TN_INVALID_ARGUMENT, "WAV: the file ends at byte %zu, wanted %zu bytes at %zu", r->size,
                      wanted, r->at);
}

/* Reads a number of `bytes` bytes. */
static tn_status read_number(reader *r, size_t bytes, uint32_t *out)
{
  uint32_t n = 0;
  if (r->size - r->at < bytes) return too_short(r, bytes);
  for (size_t i = bytes; i-- > 0;) n = n << 8 | r->data[r->at + i];
  r->at += bytes;
  *out = n;
  return TN_OK;
}

static tn_status read_name(reader *r, char name[5])
{
  if (r->size - r->at < 4) return too_short(r, 4);
  for (int i = 0; i < 4; i++) {
    uint8_t c = r->data[r->at++];
    name[i] = (char)(c >= 32 && c < 127 ? c : '?');
  }
  name[4] = 0;
  return TN_OK;
}

static tn_status want_name(reader *r, const char *wanted)
{
  char name[5];
  tn_status st = read_name(r, name);
  if (st != TN_OK || strcmp(name, wanted) == 0) return st;
  return tn_error_set(r->err, TN_INVALID_ARGUMENT, "WAV: found '%s' at byte %zu, wanted '%s'", name, r->at - 4, wanted);
}

static tn_status skip_chunk(reader *r)
{
  uint32_t size = 0;
  tn_status st = read_number(r, 4, &size);
  if (st == TN_OK) r->at = r->size - r->at < size ? r->size : r->at + size;
  return st;
}

/* Before the format chunk only the chunks that studio software writes are accepted. */
static tn_status find_format(reader *r)
{
  static const char *const others[] = { "JUNK", "bext", "iXML", "qlty", "mext", "levl", "link", "axml" };
  for (;;) {
    char name[5];
    bool known = false;
    tn_status st = read_name(r, name);
    if (st != TN_OK || strcmp(name, "fmt ") == 0) return st;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) known = known || strcmp(name, others[i]) == 0;
    if (!known)
      return tn_error_set(r->err, TN_INVALID_ARGUMENT, "WAV: found '%s' at byte %zu, wanted 'fmt '", name, r->at - 4);
    st = skip_chunk(r);
    if (st != TN_OK) return st;
  }
}

static tn_status want_number(const reader *r, const char *what, uint64_t found, uint64_t wanted)
{
  if (found == wanted) return TN_OK;
  return tn_error_set(r->err, TN_INVALID_ARGUMENT, "WAV: %s is %llu, wanted %llu", what, (unsigned long long)found,
                      (unsigned long long)wanted);
}

static tn_status read_format(reader *r, tn__wav *wav)
{
  uint32_t size = 0, format = 0, channels = 0, rate = 0, second = 0, sample = 0, bits = 0;
  tn_status st = read_number(r, 4, &size);
  if (st == TN_OK && size != 16 && size != 18)
    st = tn_error_set(r->err, TN_INVALID_ARGUMENT, "WAV: the format has %u bytes, wanted 16 or 18", (unsigned)size);
  if (st == TN_OK) st = read_number(r, 2, &format);
  if (st == TN_OK) st = want_number(r, "the kind of audio", format, 1);
  if (st == TN_OK) st = read_number(r, 2, &channels);
  if (st == TN_OK && channels == 0) st = tn_error_set(r->err, TN_INVALID_ARGUMENT, "WAV: there are no channels");
  if (st == TN_OK) st = read_number(r, 4, &rate);
  if (st == TN_OK) st = read_number(r, 4, &second);
  if (st == TN_OK) st = read_number(r, 2, &sample);
  if (st == TN_OK) st = read_number(r, 2, &bits);
  if (st == TN_OK) st = want_number(r, "the number of bits of a sample", bits, 16);
  if (st == TN_OK) st = want_number(r, "the number of bytes of a sample", sample, 2 * channels);
  if (st == TN_OK) st = want_number(r, "the number of bytes of a second", second, (uint64_t)sample * rate);
  if (st == TN_OK && size == 18) st = read_number(r, 2, &format);
  if (st == TN_OK && rate > INT32_MAX)
    st = tn_error_set(r->err, TN_INVALID_ARGUMENT, "WAV: %u samples a second, wanted below 2^31", (unsigned)rate);
  wav->channels = (int32_t)channels;
  wav->rate = (int32_t)rate;
  return st;
}

static tn_status read_data(reader *r, tn__wav *wav)
{
  uint32_t size = 0;
  tn_status st = read_number(r, 4, &size);
  if (st != TN_OK) return st;
  if (wav->data != NULL)
    return tn_error_set(r->err, TN_INVALID_ARGUMENT, "WAV: a second chunk 'data' at byte %zu", r->at - 8);
  if (size > INT32_MAX)
    return tn_error_set(r->err, TN_INVALID_ARGUMENT, "WAV: %u bytes of data, wanted below 2^31", (unsigned)size);
  wav->samples = size / (2 * (uint32_t)wav->channels);
  size_t bytes = (size_t)wav->samples * 2 * (size_t)wav->channels;
  if (r->size - r->at < bytes) return too_short(r, bytes);
  wav->data = r->data + r->at;
  r->at += bytes;
  return TN_OK;
}

tn_status tn__wav_read(const void *file, size_t size, tn__wav *wav, tn_error *err)
{
  reader r = { file, size, 0, err };
  uint32_t all = 0;
  *wav = (tn__wav){ 0 };
  tn_status st = want_name(&r, "RIFF");
  if (st == TN_OK) st = read_number(&r, 4, &all); /* size of the file; ignored, as streams write anything */
  if (st == TN_OK) st = want_name(&r, "WAVE");
  if (st == TN_OK) st = find_format(&r);
  if (st == TN_OK) st = read_format(&r, wav);
  while (st == TN_OK && r.at < r.size) {
    char name[5];
    st = read_name(&r, name);
    if (st == TN_OK) st = strcmp(name, "data") == 0 ? read_data(&r, wav) : skip_chunk(&r);
  }
  if (st == TN_OK && wav->data == NULL) st = tn_error_set(err, TN_INVALID_ARGUMENT, "WAV: there is no chunk 'data'");
  return st;
}

static uint8_t *put(uint8_t *to, uint32_t n, int bytes)
{
  for (int i = 0; i < bytes; i++) to[i] = (uint8_t)(n >> 8 * i);
  return to + bytes;
}

static uint8_t *put_name(uint8_t *to, const char *name)
{
  memcpy(to, name, 4);
  return to + 4;
}

void tn__wav_header(uint8_t *to, uint32_t channels, uint32_t rate, uint32_t bytes)
{
  to = put(put_name(to, "RIFF"), bytes + TN__WAV_HEADER - 8, 4);
  to = put(put_name(put_name(to, "WAVE"), "fmt "), 16, 4);
  to = put(put(to, 1, 2), channels, 2);
  to = put(put(to, rate, 4), rate * channels * 2, 4);
  to = put(put(to, channels * 2, 2), 16, 2);
  put(put_name(to, "data"), bytes, 4);
}
