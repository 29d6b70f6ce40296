/* SPDX-License-Identifier: Apache-2.0 */
/* Ops and random graphs for tests of concurrency. */
#ifndef TENON_TESTS_SUPPORT_TASKS_KIT_H
#define TENON_TESTS_SUPPORT_TASKS_KIT_H

#include "conformance/support/session_kit.h"

/* Ops with slow kernels that detect whether another kernel writes into their values:
 *
 * TestWork   x, y: float -> z: float   n numbers made of both; may reuse either
 * TestScan   x, y: float -> z: float   the same, with scratch, and not in place
 * TestTell   x: float -> z: string     n strings
 * TestHear   x: string, y: float -> z: float  n numbers
 * TestMake   x: float -> z: float      n numbers in a tensor of the kernel's own
 * TestNote   x: float -> z: float      stateful; notes its slot in ts_watched.log
 * TestBreak  x: float -> z: float      like TestScan of x and x; fails with ABORTED if ts_breaks names its slot
 * TestStay   x: float -> z: float      like TestScan; sets ts_stays, and waits for ts_goes or its step's cancellation
 * TestNest   x: float -> z: float      runs "sum" of ts_nested for x in the kernel
 *
 * All have n: int = 1 (elements), ns: int = 0 (of compute), slot: int = 0. */
void ts_register_tasks(void);

extern atomic_int ts_breaks; /* slot + 1; 0 = none */
extern atomic_int ts_stays, ts_goes;
extern atomic_int ts_spoilt; /* a value was written that should not have been */
extern atomic_int ts_at_once, ts_most_at_once; /* running kernels */
extern tn_session *ts_nested;
extern _Atomic double ts_speed; /* factor on ns */

/* One of these ops; y may have op NULL. */
tn_output ts_task_op(tn_graph *graph, const char *op, const char *name, tn_output x, tn_output y, int n, int ns,
                     int slot);

/* Makes a graph of many branches from placeholder "x" by the seed; names its last nodes in
 * fetches and returns their number. */
enum { TS_MOST_FETCHES = 6 };
size_t ts_random_branches(tn_graph *graph, uint32_t seed, int most_nodes, char fetches[TS_MOST_FETCHES][16]);

#endif
