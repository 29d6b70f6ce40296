/* SPDX-License-Identifier: Apache-2.0 */
/* How the time of a traced step is divided among what ran. */
#include "conformance/support/tap.h"

#include <string.h>

#include <tools/common/shares.h>
#include <tools/tool.h>

/* What shares.c uses of the command. */
void *tool_grow(void *items, size_t n, size_t *room, size_t size)
{
  if (n < *room) return items;
  *room = *room == 0 ? 4 : *room * 2;
  items = realloc(items, *room * size);
  REQUIRE_PTR(items);
  return items;
}

void *tool_alloc(size_t count, size_t size)
{
  void *block = calloc(count, size);
  REQUIRE_PTR(block);
  return block;
}

#define OWNERS 4

/* Checks the times of owners 0, 1, ... */
static void check_shares(const time_span *spans, size_t n, const double *wanted)
{
  double ns[OWNERS] = { 0 };
  tool_share_time(spans, n, ns);
  for (int i = 0; i < OWNERS; i++) CHECK_DOUBLE(ns[i], wanted[i], 1e-9);
}
#define CHECK_SHARES(...) check_shares(spans, sizeof spans / sizeof *spans, (const double[OWNERS]){ __VA_ARGS__ })

static void shares__nested_time_belongs_to_the_inner_one(void)
{
  const time_span spans[] = {
    { 0, 100, 0, 0, false }, { 10, 40, 0, 1, false }, { 20, 30, 0, 2, false }, { 40, 50, 0, 1, false }
  };
  CHECK_SHARES(60, 30, 10, 0);
}

static void shares__threads_divide_the_time(void)
{
  /* Both threads work for owner 0; later owners 1 and 2 run beside each other, then owner 2 alone. */
  const time_span spans[] = {
    { 0, 100, 0, 0, false }, { 20, 90, 5, 0, false }, { 100, 160, 0, 1, false }, { 100, 200, 5, 2, false }
  };
  CHECK_SHARES(100, 30, 70, 0);
}

static void shares__gaps_belong_to_none(void)
{
  const time_span spans[] = { { 10, 20, 0, 0, false }, { 30, 40, 0, 1, false }, { 50, 50, 0, 2, false } };
  CHECK_SHARES(10, 10, 0, 0);
}

static void shares__waiting_counts_while_nothing_else_runs(void)
{
  const time_span spans[] = { { 0, 100, 0, 0, true }, { 20, 60, 0, 1, false }, { 60, 70, 3, 2, false } };
  CHECK_SHARES(50, 40, 10, 0);
}

static void shares__a_span_that_ends_when_the_next_one_begins(void)
{
  const time_span spans[] = { { 0, 10, 0, 0, false }, { 10, 20, 0, 1, false }, { 10, 15, 0, 2, false } };
  CHECK_SHARES(10, 5, 5, 0);
}

TAP_MAIN(TAP_TEST(shares__nested_time_belongs_to_the_inner_one), TAP_TEST(shares__threads_divide_the_time),
         TAP_TEST(shares__gaps_belong_to_none), TAP_TEST(shares__waiting_counts_while_nothing_else_runs),
         TAP_TEST(shares__a_span_that_ends_when_the_next_one_begins))
