/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator used by tests: it counts live blocks, checks that free receives the size and alignment passed to alloc,
 * fills new and freed memory, and fails on demand. */
#ifndef TENON_CONFORMANCE_SUPPORT_OOM_H
#define TENON_CONFORMANCE_SUPPORT_OOM_H

#include <stdint.h>

#include <tenon/process.h>
#include <tenon/status.h>

/* Installs the allocator; tap_main calls it. */
void tn_test_alloc_install(void);

/* Bytes and blocks currently held by the library, and allocations since the start of the program. */
uint64_t tn_test_live_bytes(void);
uint64_t tn_test_live_blocks(void);
uint64_t tn_test_allocations(void);

/* The nth allocation from now (1 = the next) fails; with `for_good` also all later ones. 0 turns it off. */
void tn_test_fail_allocation(uint64_t nth, int for_good);

/* Whether an allocation has failed since the last tn_test_fail_allocation. */
int tn_test_allocation_failed(void);

/* Calls fn(arg) with allocation 1, 2, 3 ... failing, first only that one, then that one and all later ones, until fn
 * completes without reaching the failure. Each call must return TN_RESOURCE_EXHAUSTED or TN_OK, and must not leak; fn
 * cleans up if it succeeds. fn is first called once without failures, so that memory allocated once per process does
 * not count as a leak. If one way of failing takes longer than TENON_TEST_SWEEP_SECONDS (40; 0: no limit), allocations
 * after the first 50 are sampled at even distances. A failure is recorded like that of a CHECK and names the number of
 * the allocation. Call it on the test's thread. */
void tn_test_oom_sweep(tn_status (*fn)(void *arg), void *arg);

/* Whether blocks are filled with a pattern when allocated and freed. On by default; turn it off to measure time. */
void tn_test_fill_memory(int on);

#endif
