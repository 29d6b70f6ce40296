/* SPDX-License-Identifier: Apache-2.0 */
/* PNG by libpng. Errors of libpng leave its functions by longjmp to `guarded`, which has no variables of its own. */
#include <core/base/alloc.h>
#include <ops/kernel/library.h>
#include <ops/image/codec/pixels.h>

#define NEEDS "PNG images need libpng"

#ifdef TN_LIBPNG
#include <png.h>
#include <setjmp.h>
#include <string.h>

#define MAP(F)                  \
  F(png_create_info_struct)     \
  F(png_create_read_struct)     \
  F(png_create_write_struct)    \
  F(png_destroy_read_struct)    \
  F(png_destroy_write_struct)   \
  F(png_error)                  \
  F(png_get_IHDR)               \
  F(png_get_channels)           \
  F(png_get_rowbytes)           \
  F(png_get_valid)              \
  F(png_read_end)               \
  F(png_read_image)             \
  F(png_read_info)              \
  F(png_read_update_info)       \
  F(png_set_IHDR)               \
  F(png_set_add_alpha)          \
  F(png_set_compression_level)  \
  F(png_set_expand_gray_1_2_4_to_8) \
  F(png_set_gray_to_rgb)        \
  F(png_set_interlace_handling) \
  F(png_set_longjmp_fn)         \
  F(png_set_packing)            \
  F(png_set_palette_to_rgb)     \
  F(png_set_read_fn)            \
  F(png_set_rgb_to_gray)        \
  F(png_set_strip_16)           \
  F(png_set_strip_alpha)        \
  F(png_set_swap)               \
  F(png_set_tRNS_to_alpha)      \
  F(png_set_write_fn)           \
  F(png_write_end)              \
  F(png_write_image)            \
  F(png_write_info)

typedef struct functions {
  MAP(TN__LIBRARY_MEMBER)
} functions;

typedef struct coder {
  functions f;
  png_structp png;
  png_infop info;
  jmp_buf out;
  const tn__coded *in;
  size_t used;
  tn__encoded *text;
  tn__pixels *pixels;
  const tn__pixels *source;
  png_bytep *rows;
  size_t n_rows;
  int channels, compression;
  bool wide, widens;
  char why[100];
  tn_status status;
  tn_error *err;
} coder;

static tn_status load(coder *c)
{
  static const char *const names[] = { MAP(TN__LIBRARY_NAME) };
  return tn__library_load(TN_LIBPNG, NEEDS, names, &c->f, sizeof names / sizeof *names, c->err);
}

/* The coder of the call that runs. libpng's callbacks would need a function of libpng to find it. */
static _Thread_local coder *current;

static void on_error(png_structp png, png_const_charp text)
{
  size_t n = strlen(text);
  (void)png;
  if (n >= sizeof current->why) n = sizeof current->why - 1;
  memcpy(current->why, text, n);
  current->why[n] = 0;
  longjmp(current->out, 1);
}

static void on_warning(png_structp png, png_const_charp text) { (void)png, (void)text; }

static bool guarded(coder *c, void (*fn)(coder *c))
{
  current = c;
  if (setjmp(c->out) != 0) return false;
  fn(c);
  return true;
}

static bool make_rows(coder *c, int64_t n)
{
  c->n_rows = (size_t)n;
  c->rows = tn__alloc_array(c->n_rows, sizeof *c->rows);
  if (c->rows != NULL) return true;
  c->status = tn__no_memory(c->err, "rows of an image", c->n_rows * sizeof *c->rows);
  return false;
}

/* ---- decoding ---- */

static void read_bytes(png_structp png, png_bytep to, size_t n)
{
  coder *c = current;
  if (n > c->in->size - c->used) c->f.png_error(png, "the data ends early");
  memcpy(to, c->in->data + c->used, n);
  c->used += n;
}

