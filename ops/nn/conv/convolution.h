/* SPDX-License-Identifier: Apache-2.0 */
/* Common code of convolutions over images and volumes and their gradients: shape checks, and matrices whose rows are
 * windows.
 *
 * The relation between x (the images), the filter and y (the result) is the same whichever of the three is computed. */
#ifndef TN_OPS_NN_CONV_CONVOLUTION_H
#define TN_OPS_NN_CONV_CONVOLUTION_H

#include <ops/kernel/product/gemm.h>
#include <ops/kernel/window/volume.h>

typedef enum tn__conv_wanted { TN__CONV_Y, TN__CONV_X, TN__CONV_FILTER } tn__conv_wanted;

/* How an op's inputs and output relate to the three. y is input 2 of gradients. */
typedef struct tn__conv_kind {
  tn__conv_wanted wanted;
  int directions;
  bool depthwise;  /* each channel has its own filters and outputs */
  bool by_example; /* a gradient's shape is given by a tensor of that shape, not by its sizes */
} tn__conv_kind;

typedef struct tn__conv_sizes {
  tn__volume_window window; /* with padding */
  tn__volume x, y;          /* if they have no elements, their other sizes may have any product */
  int64_t x_pixels, y_pixels; /* in all images together */
  int64_t taps;             /* taps of the window */
  int64_t fc, fo;           /* the filter's input and output channels */
  int64_t groups;           /* 1 if depthwise */
} tn__conv_sizes;

/* For `create`: reads the attributes. */
tn_status tn__conv_read(const tn_operation *op, const tn__conv_kind *kind, tn__volume_window *w, tn_error *err);
/* For `prepare`: computes the sizes from the inputs and sets the shape of output 0. */
tn_status tn__conv_prepare(tn_prepare_ctx *ctx, const tn__conv_kind *kind, const tn__volume_window *w,
                           tn__conv_sizes *z, tn_error *err);
/* The shape function. */
tn_status tn__conv_infer(tn_infer_ctx *ctx, const tn__conv_kind *kind, tn_error *err);

/* ---- rows of a matrix ---- */

/* Offsets of a source's elements by window position and tap along each axis. */
typedef struct tn__taps {
  size_t bytes;      /* size of this allocation */
  size_t element;    /* bytes per element: 4 or 8 */
  int64_t places[3]; /* number of window positions along each axis */
  int64_t size[3];   /* size of a window */
  int64_t from[3];   /* size of the source */
  int64_t c, pitch;  /* channels of a window, and of the source */
  int64_t *at[3];    /* [place * size + tap]: index in the source, -1 if outside */
} tn__taps;

/* _of_x: windows over x at the positions of y. The other one: for each element of x, a window over the positions of
 * y that read it. The caller sets c, pitch and element. NULL if out of memory. */
tn__taps *tn__taps_of_x(const tn__conv_sizes *z);
tn__taps *tn__taps_of_y(const tn__conv_sizes *z);
void tn__taps_destroy(tn__taps *t); /* NULL allowed */
static inline int64_t tn__taps_places(const tn__taps *t) { return t->places[0] * t->places[1] * t->places[2]; }

/* The `user` of the two tn__gemm_rows functions below. in: first channel of the source's first pixel. */
typedef struct tn__tap_rows {
  const tn__taps *taps;
  const char *in;
} tn__tap_rows;
/* Each row is a window position, image by image. Its terms are the window's taps and the channels of each tap. */
int64_t tn__taps_by_place(const void *user, int64_t row, int rows, int64_t term, int64_t terms, void *room,
                          const void **at, int64_t *step);
/* The transposed matrix. */
int64_t tn__taps_by_tap(const void *user, int64_t row, int rows, int64_t term, int64_t terms, void *room,
                        const void **at, int64_t *step);

#endif
