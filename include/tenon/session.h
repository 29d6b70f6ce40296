/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: feed tensors, fetch tensors.
 *
 * Threads: any thread may call any function on a session at any time. The exception is
 * tn_session_destroy, which must be the last call. Sessions are independent of each other. After
 * fork(), calls in the child return TN_FAILED_PRECONDITION.
 * pthread_cancel does not interrupt a thread that is blocked in a call; the thread ends after the
 * call. Do not cancel a thread while it runs a kernel of the program or of a plugin, and do not
 * enable asynchronous cancellation in any thread. Since 0.1, S-THR */
#ifndef TENON_SESSION_H
#define TENON_SESSION_H

#include <tenon/graph.h>
#include <tenon/options.h>

TN_BEGIN_DECLS

/* A device of a session. Strings are borrowed from the session. */
struct tn_device_info {
  size_t struct_size;
  const char *name; /* "/job:localhost/replica:0/task:0/device:CPU:0" */
  const char *type; /* "CPU" */
  int64_t memory_bytes; /* 0 = unknown */
  const char *model; /* hardware model; "" or NULL = unknown */
};

/* The placement of a node. Strings are borrowed from the session; none is NULL. */
struct tn_placement {
  size_t struct_size;
  const char *device; /* "/job:localhost/replica:0/task:0/device:CPU:0" */
  const char *asked;  /* the device that the node requests, "" for none */
  const char *reason; /* why soft placement chose another device; "" if the node is on the device it requests */
};

/* Flags of a reset. */
enum { TN_RESET_ALL = 1 /* every container of the runtime */ };

/* Options of one call. tn_run_options_init sets the defaults; a NULL pointer means the same. New
 * fields are only added at the end: the library reads the fields that struct_size covers. */
struct tn_run_options {
  size_t struct_size;
  int64_t timeout_ms;           /* milliseconds, including preparation; <= 0: the session's operation_timeout_ms */
  int32_t trace_level;          /* 0 none, 1 software, 2 hardware, 3 full */
  int32_t inter_op_pool;        /* index of a pool, -1 = the calling thread */
  tn_bool output_partition_graphs; /* return the graphs that ran, in the metadata */
  tn_bool reserved[7];
  tn_cancellation *cancellation; /* may be NULL */
  tn_run_metadata *metadata; /* used by tn_session_partial_setup only; may be NULL. Since 0.1 */
};

#ifndef TN_PLUGIN
/* Sets the defaults. Inline, so that struct_size is the size that the program was compiled with.
 * Since 0.1 */
static inline TN_UNUSED void tn_run_options_init(tn_run_options *options)
{
  const tn_run_options defaults = { sizeof(tn_run_options), 0, 0, 0, 0, { 0 }, NULL, NULL };
  if (options != NULL) *options = defaults;
}

/* Opens a session without a graph, on the runtime that the options select.
 * options  copied; the caller may change or destroy them afterwards.
 * Returns  TN_INVALID_ARGUMENT (NULL pointer, invalid configuration or settings), TN_NOT_FOUND (no
 *          such runtime, or none accepts the options; the message lists the registered ones),
 *          TN_FAILED_PRECONDITION (several runtimes of equal rank), TN_UNAVAILABLE (the runtime
 *          cannot be used here), TN_INTERNAL (the plugin broke its contract).
 * Source   seed 004, NewSession. Since 0.1, S-OPT, S-LIFE-01 */
TN_API tn_status tn_session_create(const tn_session_options *options, tn_session **out, tn_error *err);

/* Sets the session's graph ("Create"). The session holds a reference; nodes added to the graph
 * later can be run. Passing an empty graph succeeds and has no effect.
 * Returns  TN_ALREADY_EXISTS if the session has a graph, TN_CANCELLED after close,
 *          TN_INVALID_ARGUMENT. The last is also returned for a node that names a device which the
 *          session lacks or for which it has no kernel, unless place_pruned_graph or
 *          allow_soft_placement is set; the session then still has no graph. Since 0.1, S-GRA,
 *          S-CFG-02, S-CFG-04 */
TN_API tn_status tn_session_set_graph(tn_session *session, tn_graph *graph, tn_error *err);

/* Adds the nodes of a serialized GraphDef to the session's graph ("Extend"). If the session has no
 * graph, creates one.
 * All or nothing. Other sessions on the same graph see the new nodes too. Since 0.1, S-GRA-10 to 16 */
