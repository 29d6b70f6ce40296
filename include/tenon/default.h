/* SPDX-License-Identifier: Apache-2.0 */
/* Default sessions: the session that a call means when it names none.
 *
 * Each thread has a stack of them, empty at first; the innermost one is its default. There are three ways onto it:
 *
 *   as default    tn_session_enter_default ... tn_session_leave_default: nothing is opened or closed
 *   scoped        TN_SCOPED_SESSION: opened here, gone at the end of the block, whatever way leads out of it
 *   interactive   tn_session_open_interactive: opened here, the default until it is closed
 *
 *   static tn_status add(tn_graph *graph, const tn_session_options *options, tn_tensor **sum, tn_error *err)
 *   {
 *     TN_SCOPED_SESSION(session, options, graph, err);
 *     if (session == NULL) return tn_error_code(err);
 *     return tn_eval_name(NULL, "sum", NULL, NULL, 0, sum, err);
 *   }
 *
 * Threads: a stack belongs to its thread, and no other thread sees it. A session that is destroyed leaves the stacks of
 * all threads, in the middle, too: what is innermost then is the default. Since 0.1 */
#ifndef TENON_DEFAULT_H
#define TENON_DEFAULT_H

#include <tenon/session.h>

#ifndef TN_PLUGIN
TN_BEGIN_DECLS

/* ---- as default ---- */

/* Puts the session on the calling thread's stack; it may be there already. Enter and leave in pairs.
 * Returns TN_INVALID_ARGUMENT (NULL), TN_RESOURCE_EXHAUSTED, TN_FAILED_PRECONDITION after fork().
 * Since 0.1, S-DEF-03 */
TN_API tn_status tn_session_enter_default(tn_session *session, tn_error *err);

/* Takes it off again; the session stays open.
 * Returns TN_FAILED_PRECONDITION when it is not the innermost one that was entered, and the stack stays as it is: leave
 *         the inner ones first. TN_INVALID_ARGUMENT (NULL). Since 0.1, S-DEF-03 to 05 */
TN_API tn_status tn_session_leave_default(tn_session *session, tn_error *err);

/* The calling thread's default session, NULL when it has none. Borrowed. Since 0.1, S-DEF-01, S-DEF-02 */
TN_API tn_session *tn_session_default(void);

/* ---- sessions that are opened as default ---- */

/* Opens a session and makes it the calling thread's default. It stays that until tn_session_close, from whatever
 * thread, or until it is destroyed. They may nest, and be closed in any order: from the middle of the stack, too.
 * graph    its graph, which may be empty yet and grow; NULL: none, tn_session_set_graph gives it one
 * Returns  as tn_session_create, and TN_RESOURCE_EXHAUSTED. Destroy the session with tn_session_destroy or
 *          tn_session_release.
 * scoped       for one block of a program: TN_SCOPED_SESSION
 * interactive  for work by hand: with the option place_pruned_graph, so that one bad node does not spoil the session
 * Since 0.1, S-DEF-10, S-DEF-14 to 18 */
TN_API tn_status tn_session_open_scoped(const tn_session_options *options, tn_graph *graph, tn_session **out,
                                        tn_error *err);
TN_API tn_status tn_session_open_interactive(const tn_session_options *options, tn_graph *graph, tn_session **out,
                                             tn_error *err);

/* As tn_session_destroy, but does not wait: calls on other threads that have begun end with TN_CANCELLED, and the last
 * of them frees the session. None may begin any more. NULL allowed. Since 0.1, S-DEF-13 */
TN_API void tn_session_release(tn_session *session);

#if defined(__GNUC__)
static inline TN_UNUSED tn_session *tn__scoped_session_open(const tn_session_options *options, tn_graph *graph,
                                                            tn_error *err)
{
  tn_session *session = NULL;
  (void)tn_session_open_scoped(options, graph, &session, err);
  return session;
}

static inline TN_UNUSED void tn__scoped_session_end(tn_session *const *session) { tn_session_release(*session); }

/* Declares `tn_session *const name`, opened by tn_session_open_scoped; NULL on failure, which `err` tells. At the end
 * of the block it is released, also on return, break, goto, and when an exception passes (in C with -fexceptions only);
 * not on longjmp. The caller's error object stays as it is. For compilers with the attribute cleanup, in C and C++;
 * elsewhere call tn_session_open_scoped and tn_session_release. Since 0.1, S-DEF-10 to 13 */
#define TN_SCOPED_SESSION(name, options, graph, err) \
  __attribute__((cleanup(tn__scoped_session_end), unused)) tn_session *const name = \
      tn__scoped_session_open(options, graph, err)
#endif

/* ---- one value, one operation ---- */

/* Runs one step for one value.
 * session  NULL: the calling thread's default session
 * fetch    an output of the session's graph, or its name, "node:1" or "node"
 * inputs   n outputs, or their names, that are fed with one of `values` each; borrowed during the call
 * out      gets a tensor of the caller's; NULL on failure
 * Returns  TN_FAILED_PRECONDITION: no session is given and the thread has no default; TN_INVALID_ARGUMENT: an output is
 *          of another graph than the session's, a pointer is NULL; and all that tn_session_run returns.
 * Threads  any; blocks. A default session that another thread destroys meanwhile stays alive until the step has ended,
 *          with TN_CANCELLED. Since 0.1, S-DEF-06 to 09 */
TN_API tn_status tn_eval(tn_session *session, tn_output fetch, const tn_output *inputs, tn_tensor *const *values,
                         size_t n, tn_tensor **out, tn_error *err);
TN_API tn_status tn_eval_name(tn_session *session, const char *fetch, const char *const *inputs,
                              tn_tensor *const *values, size_t n, tn_tensor **out, tn_error *err);

/* The same for an operation that is run for its effect, and gives no value. Since 0.1, S-DEF-09 */
TN_API tn_status tn_run_operation(tn_session *session, tn_operation *op, const tn_output *inputs,
                                  tn_tensor *const *values, size_t n, tn_error *err);
TN_API tn_status tn_run_operation_name(tn_session *session, const char *op, const char *const *inputs,
                                       tn_tensor *const *values, size_t n, tn_error *err);

TN_END_DECLS
#endif
#endif
