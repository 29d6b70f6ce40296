/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: feed tensors, fetch tensors.
 *
 * Threads: every call is safe from any thread on one session, but tn_session_destroy, which must be the last one.
 * Sessions are independent of each other. After fork() the child gets TN_FAILED_PRECONDITION.
 * A thread that waits in a call cannot be ended by pthread_cancel: it ends after the call. A thread in a kernel of the program or
 * of a plugin must not be cancelled there, and none may have asynchronous cancellation enabled. Since 0.1, S-THR */
#ifndef TENON_SESSION_H
#define TENON_SESSION_H

#include <tenon/graph.h>
#include <tenon/options.h>

TN_BEGIN_DECLS

/* A device of a session. Texts are borrowed from the session. */
struct tn_device_info {
  size_t struct_size;
  const char *name; /* "/job:localhost/replica:0/task:0/device:CPU:0" */
  const char *type; /* "CPU" */
  int64_t memory_bytes; /* 0 = not known */
  const char *model; /* what the hardware is called, "" or NULL = not known */
};

/* Where a node stands. Texts are borrowed from the session; none is NULL. */
struct tn_placement {
  size_t struct_size;
  const char *device; /* "/job:localhost/replica:0/task:0/device:CPU:0" */
  const char *asked;  /* the device that the node names, "" for none */
  const char *reason; /* why soft placement did not take that one; "" when the node stands where it wants */
};

/* Flags of a reset. */
enum { TN_RESET_ALL = 1 /* every container of the runtime */ };

/* Options of one call. tn_run_options_init gives the defaults; NULL in place of a pointer to it means the same. Fields are
 * only added at the end: the library reads what struct_size covers. */
struct tn_run_options {
  size_t struct_size;
  int64_t timeout_ms;           /* milliseconds, with what the call has to prepare; 0 or less: the session's operation_timeout_ms */
  int32_t trace_level;          /* 0 none, 1 software, 2 hardware, 3 full */
  int32_t inter_op_pool;        /* index of a pool, -1 = the calling thread */
  tn_bool output_partition_graphs;
  tn_bool reserved[7];
  tn_cancellation *cancellation; /* may be NULL */
  tn_run_metadata *metadata; /* of tn_session_partial_setup alone, see there; may be NULL. Since 0.1 */
};

#ifndef TN_PLUGIN
/* The defaults. Inline, so that struct_size is the size that the program was compiled with. Since 0.1 */
static inline TN_UNUSED void tn_run_options_init(tn_run_options *options)
{
  const tn_run_options defaults = { sizeof(tn_run_options), 0, 0, 0, 0, { 0 }, NULL, NULL };
  if (options != NULL) *options = defaults;
}

/* Opens a session without a graph, on the runtime that the options choose.
 * options  copied; the caller may change or destroy them afterwards.
 * Returns  TN_INVALID_ARGUMENT (NULL pointer, configuration or settings wrong), TN_NOT_FOUND (no such runtime, or none
 *          accepts; the registered ones are named), TN_FAILED_PRECONDITION (several of equal rank), TN_UNAVAILABLE (the
 *          runtime cannot be used here), TN_INTERNAL (the plugin broke its contract).
 * Source   seed 004, NewSession. Since 0.1, S-OPT, S-LIFE-01 */
TN_API tn_status tn_session_create(const tn_session_options *options, tn_session **out, tn_error *err);

/* Gives the session its graph ("Create"). The session holds a reference; nodes added to the graph later can be run.
 * An empty graph is OK and has no effect.
 * Returns  TN_ALREADY_EXISTS when it has one, TN_CANCELLED after close, TN_INVALID_ARGUMENT, also for a node that names a
 *          device which the session does not have or which has no kernel for it (unless place_pruned_graph or
 *          allow_soft_placement are set); the session is then without a graph as before. Since 0.1, S-GRA, S-CFG-02, S-CFG-04 */
TN_API tn_status tn_session_set_graph(tn_session *session, tn_graph *graph, tn_error *err);

