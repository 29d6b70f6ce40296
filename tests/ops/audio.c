/* SPDX-License-Identifier: Apache-2.0 */
/* Sound: files, spectra, and features computed from them. */
#include <math.h>
#include <ops/audio/wav.h>
#include <ops/audio/fft.h>
#include <ops/kernel/elements/vectors.h>

#include "conformance/support/op_kit.h"

#define FLOAT(key, value) "attr { key: '" key "' value { f: " value " } }"
#define BOOL(key, value) "attr { key: '" key "' value { b: " value " } }"
#define PI 3.14159265358979323846

static tn_status try_run(ts *t, const char *feed, tn_tensor *in, const char *const *fetches, tn_tensor **out, size_t n)
{
  for (size_t i = 0; i < n; i++) out[i] = NULL;
  tn_error_clear(&t->err);
  return tn_session_run(t->session, NULL, &feed, &in, in != NULL, fetches, out, n, NULL, 0, NULL, &t->err);
}

static tn_tensor *text(const void *data, size_t n)
{
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_from_strings(NULL, 0, (const char *const[]){ data }, &n, &t, NULL), NULL);
  return t;
}

/* Samples [n, channels] of a tone with `turns` periods in a thousand samples. */
static tn_tensor *tone(int64_t n, int64_t channels, double turns)
{
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, (int64_t[]){ n, channels }, 2, &t, NULL), NULL);
  float *x = tn_tensor_data(t);
  for (int64_t i = 0; i < n * channels; i++)
    x[i] = (float)(0.9 * sin(2 * PI * turns * (double)(i % channels + 1) * (double)(i / channels) / 1000));
  return t;
}

/* ---- Fourier transforms ---- */

static void fft__powers_are_those_of_the_sums(void)
{
  for (int64_t n = 2; n <= 256; n *= 2)
    for (int kind = 0; kind < TN__VECTORS; kind++) {
      tn__fft f;
      static _Alignas(64) double block[256 * TN__FFT_LINES], powers[129 * TN__FFT_LINES];
      double x[TN__FFT_LINES][256];
      tn__vectors_limit(kind);
      REQUIRE_OK(tn__fft_create(&f, n, NULL), NULL);
      for (int l = 0; l < TN__FFT_LINES; l++)
        for (int64_t i = 0; i < n; i++) {
          x[l][i] = (double)((i * 37 + l * 11 + i * i) % 61) / 8;
          block[(f.places[i / 2] * 2 + i % 2) * TN__FFT_LINES + l] = x[l][i];
        }
      tn__fft_run(&f, block);
      tn__fft_powers(&f, block, powers);
      for (int l = 0; l < TN__FFT_LINES; l++)
        for (int64_t k = 0; k <= n / 2; k++) {
          double re = 0, im = 0;
          for (int64_t i = 0; i < n; i++) {
            re += x[l][i] * cos(2 * PI * (double)(i * k % n) / (double)n);
            im -= x[l][i] * sin(2 * PI * (double)(i * k % n) / (double)n);
          }
          CHECK_DOUBLE(powers[k * TN__FFT_LINES + l], re * re + im * im, 1e-9 * (re * re + im * im) + 1e-8);
        }
      tn__fft_destroy(&f);
    }
  tn__vectors_limit(TN__AVX512);
}

/* ---- files ---- */

#define RATE(name, value) INTS(name, "", "int_val: " value)
#define WAV                                                                                                    \
  ANY("audio", "DT_FLOAT")                                                                                     \
  ANY("file", "DT_STRING") RATE("rate", "8000") NODE("write", "EncodeWav", "input: 'audio' input: 'rate'", "") \
      NODE("read", "DecodeWav", "input: 'file'", "")

/* A file of two channels with five samples, with the header before its data. */
static size_t small_file(uint8_t *to)
{
  tn__wav_header(to, 2, 8000, 20);
  for (int i = 0; i < 20; i++) to[TN__WAV_HEADER + i] = (uint8_t)(i * 13);
  return TN__WAV_HEADER + 20;
}

