/* SPDX-License-Identifier: Apache-2.0 */
/* Arena offsets: blocks that are live together do not overlap, and the arena is not much larger
 * than the live bytes. */
#include <core/layout/layout.h>
#include <stdlib.h>
#include <string.h>
#include <conformance/support/oom.h>
#include <conformance/support/tap.h>

static size_t rounded(size_t n) { return (n + TN_ALIGN - 1) / TN_ALIGN * TN_ALIGN; }

static bool overlap(const tn__life *a, const tn__life *b)
{
  bool in_time = a->first <= b->last && b->first <= a->last;
  bool in_space = a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
  return in_time && in_space;
}

/* Maximum of bytes that are live at once: no arena can be smaller. */
static size_t lower_bound(const tn__life *lives, size_t n)
{
  size_t most = 0;
  for (size_t i = 0; i < n; i++) {
    size_t sum = 0;
    for (size_t k = 0; k < n; k++)
      if (lives[k].first <= lives[i].first && lives[i].first <= lives[k].last) sum += rounded(lives[k].bytes);
    if (sum > most) most = sum;
  }
  return most;
}

static int by_first(const void *a, const void *b)
{
  const tn__life *x = a, *y = b;
  return x->first < y->first ? -1 : x->first > y->first;
}

static void layout__random_blocks_do_not_overlap(void)
{
  srand(7);
  double worst = 1, sum = 0;
  for (int round = 0; round < 200; round++) {
    tn__life lives[120];
    size_t n = 1 + (size_t)rand() % 120, bytes, live;
    for (size_t i = 0; i < n; i++) {
      uint32_t first = (uint32_t)rand() % 60;
      lives[i] = (tn__life){ .slot = (uint32_t)i, .first = first, .last = first + (uint32_t)rand() % 10,
                             .bytes = (size_t)rand() % 5000 };
    }
    qsort(lives, n, sizeof *lives, by_first);
    CHECK_INT(tn__layout_assign(lives, n, &bytes, &live, NULL), TN_OK);
    for (size_t i = 0; i < n; i++) {
      CHECK(lives[i].offset % TN_ALIGN == 0);
      CHECK(lives[i].offset + lives[i].bytes <= bytes);
      for (size_t k = 0; k < i; k++) CHECK(!overlap(&lives[i], &lives[k]));
    }
    size_t least = lower_bound(lives, n);
    CHECK_INT(live, least);
    double ratio = least == 0 ? 1 : (double)bytes / (double)least;
    if (ratio > worst) worst = ratio;
    sum += ratio;
  }
  CHECK_MSG(worst < 1.2 && sum / 200 < 1.03, "at worst %.3f times the live bytes, on average %.3f", worst,
            sum / 200);
}

/* Placed in the order of the step, a block larger than those before it would leave a gap in
 * which it does not fit. */
static void layout__large_blocks_are_placed_first(void)
{
  tn__life three[] = { { .first = 0, .last = 1, .bytes = 6400 }, { .first = 1, .last = 2, .bytes = 3840 },
                       { .first = 2, .last = 3, .bytes = 8960 } };
  size_t bytes, live;
  CHECK_INT(tn__layout_assign(three, 3, &bytes, &live, NULL), TN_OK);
  CHECK_INT(live, 8960 + 3840);
  CHECK_INT(bytes, live);
}

/* Inverted residuals: tensors that grow and shrink in turns, and one that is kept for an
 * addition. */
static void layout__branches_need_little_more_than_the_live_bytes(void)
{
  tn__life lives[60];
  size_t bytes, live, n = 0;
  for (uint32_t i = 0; n < 60; i += 3) {
    size_t size = 64 * (100 - i);
    lives[n++] = (tn__life){ .first = i, .last = i + 3, .bytes = size };
    lives[n++] = (tn__life){ .first = i + 1, .last = i + 2, .bytes = 6 * size + 64 };
    lives[n++] = (tn__life){ .first = i + 2, .last = i + 3, .bytes = 6 * size - 640 };
  }
  CHECK_INT(tn__layout_assign(lives, n, &bytes, &live, NULL), TN_OK);
  CHECK(bytes <= live + live / 20);
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < i; k++) CHECK(!overlap(&lives[i], &lives[k]));
}

/* The time for trying orders is limited: after that the first offsets, which are valid too, are
 * kept. */
