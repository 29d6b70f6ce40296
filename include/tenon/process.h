/* SPDX-License-Identifier: Apache-2.0 */
/* Process-wide functions: version, allocator, log, files, the lock around libltdl. Since 0.1 */
#ifndef TENON_PROCESS_H
#define TENON_PROCESS_H

#include <tenon/status.h>

TN_BEGIN_DECLS

/* Version of the library in use, for example "0.1.0"; it may be newer than TN_VERSION_STRING of the
 * headers. Since 0.1 */
TN_API const char *tn_version(void);

/* Allocates and frees all memory of the library.
 * alloc    size > 0, align a power of two of at least 16; returns NULL if out of memory. Memory
 *          need not be zero.
 * free     receives the size and alignment of the allocation; `ptr` is never NULL.
 * discard  may be NULL or absent. The content of [ptr, ptr + size), part of an allocation that
 *          remains, is no longer needed. Returns true if any of it was released; reading it
 *          afterwards may return anything. The library calls it for large weights of which kernels
 *          have packed forms (since 0.1; the C library's allocator returns the pages).
 * Threads  called from any thread, several at once, also from threads that plugins made; never
 *          under a lock of the library that another allocation could need. */
struct tn_allocator {
  size_t struct_size;
  void *user;
  void *(*alloc)(void *user, size_t size, size_t align);
  void (*free)(void *user, void *ptr, size_t size, size_t align);
  tn_bool (*discard)(void *user, void *ptr, size_t size);
};

/* Sets the allocator of the process; `allocator` is copied, NULL means the C library's.
 * Returns TN_FAILED_PRECONDITION if an allocation of the library is still alive;
 *         TN_INVALID_ARGUMENT if a function is missing. Threads: call it before any other thread
 *         uses the library. Since 0.1 */
TN_API tn_status tn_set_allocator(const tn_allocator *allocator, tn_error *err);

/* Allocates memory with the library's allocator, for plugins and programs that hand memory over:
 * aligned to 64 bytes, not zeroed. NULL if there is no memory or bytes is 0. Free it with tn_free,
 * which allows NULL. Any thread. Since 0.1 */
TN_API void *tn_alloc(size_t bytes);
TN_API void tn_free(void *memory);

/* Log levels, the least verbose first; TENON_LOG names the level that is shown (error, warning,
 * info, debug; default warning). */
enum { TN_LOG_ERROR = 0, TN_LOG_WARNING = 1, TN_LOG_INFO = 2, TN_LOG_DEBUG = 3 };

/* Receives a log line, without a newline. Any thread; calls are serialised. */
typedef void (*tn_log_fn)(void *user, int32_t level, const char *line);

/* Replaces the sink. The default sink writes "tenon: warning: ..." to standard error; NULL restores
 * it. Does not return while the old sink runs. Any thread, but not from a sink. Since 0.1 */
TN_API void tn_set_log_sink(tn_log_fn sink, void *user);

/* Sets the level that is shown, overriding TENON_LOG. Any thread. Since 0.1 */
TN_API void tn_set_log_level(int32_t level);

/* Whether a line of this level would be shown. Cheap; any thread. Since 0.1 */
TN_API tn_bool tn_log_enabled(int32_t level);

/* Writes a line to the log, formatted as by printf. Any thread. Since 0.1 */
#ifdef TN_PLUGIN
#define tn_log (TN_HOST_TABLE->base->log)
#else
TN_API void tn_log(int32_t level, const char *format, ...) TN_PRINTF(2, 3);

/* Receives the output of printing ops (Print, PrintV2): a text that is not NUL-terminated and may
 * hold any bytes. Any thread; calls are serialised. stream: the stream that the op selects. */
enum { TN_PRINT_STDOUT = 1, TN_PRINT_STDERR = 2 };
typedef void (*tn_print_fn)(void *user, int32_t stream, const char *text, size_t length);

/* Replaces the sink for the output of ops. The default sink writes to the process's standard output
 * and standard error; NULL restores it. Does not return while the old sink runs. Any thread, but
 * not from a sink. Since 0.1 */
TN_API void tn_set_print_sink(tn_print_fn sink, void *user);

/* Receives a line of the placement log, "node: (Op): device" without a newline, for each node that
 * a session with the option log_device_placement places. Any thread; calls are serialised. */
typedef void (*tn_placement_fn)(void *user, const char *line);

/* Replaces the sink for placements. The default sink writes to standard error; NULL restores it.
 * Does not return while the old sink runs. Any thread, but not from a sink. Since 0.1, S-CFG-09 */
TN_API void tn_set_placement_sink(tn_placement_fn sink, void *user);

/* For a program that uses libltdl itself: supplies the lock that it holds around its own calls; the
 * library then also takes this lock. The lock must be recursive or never be held around a call into
 * the library.
 * Returns TN_FAILED_PRECONDITION after the first use of a plugin; TN_INVALID_ARGUMENT if one of the
 *         two functions is missing. Since 0.1, rule P-68 */
TN_API tn_status tn_set_ltdl_lock(void (*lock)(void *user), void (*unlock)(void *user), void *user, tn_error *err);

/* Ends and joins the worker threads of all pools, for a moment when the process must have no
 * threads of the library: before a fork, a change of privileges, a snapshot. Workers first finish
 * the step that they work for. They are started again when a step has work for them. Without this
 * call, the last session of a pool joins its workers, and a process that exits needs nothing.
 * Returns TN_FAILED_PRECONDITION from a worker, for example inside a kernel. Any other thread.
 *         Since 0.1 */
TN_API tn_status tn_join_workers(tn_error *err);

/* Writes `size` bytes to a file atomically: until the last of them is written, the old content
 * remains. A replaced file keeps its permissions, and a symbolic link remains one. An existing path
 * that is not a regular file (a pipe, a terminal, /dev/stdout) is written directly. `data` may be
 * NULL for 0 bytes. All functions of the library that save files work this way.
 * Returns TN_INVALID_ARGUMENT for a folder, TN_NOT_FOUND, TN_PERMISSION_DENIED,
 *         TN_RESOURCE_EXHAUSTED (no space), TN_CANCELLED after tn_files_abandon. Any thread.
 *         Since 0.1 */
TN_API tn_status tn_file_save(const char *path, const void *data, size_t size, tn_error *err);

/* Removes the temporary files of unfinished saves of this process. Such files have names
 * (.tenon-...) only where the system has no unnamed files, and briefly when a file is replaced. For
 * a handler of a signal that ends the process, just before it does, and for atexit: concurrent
 * saves of other threads and later ones fail with TN_CANCELLED. Async-signal-safe; any thread;
 * waits at most 2 seconds for a file system that does not respond. Since 0.1 */
TN_API void tn_files_abandon(void);
#endif

TN_END_DECLS

#ifdef TN_PLUGIN
#include <tenon/host.h>
#endif
#endif
