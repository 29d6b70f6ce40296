/* SPDX-License-Identifier: Apache-2.0 */
/* Plugin files, for programs that care about them: where they are looked for, what is odd there, loading by path, trying a file
 * in a process of its own, and an end to loading. A program that only wants a session needs none of it. Since 0.1 */
#ifndef TENON_PLUGINS_H
#define TENON_PLUGINS_H

#include <tenon/session.h>

TN_BEGIN_DECLS

/* How a probe ended. A plugin that says itself why it cannot be used (TN_PROBE_ERROR) does no harm to who loads it. */
enum {
  TN_PROBE_WELL = 0,    /* it was opened, asked and initialised; a runtime also ran a step in a session */
  TN_PROBE_ERROR = 1,   /* it was refused, or declined: `status` and the message say why */
  TN_PROBE_SIGNAL = 2,  /* a signal ended its process: `signal` */
  TN_PROBE_EXIT = 3,    /* it ended its process itself: `exit_status` */
  TN_PROBE_TIMEOUT = 4, /* it was not ready in time */
  TN_PROBE_MEMORY = 5   /* its process ended when it had as much memory as it may have */
};

/* What a probe found. `step` names the last step that was reached; static text. */
typedef struct tn_probe_report {
  size_t struct_size;
  int32_t verdict;     /* TN_PROBE_... */
  int32_t signal;      /* of TN_PROBE_SIGNAL and TN_PROBE_MEMORY, else 0 */
  int32_t exit_status; /* of TN_PROBE_EXIT, else 0 */
  tn_status status;    /* of TN_PROBE_ERROR, else TN_OK */
  int64_t duration_us;
  uint64_t peak_bytes; /* most memory that its process had; 0: unknown */
  const char *step; /* of one that is well "the end", of a kernel plugin "its register_kernels": no kernel was run */
  tn_bool cached; /* it was found out before */
  tn_bool reserved[7];
} tn_probe_report;
#define TN_PROBE_REPORT_SIZE TN_SIZE_TO(tn_probe_report, reserved)

#ifndef TN_PLUGIN
/* ---- looking ---- */

/* Folder i of the search list, front first. *path and *fault live until the next rescan; *fault says why nothing is found there
 * ("it does not exist"), "" when it was read. Either pointer may be NULL. TN_OUT_OF_RANGE past the end. Any thread. Since 0.1,
 * P-01 */
TN_API tn_status tn_runtime_directory_at(size_t i, const char **path, const char **fault, tn_error *err);

/* What the last look for plugins found odd in the environment, a line each, as snprintf writes. Any thread. Since 0.1 */
TN_API tn_status tn_runtime_notes(char *buffer, size_t size, size_t *needed, tn_error *err);

/* ---- plugins that are linked into the program ---- */

/* Makes plugins known that are linked into the program. They are used as those of files are, and go before them; tn_runtime_at
 * calls their origin "preloaded". What the library itself was configured to carry (--enable-preloaded) needs no call.
 * symbols  a table of libltdl's type lt_dlsymlist, that lives as long as the program: what libtool makes of -dlpreopen
 *          (lt_preloaded_symbols of <ltdl.h>), or one that is written by hand: the program's name without an address; for each
 *          module its archive "NAME.a" without an address, then "NAME_LTX_tn_plugin_query" and "NAME_LTX_tn_plugin_manifest"
 *          with theirs; NULL. Modules that have no such manifest are left alone, and of two with one archive's name the
 *          first counts. A table that was given before is no error.
 * TN_INVALID_ARGUMENT for a table that does not begin with a name; TN_FAILED_PRECONDITION from a plugin's constructor, entry or
 * init. Any thread. Since 0.1, P-90 */
TN_API tn_status tn_runtime_preload(const void *symbols, tn_error *err);

/* Whether this program can load plugins from files: not when it is linked all statically. Then a file, a name that a file
 * offers, and an unknown name with a vendor's prefix ("acme.fast") are TN_UNIMPLEMENTED. Any thread. Since 0.1, P-91 */
TN_API tn_bool tn_runtime_loads_files(void);

/* ---- loading by path ---- */

/* Allows tn_runtime_load_file, which refuses at first. TN_PERMISSION_DENIED in a process that has more rights than its caller.
 * Any thread. Since 0.1, P-81 */
TN_API tn_status tn_runtime_allow_files(tn_bool allow, tn_error *err);

/* Loads the runtime plugin in this file, wherever it is; then its name can be a target. *out (struct_size set by the caller, NULL
 * allowed) is filled as tn_runtime_load does. TN_FAILED_PRECONDITION unless tn_runtime_allow_files was called, and after
 * tn_freeze; TN_INVALID_ARGUMENT for a path that is not absolute; else what tn_runtime_load says. Since 0.1, P-81 */
TN_API tn_status tn_runtime_load_file(const char *path, tn_runtime_info *out, tn_error *err);