TN_API tn_status tn_session_extend(tn_session *session, const void *graph_def, size_t size, tn_error *err);

/* Frees data that is only needed to compile new signatures. Signatures already compiled keep
 * working. A new signature, an extension or a second call returns TN_FAILED_PRECONDITION.
 * Since 0.1, S-GRA-16 */
TN_API tn_status tn_session_finalize(tn_session *session, tn_error *err);

/* Runs one step: feed, compute, fetch.
 * options      NULL = all defaults.
 * feed_names   n_feeds names "node:output" ("node" = "node:0"), one tensor each; feeds are borrowed
 *              during the call.
 * fetch_names  n_fetches names; fetched[i] receives a new tensor, owned by the caller.
 * targets      n_targets names of nodes to run for their effects.
 * metadata     filled in with what the step did, as the options request (<tenon/metadata.h>); may
 *              be NULL.
 * Returns      TN_INVALID_ARGUMENT (no fetches or targets, name fed twice, wrong type, placeholder
 *              not fed, input rejected by a kernel), TN_NOT_FOUND (no such node), TN_OUT_OF_RANGE
 *              (no such output), TN_CANCELLED (closed), TN_DEADLINE_EXCEEDED, or the status of the
 *              kernel that failed; the error names the node.
 * On error     every fetched[i] is NULL. The session stays usable.
 * Threads      any; blocks. Source seed 004, Run. Since 0.1, S-RUN, S-NAM */
TN_API tn_status tn_session_run(tn_session *session, const tn_run_options *options, const char *const *feed_names,
                                tn_tensor *const *feeds, size_t n_feeds, const char *const *fetch_names,
                                tn_tensor **fetched, size_t n_fetches, const char *const *targets, size_t n_targets,
                                tn_run_metadata *metadata, tn_error *err);

/* Prepares a signature, so that steps need no name look-up. The options apply to every run of the
 * callable; NULL = all defaults. Preparation has no time limit, but the cancellation of the options
 * cancels it. The first run packs the weights.
 * Returns as tn_session_run. Release the callable with tn_session_release_callable; otherwise
 *         tn_session_destroy releases it.
 * Since 0.1, S-CAL */
TN_API tn_status tn_session_make_callable(tn_session *session, const tn_run_options *options,
                                          const char *const *feed_names, size_t n_feeds, const char *const *fetch_names,
                                          size_t n_fetches, const char *const *targets, size_t n_targets,
                                          tn_callable *out, tn_error *err);

/* Runs a prepared signature. feeds and fetched are given by position.
 * fetched  fetched[i] is NULL, or a tensor that only the caller holds, with the dtype and shape of
 *          the result. In the second case the result is written into the tensor, which stays the
 *          caller's; a tensor that does not fit is TN_INVALID_ARGUMENT. Memory that the program
 *          wrapped is written too, unless it holds strings or handles.
 * On error entries that were NULL are NULL, and the contents of tensors passed in are undefined.
 * Returns  as tn_session_run; TN_INVALID_ARGUMENT ("released", "no such callable", wrong count or
 *          type). Since 0.1 */
TN_API tn_status tn_session_run_callable(tn_session *session, tn_callable callable, tn_tensor *const *feeds,
                                         size_t n_feeds, tn_tensor **fetched, size_t n_fetches,
                                         tn_run_metadata *metadata, tn_error *err);

/* Does in advance everything that the first run of a callable with feeds of these shapes would do
 * besides its computation: plans and lays out memory for the shapes, packs constants, lets the
 * runtime compile for its device, allocates memory and starts workers. Later runs take only their
 * own time. A server calls it before it reports that it is ready, once for each batch size that it
 * serves (the option max_layouts limits how many shapes are kept), with a time limit of its own:
 * that of the callable may be far shorter than a compilation. Runs by name (tn_session_run) of the
 * same feeds and fetches benefit too.
 * options  of this call: timeout_ms, cancellation, inter_op_pool; NULL = all defaults. Those of the
 *          callable are ignored.
 * feeds    as for a run, borrowed during the call. Only their shapes matter, and those elements
 *          that determine other shapes; the rest may be zero.
 * ran      may be NULL. 1: nothing that the callable runs has an effect, so a step was run, its
 *          fetches were dropped, and preparation is complete. 0: a step would write state, wait,
 *          print or draw random numbers, so nothing was computed. Only what follows from the shapes
 *          of the feeds was laid out and packed; the runtime's own preparation is left to the first
 *          run.
 * Returns  as tn_session_run_callable. An error of the step, for example from a kernel that rejects
 *          the feeds, is returned. After TN_DEADLINE_EXCEEDED and TN_CANCELLED the work done so far
 *          is kept; another call continues from there.
 * Threads  any, several at once, also concurrently with runs. Since 0.1, S-CAL-06 */