static void wav__files_round_trip(void)
{
  static const char *const writes[] = { "write" }, *const reads[] = { "read", "read:1" };
  ts t;
  ops_open_text(&t, WAV);
  for (int64_t channels = 1; channels < 4; channels++) {
    tn_tensor *in = tone(50, channels, 20), *file[1], *out[2];
    REQUIRE_OK(try_run(&t, "audio", in, writes, file, 1), &t.err);
    REQUIRE_OK(try_run(&t, "file", file[0], reads, out, 2), &t.err);
    CHECK_INT(tn_tensor_dims(out[0])[0], 50);
    CHECK_INT(tn_tensor_dims(out[0])[1], channels);
    CHECK_INT(*(int32_t *)tn_tensor_data(out[1]), 8000);
    for (int64_t i = 0; i < 50 * channels; i++)
      CHECK_DOUBLE((double)((float *)tn_tensor_data(out[0]))[i], (double)((float *)tn_tensor_data(in))[i],
                   0.5001 / 32768);
    tn_tensor_unref(in);
    tn_tensor_unref(file[0]);
    for (int i = 0; i < 2; i++) tn_tensor_unref(out[i]);
  }
  ts_fini(&t);
}

static void wav__channels_and_samples_are_those_requested(void)
{
  static const char *const fetches[] = { "it" };
  uint8_t file[100];
  size_t n = small_file(file);
  ts t;
  tn_tensor *in = text(file, n), *out[1];
  ops_open_text(&t, ANY("file", "DT_STRING")
                        NODE("it", "DecodeWav", "input: 'file'", INT("desired_channels", 3) INT("desired_samples", 7)));
  CHECK_STR(ops_shape_of(&t, "it", 0), "[7,3]");
  REQUIRE_OK(try_run(&t, "file", in, fetches, out, 1), &t.err);
  for (int i = 0; i < 21; i++) {
    int16_t sample = 0; /* zero past the end; the last channel replaces missing channels */
    if (i < 15) memcpy(&sample, file + TN__WAV_HEADER + 2 * (i / 3 * 2 + (i % 3 > 0)), 2);
    CHECK_DOUBLE((double)((float *)tn_tensor_data(out[0]))[i], sample / 32768.0, 0);
  }
  tn_tensor_unref(out[0]);
  tn_tensor_unref(in);
  ts_fini(&t);
}

static void wav__loud_samples_are_clipped(void)
{
  static const char *const fetches[] = { "write" };
  const float x[] = { 2, -2, 1, -1, NAN, INFINITY, 0.5f / 32768, -0.5f / 32768 };
  const int16_t wanted[] = { 32767, -32768, 32767, -32768, 0, 32767, 1, -1 };
  const char *found;
  size_t n;
  ts t;
  tn_tensor *in = NULL, *out[1];
  ops_open_text(&t, WAV);
  REQUIRE_OK(tn_tensor_from_data(TN_FLOAT, (int64_t[]){ 8, 1 }, 2, x, sizeof x, &in, NULL), NULL);
  REQUIRE_OK(try_run(&t, "audio", in, fetches, out, 1), &t.err);
  REQUIRE_OK(tn_tensor_get_string(out[0], 0, &found, &n, NULL), NULL);
  REQUIRE_INT(n, TN__WAV_HEADER + 16);
  CHECK_BYTES(found + TN__WAV_HEADER, wanted, sizeof wanted);
  tn_tensor_unref(in);
  tn_tensor_unref(out[0]);
  ts_fini(&t);
}

static void check_refused(const uint8_t *file, size_t size, const char *message)
{
  tn_error err = TN_ERROR_INIT;
  tn__wav wav;
  CHECK_STATUS(tn__wav_read(file, size, &wav, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), message);
  tn_error_clear(&err);
}

