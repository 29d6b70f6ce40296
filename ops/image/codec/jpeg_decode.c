/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes JPEG. A window is cut out of the rows as they are decoded. */
#include <ops/image/codec/pixels.h>

#ifdef TN_LIBJPEG
#include <core/base/alloc.h>
#include <ops/image/codec/jpeg.h>
#include <string.h>

typedef struct decoder {
  tn__jpeg_functions f;
  struct jpeg_decompress_struct jpeg; /* before errors, whose buffer libjpeg never sees */
  tn__jpeg_errors errors;
  struct jpeg_source_mgr source;
  const tn__coded *in;
  const tn__jpeg_options *options;
  tn__pixels *out;
  uint8_t *row;
  size_t row_bytes;
  bool over;        /* the data ended early */
  int64_t complete; /* rows that were decoded before that */
} decoder;

/* ---- the source ---- */

static void nothing(j_decompress_ptr jpeg) { (void)jpeg; }

static boolean fill(j_decompress_ptr jpeg)
{
  static const JOCTET end[] = { 0xff, JPEG_EOI };
  decoder *d = jpeg->client_data;
  if (!d->over) d->complete = jpeg->output_scanline;
  d->over = true;
  d->source.next_input_byte = end;
  d->source.bytes_in_buffer = sizeof end;
  return TRUE;
}

static void skip(j_decompress_ptr jpeg, long n)
{
  decoder *d = jpeg->client_data;
  if (n <= 0) return;
  if ((size_t)n > d->source.bytes_in_buffer) {
    fill(jpeg);
    return;
  }
  d->source.next_input_byte += n;
  d->source.bytes_in_buffer -= (size_t)n;
}

/* ---- parts that libjpeg may leave ---- */

static void read_header(void *user)
{
  decoder *d = user;
  d->f.jpeg_CreateDecompress(&d->jpeg, JPEG_LIB_VERSION, sizeof d->jpeg);
  d->jpeg.client_data = d;
  d->source = (struct jpeg_source_mgr){ d->in->data, d->in->size, nothing, fill, skip, d->f.jpeg_resync_to_restart,
                                        nothing };
  d->jpeg.src = &d->source;
  d->f.jpeg_read_header(&d->jpeg, TRUE);
}

static void start(void *user)
{
  decoder *d = user;
  const tn__jpeg_options *o = d->options;
  bool four = d->jpeg.jpeg_color_space == JCS_CMYK || d->jpeg.jpeg_color_space == JCS_YCCK;
  int channels = o->channels != 0 ? o->channels : d->jpeg.num_components;
  if (channels > 3) channels = 3;
  d->jpeg.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  if (four) d->jpeg.out_color_space = JCS_CMYK;
  d->jpeg.do_fancy_upsampling = o->fancy;
  d->jpeg.scale_num = 1;
  d->jpeg.scale_denom = (unsigned)o->ratio;
  d->jpeg.dct_method = o->fast ? JDCT_IFAST : JDCT_ISLOW;
  d->f.jpeg_calc_output_dimensions(&d->jpeg);
  d->out->frames = 1;
  d->out->h = d->jpeg.output_height;
  d->out->w = d->jpeg.output_width;
  d->out->c = channels;
  d->row_bytes = (size_t)d->jpeg.output_width * (size_t)d->jpeg.output_components;
}

/* A row of cyan, magenta, yellow and black as red, green and blue, or as grey. */
static void put_four(const decoder *d, const uint8_t *from, int64_t n, uint8_t *to)
{
  for (; n-- > 0; from += 4) {
    int rgb[3];
    for (int k = 0; k < 3; k++)
      rgb[k] = d->jpeg.saw_Adobe_marker ? from[k] * from[3] / 255 : (255 - from[k]) * (255 - from[3]) / 255;
    if (d->out->c == 1) {
      *to++ = (uint8_t)((rgb[0] * 299 + rgb[1] * 587 + rgb[2] * 114 + 500) / 1000);
      continue;
    }
    for (int k = 0; k < 3; k++) *to++ = (uint8_t)rgb[k];
  }
}

/* Omits what is outside the window where the library can. *first rows and *left pixels then remain to be omitted. */
static void start_window(decoder *d, int64_t *first, int64_t *left)
{
  *first = d->options->window[0];
  *left = d->options->window[1];
#ifdef LIBJPEG_TURBO_VERSION
  JDIMENSION start = (JDIMENSION)*left, width = (JDIMENSION)d->out->w;
  d->f.jpeg_crop_scanline(&d->jpeg, &start, &width);
  *left -= start;
  *first -= d->f.jpeg_skip_scanlines(&d->jpeg, (JDIMENSION)*first);
#endif
}