TN_API tn_status tn_session_warm_callable(tn_session *session, tn_callable callable, const tn_run_options *options,
                                          tn_tensor *const *feeds, size_t n_feeds, tn_bool *ran, tn_error *err);

/* Releases a callable. Releasing it twice is OK; an unknown one is TN_INVALID_ARGUMENT. Steps in
 * flight are not affected. Since 0.1 */
TN_API tn_status tn_session_release_callable(tn_session *session, tn_callable callable, tn_error *err);

/* ---- partial runs ----
 *
 * One step in several calls ("PRunSetup", "PRun"). Setup names all feeds and fetches; each later
 * call then feeds some of them and fetches values for which no other feed is needed. An operation
 * that needs no missing feed runs as soon as it can: in setup, or in the call that supplies its
 * last feed. On a runtime that runs on the caller's thread nothing runs between calls. Do not rely
 * on any order of effects beyond that of the graph. A run holds memory until it ends, is released,
 * or its session is destroyed. Runs of one session are independent of each other, even if they use
 * the same names. */

/* Sets up a partial run and starts it.
 * options      copied; NULL = all defaults. The cancellation applies to the whole run, the time
 *              limit to each call. Metadata covers the whole run: setup empties it, and the library
 *              fills it in, as the options request, when the run ends: in the last call, in a call
 *              that fails, or in a release. It must stay valid until that call returns. If the
 *              session is destroyed while the run is open, the metadata stays empty and is not used
 *              any more.
 * feed_names   n_feeds names that may be fed, each once and none also a fetch; fetch_names
 *              likewise; targets are run for their effects.
 * Returns      as tn_session_run, with two differences: a placeholder that is needed but is not a
 *              feed is reported by the call that fetches something depending on it, as is an error
 *              of a kernel that has run by then. TN_INVALID_ARGUMENT (no fetches or targets, a name
 *              fed twice, or both fed and fetched), TN_UNIMPLEMENTED (the runtime has no partial
 *              runs).
 * On error     out->id is 0.
 * Threads      any. Source seed 004, PRunSetup. Since 0.1, S-PR */
TN_API tn_status tn_session_partial_setup(tn_session *session, const tn_run_options *options,
                                          const char *const *feed_names, size_t n_feeds, const char *const *fetch_names,
                                          size_t n_fetches, const char *const *targets, size_t n_targets,
                                          tn_partial_run *out, tn_error *err);

/* Continues a run: feeds n_feeds of its feeds and fetches n_fetches of its fetches; either may be
 * 0. Blocks until the fetches are available. The call after which everything is fed and fetched is
 * the last one: it waits until the step has ended, targets included, and ends the run.
 * feeds        read during the call only.
 * fetched      fetched[i] receives a new tensor, owned by the caller; may be NULL if there are no
 *              fetches.
 * Returns      TN_INVALID_ARGUMENT: the run has ended, belongs to another session, or never
 *              existed; a name is undeclared, is fed twice, or was fed or fetched in an earlier
 *              call; a type is wrong; a fetch needs a feed that is still missing. In these cases
 *              nothing has happened and the run can be continued. The same holds for
 *              TN_RESOURCE_EXHAUSTED if there was no memory to copy a feed.
 *              Every other error ends this run, and no other run: an error of a kernel, a fetch on
 *              a branch that was not taken, TN_DEADLINE_EXCEEDED, TN_CANCELLED.
 * On error     every fetched[i] is NULL.
 * Threads      any; calls on one run are serialised. Source seed 004, PRun. Since 0.1, S-PR */
