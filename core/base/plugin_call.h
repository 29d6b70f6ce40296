/* SPDX-License-Identifier: Apache-2.0 */
/* Which plugin's code a thread is in, so that a crash handler of the program can name it (tn_plugin_call_now). Each
 * call into a plugin costs a record in the caller's frame and a store to a thread-local word, which points to the
 * innermost record.
 *
 * Calls of a plugin's kernels have records; calls of the library's own kernels have none. A thread that helps with a
 * kernel's loop uses the record of the thread that runs the kernel. */
#ifndef TN_CORE_BASE_PLUGIN_CALL_H
#define TN_CORE_BASE_PLUGIN_CALL_H

#include <stdatomic.h>
#include <stddef.h>

#include <core/base/threads/thread.h>

typedef struct tn__plugin_call {
  const struct tn__plugin_call *outer; /* the enclosing call, NULL = none */
  const char *plugin, *file;           /* the plugin's name and path; NULL plugin: the library's own kernel */
  const char *call;                    /* "its step" */
  const char *kernel, *node;           /* of a kernel call, else NULL */
} tn__plugin_call;

/* The innermost record of this thread. Signal handlers on the same thread read it, so it is volatile. */
extern _Thread_local const tn__plugin_call *volatile tn__plugin_call_now TN__THREAD_WORD;
/* While this thread helps another one: points to the other thread's tn__plugin_call_now. Else NULL. */
extern _Thread_local const tn__plugin_call *const volatile *volatile tn__plugin_call_helped TN__THREAD_WORD;

/* The record must be complete before enter. The fence keeps the compiler from publishing it earlier. */
static inline void tn__plugin_call_enter(tn__plugin_call *c)
{
  c->outer = tn__plugin_call_now;
  atomic_signal_fence(memory_order_seq_cst);
  tn__plugin_call_now = c;
}
static inline void tn__plugin_call_leave(const tn__plugin_call *c) { tn__plugin_call_now = c->outer; }

/* The plugin that registered a kernel: its name and path. */
typedef struct tn__guest {
  const char *name, *file;
} tn__guest;

#endif
