/* SPDX-License-Identifier: Apache-2.0 */
/* Default sessions: the session used by a call that names none.
 *
 * Each thread has a stack of them, initially empty; the innermost one is its default. There are
 * three ways to push one:
 *
 *   as default    tn_session_enter_default ... tn_session_leave_default: nothing is opened or
 *                 closed
 *   scoped        TN_SCOPED_SESSION: opened here, released at the end of the block, on every way
 *                 out of it
 *   interactive   tn_session_open_interactive: opened here, the default until it is closed
 *
 *   static tn_status add(tn_graph *graph, const tn_session_options *options, tn_tensor **sum,
 *                        tn_error *err)
 *   {
 *     TN_SCOPED_SESSION(session, options, graph, err);
 *     if (session == NULL) return tn_error_code(err);
 *     return tn_eval_name(NULL, "sum", NULL, NULL, 0, sum, err);
 *   }
 *
 * Threads: a stack belongs to its thread; no other thread sees it. A session that is destroyed is
 * removed from the stacks of all threads, at any position; the innermost remaining session is then
 * the default. Since 0.1 */
#ifndef TENON_DEFAULT_H
#define TENON_DEFAULT_H

#include <tenon/session.h>

#ifndef TN_PLUGIN
TN_BEGIN_DECLS

/* ---- as default ---- */

/* Pushes the session on the calling thread's stack; it may be there already. Calls of enter and
 * leave must be paired.
 * Returns TN_INVALID_ARGUMENT (NULL), TN_RESOURCE_EXHAUSTED, TN_FAILED_PRECONDITION after fork().
 *         Since 0.1, S-DEF-03 */
TN_API tn_status tn_session_enter_default(tn_session *session, tn_error *err);

/* Pops the session; it stays open.
 * Returns TN_FAILED_PRECONDITION if it is not the innermost one that was entered; the stack is
 *         unchanged. Leave the inner ones first. TN_INVALID_ARGUMENT (NULL). Since 0.1, S-DEF-03 to
 *         05 */
TN_API tn_status tn_session_leave_default(tn_session *session, tn_error *err);

/* The calling thread's default session, NULL if it has none. Borrowed. Since 0.1, S-DEF-01,
 * S-DEF-02 */
TN_API tn_session *tn_session_default(void);

/* ---- sessions that are opened as default ---- */

/* Opens a session and makes it the calling thread's default, until tn_session_close is called from
 * any thread, or the session is destroyed. Such sessions may nest and be closed in any order, also
 * in the middle of the stack.
 * graph        its graph, which may be empty and may grow later; NULL: none, set it with
 *              tn_session_set_graph
 * Returns      as tn_session_create, and TN_RESOURCE_EXHAUSTED. Destroy the session with
 *              tn_session_destroy or tn_session_release.
 * scoped       for one block of a program: TN_SCOPED_SESSION
 * interactive  for interactive use: with the option place_pruned_graph, so that one node that
 *              cannot be placed does not block the whole session
 * Since 0.1, S-DEF-10, S-DEF-14 to 18 */
TN_API tn_status tn_session_open_scoped(const tn_session_options *options, tn_graph *graph, tn_session **out,
                                        tn_error *err);
TN_API tn_status tn_session_open_interactive(const tn_session_options *options, tn_graph *graph, tn_session **out,
                                             tn_error *err);

/* Like tn_session_destroy, but does not wait: calls in progress on other threads return
 * TN_CANCELLED, and the last of them frees the session. No further call may begin. NULL allowed.
 * Since 0.1, S-DEF-13 */
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

/* Declares `tn_session *const name`, opened by tn_session_open_scoped; NULL on failure, with the
 * reason in `err`. The session is released at the end of the block, also on return, break, goto,
 * and when an exception passes (in C only with -fexceptions), but not on longjmp. The release does
 * not change the caller's error object. For compilers with the attribute cleanup, in C and C++;
 * with others call tn_session_open_scoped and tn_session_release. Since 0.1, S-DEF-10 to 13 */
#define TN_SCOPED_SESSION(name, options, graph, err) \
  __attribute__((cleanup(tn__scoped_session_end), unused)) tn_session *const name = \
      tn__scoped_session_open(options, graph, err)
#endif

/* ---- one value, one operation ---- */

/* Runs one step for one value.
 * session  NULL: the calling thread's default session
 * fetch    an output of the session's graph, or its name, "node:1" or "node"
 * inputs   n outputs, or their names, each fed with one of `values`; borrowed during the call
 * out      receives a tensor owned by the caller; NULL on failure
 * Returns  TN_FAILED_PRECONDITION: no session is given and the thread has no default;
 *          TN_INVALID_ARGUMENT: an output is of another graph than the session's, or a pointer is
 *          NULL; otherwise as tn_session_run.
 * Threads  any; blocks. If another thread destroys the default session meanwhile, the session stays
 *          alive until the step has ended with TN_CANCELLED. Since 0.1, S-DEF-06 to 09 */
TN_API tn_status tn_eval(tn_session *session, tn_output fetch, const tn_output *inputs, tn_tensor *const *values,
                         size_t n, tn_tensor **out, tn_error *err);
TN_API tn_status tn_eval_name(tn_session *session, const char *fetch, const char *const *inputs,
                              tn_tensor *const *values, size_t n, tn_tensor **out, tn_error *err);

/* The same for an operation that is run for its effect and gives no value. Since 0.1, S-DEF-09 */
TN_API tn_status tn_run_operation(tn_session *session, tn_operation *op, const tn_output *inputs,
                                  tn_tensor *const *values, size_t n, tn_error *err);
TN_API tn_status tn_run_operation_name(tn_session *session, const char *op, const char *const *inputs,
                                       tn_tensor *const *values, size_t n, tn_error *err);

TN_END_DECLS
#endif
#endif