static void layout__thousands_of_blocks(void)
{
  enum { N = 20000 };
  tn__life *lives = calloc(N, sizeof *lives);
  size_t bytes, live;
  srand(11);
  for (uint32_t i = 0; i < N; i++)
    lives[i] =
        (tn__life){ .first = i, .last = i + 1 + (uint32_t)rand() % 40, .bytes = 64 * (size_t)(1 + rand() % 900) };
  lives[0].last = N;
  int64_t begin = tn__now_ns();
  CHECK_INT(tn__layout_assign(lives, N, &bytes, &live, NULL), TN_OK);
  CHECK(tn__now_ns() - begin < 1000000000);
  CHECK(bytes < live * 3 / 2);
  for (uint32_t i = 0; i < N; i++)
    for (uint32_t k = i > 50 ? i - 50 : 0; k < i; k++) CHECK(!overlap(&lives[i], &lives[k]));
  free(lives);
}

static void layout__a_chain_needs_two_blocks(void)
{
  tn__life lives[1000];
  size_t bytes, live;
  for (uint32_t i = 0; i < 1000; i++) lives[i] = (tn__life){ .slot = i, .first = i, .last = i + 1, .bytes = 100 };
  CHECK_INT(tn__layout_assign(lives, 1000, &bytes, &live, NULL), TN_OK);
  CHECK_INT(bytes, 2 * 128);
}

/* ---- threads that share loops ---- */

#define LINE 64

/* The lines that, in the second of two steps, are written by a different thread than the last to
 * write them. Each thread writes its part of a value. */
static size_t lines_of_others(const tn__life *lives, size_t n, size_t arena_bytes, size_t threads)
{
  uint8_t *writer = calloc(arena_bytes / LINE + 1, 1); /* 1 + number of the thread */
  size_t others = 0;
  for (int step = 0; step < 2; step++) {
    others = 0;
    for (size_t i = 0; i < n; i++)
      for (size_t at = 0; at < lives[i].bytes; at += LINE) {
        uint8_t *line = &writer[(lives[i].offset + at) / LINE];
        size_t thread = at * threads / lives[i].bytes;
        others += *line != 0 && *line != 1 + thread;
        *line = (uint8_t)(1 + thread);
      }
  }
  free(writer);
  return others;
}

/* A network of shrinking images, with values that grow and shrink in turns and some that are
 * added later. */
static size_t make_network(tn__life *lives)
{
  static const size_t kb[] = { 512, 512, 256, 1536, 384, 96,  576, 576, 96, 576,
                               144, 32,  192, 192,  32,  192, 48,  16,  96, 96 };
  size_t n = 0;
  for (uint32_t i = 0; i < sizeof kb / sizeof *kb; i++)
    lives[n++] =
        (tn__life){ .first = i, .last = i + (kb[i] <= 96 && i % 3 == 2 ? 3 : 1), .bytes = kb[i] << 10, .shared = true };
  return n;
}

static void layout__threads_write_to_their_own_lines(void)
{
  tn__life lives[32];
  size_t bytes, live, n = make_network(lives);
  CHECK_INT(tn__layout_assign(lives, n, &bytes, &live, NULL), TN_OK);
  size_t before = lines_of_others(lives, n, bytes, 2), needed = bytes;
  CHECK(tn__layout_share(lives, n, 2, live, &bytes));
  size_t after = lines_of_others(lives, n, bytes, 2);
  CHECK_MSG(after < before / 2, "%zu lines of other threads before, %zu after", before, after);
  CHECK_MSG(bytes <= live + live / 2, "%zu bytes, with %zu live and %zu needed before", bytes, live, needed);
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < i; k++) CHECK(!overlap(&lives[i], &lives[k]));
}

static void layout__offsets_for_one_thread_are_kept(void)
{
  tn__life lives[32], same[32];
  size_t bytes, live, n = make_network(lives);
  CHECK_INT(tn__layout_assign(lives, n, &bytes, &live, NULL), TN_OK);
  size_t needed = bytes;
  memcpy(same, lives, sizeof same);
  CHECK(!tn__layout_share(lives, n, 1, live, &bytes));
  for (size_t i = 0; i < n; i++) lives[i].shared = false; /* the same if the caller writes all blocks */
  CHECK(!tn__layout_share(lives, n, 2, live, &bytes));
  CHECK_INT(bytes, needed);
  for (size_t i = 0; i < n; i++) CHECK_INT(lives[i].offset, same[i].offset);
}

/* The offsets are valid for any set of blocks and any number of threads, whether better ones
 * were found or not. */
