/* SPDX-License-Identifier: Apache-2.0 */
/* What is one for the whole process: version, allocator, log, files, locks around libltdl. Since 0.1 */
#ifndef TENON_PROCESS_H
#define TENON_PROCESS_H

#include <tenon/status.h>

TN_BEGIN_DECLS

/* "0.1.0" of the library that runs, which may be newer than TN_VERSION_STRING of the headers. Since 0.1 */
TN_API const char *tn_version(void);

/* Allocates and frees all memory of the library.
 * alloc   size > 0, align a power of two of at least 16; NULL means out of memory. Memory need not be zero.
 * free    gets the size and alignment of the allocation back; `ptr` is never NULL.
 * discard may be NULL or absent: the content of [ptr, ptr + size), part of an allocation that stays, is not needed any more.
 *         True when something of it went; what is read there afterwards may be anything. Large weights that kernels have in
 *         forms of their own are let go by it (since 0.1; the C library's allocator gives the pages back).
 * Threads all are called from any thread, several at once, also from threads that plugins made; never under a lock
 *         of the library that another allocation could need. */
struct tn_allocator {
  size_t struct_size;
  void *user;
  void *(*alloc)(void *user, size_t size, size_t align);
  void (*free)(void *user, void *ptr, size_t size, size_t align);
  tn_bool (*discard)(void *user, void *ptr, size_t size);
};

/* Sets the allocator of the process; `allocator` is copied, NULL means the C library's.
 * Returns TN_FAILED_PRECONDITION once the library has allocated anything that is still alive;
 *         TN_INVALID_ARGUMENT when a function is missing. Threads: before any other thread uses the library. Since 0.1 */
TN_API tn_status tn_set_allocator(const tn_allocator *allocator, tn_error *err);

/* Memory from the library's allocator, for plugins and programs that hand memory over: aligned to 64 bytes, not zeroed.
 * NULL when there is none or bytes is 0. Free it with tn_free; NULL is allowed there. Any thread. Since 0.1 */
TN_API void *tn_alloc(size_t bytes);
TN_API void tn_free(void *memory);

/* Log levels, the least talkative first; TENON_LOG names the level that is shown (error, warning, info, debug; default
 * warning). */
enum { TN_LOG_ERROR = 0, TN_LOG_WARNING = 1, TN_LOG_INFO = 2, TN_LOG_DEBUG = 3 };

/* Receives a log line, without a newline. Any thread; lines are given one at a time. */
typedef void (*tn_log_fn)(void *user, int32_t level, const char *line);

/* Replaces the sink, which writes "tenon: warning: ..." to standard error at first; NULL brings that one back.
 * Does not return while the old sink runs. Any thread, not from a sink. Since 0.1 */
TN_API void tn_set_log_sink(tn_log_fn sink, void *user);

/* Sets the level that is shown, in place of TENON_LOG. Any thread. Since 0.1 */
TN_API void tn_set_log_level(int32_t level);

/* Whether a line of this level would be shown. Cheap; any thread. Since 0.1 */
TN_API tn_bool tn_log_enabled(int32_t level);

/* Writes a line to the log. Any thread. Since 0.1 */
#ifdef TN_PLUGIN
#define tn_log (TN_HOST_TABLE->base->log)
#else
TN_API void tn_log(int32_t level, const char *format, ...) TN_PRINTF(2, 3);

/* Receives what ops print (Print, PrintV2): a text that is not ended by a NUL and may hold any bytes. Texts are given one at
 * a time, from any thread. stream: where the op means it to go. */
enum { TN_PRINT_STDOUT = 1, TN_PRINT_STDERR = 2 };
typedef void (*tn_print_fn)(void *user, int32_t stream, const char *text, size_t length);

/* Replaces the sink for what ops print, which at first writes to the process's standard output and standard error; NULL
 * brings that one back. Does not return while the old sink runs. Any thread, not from a sink. Since 0.1 */
TN_API void tn_set_print_sink(tn_print_fn sink, void *user);

/* Receives a line of the log of placements, "node: (Op): device" without a newline, for each node that a session with the
 * option log_device_placement places. Any thread; lines are given one at a time. */
typedef void (*tn_placement_fn)(void *user, const char *line);

/* Replaces the sink for placements, which at first writes to standard error; NULL brings that one back. Does not return
 * while the old sink runs. Any thread, not from a sink. Since 0.1, S-CFG-09 */
TN_API void tn_set_placement_sink(tn_placement_fn sink, void *user);

/* An application that uses libltdl itself gives the lock that it holds around its own calls; the library then takes that
 * one, too. Must be recursive or never held around a call into the library.
 * Returns TN_FAILED_PRECONDITION after the first use of a plugin; TN_INVALID_ARGUMENT when one of the two is missing.
 * Since 0.1, rule P-68 */
TN_API tn_status tn_set_ltdl_lock(void (*lock)(void *user), void (*unlock)(void *user), void *user, tn_error *err);

/* Ends and joins the worker threads of all pools, for a moment in which the process must have no threads of the library's:
 * before a fork, a change of privileges, a snapshot. Those that work for a step finish it first. Workers start again when a
 * step has work for them; without it the last session of a pool joins its workers, and a process that ends needs nothing.
 * TN_FAILED_PRECONDITION from a worker, as from inside of a kernel. Any other thread. Since 0.1 */
TN_API tn_status tn_join_workers(tn_error *err);

/* Writes `size` bytes to a file, which is then there whole: until the last of them was written, what was there before stays. A file
 * that is replaced keeps its permissions, and a symbolic link stays one. What exists and is no regular file (a pipe, a terminal,
 * /dev/stdout) is written directly. `data` may be NULL for 0 bytes. All saves of the library are made in this way.
 * TN_INVALID_ARGUMENT for a folder, TN_NOT_FOUND, TN_PERMISSION_DENIED, TN_RESOURCE_EXHAUSTED (no space), TN_CANCELLED after
 * tn_files_abandon. Any thread. Since 0.1 */
TN_API tn_status tn_file_save(const char *path, const void *data, size_t size, tn_error *err);

/* Removes the files that saves of this process have begun and not put in their place; such files have names (.tenon-...) only
 * where the system has no files without one, and for a moment when a file is replaced. For a program's handler of a signal that
 * ends the process, right before it does, and for a function of atexit: saves that other threads are in, and later ones, fail with
 * TN_CANCELLED. Async-signal-safe; any thread; waits 2 seconds at most for a file system that does not answer. Since 0.1 */
TN_API void tn_files_abandon(void);
#endif

TN_END_DECLS

#ifdef TN_PLUGIN
#include <tenon/host.h>
#endif
#endif