TN_API tn_status tn_session_partial_run(tn_session *session, tn_partial_run run, const char *const *feed_names,
                                        tn_tensor *const *feeds, size_t n_feeds, const char *const *fetch_names,
                                        tn_tensor **fetched, size_t n_fetches, tn_error *err);

/* Ends a run early and frees it; a concurrent call on it in another thread returns TN_CANCELLED. If
 * the run has metadata, waits for that call and fills the metadata in before it returns. A kernel
 * that releases its own run does not wait; the metadata is then left empty.
 * Works after close. Returns TN_INVALID_ARGUMENT if the run has ended or never existed. Any thread.
 * Since 0.1, S-PR-31 */
TN_API tn_status tn_session_partial_release(tn_session *session, tn_partial_run run, tn_error *err);

/* ---- the end of a session ---- */

/* Cancels the steps in flight and rejects new ones with TN_CANCELLED. Does not wait. May be called
 * any number of times, from any thread. Since 0.1, S-LIFE */
TN_API tn_status tn_session_close(tn_session *session, tn_error *err);

/* Closes the session, waits until every step has ended, and frees everything. NULL is allowed.
 * Since 0.1, S-LIFE-09 to 12 */
TN_API void tn_session_destroy(tn_session *session);

/* Closes all sessions of the one runtime that the options select and detaches the listed
 * containers. If n is 0, detaches the default container. Does not wait for steps. Returns
 * TN_UNIMPLEMENTED if the runtime has no reset. Any thread. Since 0.1, S-RST */
TN_API tn_status tn_reset(const tn_session_options *options, const char *const *containers, size_t n, tn_error *err);

/* Like tn_reset, with flags; also reports which of the containers existed.
 * flags  0, or TN_RESET_ALL: detaches every container of the runtime, listed or not. A container
 *        that a session creates concurrently counts as created either before or after the reset.
 * found  n entries, may be NULL: 1 if a container of this name existed, 0 for a name that was never
 *        used, which is not an error. The default container always exists.
 * Any thread. Since 0.1, P-42, P-43 */
TN_API tn_status tn_reset_containers(const tn_session_options *options, const char *const *containers, size_t n,
                                     uint32_t flags, tn_bool *found, tn_error *err);

/* Device i of the session. The caller sets out->struct_size. TN_OUT_OF_RANGE past the end. Works
 * after close.
 * Since 0.1, S-LIFE-06 */
TN_API tn_status tn_session_device(tn_session *session, size_t i, tn_device_info *out, tn_error *err);

/* The device on which a node of the session's graph was placed. The caller sets out->struct_size.
 * With place_pruned_graph a node is placed when a call first needs it. Works after close.
 * Returns  TN_NOT_FOUND (no such node), TN_FAILED_PRECONDITION (no call has needed the node yet, or
 *          its op is not registered), TN_INVALID_ARGUMENT (NULL, no graph, or a node added to the
 *          graph requests a device that is not available). Any thread. Since 0.1, S-CFG-09 */
TN_API tn_status tn_session_device_of(tn_session *session, const char *node, tn_placement *out, tn_error *err);

/* The runtime that runs the session: name, file, version. Borrowed from the session. Since 0.1 */
TN_API const tn_runtime_info *tn_session_runtime(const tn_session *session);

/* The session's graph, borrowed; NULL when it has none. Since 0.1 */
TN_API tn_graph *tn_session_graph(const tn_session *session);

/* The number of signatures that the session has compiled, and the number that it holds. Since 0.1,
 * S-RUN-29, S-RUN-30 */
TN_API void tn_session_signature_counts(const tn_session *session, uint64_t *compiled, uint64_t *held);

/* ---- cancellation ---- */

/* A cancellation is passed to steps; another thread uses it to cancel them. If it has a parent
 * (NULL = none), cancelling the parent cancels it too, but not the reverse. Reference-counted.
 * Any thread. Since 0.1, S-CAN-08 to 11 */
TN_API tn_status tn_cancellation_create(tn_cancellation *parent, tn_cancellation **out, tn_error *err);
TN_API tn_cancellation *tn_cancellation_ref(tn_cancellation *c);
TN_API void tn_cancellation_unref(tn_cancellation *c);
TN_API void tn_cancellation_cancel(tn_cancellation *c);
#endif
TN_API tn_bool tn_cancellation_is_cancelled(const tn_cancellation *c);

