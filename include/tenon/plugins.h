/* SPDX-License-Identifier: Apache-2.0 */
/* Plugin files: where they are searched for, problems found there, loading by path, trying a file
 * in a separate process, and disabling further loading. A program that only needs a session does
 * not need this header. Since 0.1 */
#ifndef TENON_PLUGINS_H
#define TENON_PLUGINS_H

#include <tenon/session.h>

TN_BEGIN_DECLS

/* Result of a probe. A plugin that reports that it cannot be used (TN_PROBE_ERROR) is harmless to
 * load. */
enum {
  TN_PROBE_WELL = 0,    /* opened, queried and initialised; a runtime also ran a step in a session */
  TN_PROBE_ERROR = 1,   /* it was refused, or declined: see `status` and the message */
  TN_PROBE_SIGNAL = 2,  /* a signal ended its process: `signal` */
  TN_PROBE_EXIT = 3,    /* it ended its process itself: `exit_status` */
  TN_PROBE_TIMEOUT = 4, /* it did not finish in time */
  TN_PROBE_MEMORY = 5   /* its process ended after it reached its memory limit */
};

/* Report of a probe. `step` names the last step that was reached; static text. */
typedef struct tn_probe_report {
  size_t struct_size;
  int32_t verdict;     /* TN_PROBE_... */
  int32_t signal;      /* of TN_PROBE_SIGNAL and TN_PROBE_MEMORY, else 0 */
  int32_t exit_status; /* of TN_PROBE_EXIT, else 0 */
  tn_status status;    /* of TN_PROBE_ERROR, else TN_OK */
  int64_t duration_us; /* duration in microseconds */
  uint64_t peak_bytes; /* maximum memory of its process; 0: unknown */
  const char *step; /* "the end" if all went well; "its register_kernels" for a kernel plugin, of
                     * which no kernel is run */
  tn_bool cached; /* the result is from an earlier probe */
  tn_bool reserved[7];
} tn_probe_report;
#define TN_PROBE_REPORT_SIZE TN_SIZE_TO(tn_probe_report, reserved)

#ifndef TN_PLUGIN
/* ---- search ---- */

/* Folder i of the search list, in search order. *path and *fault are valid until the next rescan;
 * *fault explains why no plugins were found there ("it does not exist"), "" if the folder was read.
 * Either pointer may be NULL. TN_OUT_OF_RANGE past the end. Any thread. Since 0.1, P-01 */
TN_API tn_status tn_runtime_directory_at(size_t i, const char **path, const char **fault, tn_error *err);

/* Problems in the environment found by the last search for plugins, one per line, written as
 * snprintf does. Any thread. Since 0.1 */
TN_API tn_status tn_runtime_notes(char *buffer, size_t size, size_t *needed, tn_error *err);

/* ---- plugins that are linked into the program ---- */

/* Registers plugins that are linked into the program. They are used like those from files, and take
 * precedence; their origin in tn_runtime_at is "preloaded". Plugins that the library was configured
 * with (--enable-preloaded) need no call.
 * symbols  a table of libltdl's type lt_dlsymlist that lives as long as the program: the output of
 *          libtool's -dlpreopen (lt_preloaded_symbols of <ltdl.h>), or a table written by hand. It
 *          contains the program's name without an address; for each module its archive "NAME.a"
 *          without an address, then "NAME_LTX_tn_plugin_query" and "NAME_LTX_tn_plugin_manifest"
 *          with theirs; NULL. Modules without such a manifest are ignored; of two with the same
 *          archive name the first counts. Passing a table again is not an error.
 * Returns  TN_INVALID_ARGUMENT for a table that does not begin with a name; TN_FAILED_PRECONDITION
 *          from a plugin's constructor, entry or init. Any thread. Since 0.1, P-90 */
TN_API tn_status tn_runtime_preload(const void *symbols, tn_error *err);

/* Whether this program can load plugins from files: false if it is linked statically. Then a file,
 * a name that a file offers, and an unknown name with a vendor's prefix ("acme.fast") are
 * TN_UNIMPLEMENTED. Any thread. Since 0.1, P-91 */
TN_API tn_bool tn_runtime_loads_files(void);

/* ---- loading by path ---- */

/* Allows or forbids tn_runtime_load_file and tn_load_op_library; they are forbidden by default.
 * Returns TN_PERMISSION_DENIED in a process with elevated privileges. Any thread.
 * Since 0.1, P-81 */
TN_API tn_status tn_runtime_allow_files(tn_bool allow, tn_error *err);

/* Loads the runtime plugin in this file, in any folder; its name can then be a target. *out
 * (struct_size set by the caller, NULL allowed) is filled in as by tn_runtime_load. Returns
 * TN_FAILED_PRECONDITION unless tn_runtime_allow_files was called, and after tn_freeze;
 * TN_INVALID_ARGUMENT for a path that is not absolute; otherwise as tn_runtime_load. Since 0.1,
 * P-81 */
TN_API tn_status tn_runtime_load_file(const char *path, tn_runtime_info *out, tn_error *err);