/* Selects libpng's conversions to the wanted channels. */
static void set_channels(coder *c, int type, int depth)
{
  bool palette = type == PNG_COLOR_TYPE_PALETTE, key = c->f.png_get_valid(c->png, c->info, PNG_INFO_tRNS) != 0;
  bool alpha = (type & PNG_COLOR_MASK_ALPHA) != 0, grey = !(type & PNG_COLOR_MASK_COLOR);
  int own = c->f.png_get_channels(c->png, c->info);
  if (palette) own = key ? 4 : 3;
  if (c->channels == 0) c->channels = own;
  if (c->channels % 2 != 0) {
    if (alpha || key) c->f.png_set_strip_alpha(c->png);
  } else if (!alpha && key) {
    c->f.png_set_tRNS_to_alpha(c->png);
  } else if (!alpha) {
    c->f.png_set_add_alpha(c->png, (1u << depth) - 1, PNG_FILLER_AFTER);
  }
  if (depth > 8 && !c->wide) c->f.png_set_strip_16(c->png);
  c->widens = depth <= 8 && c->wide;
  c->f.png_set_packing(c->png);
  c->f.png_set_interlace_handling(c->png);
  if (c->wide && !c->widens) c->f.png_set_swap(c->png);
  if (palette) c->f.png_set_palette_to_rgb(c->png);
  if (grey && depth < 8) c->f.png_set_expand_gray_1_2_4_to_8(c->png);
  if (c->channels < 3 && !grey) c->f.png_set_rgb_to_gray(c->png, 1, 0.299, 0.587);
  if (c->channels >= 3 && grey) c->f.png_set_gray_to_rgb(c->png);
}

static void read_header(coder *c)
{
  png_uint_32 w, h;
  int depth, type;
  c->f.png_set_read_fn(c->png, c, read_bytes);
  c->f.png_read_info(c->png, c->info);
  c->f.png_get_IHDR(c->png, c->info, &w, &h, &depth, &type, NULL, NULL, NULL);
  set_channels(c, type, depth);
  c->f.png_read_update_info(c->png, c->info);
  c->pixels->frames = 1;
  c->pixels->h = h;
  c->pixels->w = w;
  c->pixels->c = c->channels;
  c->pixels->wide = c->wide;
  /* Deflate shrinks to a thousandth at best, so a file is too short for a size that it only claims. */
  double bits = (double)h * (double)w * (double)depth;
  if (bits / 8 / 1040 > (double)c->in->size) c->f.png_error(c->png, "the data is too short for the image's size");
}

static void read_rows(coder *c)
{
  size_t row = c->f.png_get_rowbytes(c->png, c->info), wanted = (size_t)c->pixels->w * (size_t)c->pixels->c;
  if (row != (c->wide && !c->widens ? 2 * wanted : wanted)) c->f.png_error(c->png, "rows have another size");
  for (size_t y = 0; y < c->n_rows; y++) c->rows[y] = (png_bytep)c->pixels->data + y * row;
  c->f.png_read_image(c->png, c->rows);
  c->f.png_read_end(c->png, c->info);
}

/* Bytes become words, from the end, where the words lie. */
static void widen(tn__pixels *p)
{
  const uint8_t *from = p->data;
  uint16_t *to = p->data;
  for (size_t i = p->bytes / 2; i-- > 0;) {
    uint8_t v = from[i];
    to[i] = (uint16_t)(v << 8 | v);
  }
}

static tn_status invalid(coder *c)
{
  if (c->status != TN_OK) return c->status;
  return tn_error_set(c->err, TN_INVALID_ARGUMENT, "%s: the PNG data of %zu bytes is invalid: %s", c->in->op,
                      c->in->size, c->why);
}

static void start_read(coder *c)
{
  c->png = c->f.png_create_read_struct(PNG_LIBPNG_VER_STRING, c, on_error, on_warning);
  if (c->png != NULL) c->info = c->f.png_create_info_struct(c->png);
}

