/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator that tests run with: it counts what is alive, checks that sizes and alignments come back to free as they
 * were given to alloc, fills fresh and freed memory, and fails on demand. */
#ifndef TENON_CONFORMANCE_SUPPORT_OOM_H
#define TENON_CONFORMANCE_SUPPORT_OOM_H

#include <stdint.h>

#include <tenon/process.h>
#include <tenon/status.h>

/* Installs the allocator; tap_main has done it. */
void tn_test_alloc_install(void);

/* Bytes and blocks that the library holds now, and allocations made since the start of the program. */
uint64_t tn_test_live_bytes(void);
uint64_t tn_test_live_blocks(void);
uint64_t tn_test_allocations(void);

/* The nth allocation from now (1 = the next) fails; with `for_good` all after it, too. 0 ends it. */
void tn_test_fail_allocation(uint64_t nth, int for_good);

/* Whether an allocation was failed since the last tn_test_fail_allocation. */
int tn_test_allocation_failed(void);

/* Calls fn(arg) with allocation 1, 2, 3 ... failing, first only that one, then that one and all after it, until fn gets
 * through without meeting the failure. Each time fn must give TN_RESOURCE_EXHAUSTED or TN_OK, and leave as much memory
 * alive as it found; fn cleans up after itself when it succeeds. It is called once without failures before, so that what
 * the library makes once for the process does not count as a leak. Where that takes longer than TENON_TEST_SWEEP_SECONDS (40; 0: no
 * limit) for one way of failing, allocations are left out at even distances, but for the first 50.
 * A failure is recorded as that of a CHECK and names the number of the allocation. From the test's own thread. */
void tn_test_oom_sweep(tn_status (*fn)(void *arg), void *arg);

/* Whether blocks are filled with nonsense when they come and go, as they are at first: not for who measures time. */
void tn_test_fill_memory(int on);

#endif
