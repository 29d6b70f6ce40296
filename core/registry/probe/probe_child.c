/* SPDX-License-Identifier: Apache-2.0 */
/* The child's side of a probe: the main part of libexec/tenon/tenon-probe. It reads the request, closes every
 * descriptor but that of the reports, limits its own resources, loads the plugin and opens a session with it as a
 * program would. The process then ends without running exit handlers. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include <core/registry/probe/probe.h>

#define MAX_FILE_BYTES ((uint64_t)64 << 20)
#define MAX_DESCRIPTORS 256

typedef struct request {
  char nonce[TN_PROBE_NONCE + 1];
  uint64_t memory, seconds;
  char path[TN_PROBE_MAX_PATH + 1];
} request;

static void report_bytes(char what, uint64_t bytes)
{
  char line[TN_PROBE_NONCE + 30];
  int n = tn__snprintf(line, sizeof(line), "%s %c %" PRIu64 "\n", tn__probe_nonce(), what, bytes);
  tn__probe_write(line, (size_t)n);
}

/* ---- memory ---- */

/* The peak memory that wait4 would report for this process, in bytes. Before the plugin is opened it may be that of the
 * parent: Linux keeps the peak across fork, vfork and exec. */
static uint64_t peak_before(void)
{
  struct rusage use;
  return getrusage(RUSAGE_SELF, &use) == 0 ? (uint64_t)use.ru_maxrss * 1024 : 0;
}

/* The peak memory since exec, in bytes; 0: unknown. */
static uint64_t peak_of_program(void)
{
  static const char field[] = "\nVmHWM:";
  char text[8192];
  int64_t kilobytes = 0;
  int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
  if (fd >= 0) close(fd);
  text[n > 0 ? n : 0] = 0;
  const char *at = strstr(text, field);
  if (at == NULL) return 0;
  at += sizeof(field) - 1;
  at += strspn(at, " \t");
  if (!tn__parse_int((tn__slice){ at, strcspn(at, " \n") }, &kilobytes) || kilobytes < 0) return 0;
  return (uint64_t)kilobytes * 1024;
}

/* ---- the request ---- */

static size_t read_all(int fd, char *to, size_t room)
{
  size_t size = 0;
  while (size < room) {
    ssize_t n = read(fd, to + size, room - size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    size += (size_t)n;
  }
  return size;
}

/* Returns the word from *at to `end` in *out and moves *at past both; false if there is no `end`. */
static bool word(const char **at, const char *limit, char end, tn__slice *out)
{
  const char *stop = memchr(*at, end, (size_t)(limit - *at));
  if (stop == NULL) return false;
  *out = (tn__slice){ *at, (size_t)(stop - *at) };
  *at = stop + 1;
  return true;
}

static bool number(tn__slice text, uint64_t *out)
{
  int64_t n = -1;
  if (!tn__parse_int(text, &n) || n < 0) return false;
  *out = (uint64_t)n;
  return true;
}

/* Accepts only a request of the same protocol version and ABI, with nothing after the path. */
static bool parse_request(const char *text, size_t size, request *r)
{
  const char *at = text, *limit = text + size;
  tn__slice magic, version, id, abi, memory, seconds, path;
  char own[32];
  uint64_t bytes = 0;
  tn__snprintf(own, sizeof(own), "%d.%d", TN_ABI_MAJOR, TN_ABI_MINOR);
  if (!word(&at, limit, ' ', &magic) || !word(&at, limit, ' ', &version) || !word(&at, limit, ' ', &id) ||
      !word(&at, limit, ' ', &abi) || !word(&at, limit, ' ', &memory) || !word(&at, limit, ' ', &seconds) ||
      !word(&at, limit, '\n', &path))
    return false;
  if (!tn__slice_is(magic, "tenon-probe") || !tn__slice_is(version, "1") || id.size != TN_PROBE_NONCE ||
      !tn__slice_is(abi, own) || !number(memory, &r->memory) || !number(seconds, &r->seconds) || !number(path, &bytes))
    return false;
  if (bytes != (uint64_t)(limit - at) || bytes == 0 || bytes > TN_PROBE_MAX_PATH) return false;
  memcpy(r->nonce, id.data, id.size);
  memcpy(r->path, at, (size_t)bytes);
  return memchr(r->path, 0, (size_t)bytes) == NULL;
}

/* ---- the plugin's environment ---- */

/* Closes all descriptors above TN_PROBE_FD, in batches, as closing while reading the folder may skip entries. */
static void close_others(void)
{
  DIR *dir = opendir("/proc/self/fd");
  if (dir == NULL) {
    for (int fd = TN_PROBE_FD + 1; fd < 65536; fd++) close(fd);
    return;
  }
  int fds[1024];
  for (bool again = true; again;) {
    size_t n = 0;
    rewinddir(dir);
    for (struct dirent *entry; n < 1024 && (entry = readdir(dir)) != NULL;) {
      int fd = atoi(entry->d_name);
      if (fd > TN_PROBE_FD && fd != dirfd(dir)) fds[n++] = fd;
    }
    for (size_t i = 0; i < n; i++) close(fds[i]);
    again = n == 1024;
  }
  closedir(dir);
}

/* Lowers a limit; never raises it above the hard limit. */
static void limit_to(int what, uint64_t most)
{
  struct rlimit limit;
  if (getrlimit(what, &limit) != 0) return;
  rlim_t value = limit.rlim_max == RLIM_INFINITY || most < limit.rlim_max ? (rlim_t)most : limit.rlim_max;
  limit = (struct rlimit){ value, value };
  setrlimit(what, &limit);
}

/* The process is also killed when the thread that started it ends (Linux). */
static void limit_self(const request *r)
{
  int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null >= 0) {
    dup2(null, 0);
    close(null);
  }
  close_others();
  fcntl(TN_PROBE_FD, F_SETFD, FD_CLOEXEC);
#if defined(__linux__)
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  limit_to(RLIMIT_CORE, 0);
  limit_to(RLIMIT_FSIZE, MAX_FILE_BYTES);
  limit_to(RLIMIT_NOFILE, MAX_DESCRIPTORS);
  limit_to(RLIMIT_CPU, r->seconds);
#if !defined(TN_PROBE_SANITIZED)
  limit_to(RLIMIT_DATA, r->memory);
#endif
}