static void wav__headers_are_checked(void)
{
  static const struct {
    size_t at;
    uint8_t value;
    const char *message;
  } changes[] = {
    { 0, 'X', "found 'XIFF' at byte 0, wanted 'RIFF'" },
    { 8, 'X', "found 'XAVE' at byte 8, wanted 'WAVE'" },
    { 12, 1, "found '?mt ' at byte 12, wanted 'fmt '" },
    { 16, 20, "the format has 20 bytes, wanted 16 or 18" },
    { 20, 3, "the kind of audio is 3, wanted 1" },
    { 22, 0, "there are no channels" },
    { 28, 1, "the number of bytes of a second is 32001, wanted 32000" },
    { 32, 3, "the number of bytes of a sample is 3, wanted 4" },
    { 34, 8, "the number of bits of a sample is 8, wanted 16" },
    { 36, 'x', "there is no chunk 'data'" },
    { 40, 200, "the file ends at byte 64, wanted 200 bytes at 44" },
    { 43, 255, "4278190100 bytes of data, wanted below 2^31" },
  };
  for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
    uint8_t file[100];
    size_t n = small_file(file);
    file[changes[i].at] = changes[i].value;
    check_refused(file, n, changes[i].message);
  }
}

/* Files truncated anywhere, and bytes of any value, are handled without reading past the end. */
static void wav__damaged_files_are_read_within_their_bounds(void)
{
  uint8_t file[100];
  size_t n = small_file(file);
  uint32_t state = 1;
  tn__wav wav;
  for (size_t i = 0; i < n; i++) {
    tn_tensor *exact = text(file, i); /* a memory checker detects reads past its end */
    const char *data;
    size_t size;
    REQUIRE_OK(tn_tensor_get_string(exact, 0, &data, &size, NULL), NULL);
    check_refused((const uint8_t *)data, size, "WAV: ");
    tn_tensor_unref(exact);
  }
  for (int k = 0; k < 20000; k++) {
    n = small_file(file);
    for (int i = 0; i < 3; i++) {
      state = state * 1664525u + 1013904223u;
      file[(state >> 8) % n] = (uint8_t)(state >> 24);
    }
    if (tn__wav_read(file, n, &wav, NULL) != TN_OK) continue;
    CHECK(wav.data >= file && wav.data + wav.samples * wav.channels * 2 <= file + n);
  }
}

/* ---- spectra ---- */

#define SOUND                                                                                               \
  ANY("audio", "DT_FLOAT")                                                                                  \
  ANY("rate", "DT_INT32") NODE("power", "AudioSpectrogram", "input: 'audio'",                               \
                               INT("window_size", 100) INT("stride", 40) BOOL("magnitude_squared", "true")) \
      NODE("size", "AudioSpectrogram", "input: 'audio'", INT("window_size", 100) INT("stride", 40))         \
          RATE("k16", "16000") NODE("mfcc", "Mfcc", "input: 'power' input: 'k16'", "")                      \
              NODE("fed", "Mfcc", "input: 'power' input: 'rate'", "")

static void spectrogram__a_tone_is_in_its_bin(void)
{
  static const char *const fetches[] = { "power", "size" };
  ts t;
  tn_tensor *in = tone(500, 2, 125), *out[2]; /* an eighth and a quarter of a transform of 128 */
  ops_open_text(&t, SOUND);
  REQUIRE_OK(try_run(&t, "audio", in, fetches, out, 2), &t.err);
  CHECK_INT(tn_tensor_dims(out[0])[0], 2);
  CHECK_INT(tn_tensor_dims(out[0])[1], 11);
  CHECK_INT(tn_tensor_dims(out[0])[2], 65);
  for (int line = 0; line < 22; line++) {
    const float *x = (float *)tn_tensor_data(out[0]) + line * 65, *y = (float *)tn_tensor_data(out[1]) + line * 65;
    int best = 0;
    for (int k = 0; k < 65; k++) {
      if (x[k] > x[best]) best = k;
      CHECK_DOUBLE((double)(y[k] * y[k]), (double)x[k], 1e-5 * (double)x[k]);
    }
    CHECK_INT(best, line < 11 ? 16 : 32);
    CHECK_DOUBLE((double)y[best], 0.9 * 100 / 4,
                 0.01); /* half of the sum of the window's weights, which are 1/2 on average */
  }
  for (int i = 0; i < 2; i++) tn_tensor_unref(out[i]);
  tn_tensor_unref(in);
  ts_fini(&t);
}

