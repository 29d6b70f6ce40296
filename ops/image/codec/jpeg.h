/* SPDX-License-Identifier: Apache-2.0 */
/* libjpeg's functions and errors, for decoding and encoding. Include it where TN_LIBJPEG is defined. */
#ifndef TN_OPS_IMAGE_CODEC_JPEG_H
#define TN_OPS_IMAGE_CODEC_JPEG_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <tenon/status.h>
#include <jpeglib.h>
#include <ops/kernel/library.h>

/* libjpeg-turbo decodes a part of an image alone. */
#ifdef LIBJPEG_TURBO_VERSION
#define TN__JPEG_PARTS(F) F(jpeg_crop_scanline) F(jpeg_skip_scanlines)
#else
#define TN__JPEG_PARTS(F)
#endif

#define TN__JPEG_MAP(F)      \
  TN__JPEG_PARTS(F)          \
  F(jpeg_CreateCompress)     \
  F(jpeg_CreateDecompress)   \
  F(jpeg_calc_output_dimensions) \
  F(jpeg_destroy_compress)   \
  F(jpeg_destroy_decompress) \
  F(jpeg_finish_compress)    \
  F(jpeg_finish_decompress)  \
  F(jpeg_read_header)        \
  F(jpeg_read_scanlines)     \
  F(jpeg_resync_to_restart)  \
  F(jpeg_set_colorspace)     \
  F(jpeg_set_defaults)       \
  F(jpeg_set_quality)        \
  F(jpeg_simple_progression) \
  F(jpeg_start_compress)     \
  F(jpeg_start_decompress)   \
  F(jpeg_std_error)          \
  F(jpeg_write_marker)       \
  F(jpeg_write_scanlines)

typedef struct tn__jpeg_functions {
  TN__JPEG_MAP(TN__LIBRARY_MEMBER)
} tn__jpeg_functions;

/* An error of libjpeg leaves its functions by longjmp to `out`. */
typedef struct tn__jpeg_errors {
  struct jpeg_error_mgr base; /* first: libjpeg knows this part */
  jmp_buf out;
  char why[JMSG_LENGTH_MAX];
} tn__jpeg_errors;

tn_status tn__jpeg_load(tn__jpeg_functions *f, tn_error *err);
struct jpeg_error_mgr *tn__jpeg_errors_init(const tn__jpeg_functions *f, tn__jpeg_errors *e);
/* Calls fn(user); false if libjpeg failed, whose text is then in e->why. */
bool tn__jpeg_guarded(tn__jpeg_errors *e, void (*fn)(void *user), void *user);

#endif