/* Loads the kernel plugin in this file, in any folder: from then on graphs may contain its ops, and
 * its kernels are used. Its registrations last as long as the process. *out (struct_size set by the
 * caller, NULL allowed) describes the plugin, also if it was found but fails. A plugin in a folder
 * of the search list needs no such call: it is loaded when a graph names one of its ops.
 * Returns  TN_FAILED_PRECONDITION unless tn_runtime_allow_files was called, and after tn_freeze;
 *          TN_PERMISSION_DENIED in a process with elevated privileges;
 *          TN_INVALID_ARGUMENT for a path that is not absolute, or a file that is not a kernel
 *          plugin; TN_ALREADY_EXISTS, naming both, if one of its ops is the library's own or
 *          another plugin's; otherwise as tn_runtime_load. Loading it again is TN_OK. Any thread.
 *          Since 0.1, P-15, P-81 */
TN_API tn_status tn_load_op_library(const char *path, tn_runtime_info *out, tn_error *err);

/* Disables further loading: a target that needs a plugin that is not loaded is
 * TN_FAILED_PRECONDITION, and kernel plugins are ignored. Loaded plugins keep working. It cannot be
 * undone. A server calls it once it has loaded everything it needs; it waits for a load in
 * progress. Returns TN_FAILED_PRECONDITION from a plugin's constructor, entry or init. Since 0.1,
 * P-82 */
TN_API tn_status tn_freeze(tn_error *err);

/* Op i that plugins provide, according to their manifests, ordered by plugin. No plugin is loaded
 * for this, and a plugin that may not be loaded is skipped. An op of several plugins is listed
 * several times. *needed is the length of the name without the NUL, like snprintf's result.
 * TN_OUT_OF_RANGE past the end. Any thread. Since 0.1, P-15 */
TN_API tn_status tn_plugin_op_at(size_t i, char *buffer, size_t size, size_t *needed, tn_error *err);

/* ---- which plugin runs ---- */

/* A call into a plugin. Strings are valid during the call. */
typedef struct tn_plugin_call {
  size_t struct_size;
  const char *plugin; /* name of the plugin */
  const char *file;   /* as in tn_runtime_info; "" for a runtime that the program registered */
  const char *call;   /* "its step", "its init", "its constructors", "compute of a kernel" */
  const char *kernel; /* name of the kernel, NULL if the call is not a kernel's */
  const char *node;   /* name of the kernel's node, likewise */
} tn_plugin_call;
#define TN_PLUGIN_CALL_SIZE TN_SIZE_TO(tn_plugin_call, node)

/* The plugin that the calling thread is in: the innermost call that has not returned. True: *out
 * (struct_size set by the caller) is filled in. False: the thread is in no plugin, as are threads
 * that a plugin created itself; all of *out is NULL. A call from a plugin back into the library
 * counts as the plugin's. For signal handlers and atexit functions that report which plugin ended
 * the process. Async-signal-safe; a few loads. Since 0.1 */
TN_API tn_bool tn_plugin_call_now(tn_plugin_call *out);

/* ---- probing ---- */

/* Opens, queries and initialises a plugin in a separate process. For a runtime, the process also
 * opens a session with only the plugin's name as target, and runs a step of one addition. The
 * process inherits no descriptors, has limits on memory and time, and is killed with all its
 * children when the time is over.
 * timeout_ms  milliseconds; 0: TENON_PROBE_TIMEOUT_MS, or 5000.
 * out         struct_size set by the caller; NULL allowed.
 * Returns     TN_OK: all went well. TN_ABORTED: it ended its process (signal, exit, memory).
 *             TN_DEADLINE_EXCEEDED: it did not finish in time. TN_UNIMPLEMENTED: the probe program
 *             cannot run. Otherwise the status that loading it would return. The message has the
 *             signal and the last step that was reached. The result is cached for loading
 *             (tn_runtime_set_probe).
 * Any thread. Since 0.1, P-83 to P-87 */
TN_API tn_status tn_runtime_probe(const char *path, int64_t timeout_ms, tn_probe_report *out, tn_error *err);

/* Whether a plugin is probed before it is first loaded, as with TENON_PROBE=1; this call overrides
 * the variable. A plugin whose probe crashes or hangs is refused. Results are cached in a file
 * while the plugin's file does not change. If the probe program cannot run, a plugin without a
 * cached result is not loaded: TN_FAILED_PRECONDITION, until the next tn_runtime_rescan. timeout_ms
 * as above. Since 0.1, P-86, P-88 */
TN_API tn_status tn_runtime_set_probe(tn_bool on, int64_t timeout_ms, tn_error *err);

/* The path of the cached results, written as snprintf does: TENON_CACHE_DIR, or
 * XDG_CACHE_HOME/tenon, or HOME/.cache/tenon, and "probes-N"; "" if there is no such folder.
 * Since 0.1 */
TN_API tn_status tn_runtime_cache_path(char *buffer, size_t size, size_t *needed, tn_error *err);

/* Deletes all cached results; *n (NULL allowed) receives their number. Since 0.1, P-86 */
TN_API tn_status tn_runtime_clear_cache(size_t *n, tn_error *err);

/* The main function of the probe program that comes with the library: reads its task from
 * descriptor 0, closes all other descriptors, reports on descriptor 3, and returns the exit status,
 * for _exit. Not for other programs. Since 0.1 */
TN_API int tn_probe_serve(void);
#endif

TN_END_DECLS

#endif
