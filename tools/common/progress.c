/* SPDX-License-Identifier: Apache-2.0 */
/* A progress line, drawn by a separate thread: the measured work pays only one store per step. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tools/tool.h>

enum { FIRST_MS = 500, EACH_MS = 100, BAR = 30, NOTE = 50 };

struct tool_progress {
  const char *what;
  uint64_t total;
  bool bytes;          /* total and done are bytes */
  const char *counter; /* of the process's input or output, which stands for `done`; NULL: none */
  uint64_t base;       /* its value at the start */
  atomic_uint_least64_t done;
  atomic_bool due; /* the next redraw needs a note */
  uint64_t started;
  pthread_t thread;
  pthread_mutex_t mutex; /* guards the fields below and serialises output lines */
  pthread_cond_t wake;
  bool ended;
  bool drawn;
  char note[NOTE];
  int32_t level; /* log level that the user has set */
};

uint64_t tool_now_ns(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void draw_amount(const tool_progress *p, uint64_t done)
{
  char have[32], all[32];
  if (p->bytes)
    fprintf(stderr, "%s of %s", tool_bytes_text(have, done), tool_bytes_text(all, p->total));
  else
    fprintf(stderr, "%" PRIu64 "/%" PRIu64, done, p->total);
}

static uint64_t read_counter(const char *counter) { return tool_number_in("/proc/self/io", counter); }

static uint64_t done_so_far(const tool_progress *p)
{
  if (p->counter == NULL) return atomic_load_explicit(&p->done, memory_order_relaxed);
  uint64_t done = read_counter(p->counter) - p->base;
  return done < p->total ? done : p->total;
}

static void draw(tool_progress *p)
{
  uint64_t done = done_so_far(p);
  double seconds = (double)(tool_now_ns() - p->started) / 1e9;
  char bar[BAR + 1];
  if (p->total > 1) {
    int filled = (int)((double)done / (double)p->total * BAR);
    for (int i = 0; i < BAR; i++) bar[i] = i < filled ? '#' : '.';
    bar[BAR] = '\0';
    fprintf(stderr, "\r\033[K%s [%s] ", p->what, bar);
    draw_amount(p, done);
  } else {
    fprintf(stderr, "\r\033[K%s", p->what);
  }
  fprintf(stderr, "%s  %.1f s", p->note, seconds);
  fflush(stderr);
  p->drawn = true;
  atomic_store_explicit(&p->due, true, memory_order_relaxed);
}

static void *draw_until_end(void *user)
{
  tool_progress *p = user;
  long wait_ms = FIRST_MS;
  pthread_mutex_lock(&p->mutex);
  while (!p->ended) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += wait_ms * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (pthread_cond_timedwait(&p->wake, &p->mutex, &until) != 0 && !p->ended) {
      draw(p);
      wait_ms = EACH_MS;
    }
  }
  pthread_mutex_unlock(&p->mutex);
  return NULL;
}

/* ---- log messages ---- */

/* Shows the progress reported by "gpu: program 3 of 12, ..." in the line. */
static void note_programs(tool_progress *p, const char *line)
{
  static const char begin[] = "gpu: program ";
  char note[NOTE] = "", *end;
  if (strncmp(line, begin, sizeof(begin) - 1) != 0) return;
  long made = strtol(line + sizeof(begin) - 1, &end, 10);
  if (strncmp(end, " of ", 4) != 0) return;
  long all = strtol(end + 4, NULL, 10);
  if (made < 0 || all > 99999) return;
  if (made < all) snprintf(note, sizeof(note), "  compiled %u of %u programs", (unsigned)made, (unsigned)all);
  tool_progress_note(p, note);
}

static void take_line(void *user, int32_t level, const char *line)
{
  static const char *const names[] = { "error", "warning", "info", "debug" };
  tool_progress *p = user;
  note_programs(p, line);
  if (level > p->level || level < 0 || level >= (int32_t)(sizeof(names) / sizeof(names[0]))) return;
  pthread_mutex_lock(&p->mutex);
  if (p->drawn) fputs("\r\033[K", stderr);
  p->drawn = false;
  fprintf(stderr, "tenon: %s: %s\n", names[level], line);
  pthread_mutex_unlock(&p->mutex);
}