/* Adds the nodes of a serialized GraphDef to the session's graph ("Extend"); without one, makes one of its own.
 * All or nothing. Other sessions on the same graph see the new nodes, too. Since 0.1, S-GRA-10 to 16 */
TN_API tn_status tn_session_extend(tn_session *session, const void *graph_def, size_t size, tn_error *err);

/* Drops what is needed only for new signatures: those compiled already keep working, a new one or an extension is
 * TN_FAILED_PRECONDITION, as is a second call. Since 0.1, S-GRA-16 */
TN_API tn_status tn_session_finalize(tn_session *session, tn_error *err);

/* Runs one step: feed, compute, fetch.
 * options      NULL = all defaults.
 * feed_names   n_feeds names "node:output" ("node" = "node:0") with a tensor each; feeds are borrowed during the call.
 * fetch_names  n_fetches names; fetched[i] becomes a new tensor of the caller's.
 * targets      n_targets names of nodes that are run for their effect.
 * metadata     what the step did, as the options ask (<tenon/metadata.h>); may be NULL.
 * Returns      TN_INVALID_ARGUMENT (nothing asked, name fed twice, wrong type, placeholder not fed, a kernel's refusal),
 *              TN_NOT_FOUND (no such node), TN_OUT_OF_RANGE (no such output), TN_CANCELLED (closed), TN_DEADLINE_EXCEEDED,
 *              or what a kernel returned; the error names the node.
 * On error     every fetched[i] is NULL. The session stays usable.
 * Threads      any; blocks. Source seed 004, Run. Since 0.1, S-RUN, S-NAM */
TN_API tn_status tn_session_run(tn_session *session, const tn_run_options *options, const char *const *feed_names,
                                tn_tensor *const *feeds, size_t n_feeds, const char *const *fetch_names,
                                tn_tensor **fetched, size_t n_fetches, const char *const *targets, size_t n_targets,
                                tn_run_metadata *metadata, tn_error *err);

/* Prepares a signature, so that steps need no names. options may be NULL and hold for every run of the callable; no time limit
 * holds for preparing it, their cancellation does. Weights are packed by its first run.
 * Returns as tn_session_run. Release it with tn_session_release_callable, or leave it to tn_session_destroy.
 * Since 0.1, S-CAL */
TN_API tn_status tn_session_make_callable(tn_session *session, const tn_run_options *options,
                                          const char *const *feed_names, size_t n_feeds, const char *const *fetch_names,
                                          size_t n_fetches, const char *const *targets, size_t n_targets,
                                          tn_callable *out, tn_error *err);

/* Runs a prepared signature; feeds and fetched by position. fetched[i] must be NULL, or a tensor of the caller's, held
 * only by him, of the dtype and shape of the result: then the value is written into it and it stays his. A wrong one is
 * TN_INVALID_ARGUMENT. Memory that the program wrapped is written, too, unless it holds strings or handles. On error those
 * that were NULL are NULL, contents of given ones are undefined.
 * Returns as tn_session_run; TN_INVALID_ARGUMENT ("released", "no such callable", wrong count or type). Since 0.1 */
TN_API tn_status tn_session_run_callable(tn_session *session, tn_callable callable, tn_tensor *const *feeds,
                                         size_t n_feeds, tn_tensor **fetched, size_t n_fetches,
                                         tn_run_metadata *metadata, tn_error *err);

/* Does what the first run of a callable with feeds of these shapes does besides its work, so that later ones take only their own
 * time: plans for the shapes, lays out, packs constants, has the runtime compile for its device, takes memory, starts workers. A
 * server calls it before it says that it is ready, once for each batch size that it serves (the option max_layouts says how many
 * shapes are kept), with a time limit of its own: the one of the callable may be far shorter than a compilation. Runs by names
 * (tn_session_run) of the same feeds and fetches find it done, too.
 * options  of this call: timeout_ms, cancellation, inter_op_pool; NULL = all defaults. Those of the callable do not count here.
 * feeds    as of a run, borrowed during the call. Their shapes count, and their elements where shapes follow from them; the rest may
 *          be zeros.
 * ran      may be NULL. 1: nothing that the callable runs has an effect, so a step was run and its fetches were dropped: all is
 *          done. 0: a step would write a state, wait, print, or draw random numbers, so nothing was computed: only what follows from
 *          the shapes of the feeds was laid out and packed, and the runtime's own preparations are left to the first run.
 * Returns  as tn_session_run_callable; an error of the step, as of a kernel that refuses the feeds, is that of this call.
 *          TN_DEADLINE_EXCEEDED and TN_CANCELLED leave what was done so far; a further call goes on from there.
 * Threads  any, several at once, also beside runs. Since 0.1, S-CAL-06 */
