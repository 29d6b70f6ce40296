/* SPDX-License-Identifier: Apache-2.0 */
/* Which plugin's code a thread is in. A program asks when its process is ended from there (tn_plugin_call_now), so that
 * is what each call into a plugin leaves behind: a record in the caller's frame, and one store into a word of the
 * thread.
 *
 * Kernels of plugins have records of their own; those of the library have none. A thread that helps with a kernel's
 * loop reads the record of the thread that runs the kernel. */
#ifndef TN_CORE_BASE_PLUGIN_CALL_H
#define TN_CORE_BASE_PLUGIN_CALL_H

#include <stdatomic.h>
#include <stddef.h>

#include <core/base/thread.h>

typedef struct tn__plugin_call {
  const struct tn__plugin_call *outer; /* the call that this one is inside of */
  const char *plugin, *file;       /* its name, and where it is from */
  const char *call;                /* "its step" */
  const char *kernel, *node;       /* of a kernel, else NULL */
} tn__plugin_call;

/* Read by handlers of signals on the same thread. */
extern _Thread_local const tn__plugin_call *volatile tn__plugin_call_now TN__THREAD_WORD;
/* While a thread helps: where the record of the thread that it helps is. */
extern _Thread_local const tn__plugin_call *const volatile *volatile tn__plugin_call_helped TN__THREAD_WORD;

static inline void tn__plugin_call_enter(tn__plugin_call *c)
{
  c->outer = tn__plugin_call_now;
  atomic_signal_fence(memory_order_seq_cst);
  tn__plugin_call_now = c;
}
static inline void tn__plugin_call_leave(const tn__plugin_call *c) { tn__plugin_call_now = c->outer; }

/* The plugin that registered a kernel. */
typedef struct tn__guest {
  const char *name, *file;
} tn__guest;

#endif
