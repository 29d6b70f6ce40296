/* SPDX-License-Identifier: Apache-2.0 */
/* The innermost loops of strided copies: lines of units, specialised for a few widths, and blocks that are
 * transposed in registers. Units are moved as bytes, so neither their type nor their alignment matters. */
#include <ops/kernel/move/strided_blocks.h>
#include <stdint.h>
#include <string.h>

/* ---- lines ---- */

/* Special cases with constant steps, which the compiler can vectorise: one unit backwards (reversing) and step 0
 * (repeating). */
#define LINE(width)                                                                                                \
  static void line_##width(size_t unit, int64_t n, const char *from, int64_t from_step, char *to, int64_t to_step) \
  {                                                                                                                \
    (void)unit;                                                                                                    \
    if (from_step == -(width) && to_step == (width)) {                                                             \
      for (int64_t i = 0; i < n; i++) memcpy(to + i * (width), from - i * (width), width);                         \
      return;                                                                                                      \
    }                                                                                                              \
    if (from_step == 0 && to_step == (width)) { /* the same unit repeatedly */                                       \
      char one[width];                                                                                             \
      memcpy(one, from, width);                                                                                    \
      for (int64_t i = 0; i < n; i++) memcpy(to + i * (width), one, width);                                        \
      return;                                                                                                      \
    }                                                                                                              \
    for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, width);                         \
  }
LINE(1)
LINE(2)
LINE(3)
LINE(4)
LINE(6)
LINE(8)
LINE(12)
LINE(16)
LINE(24)
LINE(32)
LINE(48)
LINE(64)

/* Units of at most a few cache lines, for which a call of memcpy would cost as much as the copy itself. */
#define SHORT_LINES 512
static void line_of_lines(size_t width, int64_t n, const char *from, int64_t from_step, char *to, int64_t to_step)
{
  for (int64_t i = 0; i < n; i++, from += from_step, to += to_step)
    for (size_t k = 0; k < width; k += 64) memcpy(to + k, from + k, 64);
}

static void line_any(size_t width, int64_t n, const char *from, int64_t from_step, char *to, int64_t to_step)
{
  for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, width);
}

tn__strided_line tn__strided_line_of(size_t width)
{
  switch (width) {
  case 1: return line_1;
  case 2: return line_2;
  case 3: return line_3;
  case 4: return line_4;
  case 6: return line_6;
  case 8: return line_8;
  case 12: return line_12;
  case 16: return line_16;
  case 24: return line_24;
  case 32: return line_32;
  case 48: return line_48;
  case 64: return line_64;
  default: return width % 64 == 0 && width <= SHORT_LINES ? line_of_lines : line_any;
  }
}

/* ---- blocks ---- */

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define HAVE_SHUFFLE 1
#endif
#endif

/* Copies units one by one, with the longer side as the inner loop. */
#define EDGE(width)                                                                                     \
  static void edge_##width(int64_t n_from, int64_t n_to, const char *from, int64_t from_step, char *to, \
                           int64_t to_step)                                                             \
  {                                                                                                     \
    if (n_from > n_to) {                                                                                \
      for (int64_t k = 0; k < n_to; k++)                                                                \
        for (int64_t i = 0; i < n_from; i++)                                                            \
          memcpy(to + i * to_step + k * (width), from + k * from_step + i * (width), width);            \
    } else {                                                                                            \
      for (int64_t i = 0; i < n_from; i++)                                                              \
        for (int64_t k = 0; k < n_to; k++)                                                              \
          memcpy(to + i * to_step + k * (width), from + k * from_step + i * (width), width);            \
    }                                                                                                   \
  }
EDGE(1)
EDGE(2)
EDGE(4)
EDGE(8)
EDGE(16)

#ifdef HAVE_SHUFFLE

/* Transposes a square of n x n units in n registers of 16 bytes. Interleaving register i with register i + n/2 is
 * one step of sorting the units by column; after log2 n steps, rows and columns are exchanged. */