TN_API tn_status tn_session_warm_callable(tn_session *session, tn_callable callable, const tn_run_options *options,
                                          tn_tensor *const *feeds, size_t n_feeds, tn_bool *ran, tn_error *err);

/* Gives a callable back; twice is OK, an unknown one TN_INVALID_ARGUMENT. Steps of it in flight end well. Since 0.1 */
TN_API tn_status tn_session_release_callable(tn_session *session, tn_callable callable, tn_error *err);

/* ---- partial runs ----
 *
 * One step in several calls ("PRunSetup", "PRun"): setup names all that will be fed and fetched; each call then feeds some of
 * it and fetches what is there by that. Whatever needs no feed that is still open runs as soon as it can: already in setup, or
 * in the call that makes it possible; on a runtime that runs on the caller's thread nothing goes on between calls. Do not rely
 * on the order of effects beyond what the graph says. A run takes memory until it ends, is released, or its session is
 * destroyed. Runs of one session are independent of each other, also those of equal names. */

/* Sets a run up and starts it.
 * options      NULL = all defaults. The cancellation is for the whole run, the time limit for each call; copied. Metadata is
 *              for the whole run, too: setup empties it, and it is filled in, as the options ask, when the run ends: with
 *              the last call, one that fails, or a release. It must live until that call returns. A session that is destroyed
 *              with the run open leaves it empty and does not use it any more.
 * feed_names   n_feeds names that may be fed, each once and no fetch; fetch_names likewise; targets are run for their effect.
 * Returns      as tn_session_run, but a placeholder that is needed and no feed is an error of the call that fetches below
 *              it, and so is what a kernel returns that has run by now. TN_INVALID_ARGUMENT (nothing asked, a name fed twice,
 *              or fed and fetched), TN_UNIMPLEMENTED (the runtime has no partial runs).
 * On error     out->id is 0.
 * Threads      any. Source seed 004, PRunSetup. Since 0.1, S-PR */
TN_API tn_status tn_session_partial_setup(tn_session *session, const tn_run_options *options,
                                          const char *const *feed_names, size_t n_feeds, const char *const *fetch_names,
                                          size_t n_fetches, const char *const *targets, size_t n_targets,
                                          tn_partial_run *out, tn_error *err);

/* Goes on with a run: feeds n_feeds of its feeds and fetches n_fetches of its fetches, any of the two may be 0. Blocks until
 * the fetches are there. The call with which all is fed and all fetched is the last one: it waits until the step has ended,
 * targets included, and ends the run.
 * feeds        read during the call only. fetched[i] becomes a new tensor of the caller's; may be NULL without fetches.
 * Returns      TN_INVALID_ARGUMENT: the run has ended, is another session's, or never was; a name that was not declared, is fed
 *              twice, or was fed or fetched in an earlier call; a wrong type; a fetch that needs a feed which is still open.
 *              Then nothing has happened, and the run is good for further calls (also after TN_RESOURCE_EXHAUSTED, when
 *              there was no memory to copy a feed).
 *              Every other error ends the run, and no other run: what a kernel returned, a fetch on a branch that was not
 *              taken, TN_DEADLINE_EXCEEDED, TN_CANCELLED.
 * On error     every fetched[i] is NULL.
 * Threads      any; calls on one run wait for each other. Source seed 004, PRun. Since 0.1, S-PR */