/* Registers a callback, which cancel calls exactly once, outside all locks. Returns a key, or 0 if
 * `c` is already cancelled (the callback is not called) or there is no memory. Any thread.
 * Since 0.1 */
TN_API uint64_t tn_cancellation_register(tn_cancellation *c, void (*callback)(void *user), void *user);
/* True: the callback will not run. False: it has run, and has returned before this call does.
 * Since 0.1 */
TN_API tn_bool tn_cancellation_deregister(tn_cancellation *c, uint64_t key);
/* Like tn_cancellation_deregister, but returns false at once if the callback is running or has run.
 * Since 0.1 */
TN_API tn_bool tn_cancellation_try_deregister(tn_cancellation *c, uint64_t key);

/* ---- runtimes ---- */

/* Description of a runtime or kernel plugin. Strings stay valid until the next rescan; those of a
 * session's runtime as long as the session. */
struct tn_runtime_info {
  size_t struct_size;
  const char *name;      /* "direct" */
  const char *kind;      /* "runtime" or "kernels" */
  const char *file;      /* absolute path; "" if built in or registered by the program */
  const char *origin;    /* "file", "preloaded", "program" */
  const char *version;
  const char *vendor;
  const char *types; /* device types, separated by commas */
  int32_t abi_major;
  int32_t abi_minor;
  int32_t rank; /* selection rank; 0 = selected by name only */
  tn_bool loaded;
  tn_bool usable;        /* false: `reason` says why */
  tn_bool shadowed;      /* another file with the same name takes precedence */
  tn_bool disabled;      /* by TENON_PLUGIN_DISABLE, TENON_PLUGIN_SELECT or NAME.conf next to the file */
  tn_bool reserved[4];
  const char *reason;
  const char *shadowed_by; /* if shadowed: the file that takes precedence, "" if that plugin has no file. Since 0.1 */
};

#ifndef TN_PLUGIN
/* Entry i of the runtimes and kernel plugins found, ordered by name, files without a name last.
 * Runs no plugin code. TN_OUT_OF_RANGE past the end. The caller sets out->struct_size. Since 0.1,
 * P-16 */
TN_API tn_status tn_runtime_at(size_t i, tn_runtime_info *out, tn_error *err);

/* Searches for plugin files again; loaded plugins stay loaded. Since 0.1, P-11 */
TN_API tn_status tn_runtime_rescan(tn_error *err);

/* Prepends a directory to the search list. The path must be absolute. Call it before the first
 * look-up; otherwise a rescan follows. Since 0.1, P-01 */
TN_API tn_status tn_runtime_add_directory(const char *path, tn_error *err);

/* Loads the named runtime, unless it is already loaded. The caller sets out->struct_size. If the
 * name is known, *out is filled in on failure too: `usable` is 0 and `reason` says why. Returns
 * TN_NOT_FOUND, TN_UNAVAILABLE, or the error for which the plugin was rejected. Since 0.1 */
TN_API tn_status tn_runtime_load(const char *name, tn_runtime_info *out, tn_error *err);

/* Explains which runtime the options select: one line for each factory (asked, accepted, rank,
 * reason), written as snprintf does.
 * Returns what tn_session_create would. Since 0.1, P-59 */
TN_API tn_status tn_explain_selection(const tn_session_options *options, char *buffer, size_t size, size_t *needed,
                                      tn_error *err);

/* The registry, for programs that provide a runtime of their own ("Register", "GetFactory",
 * "Unregister").
 * register   the factory stays the caller's and must stay valid until it is unregistered.
 *            TN_ALREADY_EXISTS leaves the first factory in place; TN_INVALID_ARGUMENT names the
 *            missing member. S-REG-01 to 04
 * find       the one factory that accepts the options; borrowed. S-REG-09
 * unregister TN_FAILED_PRECONDITION with the number of holders, TN_NOT_FOUND. S-REG-10
 * Since 0.1 */
TN_API tn_status tn_runtime_register(const char *name, const tn_session_factory *factory, tn_error *err);
TN_API tn_status tn_runtime_find(const tn_session_options *options, const tn_session_factory **out, tn_error *err);
TN_API tn_status tn_runtime_unregister(const char *name, tn_error *err);
#endif

TN_END_DECLS

#ifdef TN_PLUGIN
#include <tenon/host.h>
#endif
#endif
