/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/plugin_call.h>

#include <stdbool.h>
#include <string.h>

#include <tenon/plugins.h>

_Thread_local const tn__plugin_call *volatile tn__plugin_call_now TN__THREAD_WORD;
_Thread_local const tn__plugin_call *const volatile *volatile tn__plugin_call_helped TN__THREAD_WORD;

/* Async-signal-safe: it reads only words of this thread and records in frames that are still active. */
tn_bool tn_plugin_call_now(tn_plugin_call *out)
{
  const tn__plugin_call *c = tn__plugin_call_now;
  const tn__plugin_call *const volatile *helped = tn__plugin_call_helped;
  if (out == NULL || out->struct_size < TN_SIZE_TO(tn_plugin_call, call)) return false;
  if (helped != NULL) c = *helped;
  tn_plugin_call call = { .struct_size = out->struct_size };
  if (c != NULL && c->plugin == NULL) c = NULL; /* the library's own kernel */
  if (c != NULL) {
    call.plugin = c->plugin;
    call.file = c->file;
    call.call = c->call;
    call.kernel = c->kernel;
    call.node = c->node;
  }
  size_t known = out->struct_size < sizeof call ? out->struct_size : sizeof call;
  memset(out, 0, out->struct_size);
  memcpy(out, &call, known);
  return c != NULL;
}