TN_API tn_status tn_session_partial_run(tn_session *session, tn_partial_run run, const char *const *feed_names,
                                        tn_tensor *const *feeds, size_t n_feeds, const char *const *fetch_names,
                                        tn_tensor **fetched, size_t n_fetches, tn_error *err);

/* Ends a run early and frees it; a call on it in another thread ends TN_CANCELLED. A run with metadata: waits for such a call, and
 * fills the metadata in before it returns. A kernel that releases its own run does not wait; the metadata is then left empty.
 * Works after close. TN_INVALID_ARGUMENT: the run has ended, or never was. Any thread. Since 0.1, S-PR-31 */
TN_API tn_status tn_session_partial_release(tn_session *session, tn_partial_run run, tn_error *err);

/* ---- the end of a session ---- */

/* Cancels the steps in flight and refuses new ones with TN_CANCELLED. Does not wait; any number of times. S-LIFE */
TN_API tn_status tn_session_close(tn_session *session, tn_error *err);

/* Closes, waits until every step has ended, frees everything. NULL allowed. S-LIFE-09 to 12. Since 0.1 */
TN_API void tn_session_destroy(tn_session *session);

/* Closes all sessions of the one runtime that the options choose and detaches the listed containers; none listed: the
 * default one. Does not wait for steps. TN_UNIMPLEMENTED when the runtime has no reset. Since 0.1, S-RST */
TN_API tn_status tn_reset(const tn_session_options *options, const char *const *containers, size_t n, tn_error *err);

/* As tn_reset, with flags, and says which of the names stood for something.
 * flags  0, or TN_RESET_ALL: every container of the runtime is detached, listed or not. A container that sessions made
 *        while this runs is before it or after it.
 * found  n places, may be NULL: 1 where there was a container of this name, 0 for a name that nobody had used, which is
 *        no error. The default container is always there.
 * Any thread. Since 0.1, P-42, P-43 */
TN_API tn_status tn_reset_containers(const tn_session_options *options, const char *const *containers, size_t n,
                                     uint32_t flags, tn_bool *found, tn_error *err);

/* Device i of the session; out->struct_size is set by the caller. TN_OUT_OF_RANGE past the end. Works after close.
 * Since 0.1, S-LIFE-06 */
TN_API tn_status tn_session_device(tn_session *session, size_t i, tn_device_info *out, tn_error *err);

/* Where a node of the session's graph was placed; out->struct_size is set by the caller. With place_pruned_graph a node is
 * placed when a call first needs it. Works after close.
 * Returns  TN_NOT_FOUND (no such node), TN_FAILED_PRECONDITION (no call has needed the node yet, or its op is not
 *          registered), TN_INVALID_ARGUMENT (NULL, no graph, or a node that was added to the graph asks for a device that
 *          cannot be had). Any thread. Since 0.1, S-CFG-09 */
TN_API tn_status tn_session_device_of(tn_session *session, const char *node, tn_placement *out, tn_error *err);

/* The runtime that runs the session: name, file, version. Borrowed from the session. Since 0.1 */
TN_API const tn_runtime_info *tn_session_runtime(const tn_session *session);

/* The session's graph, borrowed; NULL when it has none. Since 0.1 */
TN_API tn_graph *tn_session_graph(const tn_session *session);

/* How often the session compiled a signature, and how many it holds. Since 0.1, S-RUN-29, S-RUN-30 */
TN_API void tn_session_signature_counts(const tn_session *session, uint64_t *compiled, uint64_t *held);

/* ---- cancellation ---- */

/* A cancellation is given to steps and cancels them from another thread; a child is cancelled with its parent (NULL =
 * none), not the other way round. Counted. Any thread. Since 0.1, S-CAN-08 to 11 */
TN_API tn_status tn_cancellation_create(tn_cancellation *parent, tn_cancellation **out, tn_error *err);
TN_API tn_cancellation *tn_cancellation_ref(tn_cancellation *c);
TN_API void tn_cancellation_unref(tn_cancellation *c);
TN_API void tn_cancellation_cancel(tn_cancellation *c);
#endif
TN_API tn_bool tn_cancellation_is_cancelled(const tn_cancellation *c);