static void spectrogram__short_sound_has_no_slices(void)
{
  static const char *const fetches[] = { "power", "mfcc" };
  ts t;
  tn_tensor *in = tone(99, 2, 10), *out[2];
  ops_open_text(&t, SOUND);
  REQUIRE_OK(try_run(&t, "audio", in, fetches, out, 2), &t.err);
  CHECK_INT(tn_tensor_elements(out[0]), 0);
  CHECK_INT(tn_tensor_dims(out[1])[2], 13);
  for (int i = 0; i < 2; i++) tn_tensor_unref(out[i]);
  tn_tensor_unref(in);
  ts_fini(&t);
}

/* The tables are computed for the rate of each step. */
static void mfcc__the_rate_may_change_between_steps(void)
{
  static const char *const feeds[] = { "audio", "rate" }, *const fetches[] = { "mfcc", "fed" };
  static const int32_t rates[] = { 16000, 44100, 16000, 4000 };
  ts t;
  tn_tensor *in[2] = { tone(300, 1, 30), NULL };
  ops_open_text(&t, SOUND);
  for (int i = 0; i < 4; i++) {
    tn_tensor *out[2] = { NULL };
    REQUIRE_OK(tn_tensor_from_data(TN_INT32, NULL, 0, &rates[i], 4, &in[1], NULL), NULL);
    REQUIRE_OK(tn_session_run(t.session, NULL, feeds, in, 2, fetches, out, 2, NULL, 0, NULL, &t.err), &t.err);
    const float *x = tn_tensor_data(out[0]), *y = tn_tensor_data(out[1]);
    CHECK((memcmp(x, y, tn_tensor_bytes(out[0])) == 0) == (rates[i] == 16000));
    CHECK(x[0] != 0 && (y[0] == 0) == (rates[i] == 4000)); /* frequencies above half the rate are unknown */
    for (int k = 0; k < 2; k++) tn_tensor_unref(out[k]);
    tn_tensor_unref(in[1]);
  }
  tn_tensor_unref(in[0]);
  ts_fini(&t);
}

static void mfcc__silence_is_the_floor_in_each_band(void)
{
  static const char *const fetches[] = { "mfcc" };
  ts t;
  tn_tensor *in = tone(100, 1, 0), *out[1];
  ops_open_text(&t, SOUND);
  REQUIRE_OK(try_run(&t, "audio", in, fetches, out, 1), &t.err);
  const float *x = tn_tensor_data(out[0]);
  CHECK_DOUBLE((double)x[0], log(1e-12) * sqrt(2.0 * 40), 1e-3); /* the floor, in each of 40 bands */
  for (int i = 1; i < 13; i++) CHECK_DOUBLE((double)x[i], 0, 1e-9);
  tn_tensor_unref(out[0]);
  tn_tensor_unref(in);
  ts_fini(&t);
}

/* ---- shapes and errors ---- */

static void audio__shapes_are_known_before_a_step(void)
{
  ts t;
  ops_open_text(&t,
                SOUND ANY("file", "DT_STRING") NODE("read", "DecodeWav", "input: 'file'", INT("desired_channels", 2))
                    NODE("fixed", "DecodeWav", "input: 'file'", INT("desired_channels", 2) INT("desired_samples", 300))
                        NODE("s", "AudioSpectrogram", "input: 'fixed'", INT("window_size", 100) INT("stride", 50))
                            NODE("m", "Mfcc", "input: 's' input: 'fixed:1'", INT("dct_coefficient_count", 9)));
  CHECK_STR(ops_shape_of(&t, "read", 0), "[?,2]");
  CHECK_STR(ops_shape_of(&t, "power", 0), "[?,?,65]");
  CHECK_STR(ops_shape_of(&t, "s", 0), "[2,5,65]");
  CHECK_STR(ops_shape_of(&t, "m", 0), "[2,5,9]");
  ts_fini(&t);
}

static void expect_error(const char *graph, const char *message)
{
  static const char *const fetches[] = { "it" };
  ts t;
  tn_tensor *in = tone(50, 1, 10), *out[1];
  ops_open_text(&t, graph);
  CHECK_INT(try_run(&t, "audio", in, fetches, out, 1), TN_INVALID_ARGUMENT);
  CHECK_NULL(out[0]);
  CHECK_CONTAINS(tn_error_message(&t.err), message);
  tn_tensor_unref(in);
  ts_fini(&t);
}