#define SQUARE(width, T, n, steps, LOW, HIGH)                                                                        \
  typedef T vec_##width __attribute__((vector_size(16)));                                                            \
  static inline void square_##width(const char *from, int64_t from_step, char *to, int64_t to_step)                  \
  {                                                                                                                  \
    vec_##width v[n], w[n];                                                                                          \
    for (int i = 0; i < (n); i++) memcpy(&v[i], from + i * from_step, 16);                                           \
    for (int step = 0; step < (steps); step++) {                                                                     \
      for (int i = 0; i < (n) / 2; i++) {                                                                            \
        w[2 * i] = __builtin_shufflevector(v[i], v[i + (n) / 2], LOW);                                               \
        w[2 * i + 1] = __builtin_shufflevector(v[i], v[i + (n) / 2], HIGH);                                          \
      }                                                                                                              \
      for (int i = 0; i < (n); i++) v[i] = w[i];                                                                     \
    }                                                                                                                \
    for (int i = 0; i < (n); i++) memcpy(to + i * to_step, &v[i], 16);                                               \
  }                                                                                                                  \
  static void block_##width(int64_t n_from, int64_t n_to, const char *from, int64_t from_step, char *to,             \
                            int64_t to_step)                                                                         \
  {                                                                                                                  \
    int64_t whole_from = n_from / (n) * (n), whole_to = n_to / (n) * (n);                                            \
    for (int64_t k = 0; k < whole_to; k += (n))                                                                      \
      for (int64_t i = 0; i < whole_from; i += (n))                                                                  \
        square_##width(from + k * from_step + i * (width), from_step, to + i * to_step + k * (width), to_step);      \
    if (whole_from < n_from)                                                                                         \
      edge_##width(n_from - whole_from, whole_to, from + whole_from * (width), from_step, to + whole_from * to_step, \
                   to_step);                                                                                         \
    if (whole_to < n_to)                                                                                             \
      edge_##width(n_from, n_to - whole_to, from + whole_to * from_step, from_step, to + whole_to * (width),         \
                   to_step);                                                                                         \
  }

#define LOW_16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define LOW_8 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_8 4, 12, 5, 13, 6, 14, 7, 15
#define LOW_4 0, 4, 1, 5
#define HIGH_4 2, 6, 3, 7
#define LOW_2 0, 2
#define HIGH_2 1, 3
SQUARE(1, uint8_t, 16, 4, LOW_16, HIGH_16)
SQUARE(2, uint16_t, 8, 3, LOW_8, HIGH_8)
SQUARE(4, uint32_t, 4, 2, LOW_4, HIGH_4)
SQUARE(8, uint64_t, 2, 1, LOW_2, HIGH_2)

#else
#define block_1 edge_1
#define block_2 edge_2
#define block_4 edge_4
#define block_8 edge_8
#endif

/* If the steps are multiples of TN__FAR_STEP, the lines of a block map to the same cache sets. Each line is then
 * read and written only once, as a whole, and the block is transposed in a separate buffer. */
#define PITCH (TN__FAR_BYTES + 16)
#define FAR(width, block)                                                                                      \
  static void far_##width(int64_t n_from, int64_t n_to, const char *from, int64_t from_step, char *to,         \
                          int64_t to_step)                                                                     \
  {                                                                                                            \
    char in[TN__FAR_EDGE * PITCH], out[TN__FAR_EDGE * PITCH];                                                  \
    for (int64_t k = 0; k < n_to; k++) memcpy(in + k * PITCH, from + k * from_step, (size_t)n_from * (width)); \
    block(n_from, n_to, in, PITCH, out, PITCH);                                                                \
    for (int64_t i = 0; i < n_from; i++) memcpy(to + i * to_step, out + i * PITCH, (size_t)n_to * (width));    \
  }
FAR(1, block_1)
FAR(2, block_2)
FAR(4, block_4)
FAR(8, block_8)
FAR(16, edge_16)

tn__strided_block tn__strided_far_block_of(size_t width)
{
  switch (width) {
  case 1: return far_1;
  case 2: return far_2;
  case 4: return far_4;
  case 8: return far_8;
  case 16: return far_16;
  default: return NULL;
  }
}

tn__strided_block tn__strided_block_of(size_t width)
{
  switch (width) {
  case 1: return block_1;
  case 2: return block_2;
  case 4: return block_4;
  case 8: return block_8;
  case 16: return edge_16;
  default: return NULL;
  }
}
