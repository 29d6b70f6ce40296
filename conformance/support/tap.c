/* SPDX-License-Identifier: Apache-2.0 */
/* Common to all test programs, under any runner: suites, checks, paths. */
#define _XOPEN_SOURCE 700
#include <conformance/support/tap.h>

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
  tap_suite *suites;
  pthread_mutex_t mutex; /* guards the fields below */
  bool skipped;
  bool unimplemented;
  bool failed; /* a check has failed since the last tap_unskip */
  char skip_reason[200];
  char answer[600];
  char scratch[200];
} tap = { .mutex = PTHREAD_MUTEX_INITIALIZER };

/* --- suites ------------------------------------------------------------------------------------------------------- */

void tap_add_suite(tap_suite *suite)
{
  suite->next = tap.suites;
  tap.suites = suite;
}

tap_suite *tap_suites(void) { return tap.suites; }

void tap_suite_name(const char *file, char *name, size_t size)
{
  const char *slash = strrchr(file, '/');
  snprintf(name, size, "%s", slash ? slash + 1 : file);
  name[strcspn(name, ".")] = 0;
}

/* --- texts -------------------------------------------------------------------------------------------------------- */

/* TAP lines end at a newline, so a newline in a text starts a new comment line. */
static void print_comment(const char *text)
{
  printf("# ");
  for (; *text; text++) {
    putchar(*text);
    if (*text == '\n') printf("#   ");
  }
  putchar('\n');
}

void tap_note(const char *format, ...)
{
  char text[2400];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  print_comment(text);
}

void tap_skip(const char *format, ...)
{
  va_list args;
  va_start(args, format);
  vsnprintf(tap.skip_reason, sizeof(tap.skip_reason), format, args);
  va_end(args);
  tap.skipped = true;
}

const char *tap_skip_reason(void) { return tap.skipped ? tap.skip_reason : NULL; }

void tap_unskip(void) { tap.skipped = tap.unimplemented = tap.failed = false; }

void tap_answered(tn_status status, const tn_error *err)
{
  if (status != TN_UNIMPLEMENTED) return;
  pthread_mutex_lock(&tap.mutex);
  if (!tap.failed && !tap.unimplemented) {
    tap.unimplemented = true;
    snprintf(tap.answer, sizeof(tap.answer), "UNIMPLEMENTED%s%s", err ? ": " : "", err ? tn_error_message(err) : "");
  }
  pthread_mutex_unlock(&tap.mutex);
}

const char *tap_unimplemented(void) { return tap.unimplemented ? tap.answer : NULL; }

/* --- checks ------------------------------------------------------------------------------------------------------- */

static bool record(bool ok, const char *file, int line, bool fatal, const char *message)
{
  if (!ok) {
    pthread_mutex_lock(&tap.mutex);
    tap.failed = true;
    pthread_mutex_unlock(&tap.mutex);
  }
  tap_record(ok, file, line, fatal, message);
  return ok;
}

bool tap_check(bool ok, const char *file, int line, bool fatal, const char *format, ...)
{
  char text[2000];
  if (ok) return record(true, file, line, fatal, "");
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  return record(false, file, line, fatal, text);
}

bool tap_check_int(int64_t found, int64_t wanted, const char *what, const char *file, int line, bool fatal)
{
  return tap_check(found == wanted, file, line, fatal, "%s: found %" PRId64 ", wanted %" PRId64, what, found, wanted);
}

bool tap_check_double(double found, double wanted, double tolerance, const char *what, const char *file, int line)
{
  bool ok = isnan(wanted) ? isnan(found) : found == wanted || fabs(found - wanted) <= tolerance;
  return tap_check(ok, file, line, false, "%s: found %.17g, wanted %.17g +- %g", what, found, wanted, tolerance);
}

bool tap_check_str(const char *found, const char *wanted, const char *what, const char *file, int line)
{
  bool ok = found && wanted ? strcmp(found, wanted) == 0 : found == wanted;
  return tap_check(ok, file, line, false, "%s: found \"%s\", wanted \"%s\"", what, found ? found : "(NULL)",
                   wanted ? wanted : "(NULL)");
}

bool tap_check_contains(const char *text, const char *part, const char *what, const char *file, int line)
{
  bool ok = text && strstr(text, part);
  return tap_check(ok, file, line, false, "%s: \"%s\" does not contain \"%s\"", what, text ? text : "(NULL)", part);
}

bool tap_check_bytes(const void *found, const void *wanted, size_t n, const char *what, const char *file, int line)
{
  const unsigned char *f = found, *w = wanted;
  if (n != 0 && (!f || !w)) return tap_check(false, file, line, false, "%s: NULL", what);
  for (size_t i = 0; i < n; i++)
    if (f[i] != w[i])
      return tap_check(false, file, line, false, "%s: byte %zu of %zu: found 0x%02x, wanted 0x%02x", what, i, n, f[i],
                       w[i]);
  return tap_check(true, file, line, false, "%s", what);
}

bool tap_check_status(tn_status found, tn_status wanted, const tn_error *err, const char *what, const char *file,
                      int line, bool fatal)
{
  if (found == wanted && wanted == TN_UNIMPLEMENTED) tap.unimplemented = false; /* expected by the test */
  if (found == wanted) return tap_check(true, file, line, fatal, "%s", what);
  if (wanted == TN_OK) tap_answered(found, err);
  char text[1000] = "";
  if (err && tn_error_code(err) != TN_OK) {
    text[0] = '\n';
    tn_error_format(err, text + 1, sizeof(text) - 1);
  }
  return tap_check(false, file, line, fatal, "%s: found %s, wanted %s%s", what, tn_status_name(found),
                   tn_status_name(wanted), text);
}

/* --- paths -------------------------------------------------------------------------------------------------------- */

static const char *path_below(const char *variable, const char *path)
{
  static char buffers[4][4096];
  static unsigned next;
  const char *top = getenv(variable);
  char *buffer = buffers[next++ % 4];
  snprintf(buffer, sizeof(buffers[0]), "%s/%s", top ? top : ".", path);
  return buffer;
}

const char *tap_source_path(const char *path) { return path_below("TENON_SRCDIR", path); }

const char *tap_build_path(const char *path) { return path_below("TENON_BUILDDIR", path); }

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *where)
{
  (void)info;
  (void)type;
  (void)where;
  return remove(path);
}

static pid_t scratch_owner;

static void remove_scratch(void)
{
  if (getpid() == scratch_owner) nftw(tap.scratch, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *tap_scratch_dir(void)
{
  if (tap.scratch[0] != 0) return tap.scratch;
  const char *tmp = getenv("TMPDIR");
  snprintf(tap.scratch, sizeof(tap.scratch), "%s/tenon-test-XXXXXX", tmp ? tmp : "/tmp");
  if (!mkdtemp(tap.scratch)) {
    printf("Bail out! %s: %s\n", tap.scratch, strerror(errno));
    exit(1);
  }
  scratch_owner = getpid();
  atexit(remove_scratch);
  return tap.scratch;
}

const char *tap_scratch_path(const char *format, ...)
{
  static char paths[32][600];
  static unsigned next;
  char *path = paths[next++ % 32];
  size_t n = (size_t)snprintf(path, sizeof paths[0], "%s/", tap_scratch_dir());
  va_list args;
  va_start(args, format);
  vsnprintf(path + n, sizeof paths[0] - n, format, args);
  va_end(args);
  return path;
}
