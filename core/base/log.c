/* SPDX-License-Identifier: Apache-2.0 */
/* The log. The sink runs under a lock, so it gets one line at a time, and tn_set_log_sink returns only after the old
 * sink has returned from its last line. */
#define _GNU_SOURCE
#include <core/base/alloc.h>

#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <core/base/text.h>
#include <core/base/threads/lock.h>
#include <core/base/threads/thread.h>

static const char *const level_names[] = { "error", "warning", "info", "debug" };
#define N_LEVELS ((int32_t)(sizeof(level_names) / sizeof(level_names[0])))
#define NOT_READ (-1)

static atomic_int shown_level = NOT_READ; /* NOT_READ until TENON_LOG was read or a level was set */
static tn__mutex mu = TN__MUTEX_INIT("log", TN_RANK_LOG);
static tn_log_fn current_sink; /* guarded by mu; NULL: standard error */
static void *current_user;     /* guarded by mu */

/* A line that the sink itself logs is dropped: the sink would deadlock on its own lock. */
static _Thread_local bool in_sink;

static int32_t clamp_level(int32_t level)
{
  if (level < TN_LOG_ERROR) return TN_LOG_ERROR;
  return level > TN_LOG_DEBUG ? TN_LOG_DEBUG : level;
}

static const char *level_name(int32_t level) { return level_names[clamp_level(level)]; }

static void write_stderr(int32_t level, const char *line)
{
  const char *parts[] = { "tenon: ", level_name(level), ": ", line, "\n" };
  struct iovec v[sizeof(parts) / sizeof(parts[0])];
  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
    v[i].iov_base = (void *)(uintptr_t)parts[i];
    v[i].iov_len = strlen(parts[i]);
  }
  ssize_t ignored = writev(STDERR_FILENO, v, (int)(sizeof(parts) / sizeof(parts[0])));
  (void)ignored;
}

/* Reads TENON_LOG, once. A thread that loses the race against tn_set_log_level or another reader returns the level
 * that the winner set. */
static int32_t read_level(void)
{
  const char *name = tn__getenv("TENON_LOG");
  int level = TN_LOG_WARNING;
  bool known = name == NULL || *name == 0;
  for (int i = 0; !known && i < N_LEVELS; i++)
    if (strcmp(name, level_names[i]) == 0) {
      level = i;
      known = true;
    }
  int found = NOT_READ;
  if (!atomic_compare_exchange_strong(&shown_level, &found, level)) return found;
  if (!known) tn_log(TN_LOG_WARNING, "TENON_LOG is '%s', wanted error, warning, info or debug; using warning", name);
  return level;
}

tn_bool tn_log_enabled(int32_t level)
{
  int32_t shown = atomic_load_explicit(&shown_level, memory_order_relaxed);
  if (shown == NOT_READ) shown = read_level();
  return level <= shown;
}

void tn_set_log_level(int32_t level)
{
  atomic_store(&shown_level, clamp_level(level));
}

void tn_set_log_sink(tn_log_fn sink, void *user)
{
  tn__mutex_lock(&mu);
  current_sink = sink;
  current_user = user;
  tn__mutex_unlock(&mu);
}

/* Replaces control characters by spaces: messages contain names from files, which must not break the line or control a
 * terminal. */
static void make_printable(char *line)
{
  for (; *line != 0; line++)
    if ((unsigned char)*line < 0x20 || *line == 0x7f) *line = ' ';
}

static void write_line(int32_t level, const char *format, va_list args)
{
  char small[512], *line = small, *heap = NULL;
  va_list again;
  va_copy(again, args);
  int n = tn__vsnprintf(small, sizeof(small), format, args);
  if (n < 0) n = 0;
  size_t size = (size_t)n + 1;
  if (size > sizeof(small)) {
    line = heap = tn__alloc(size);
    if (heap == NULL) {
      line = small;
      memcpy(small + sizeof(small) - 4, "...", 4);
    } else {
      tn__vsnprintf(heap, size, format, again);
    }
  }
  va_end(again);
  make_printable(line);

  int state = tn__cancel_hold();
  tn__mutex_lock(&mu);
  in_sink = true;
  if (current_sink != NULL)
    current_sink(current_user, level, line);
  else
    write_stderr(level, line);
  in_sink = false;
  tn__mutex_unlock(&mu);
  tn__cancel_restore(state);
  tn__free(heap, size);
}

void tn_log(int32_t level, const char *format, ...)
{
  if (!tn_log_enabled(level) || in_sink) return;
  va_list args;
  va_start(args, format);
  write_line(level, format, args);
  va_end(args);
}

void tn__log_asked(const char *format, ...)
{
  if (in_sink) return;
  va_list args;
  va_start(args, format);
  write_line(TN_LOG_INFO, format, args);
  va_end(args);
}