#define SPECTRUM \
  ANY("audio", "DT_FLOAT") NODE("s", "AudioSpectrogram", "input: 'audio'", INT("window_size", 16) INT("stride", 8))

static void audio__errors_name_the_offending_value(void)
{
  expect_error(ANY("audio", "DT_FLOAT")
                   NODE("it", "AudioSpectrogram", "input: 'audio'", INT("window_size", 1) INT("stride", 8)),
               "window_size is 1 and stride 8");
  expect_error(SPECTRUM RATE("r", "-5") NODE("it", "Mfcc", "input: 's' input: 'r'", ""), "sample_rate -5");
  expect_error(SPECTRUM RATE("r", "5") NODE("it", "Mfcc", "input: 's' input: 'r'", INT("dct_coefficient_count", 99)),
               "99 coefficients of 40 channels");
  expect_error(SPECTRUM RATE("r", "5")
                   NODE("it", "Mfcc", "input: 's' input: 'r'", FLOAT("upper_frequency_limit", "10")),
               "frequencies from 20 to 10");
  expect_error(ANY("audio", "DT_FLOAT") RATE("r", "0") NODE("it", "EncodeWav", "input: 'audio' input: 'r'", ""),
               "sample_rate is 0, wanted 1 or more");
}

/* ---- lack of memory ---- */

typedef struct trial {
  ts *t;
  tn_tensor *in[3];
} trial;

static tn_status compile_and_run(void *arg)
{
  static const char *const feeds[] = { "audio", "file", "rate" };
  static const char *const fetches[] = { "write", "read:1", "size", "mfcc", "fed" };
  enum { N = sizeof fetches / sizeof fetches[0] };
  trial *a = arg;
  tn_callable callable;
  tn_tensor *out[N] = { NULL };
  tn_status st = tn_session_make_callable(a->t->session, NULL, feeds, 3, fetches, N, NULL, 0, &callable, NULL);
  if (st != TN_OK) return st;
  st = tn_session_run_callable(a->t->session, callable, a->in, 3, out, N, NULL, NULL);
  for (int k = 0; k < N; k++) tn_tensor_unref(out[k]);
  tn_session_release_callable(a->t->session, callable, NULL);
  return st;
}

static void audio__nothing_leaks_without_memory(void)
{
  uint8_t file[100];
  size_t n = small_file(file);
  int32_t rate = 16000;
  ts t;
  trial a = { &t, { tone(300, 1, 30), text(file, n), NULL } };
  REQUIRE_OK(tn_tensor_from_data(TN_INT32, NULL, 0, &rate, 4, &a.in[2], NULL), NULL);
  ops_open_text(&t, SOUND ANY("file", "DT_STRING") NODE("write", "EncodeWav", "input: 'audio' input: 'rate'", "")
                        NODE("read", "DecodeWav", "input: 'file'", ""));
  CHECK_INT(compile_and_run(&a), TN_OK);
  tn_test_oom_sweep(compile_and_run, &a);
  for (int i = 0; i < 3; i++) tn_tensor_unref(a.in[i]);
  ts_fini(&t);
}

TAP_MAIN(TAP_TEST(fft__powers_are_those_of_the_sums), TAP_TEST(wav__files_round_trip),
         TAP_TEST(wav__channels_and_samples_are_those_requested), TAP_TEST(wav__loud_samples_are_clipped),
         TAP_TEST(wav__headers_are_checked), TAP_TEST(wav__damaged_files_are_read_within_their_bounds),
         TAP_TEST(spectrogram__a_tone_is_in_its_bin), TAP_TEST(spectrogram__short_sound_has_no_slices),
         TAP_TEST(mfcc__the_rate_may_change_between_steps), TAP_TEST(mfcc__silence_is_the_floor_in_each_band),
         TAP_TEST(audio__shapes_are_known_before_a_step), TAP_TEST(audio__errors_name_the_offending_value),
         TAP_TEST(audio__nothing_leaks_without_memory))
