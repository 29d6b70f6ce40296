/* SPDX-License-Identifier: Apache-2.0 */
#include <conformance/support/oom.h>

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <conformance/support/tap.h>

/* Stored directly before the bytes that the library sees. */
typedef struct header {
  uint64_t magic;
  size_t size;
  size_t align;
  void *block; /* result of malloc */
} header;

#define MAGIC_ALIVE UINT64_C(0x5445534e4f4e4c49)
#define MAGIC_FREED UINT64_C(0xdeadf4eedeadf4ee)
#define SWEEP_LIMIT 200000
#define SWEEP_SECONDS 40.0 /* per way of failing */
#define SWEEP_WHOLE 50    /* number of allocations tried without gaps */

static struct {
  atomic_uint_fast64_t live_bytes;
  atomic_uint_fast64_t live_blocks;
  atomic_uint_fast64_t allocations;
  atomic_uint_fast64_t countdown; /* the allocation that decrements it from 1 to 0 fails; 0: off */
  atomic_int for_good;
  atomic_int failing; /* for_good, and the point was reached */
  atomic_int failed;
} state;

static bool must_fail(void)
{
  if (atomic_load(&state.failing)) return true;
  uint_fast64_t left = atomic_load(&state.countdown);
  while (left != 0 && !atomic_compare_exchange_weak(&state.countdown, &left, left - 1)) { }
  if (left != 1) return false;
  atomic_store(&state.failed, 1);
  if (atomic_load(&state.for_good)) atomic_store(&state.failing, 1);
  return true;
}

static void die(const char *what, size_t found, size_t wanted)
{
  printf("Bail out! allocator: %s: found %zu, wanted %zu\n", what, found, wanted);
  fflush(stdout);
  abort();
}

#define MOST_BYTES (SIZE_MAX / 2 >> 24) /* more than any machine has; a sanitizer would end the program */

static atomic_bool fills = true;

void tn_test_fill_memory(int on) { atomic_store(&fills, on); }

static void *checked_alloc(void *user, size_t size, size_t align)
{
  (void)user;
  if (size == 0) die("an allocation of no bytes", 0, 1);
  if (align < 16 || (align & (align - 1)) != 0) die("alignment is not a power of two of at least 16", align, 16);
  atomic_fetch_add(&state.allocations, 1);
  if (must_fail()) return NULL;

  size_t extra = sizeof(header) + align;
  if (size > MOST_BYTES || size > SIZE_MAX - extra) return NULL;
  char *block = malloc(size + extra);
  if (!block) return NULL;
  uintptr_t at = ((uintptr_t)block + extra) & ~(uintptr_t)(align - 1);
  char *bytes = block + (at - (uintptr_t)block);
  header h = { MAGIC_ALIVE, size, align, block };
  memcpy(bytes - sizeof(h), &h, sizeof(h));
  if (atomic_load_explicit(&fills, memory_order_relaxed)) memset(bytes, 0xa5, size);
  atomic_fetch_add(&state.live_bytes, size);
  atomic_fetch_add(&state.live_blocks, 1);
  return bytes;
}

static void checked_free(void *user, void *ptr, size_t size, size_t align)
{
  (void)user;
  header h;
  memcpy(&h, (char *)ptr - sizeof(h), sizeof(h));
  if (h.magic == MAGIC_FREED) die("freed twice, size", size, h.size);
  if (h.magic != MAGIC_ALIVE) die("memory that was never allocated here, size", size, 0);
  if (h.size != size) die("size given to free", size, h.size);
  if (h.align != align) die("alignment given to free", align, h.align);
  h.magic = MAGIC_FREED;
  memcpy((char *)ptr - sizeof(h), &h, sizeof(h));
  if (atomic_load_explicit(&fills, memory_order_relaxed)) memset(ptr, 0xdd, size);
  atomic_fetch_sub(&state.live_bytes, size);
  atomic_fetch_sub(&state.live_blocks, 1);
  free(h.block);
}

/* Fills freed memory, so that a use after free is detected. */
static tn_bool checked_discard(void *user, void *ptr, size_t size)
{
  (void)user;
  if (atomic_load_explicit(&fills, memory_order_relaxed)) memset(ptr, 0xdd, size);
  return 1;
}