tn_status tn__png_decode(const tn__coded *in, int channels, bool wide, tn__pixels *out, tn_error *err)
{
  coder c = { .in = in, .pixels = out, .channels = channels, .wide = wide, .err = err };
  tn_status st = load(&c);
  if (st != TN_OK) return st;
  if (!guarded(&c, start_read) || c.info == NULL) st = tn__no_memory(err, "libpng's state", 0);
  if (st == TN_OK && !guarded(&c, read_header)) st = invalid(&c);
  if (st == TN_OK) st = tn__pixels_room(out, in->op, err);
  if (st == TN_OK && !make_rows(&c, out->h)) st = c.status;
  if (st == TN_OK && !guarded(&c, read_rows)) st = invalid(&c);
  if (st == TN_OK && c.widens) widen(out);
  c.f.png_destroy_read_struct(&c.png, &c.info, NULL);
  tn__free(c.rows, c.n_rows * sizeof *c.rows);
  return st;
}

/* ---- encoding ---- */

static void write_bytes(png_structp png, png_bytep from, size_t n)
{
  if (!tn__encoded_add(current->text, from, n)) current->f.png_error(png, "out of memory");
}

static void flush(png_structp png) { (void)png; }

static void start_write(coder *c)
{
  c->png = c->f.png_create_write_struct(PNG_LIBPNG_VER_STRING, c, on_error, on_warning);
  if (c->png != NULL) c->info = c->f.png_create_info_struct(c->png);
}

static void write_image(coder *c)
{
  static const int types[] = { 0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                               PNG_COLOR_TYPE_RGB_ALPHA };
  const tn__pixels *p = c->source;
  size_t row = (size_t)p->w * (size_t)p->c * (p->wide ? 2 : 1);
  c->f.png_set_write_fn(c->png, c, write_bytes, flush);
  c->f.png_set_compression_level(c->png, c->compression);
  c->f.png_set_IHDR(c->png, c->info, (png_uint_32)p->w, (png_uint_32)p->h, p->wide ? 16 : 8, types[p->c],
                    PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  c->f.png_write_info(c->png, c->info);
  if (p->wide) c->f.png_set_swap(c->png);
  for (size_t y = 0; y < c->n_rows; y++) c->rows[y] = (png_bytep)p->data + y * row;
  c->f.png_write_image(c->png, c->rows);
  c->f.png_write_end(c->png, NULL);
}

tn_status tn__png_encode(const char *op, const tn__pixels *in, int compression, tn__encoded *out, tn_error *err)
{
  coder c = { .source = in, .text = out, .compression = compression, .err = err };
  tn_status st = load(&c);
  if (st != TN_OK) return st;
  if (in->h > PNG_UINT_31_MAX || in->w > PNG_UINT_31_MAX || in->h < 1 || in->w < 1)
    return tn_error_set(err, TN_INTERNAL, "%s: PNG has no images of %lld x %lld", op, (long long)in->h,
                        (long long)in->w);
  if (!guarded(&c, start_write) || c.info == NULL) st = tn__no_memory(err, "libpng's state", 0);
  if (st == TN_OK && !make_rows(&c, in->h)) st = c.status;
  if (st == TN_OK && !guarded(&c, write_image)) st = tn_error_set(err, TN_INTERNAL, "%s: libpng: %s", op, c.why);
  c.f.png_destroy_write_struct(&c.png, &c.info);
  tn__free(c.rows, c.n_rows * sizeof *c.rows);
  return st;
}
#else
tn_status tn__png_decode(const tn__coded *in, int channels, bool wide, tn__pixels *out, tn_error *err)
{
  (void)in, (void)channels, (void)wide, (void)out;
  return tn__library_load(NULL, NEEDS, NULL, NULL, 0, err);
}

tn_status tn__png_encode(const char *op, const tn__pixels *in, int compression, tn__encoded *out, tn_error *err)
{
  (void)op, (void)in, (void)compression, (void)out;
  return tn__library_load(NULL, NEEDS, NULL, NULL, 0, err);
}
#endif