static void read_rows(void *user)
{
  decoder *d = user;
  const tn__jpeg_options *o = d->options;
  int64_t first = 0, left = 0;
  size_t bytes = (size_t)d->out->w * (size_t)d->out->c;
  int parts = d->jpeg.output_components;
  d->f.jpeg_start_decompress(&d->jpeg);
  if (o->crops) start_window(d, &first, &left);
  for (int64_t y = 0; y < first + d->out->h; y++) {
    JSAMPROW row = d->row;
    if (d->f.jpeg_read_scanlines(&d->jpeg, &row, 1) == 0) return;
    if (y < first) continue;
    uint8_t *to = (uint8_t *)d->out->data + (size_t)(y - first) * bytes;
    if (d->jpeg.out_color_space == JCS_CMYK) put_four(d, d->row + left * parts, d->out->w, to);
    else memcpy(to, d->row + left * parts, bytes);
  }
  if (!o->crops && !d->over) d->f.jpeg_finish_decompress(&d->jpeg);
}

/* ---- decoding ---- */

static tn_status invalid(const decoder *d, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the JPEG data of %zu bytes is invalid: %s", d->in->op, d->in->size,
                      d->errors.why[0] != 0 ? d->errors.why : "it ends early");
}

static tn_status cut_window(const decoder *d, tn_error *err)
{
  const int64_t *w = d->options->window;
  bool fits = w[0] >= 0 && w[1] >= 0 && w[2] > 0 && w[3] > 0 && w[0] <= d->out->h - w[2] && w[1] <= d->out->w - w[3];
  if (!fits)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "%s: the window [%lld,%lld] + [%lld,%lld] is not inside the image, which is %lld x %lld",
                        d->in->op, (long long)w[0], (long long)w[1], (long long)w[2], (long long)w[3],
                        (long long)d->out->h, (long long)d->out->w);
  d->out->h = w[2];
  d->out->w = w[3];
  return TN_OK;
}

static tn_status read_image(decoder *d, tn_error *err)
{
  tn_status st = tn__jpeg_guarded(&d->errors, start, d) && !d->over ? TN_OK : invalid(d, err);
  int64_t rows = d->out->h;
  if (st == TN_OK && d->options->crops) st = cut_window(d, err);
  if (st == TN_OK) st = tn__pixels_room(d->out, d->in->op, err);
  if (st != TN_OK) return st;
  memset(d->out->data, 0, d->out->bytes);
  d->row = tn__alloc(d->row_bytes);
  if (d->row == NULL) return tn__no_memory(err, "a row of an image", d->row_bytes);
  if (!tn__jpeg_guarded(&d->errors, read_rows, d)) return invalid(d, err);
  bool enough = d->options->recover && (float)d->complete >= d->options->acceptable * (float)rows;
  return d->over && !enough ? invalid(d, err) : TN_OK;
}

static tn_status open_image(decoder *d, tn_error *err)
{
  tn_status st = tn__jpeg_load(&d->f, err);
  if (st != TN_OK) return st;
  d->jpeg.err = tn__jpeg_errors_init(&d->f, &d->errors);
  return tn__jpeg_guarded(&d->errors, read_header, d) && !d->over ? TN_OK : invalid(d, err);
}

static void close_image(decoder *d)
{
  if (d->jpeg.err != NULL) d->f.jpeg_destroy_decompress(&d->jpeg);
  tn__free(d->row, d->row_bytes);
}

tn_status tn__jpeg_decode(const tn__coded *in, const tn__jpeg_options *o, tn__pixels *out, tn_error *err)
{
  decoder d = { .in = in, .options = o, .out = out };
  tn_status st = open_image(&d, err);
  if (st == TN_OK) st = read_image(&d, err);
  close_image(&d);
  return st;
}

tn_status tn__jpeg_shape(const tn__coded *in, tn__pixels *out, tn_error *err)
{
  decoder d = { .in = in, .out = out };
  tn_status st = open_image(&d, err);
  if (st == TN_OK) {
    out->h = d.jpeg.image_height;
    out->w = d.jpeg.image_width;
    out->c = d.jpeg.num_components;
  }
  close_image(&d);
  return st;
}
#else
typedef int tn__no_jpeg_decode; /* a file must declare something */
#endif