/* Loads the kernel plugin in this file, wherever it is: from then on its ops can stand in graphs, and its kernels are used. What it
 * registers stays with the process. *out (struct_size set by the caller, NULL allowed) describes it, also when it was found
 * and fails. A plugin in a folder of the search list needs no such call: it is loaded when a graph names one of its ops.
 * Returns  TN_FAILED_PRECONDITION unless tn_runtime_allow_files was called, and after tn_freeze; TN_PERMISSION_DENIED in a
 *          process that has more rights than its caller; TN_INVALID_ARGUMENT for a path that is not absolute, or a file that is
 *          no kernel plugin; TN_ALREADY_EXISTS, naming both, when one of its ops is the library's own or another plugin's;
 *          else what tn_runtime_load says. Loading it again is TN_OK. Any thread. Since 0.1, P-15, P-81 */
TN_API tn_status tn_load_op_library(const char *path, tn_runtime_info *out, tn_error *err);

/* From now on nothing is loaded: a target that would need a plugin that is not loaded is TN_FAILED_PRECONDITION, and kernel
 * plugins are left alone. What is loaded works on. There is no way back. A server calls it when it has what it needs; it waits
 * for a load that is going on. TN_FAILED_PRECONDITION from a plugin's constructor, entry or init. Since 0.1, P-82 */
TN_API tn_status tn_freeze(tn_error *err);

/* Op i of those that plugins say they bring, by their manifests alone, in the order of plugins: no plugin is loaded for it, and
 * one that may not be loaded is left out. An op that several bring is there several times. *needed counts the name's bytes
 * without the NUL, as snprintf's result. TN_OUT_OF_RANGE past the end. Any thread. Since 0.1, P-15 */
TN_API tn_status tn_plugin_op_at(size_t i, char *buffer, size_t size, size_t *needed, tn_error *err);

/* ---- which plugin runs ---- */

/* A call into a plugin. Texts live as long as the call. */
typedef struct tn_plugin_call {
  size_t struct_size;
  const char *plugin; /* its name */
  const char *file;   /* as in tn_runtime_info; "" for a runtime that the program registered */
  const char *call;   /* "its step", "its init", "its constructors", "compute of a kernel" */
  const char *kernel; /* name of the kernel, NULL when the call is no kernel's */
  const char *node;   /* name of the kernel's node, NULL as well */
} tn_plugin_call;
#define TN_PLUGIN_CALL_SIZE TN_SIZE_TO(tn_plugin_call, node)

/* Which plugin the calling thread is in now: the innermost call that has not returned. True: *out (struct_size set by the caller)
 * is filled. False: in none, and all of *out is NULL; so it is in threads that a plugin made itself. A call from a plugin back
 * into the library counts as the plugin's. For handlers of signals and functions of atexit, which can say so which plugin ended
 * the process. Async-signal-safe; a few loads. Since 0.1 */
TN_API tn_bool tn_plugin_call_now(tn_plugin_call *out);

/* ---- probing ---- */

/* Opens, asks and initialises a plugin in a process of its own; a runtime then opens a session with nothing but its name for a
 * target, and runs a step of one addition. That process has no descriptor of this one, limits on memory and
 * time, and is ended with all its children when the time is over.
 * timeout_ms  0: TENON_PROBE_TIMEOUT_MS, or 5000.
 * out         struct_size set by the caller; NULL allowed.
 * Returns     TN_OK: all went well. TN_ABORTED: it ended its process (signal, exit, memory). TN_DEADLINE_EXCEEDED: it was not
 *             ready in time. TN_UNIMPLEMENTED: the probe program cannot run. Else what loading it would return. The message has
 *             the signal and the last step that was reached. The verdict is kept for loading (tn_runtime_set_probe).
 * Any thread. Since 0.1, P-83 to P-87 */
TN_API tn_status tn_runtime_probe(const char *path, int64_t timeout_ms, tn_probe_report *out, tn_error *err);

/* Whether a plugin is probed before it is loaded for the first time, as TENON_PROBE=1 says, too; this call goes before the
 * variable. A plugin whose probe crashes or hangs is refused. Verdicts are kept in a file as long as the plugin's file is the
 * same. When the probe program cannot run, a plugin that has no verdict is not loaded: TN_FAILED_PRECONDITION, until the next
 * tn_runtime_rescan. timeout_ms as above. Since 0.1,
 * P-86, P-88 */
TN_API tn_status tn_runtime_set_probe(tn_bool on, int64_t timeout_ms, tn_error *err);

/* The file of the kept verdicts, as snprintf writes: TENON_CACHE_DIR, or XDG_CACHE_HOME/tenon, or HOME/.cache/tenon, and
 * "probes-N"; "" when there is no such folder. Since 0.1 */
TN_API tn_status tn_runtime_cache_path(char *buffer, size_t size, size_t *needed, tn_error *err);

/* Forgets all verdicts; *n (NULL allowed) gets how many there were. Since 0.1, P-86 */
TN_API tn_status tn_runtime_clear_cache(size_t *n, tn_error *err);

/* What the probe program does, which comes with the library: reads what it shall try from descriptor 0, gives up all other
 * descriptors, reports on descriptor 3, and returns the exit status, for _exit. Not for other programs. Since 0.1 */
TN_API int tn_probe_serve(void);
#endif

TN_END_DECLS

#endif