void tn_test_alloc_install(void)
{
  tn_allocator allocator = { sizeof(allocator), NULL, checked_alloc, checked_free, checked_discard };
  tn_error err = TN_ERROR_INIT;
  if (tn_set_allocator(&allocator, &err) != TN_OK) {
    printf("Bail out! tn_set_allocator: %s\n", tn_error_message(&err));
    exit(1);
  }
}

uint64_t tn_test_live_bytes(void) { return atomic_load(&state.live_bytes); }

uint64_t tn_test_live_blocks(void) { return atomic_load(&state.live_blocks); }

uint64_t tn_test_allocations(void) { return atomic_load(&state.allocations); }

void tn_test_fail_allocation(uint64_t nth, int for_good)
{
  atomic_store(&state.countdown, 0);
  atomic_store(&state.failing, 0);
  atomic_store(&state.failed, 0);
  atomic_store(&state.for_good, for_good);
  atomic_store(&state.countdown, nth);
}

int tn_test_allocation_failed(void) { return atomic_load(&state.failed); }

/* Tests one way of failing. Returns whether it passed. */
static double seconds_now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Distance to the next allocation that fails, after `tried` of them took the given seconds and `left` remain. 1 while
 * all fit into the time limit, as they do if a call takes a few milliseconds; with a driver that takes half a second to
 * open a device, only a sample is tried. The first SWEEP_WHOLE allocations are always tried. */
static uint64_t stride(uint64_t tried, uint64_t left, double seconds)
{
  const char *text = getenv("TENON_TEST_SWEEP_SECONDS"); /* 0: no time limit */
  double most = text != NULL ? atof(text) : SWEEP_SECONDS, time_left = most - seconds;
  if (most <= 0 || tried < SWEEP_WHOLE) return 1;
  double wanted = seconds / (double)tried * (double)left;
  if (time_left < most / 20) time_left = most / 20;
  return wanted <= time_left ? 1 : (uint64_t)(wanted / time_left) + 1;
}

/* n: number of allocations in a successful call. */
static bool sweep(tn_status (*fn)(void *arg), void *arg, int for_good, uint64_t n)
{
  const char *way = for_good ? "and all after it" : "alone";
  double begin = seconds_now();
  uint64_t tried = 0;
  for (uint64_t nth = 1; nth <= SWEEP_LIMIT; nth += stride(++tried, nth < n ? n - nth : 0, seconds_now() - begin)) {
    uint64_t bytes = tn_test_live_bytes(), blocks = tn_test_live_blocks();
    tn_test_fail_allocation(nth, for_good);
    tn_status status = fn(arg);
    bool met = tn_test_allocation_failed() != 0;
    tn_test_fail_allocation(0, 0);

    if (!CHECK_MSG(tn_test_live_bytes() == bytes && tn_test_live_blocks() == blocks,
                   "allocation %" PRIu64 " failed %s: %" PRId64 " blocks, %" PRId64 " bytes leaked (status %s)", nth,
                   way, (int64_t)(tn_test_live_blocks() - blocks), (int64_t)(tn_test_live_bytes() - bytes),
                   tn_status_name(status)))
      return false;
    if (!met)
      return CHECK_MSG(status == TN_OK, "no allocation failed, yet the status is %s", tn_status_name(status));
    if (!CHECK_MSG(status == TN_OK || status == TN_RESOURCE_EXHAUSTED,
                   "allocation %" PRIu64 " failed %s: status %s, wanted RESOURCE_EXHAUSTED", nth, way,
                   tn_status_name(status)))
      return false;
  }
  return FAIL("still failing after %d allocations", SWEEP_LIMIT);
}

void tn_test_oom_sweep(tn_status (*fn)(void *arg), void *arg)
{
  tn_test_fail_allocation(0, 0);
  uint64_t before = tn_test_allocations();
  tn_status status = fn(arg);
  uint64_t n = tn_test_allocations() - before;
  tap_answered(status, NULL);
  if (!CHECK_MSG(status == TN_OK, "without a failing allocation the status is %s", tn_status_name(status))) return;
  if (sweep(fn, arg, 0, n)) sweep(fn, arg, 1, n);
}