static void watch_log(tool_progress *p)
{
  p->level = TN_LOG_DEBUG;
  while (p->level > TN_LOG_ERROR && !tn_log_enabled(p->level)) p->level--;
  tn_set_log_sink(take_line, p);
  if (p->level < TN_LOG_INFO) tn_set_log_level(TN_LOG_INFO);
}

static void leave_log(const tool_progress *p)
{
  tn_set_log_sink(NULL, NULL);
  tn_set_log_level(p->level);
}

/* ---- interface ---- */

bool tool_progress_is_shown(void)
{
  const char *terminal = getenv("TERM");
  return isatty(STDERR_FILENO) && terminal != NULL && strcmp(terminal, "dumb") != 0;
}

static tool_progress *start(const char *what, uint64_t total, bool bytes, const char *counter)
{
  if (!tool_progress_is_shown()) return NULL;
  tool_progress *p = tool_alloc(1, sizeof(*p));
  pthread_condattr_t attributes;
  p->what = what;
  p->total = total;
  p->bytes = bytes;
  p->counter = counter;
  p->base = counter != NULL ? read_counter(counter) : 0;
  if (p->base == UINT64_MAX) p->total = 0; /* the system has no such counter */
  p->started = tool_now_ns();
  atomic_init(&p->done, 0);
  atomic_init(&p->due, true);
  pthread_mutex_init(&p->mutex, NULL);
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&p->wake, &attributes);
  pthread_condattr_destroy(&attributes);
  if (pthread_create(&p->thread, NULL, draw_until_end, p) == 0) {
    watch_log(p);
    return p;
  }
  pthread_cond_destroy(&p->wake);
  pthread_mutex_destroy(&p->mutex);
  free(p);
  return NULL;
}

tool_progress *tool_progress_start(const char *what, uint64_t total) { return start(what, total, false, NULL); }

tool_progress *tool_progress_start_bytes(const char *what, uint64_t total) { return start(what, total, true, NULL); }

tool_progress *tool_progress_start_writing(const char *what, uint64_t total)
{
  return start(what, total, true, "wchar:");
}

tool_progress *tool_progress_start_reading(const char *what, uint64_t total)
{
  return start(what, total, true, "rchar:");
}

void tool_progress_set(tool_progress *progress, uint64_t done)
{
  /* relaxed: publishes no other data */
  if (progress != NULL) atomic_store_explicit(&progress->done, done, memory_order_relaxed);
}

bool tool_progress_wants_note(tool_progress *progress)
{
  return progress != NULL && atomic_load_explicit(&progress->due, memory_order_relaxed);
}

void tool_progress_note(tool_progress *progress, const char *note)
{
  pthread_mutex_lock(&progress->mutex);
  snprintf(progress->note, sizeof(progress->note), "%s", note);
  pthread_mutex_unlock(&progress->mutex);
  atomic_store_explicit(&progress->due, false, memory_order_relaxed);
}

void tool_progress_print(tool_progress *progress, const tool_text *text)
{
  if (progress != NULL) {
    pthread_mutex_lock(&progress->mutex);
    if (progress->drawn) fputs("\r\033[K", stderr);
    progress->drawn = false;
  }
  fwrite(text->data, 1, text->length, stdout);
  /* The reader has closed the pipe: end as an uncaught SIGPIPE does. */
  if (fflush(stdout) != 0 && errno == EPIPE && tool_pipe_was_default) tool_end_by_signal(SIGPIPE);
  if (progress != NULL) pthread_mutex_unlock(&progress->mutex);
}

void tool_progress_end(tool_progress *progress)
{
  if (progress == NULL) return;
  leave_log(progress);
  pthread_mutex_lock(&progress->mutex);
  progress->ended = true;
  pthread_cond_signal(&progress->wake);
  pthread_mutex_unlock(&progress->mutex);
  pthread_join(progress->thread, NULL);
  if (progress->drawn) fputs("\r\033[K", stderr);
  pthread_cond_destroy(&progress->wake);
  pthread_mutex_destroy(&progress->mutex);
  free(progress);
}