static void layout__shared_blocks_do_not_overlap(void)
{
  srand(5);
  int found = 0;
  for (int round = 0; round < 150; round++) {
    tn__life lives[60];
    size_t n = 2 + (size_t)rand() % 58, bytes, live;
    for (size_t i = 0; i < n; i++) { /* a third of the sets leave gaps in which large blocks do not fit */
      int large = 3000;
      if (round % 3 == 1) large = 300000;
      if (round % 3 == 2) large = rand() % 4 ? 5000 : 400000;
      uint32_t first = (uint32_t)rand() % 40, length = (uint32_t)(rand() % 3 ? rand() % 3 : rand() % 30);
      lives[i] = (tn__life){ .first = first,
                             .last = rand() % 20 == 0 ? UINT32_MAX : first + length,
                             .shared = rand() % 4 != 0,
                             .bytes = (size_t)(rand() % large) };
    }
    qsort(lives, n, sizeof *lives, by_first);
    CHECK_INT(tn__layout_assign(lives, n, &bytes, &live, NULL), TN_OK);
    size_t needed = bytes;
    bool better = tn__layout_share(lives, n, 2 + (uint32_t)rand() % 20, live, &bytes);
    found += better;
    CHECK(better ? bytes <= live + live / 2 : bytes == needed);
    for (size_t i = 0; i < n; i++) {
      CHECK(lives[i].offset % TN_ALIGN == 0);
      CHECK(lives[i].offset + lives[i].bytes <= bytes);
      for (size_t k = 0; k < i; k++) CHECK(!overlap(&lives[i], &lives[k]));
    }
  }
  CHECK_MSG(found > 20 && found < 140, "better offsets in %d of 150", found);
}

static void layout__the_search_for_better_offsets_is_short(void)
{
  enum { N = 20000 };
  static tn__life lives[N];
  for (size_t n = 1000; n <= N; n += 19000) {
    size_t bytes, live;
    srand(11);
    for (uint32_t i = 0; i < n; i++)
      lives[i] = (tn__life){
        .first = i, .last = i + 1 + (uint32_t)rand() % 40, .bytes = 64 * (size_t)(1 + rand() % 900), .shared = true
      };
    CHECK_INT(tn__layout_assign(lives, n, &bytes, &live, NULL), TN_OK);
    int64_t begin = tn__now_ns();
    tn__layout_share(lives, n, 4, live, &bytes);
    CHECK(tn__now_ns() - begin < 1000000000);
  }
}

/* Without memory for the search, the offsets are unchanged. */
static void layout__better_offsets_are_optional(void)
{
  for (uint64_t at = 1; at <= 6; at++) {
    tn__life lives[32], same[32];
    size_t bytes, live, n = make_network(lives);
    CHECK_INT(tn__layout_assign(lives, n, &bytes, &live, NULL), TN_OK);
    size_t needed = bytes;
    memcpy(same, lives, sizeof same);
    uint64_t blocks = tn_test_live_blocks();
    tn_test_fail_allocation(at, 0);
    CHECK(!tn__layout_share(lives, n, 2, live, &bytes));
    CHECK(tn_test_allocation_failed());
    tn_test_fail_allocation(0, 0);
    CHECK_INT(tn_test_live_blocks(), blocks);
    CHECK_INT(bytes, needed);
    for (size_t i = 0; i < n; i++) CHECK_INT(lives[i].offset, same[i].offset);
  }
}

static void layout__overflowing_sizes_are_rejected(void)
{
  tn__life lives[2] = { { .first = 0, .last = 9, .bytes = (size_t)PTRDIFF_MAX - 1 },
                        { .first = 1, .last = 9, .bytes = 1 << 20 } };
  size_t bytes, live;
  CHECK_INT(tn__layout_assign(lives, 2, &bytes, &live, NULL), TN_RESOURCE_EXHAUSTED);
}

static tn_status assign_some(void *arg)
{
  (void)arg;
  tn__life lives[64];
  size_t bytes, live;
  for (uint32_t i = 0; i < 64; i++)
    lives[i] = (tn__life){ .slot = i, .first = i, .last = i % 3 ? i : 63, .bytes = 64 * (1 + i % 5) };
  return tn__layout_assign(lives, 64, &bytes, &live, NULL);
}

static void layout__survives_lack_of_memory(void) { tn_test_oom_sweep(assign_some, NULL); }

TAP_MAIN(
  TAP_TEST(layout__random_blocks_do_not_overlap),
  TAP_TEST(layout__large_blocks_are_placed_first),
  TAP_TEST(layout__branches_need_little_more_than_the_live_bytes),
  TAP_TEST(layout__thousands_of_blocks),
  TAP_TEST(layout__a_chain_needs_two_blocks),
  TAP_TEST(layout__threads_write_to_their_own_lines),
  TAP_TEST(layout__offsets_for_one_thread_are_kept),
  TAP_TEST(layout__shared_blocks_do_not_overlap),
  TAP_TEST(layout__the_search_for_better_offsets_is_short),
  TAP_TEST(layout__better_offsets_are_optional),
  TAP_TEST(layout__overflowing_sizes_are_rejected),
  TAP_TEST(layout__survives_lack_of_memory))
