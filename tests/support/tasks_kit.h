/* SPDX-License-Identifier: Apache-2.0 */
/* Ops and random graphs for tests of what runs at once. */
#ifndef TENON_TESTS_SUPPORT_TASKS_KIT_H
#define TENON_TESTS_SUPPORT_TASKS_KIT_H

#include "conformance/support/session_kit.h"

/* Ops whose kernels take their time and see whether somebody else writes into what is theirs:
 *
 * TestWork   x, y: float -> z: float   n numbers made of both; may be written over either
 * TestScan   x, y: float -> z: float   the same, with scratch and nothing in place
 * TestTell   x: float -> z: string     n texts
 * TestHear   x: string, y: float -> z: float  n numbers
 * TestMake   x: float -> z: float      n numbers in a tensor of the kernel's own
 * TestNote   x: float -> z: float      stateful; notes its slot in ts_watched.log
 * TestBreak  x: float -> z: float      as TestScan of x and x, and fails with ABORTED when ts_breaks says its slot
 * TestStay   x: float -> z: float      as TestScan; says that it is there, and stays until ts_goes, or its step is
 * cancelled TestNest   x: float -> z: float      runs "sum" of ts_nested for x, inside of the kernel
 *
 * All have n: int = 1 (elements), ns: int = 0 (of compute), slot: int = 0. */
void ts_register_tasks(void);

extern atomic_int ts_breaks; /* slot + 1; 0 = none */
extern atomic_int ts_stays, ts_goes;
extern atomic_int ts_spoilt; /* something was written that should not have been */
extern atomic_int ts_at_once, ts_most_at_once; /* kernels that run */
extern tn_session *ts_nested;
extern _Atomic double ts_speed; /* factor on ns */

/* An op of these; y may have op NULL. */
tn_output ts_task_op(tn_graph *graph, const char *op, const char *name, tn_output x, tn_output y, int n, int ns,
                     int slot);

/* A graph of many branches from placeholder "x", made of the seed; its last nodes are named in fetches, and so many
 * they are. */
enum { TS_MOST_FETCHES = 6 };
size_t ts_random_branches(tn_graph *graph, uint32_t seed, int most_nodes, char fetches[TS_MOST_FETCHES][16]);

#endif
