/* SPDX-License-Identifier: Apache-2.0 */
/* Arena offsets: blocks that live together do not overlap, and the arena is not much larger than what lives at once. */
#include <core/plan/layout.h>
#include <stdlib.h>
#include <string.h>
#include <tests/support/oom.h>
#include <tests/support/tap.h>

static size_t rounded(size_t n) { return (n + TN_ALIGN - 1) / TN_ALIGN * TN_ALIGN; }

static bool overlap(const tn__life *a, const tn__life *b)
{
  bool in_time = a->first <= b->last && b->first <= a->last;
  bool in_space = a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
  return in_time && in_space;
}

/* Most bytes that live at once: no arena can be smaller. */
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
  CHECK_MSG(worst < 1.2 && sum / 200 < 1.03, "the worst takes %.3f times its live bytes, all on average %.3f", worst,
            sum / 200);
}

/* Placed in the order of the step, a block that is larger than those before it leaves a gap that it does not fit. */
static void layout__large_blocks_go_first(void)
{
  tn__life three[] = { { .first = 0, .last = 1, .bytes = 6400 }, { .first = 1, .last = 2, .bytes = 3840 },
                       { .first = 2, .last = 3, .bytes = 8960 } };
  size_t bytes, live;
  CHECK_INT(tn__layout_assign(three, 3, &bytes, &live, NULL), TN_OK);
  CHECK_INT(live, 8960 + 3840);
  CHECK_INT(bytes, live);
}

/* Inverted residuals: tensors that grow and shrink in turns, and one that lives on until it is added. */
static void layout__branches_take_little_more_than_lives(void)
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

/* Orders are tried for so long and no longer: then the first offsets stay, which are right too. */
static void layout__thousands_of_blocks(void)
{
  enum { N = 20000 };
  tn__life *lives = calloc(N, sizeof *lives);
  size_t bytes, live;
  srand(11);
  for (uint32_t i = 0; i < N; i++)
    lives[i] = (tn__life){ .first = i, .last = i + 1 + (uint32_t)rand() % 40, .bytes = 64 * (size_t)(1 + rand() % 900) };
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

static void layout__sizes_that_overflow_are_refused(void)
{
  tn__life lives[2] = { { .first = 0, .last = 9, .bytes = (size_t)PTRDIFF_MAX - 1 }, { .first = 1, .last = 9, .bytes = 1 << 20 } };
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
  TAP_TEST(layout__large_blocks_go_first),
  TAP_TEST(layout__branches_take_little_more_than_lives),
  TAP_TEST(layout__thousands_of_blocks),
  TAP_TEST(layout__a_chain_needs_two_blocks),
  TAP_TEST(layout__sizes_that_overflow_are_refused),
  TAP_TEST(layout__survives_lack_of_memory))
