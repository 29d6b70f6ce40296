/* SPDX-License-Identifier: Apache-2.0 */
/* What convolutions over images and volumes and their gradients have in common: which shapes fit together, and rows of
 * a matrix that are windows.
 *
 * x (the images), the filter and y (the result) hang together in the same way whichever of the three is computed. */
#ifndef TN_OPS_NN_CONVOLUTION_H
#define TN_OPS_NN_CONVOLUTION_H

#include <ops/kernel/product/gemm.h>
#include <ops/kernel/window/volume.h>

typedef enum tn__conv_wanted { TN__CONV_Y, TN__CONV_X, TN__CONV_FILTER } tn__conv_wanted;

/* How an op gives the three. y is input 2 of gradients. */
typedef struct tn__conv_kind {
  tn__conv_wanted wanted;
  int directions;
  bool depthwise;  /* the filter has outputs for each channel of its own */
  bool by_example; /* the input that says a gradient's shape is a tensor of it, not its sizes */
} tn__conv_kind;

typedef struct tn__conv_sizes {
  tn__volume_window window; /* with padding */
  tn__volume x, y;          /* when they have no elements, other sizes may be any numbers */
  int64_t x_pixels, y_pixels; /* of all images together */
  int64_t taps;             /* of the window */
  int64_t fc, fo;           /* the filter's channels: in, out */
  int64_t groups;           /* 1 for a depthwise one */
} tn__conv_sizes;

/* Reads the attributes: the part of `create`. */
tn_status tn__conv_read(const tn_operation *op, const tn__conv_kind *kind, tn__volume_window *w, tn_error *err);
/* Works the sizes out from inputs and gives output 0 its shape. */
tn_status tn__conv_prepare(tn_prepare_ctx *ctx, const tn__conv_kind *kind, const tn__volume_window *w,
                           tn__conv_sizes *z, tn_error *err);
/* The shape function. */
tn_status tn__conv_infer(tn_infer_ctx *ctx, const tn__conv_kind *kind, tn_error *err);

/* ---- rows of a matrix ---- */

/* Elements of a source, by place and tap along each axis. Loops over places read windows of it. */
typedef struct tn__taps {
  size_t bytes;      /* of this allocation */
  size_t element;    /* bytes: 4 or 8 */
  int64_t places[3]; /* that windows have along each axis */
  int64_t size[3];   /* of a window */
  int64_t from[3];   /* of the source */
  int64_t c, pitch;  /* channels of a window, of the source */
  int64_t *at[3];    /* [place * size + tap]: where in the source, -1 for nowhere */
} tn__taps;

/* Windows over x at the places of y, or windows over y of all places that an element of x is read from. c, pitch and
 * element are left to the caller. NULL without memory. */
tn__taps *tn__taps_of_x(const tn__conv_sizes *z);
tn__taps *tn__taps_of_y(const tn__conv_sizes *z);
void tn__taps_free(tn__taps *t); /* NULL allowed */
static inline int64_t tn__taps_places(const tn__taps *t) { return t->places[0] * t->places[1] * t->places[2]; }

/* The user of the two functions below, which are tn__gemm_rows. in: the first channel of the source's first pixel. */
typedef struct tn__tap_rows {
  const tn__taps *taps;
  const char *in;
} tn__tap_rows;
/* A row is a place of one image after another; its terms are the window's taps, and the channels of each. */
int64_t tn__taps_by_place(const void *user, int64_t row, int rows, int64_t term, int64_t terms, void *room,
                          const void **at, int64_t *step);
/* The same matrix lying across. */
int64_t tn__taps_by_tap(const void *user, int64_t row, int rows, int64_t term, int64_t terms, void *room,
                        const void **at, int64_t *step);

#endif
