/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes GIF: each frame is drawn on the one before. All frames have the size of the largest one. */
#include <core/base/alloc.h>
#include <ops/kernel/library.h>
#include <ops/image/codec/pixels.h>

#define NEEDS "GIF images need libgif"

#ifdef TN_LIBGIF
#include <gif_lib.h>
#include <string.h>

#define MAP(F)        \
  F(DGifCloseFile)    \
  F(DGifOpen)         \
  F(DGifSavedExtensionToGCB) \
  F(DGifSlurp)        \
  F(GifErrorString)

typedef struct functions {
  MAP(TN__LIBRARY_MEMBER)
} functions;

typedef struct reader {
  const tn__coded *in;
  size_t used;
} reader;

static int read_bytes(GifFileType *gif, GifByteType *to, int n)
{
  reader *r = gif->UserData;
  size_t left = r->in->size - r->used, count = (size_t)n < left ? (size_t)n : left;
  memcpy(to, r->in->data + r->used, count);
  r->used += count;
  return (int)count;
}

static tn_status invalid(const tn__coded *in, const char *why, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the GIF data of %zu bytes is invalid: %s", in->op, in->size,
                      why != NULL ? why : "unknown error");
}

/* Draws frame k on `to`. NULL, or why it cannot. */
static const char *draw(const functions *f, GifFileType *gif, int k, const tn__pixels *out, uint8_t *to)
{
  const SavedImage *frame = &gif->SavedImages[k];
  const GifImageDesc *d = &frame->ImageDesc;
  const ColorMapObject *map = d->ColorMap != NULL ? d->ColorMap : gif->SColorMap;
  GraphicsControlBlock control = { .TransparentColor = NO_TRANSPARENT_COLOR };
  f->DGifSavedExtensionToGCB(gif, k, &control);
  if (map == NULL) return "a frame has no colours";
  if (frame->RasterBits == NULL) return "a frame has no pixels";
  int64_t bottom = (int64_t)d->Top + d->Height, right = (int64_t)d->Left + d->Width;
  if (bottom > out->h) bottom = out->h;
  if (right > out->w) right = out->w;
  for (int64_t y = d->Top > 0 ? d->Top : 0; y < bottom; y++)
    for (int64_t x = d->Left > 0 ? d->Left : 0; x < right; x++) {
      int colour = frame->RasterBits[(y - d->Top) * d->Width + (x - d->Left)];
      if (colour == control.TransparentColor) continue;
      if (colour >= map->ColorCount) return "a pixel has a colour outside of its table";
      const GifColorType *from = &map->Colors[colour];
      uint8_t *pixel = to + (y * out->w + x) * 3;
      pixel[0] = from->Red;
      pixel[1] = from->Green;
      pixel[2] = from->Blue;
    }
  return NULL;
}

static tn_status draw_all(const functions *f, GifFileType *gif, int frames, bool all, const tn__coded *in,
                          tn__pixels *out, tn_error *err)
{
  for (int k = 0; k < frames; k++) {
    const GifImageDesc *d = &gif->SavedImages[k].ImageDesc;
    if (d->Width > out->w) out->w = d->Width;
    if (d->Height > out->h) out->h = d->Height;
  }
  out->frames = all ? frames : 1;
  out->c = 3;
  tn_status st = tn__pixels_room(out, in->op, err);
  if (st != TN_OK) return st;
  size_t bytes = (size_t)(out->h * out->w) * 3;
  uint8_t *to = out->data;
  for (int k = 0; k < out->frames; k++, to += bytes) {
    if (k == 0) memset(to, 0, bytes);
    else memcpy(to, to - bytes, bytes);
    const char *why = draw(f, gif, k, out, to);
    if (why != NULL) return invalid(in, why, err);
  }
  return TN_OK;
}

tn_status tn__gif_decode(const tn__coded *in, bool all_frames, tn__pixels *out, tn_error *err)
{
  static const char *const names[] = { MAP(TN__LIBRARY_NAME) };
  functions f;
  reader r = { .in = in };
  int error = 0;
  tn_status st = tn__library_load(TN_LIBGIF, NEEDS, names, &f, sizeof names / sizeof *names, err);
  if (st != TN_OK) return st;
  GifFileType *gif = f.DGifOpen(&r, read_bytes, &error);
  if (gif == NULL) return invalid(in, f.GifErrorString(error), err);
  bool whole = f.DGifSlurp(gif) == GIF_OK;
  int frames = gif->ImageCount;
  /* Frames before the one in which the data ends early are used. */
  if (!whole && frames > 0 && gif->SavedImages[frames - 1].RasterBits == NULL) frames--;
  if (frames < 1) st = invalid(in, whole ? "it has no frames" : f.GifErrorString(gif->Error), err);
  else st = draw_all(&f, gif, frames, all_frames, in, out, err);
  f.DGifCloseFile(gif, &error);
  return st;
}
#else
tn_status tn__gif_decode(const tn__coded *in, bool all_frames, tn__pixels *out, tn_error *err)
{
  (void)in, (void)all_frames, (void)out;
  return tn__library_load(NULL, NEEDS, NULL, NULL, 0, err);
}
#endif
