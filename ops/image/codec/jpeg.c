/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/image/codec/pixels.h>

#define NEEDS "JPEG images need libjpeg"

#ifdef TN_LIBJPEG
#include <ops/image/codec/jpeg.h>

tn_status tn__jpeg_load(tn__jpeg_functions *f, tn_error *err)
{
  static const char *const names[] = { TN__JPEG_MAP(TN__LIBRARY_NAME) };
  return tn__library_load(TN_LIBJPEG, NEEDS, names, f, sizeof names / sizeof *names, err);
}

static void on_error(j_common_ptr cinfo)
{
  tn__jpeg_errors *e = (tn__jpeg_errors *)cinfo->err;
  e->base.format_message(cinfo, e->why);
  longjmp(e->out, 1);
}

static void on_message(j_common_ptr cinfo) { (void)cinfo; }

struct jpeg_error_mgr *tn__jpeg_errors_init(const tn__jpeg_functions *f, tn__jpeg_errors *e)
{
  f->jpeg_std_error(&e->base);
  e->base.error_exit = on_error;
  e->base.output_message = on_message;
  return &e->base;
}

bool tn__jpeg_guarded(tn__jpeg_errors *e, void (*fn)(void *user), void *user)
{
  if (setjmp(e->out) != 0) return false;
  fn(user);
  return true;
}
#else
#include <ops/kernel/library.h>

tn_status tn__jpeg_decode(const tn__coded *in, const tn__jpeg_options *o, tn__pixels *out, tn_error *err)
{
  (void)in, (void)o, (void)out;
  return tn__library_load(NULL, NEEDS, NULL, NULL, 0, err);
}

tn_status tn__jpeg_shape(const tn__coded *in, tn__pixels *out, tn_error *err)
{
  (void)in, (void)out;
  return tn__library_load(NULL, NEEDS, NULL, NULL, 0, err);
}

tn_status tn__jpeg_encode(const char *op, const tn__pixels *in, const tn__jpeg_encoding *how, tn__encoded *out,
                          tn_error *err)
{
  (void)op, (void)in, (void)how, (void)out;
  return tn__library_load(NULL, NEEDS, NULL, NULL, 0, err);
}
#endif