/* ---- the load ---- */

/* Reports the verdict: the code, and the message with its causes on one line. */
static void report(tn_status status, const tn_error *err)
{
  char head[TN_PROBE_NONCE + 40];
  tn__text text;
  tn__text_init(&text, TN_PROBE_MAX_MESSAGE);
  if (status != TN_OK) tn__text_puts(&text, tn_error_message(err));
  for (size_t i = 0; i < tn_error_n_causes(err); i++) tn__text_printf(&text, ": %s", tn_error_cause(err, i));
  for (size_t i = 0; i < text.size; i++)
    if (text.data[i] == '\n') text.data[i] = ' ';
  int n = tn__snprintf(head, sizeof(head), "%s V %d %zu\n", tn__probe_nonce(), (int)status, text.size);
  tn__probe_write(head, (size_t)n);
  tn__probe_write(tn__text_get(&text), text.size);
}

/* Loads the plugin as a scan would find it, but from this file only. The plugin is never freed: the process ends. */
static tn_status load(const char *path, tn__plugin **out, tn_error *err)
{
  tn__plugin *plugin = NULL;
  tn__reg_lock();
  tn__reg.scanned = true; /* no folder is scanned */
  tn__reg_unlock();
  tn__probe_reached(TN__STEP_CHECK);
  tn_status status = tn__plugin_create(path, &plugin, err);
  if (status == TN_OK) status = tn__plugin_examine(plugin, err);
  if (status != TN_OK) return status;
  if (plugin->state == TN__PLUGIN_REFUSED) {
    tn_error_copy(err, &plugin->error);
    return tn_error_code(err);
  }
  tn__reg_lock();
  tn__plugin_insert_locked(plugin);
  tn__reg_unlock();
  *out = plugin;
  return tn__plugin_load(plugin, err);
}

int tn__probe_serve(tn_status (*try_session)(const char *name, tn_error *err))
{
  tn__plugin *plugin = NULL;
  static request r;
  static char text[TN_PROBE_MAX_PATH + 400];
  tn_error err = TN_ERROR_INIT;
  size_t size = read_all(0, text, sizeof(text));
  if (!parse_request(text, size, &r)) {
    static const char words[] = "tenon-probe is started by the library; see 'tenon runtimes probe'\n";
    ssize_t ignored = write(2, words, sizeof(words) - 1);
    (void)ignored;
    return 2;
  }
  limit_self(&r);
  tn__probe_started(r.nonce);
  report_bytes('B', peak_before());
  tn__probe_reached(TN__STEP_START);
  tn_status status = load(r.path, &plugin, &err);
  bool runs = status == TN_OK && !plugin->manifest.is_kernels; /* a kernel plugin's last step is register_kernels */
  if (runs) status = try_session(plugin->manifest.name, &err);
  if (runs && status == TN_OK) tn__probe_reached(TN__STEP_DONE);
  report_bytes('P', peak_of_program());
  report(status, &err);
  return 0;
}