/* Registers a callback that cancel calls exactly once, outside all locks. 0 when already cancelled (nothing is called)
 * or without memory; else a key. */
TN_API uint64_t tn_cancellation_register(tn_cancellation *c, void (*callback)(void *user), void *user);
/* True: the callback will not run. False: it has run, and has ended before this returns. */
TN_API tn_bool tn_cancellation_deregister(tn_cancellation *c, uint64_t key);
/* As above, but returns false at once when the callback runs or has run. */
TN_API tn_bool tn_cancellation_try_deregister(tn_cancellation *c, uint64_t key);

/* ---- runtimes ---- */

/* What is known of a runtime or kernel plugin. Texts live until the next rescan, those of a session as long as it. */
struct tn_runtime_info {
  size_t struct_size;
  const char *name;      /* "direct" */
  const char *kind;      /* "runtime" or "kernels" */
  const char *file;      /* absolute path; "" when built in or registered by the program */
  const char *origin;    /* "file", "preloaded", "program" */
  const char *version;
  const char *vendor;
  const char *types;
  int32_t abi_major;
  int32_t abi_minor;
  int32_t rank;
  tn_bool loaded;
  tn_bool usable;        /* false: `reason` says why */
  tn_bool shadowed;      /* another file offers the same name and goes before */
  tn_bool disabled;      /* by TENON_PLUGIN_DISABLE, TENON_PLUGIN_SELECT or NAME.conf beside the file */
  tn_bool reserved[4];
  const char *reason;
  const char *shadowed_by; /* of a shadowed one: the file that goes before; "" when that has none. Since 0.1 */
};

#ifndef TN_PLUGIN
/* Finds runtimes and kernel plugins without running any of their code: entry i in order of names, files that have none
 * last; TN_OUT_OF_RANGE past the end. out->struct_size is set by the caller. Since 0.1, P-16 */
TN_API tn_status tn_runtime_at(size_t i, tn_runtime_info *out, tn_error *err);

/* Looks again for files; loaded plugins stay. Since 0.1, P-11 */
TN_API tn_status tn_runtime_rescan(tn_error *err);

/* Puts a directory in front of the search list. Absolute; before the first lookup, or a rescan follows. Since 0.1, P-01 */
TN_API tn_status tn_runtime_add_directory(const char *path, tn_error *err);

/* Loads the named runtime, if that is needed. *out (its struct_size set by the caller) is filled on failure, too, when the
 * name is known: usable is 0 and reason says why. TN_NOT_FOUND, TN_UNAVAILABLE, or why its plugin is refused. Since 0.1 */
TN_API tn_status tn_runtime_load(const char *name, tn_runtime_info *out, tn_error *err);

/* How the options choose a runtime: one line for each factory (asked, accepted, rank, reason), as snprintf writes.
 * Returns what tn_session_create would. Since 0.1, P-59 */
TN_API tn_status tn_explain_selection(const tn_session_options *options, char *buffer, size_t size, size_t *needed,
                                      tn_error *err);

/* The registry, for programs that bring a runtime of their own ("Register", "GetFactory", "Unregister").
 * register   the factory stays the caller's and must live until it is unregistered. TN_ALREADY_EXISTS leaves the first
 *            one in place; TN_INVALID_ARGUMENT names what is missing. S-REG-01 to 04
 * find       the one factory that accepts the options; borrowed. S-REG-09
 * unregister TN_FAILED_PRECONDITION with the count of holders, TN_NOT_FOUND. S-REG-10 */
TN_API tn_status tn_runtime_register(const char *name, const tn_session_factory *factory, tn_error *err);
TN_API tn_status tn_runtime_find(const tn_session_options *options, const tn_session_factory **out, tn_error *err);
TN_API tn_status tn_runtime_unregister(const char *name, tn_error *err);
#endif

TN_END_DECLS

#ifdef TN_PLUGIN
#include <tenon/host.h>
#endif
#endif
