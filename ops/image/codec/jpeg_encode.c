/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/image/codec/pixels.h>

#ifdef TN_LIBJPEG
#include <core/base/alloc.h>
#include <ops/image/codec/jpeg.h>
#include <string.h>

enum { BLOCK = 16384 };

typedef struct encoder {
  tn__jpeg_functions f;
  struct jpeg_compress_struct jpeg;
  tn__jpeg_errors errors;
  struct jpeg_destination_mgr to;
  const tn__pixels *in;
  const tn__jpeg_encoding *how;
  tn__encoded *out;
  bool no_memory;
  JOCTET block[BLOCK];
} encoder;

static void start_block(j_compress_ptr jpeg)
{
  encoder *e = jpeg->client_data;
  e->to.next_output_byte = e->block;
  e->to.free_in_buffer = BLOCK;
}

static boolean flush_block(j_compress_ptr jpeg)
{
  encoder *e = jpeg->client_data;
  if (!tn__encoded_add(e->out, e->block, BLOCK)) e->no_memory = true;
  start_block(jpeg);
  return TRUE;
}

static void end_block(j_compress_ptr jpeg)
{
  encoder *e = jpeg->client_data;
  if (!tn__encoded_add(e->out, e->block, BLOCK - e->to.free_in_buffer)) e->no_memory = true;
}

/* Adobe's metadata, in a marker of at most 65533 bytes; longer ones are left out. */
static void write_xmp(encoder *e)
{
  static const char name[] = "http://ns.adobe.com/xap/1.0/"; /* written with its 0 */
  JOCTET marker[65533];
  if (e->how->xmp_size == 0 || e->how->xmp_size > sizeof marker - sizeof name) return;
  memcpy(marker, name, sizeof name);
  memcpy(marker + sizeof name, e->how->xmp, e->how->xmp_size);
  e->f.jpeg_write_marker(&e->jpeg, JPEG_APP0 + 1, marker, (unsigned)(sizeof name + e->how->xmp_size));
}

static void set_up(encoder *e)
{
  const tn__jpeg_encoding *how = e->how;
  e->jpeg.image_width = (JDIMENSION)e->in->w;
  e->jpeg.image_height = (JDIMENSION)e->in->h;
  e->jpeg.input_components = (int)e->in->c;
  e->jpeg.in_color_space = e->in->c == 1 ? JCS_GRAYSCALE : JCS_RGB;
  e->f.jpeg_set_defaults(&e->jpeg);
  if (how->optimize) e->jpeg.optimize_coding = TRUE;
  e->jpeg.density_unit = (UINT8)how->unit;
  e->jpeg.X_density = (UINT16)how->x_density;
  e->jpeg.Y_density = (UINT16)how->y_density;
  e->f.jpeg_set_quality(&e->jpeg, how->quality, TRUE);
  if (how->progressive) e->f.jpeg_simple_progression(&e->jpeg);
  for (int k = 0; k < e->jpeg.num_components && !how->downsample; k++)
    e->jpeg.comp_info[k].h_samp_factor = e->jpeg.comp_info[k].v_samp_factor = 1;
}

static void write_image(void *user)
{
  encoder *e = user;
  e->f.jpeg_CreateCompress(&e->jpeg, JPEG_LIB_VERSION, sizeof e->jpeg);
  e->jpeg.client_data = e;
  e->to.init_destination = start_block;
  e->to.empty_output_buffer = flush_block;
  e->to.term_destination = end_block;
  e->jpeg.dest = &e->to;
  set_up(e);
  e->f.jpeg_start_compress(&e->jpeg, TRUE);
  write_xmp(e);
  for (int64_t y = 0; y < e->in->h; y++) {
    JSAMPROW row = (JSAMPROW)e->in->data + y * e->in->w * e->in->c;
    e->f.jpeg_write_scanlines(&e->jpeg, &row, 1);
  }
  e->f.jpeg_finish_compress(&e->jpeg);
}

tn_status tn__jpeg_encode(const char *op, const tn__pixels *in, const tn__jpeg_encoding *how, tn__encoded *out,
                          tn_error *err)
{
  encoder e = { .in = in, .how = how, .out = out };
  tn_status st = tn__jpeg_load(&e.f, err);
  if (st != TN_OK) return st;
  if (in->h < 1 || in->w < 1 || in->h > JPEG_MAX_DIMENSION || in->w > JPEG_MAX_DIMENSION)
    return tn_error_set(err, TN_INTERNAL, "%s: JPEG has no images of %lld x %lld, wanted 1 to %ld of each", op,
                        (long long)in->h, (long long)in->w, JPEG_MAX_DIMENSION);
  e.jpeg.err = tn__jpeg_errors_init(&e.f, &e.errors);
  if (!tn__jpeg_guarded(&e.errors, write_image, &e))
    st = tn_error_set(err, TN_INTERNAL, "%s: libjpeg: %s", op, e.errors.why);
  else if (e.no_memory) st = tn__no_memory(err, "an encoded image", 0);
  e.f.jpeg_destroy_compress(&e.jpeg);
  return st;
}
#else
typedef int tn__no_jpeg_encode; /* a file must declare something */
#endif
