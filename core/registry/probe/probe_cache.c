/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts of probes, kept in one text file: a line for each plugin, fields between spaces, texts percent-encoded.
 *
 * tenon-probes 1 PATH DEV INODE SIZE MTIME_S MTIME_NS BUILD_ID ABI LIBRARY VERDICT SIGNAL EXIT STATUS STEP US PEAK
 * TEXT
 *
 * A line that cannot be parsed is ignored, and dropped by the next write. If two processes write at once, one of the
 * two verdicts may be lost; the plugin is then probed again. The file is used only if it is owned by the user and
 * writable only by the user, who could replace the plugins as well. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <core/base/file.h>
#include <core/registry/probe/probe.h>

#define MAX_BYTES ((size_t)4 << 20)
#define HEAD "tenon-probes 1\n"
#define N_FIELDS 17
#define N_KEY_FIELDS 9

/* ---- the file ---- */

bool tn__probe_cache_path(tn__text *path)
{
  const char *folder = tn__getenv("TENON_CACHE_DIR"), *below = "";
  if (folder == NULL || folder[0] != '/') folder = tn__getenv("XDG_CACHE_HOME"), below = "/tenon";
  if (folder == NULL || folder[0] != '/') folder = tn__getenv("HOME"), below = "/.cache/tenon";
  if (folder == NULL || folder[0] != '/') return false;
  tn__text_printf(path, "%s%s/probes-%d", folder, below, TN_ABI_MAJOR);
  return !path->failed;
}

/* Creates the missing folders of a file's path. */
static void make_folders(char *path)
{
  for (char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
    *at = 0;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
      tn_log(TN_LOG_DEBUG, "'%s' cannot be created: %s", path, tn__strerror(errno));
    *at = '/';
  }
}

/* Appends the file's bytes; nothing if it does not exist, is too large, or can be written by another user. */
static void read_cache(const char *path, tn__text *out)
{
  tn__file file;
  struct stat st;
  if (tn__file_open(path, &file, NULL) != TN_OK) return;
  bool own = fstat(file.fd, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  if (own && file.size > 0 && file.size <= MAX_BYTES) {
    char *bytes = tn__alloc((size_t)file.size);
    if (bytes != NULL && tn__file_read(&file, 0, bytes, (size_t)file.size, NULL) == TN_OK)
      tn__text_append(out, bytes, (size_t)file.size);
    tn__free(bytes, (size_t)file.size);
  }
  tn__file_close(&file);
}

/* ---- one line ---- */

/* Percent-encodes everything but printable ASCII, so that a field has no spaces. "-" is the empty text. */
static void put_text(tn__text *line, const char *text)
{
  if (text[0] == 0) tn__text_puts(line, "-");
  for (const char *at = text; *at != 0; at++) {
    unsigned char c = (unsigned char)*at;
    bool plain = c > 0x20 && c < 0x7f && c != '%' && !(c == '-' && at == text);
    if (plain)
      tn__text_append(line, at, 1);
    else
      tn__text_printf(line, "%%%02x", c);
  }
}

/* The value of a hexadecimal digit; -1: it is none. */
static int digit(char c)
{
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes a field into `out`; false if it is malformed, contains a NUL, or does not fit. */
static bool get_text(tn__slice field, char *out, size_t room)
{
  size_t n = 0;
  if (tn__slice_is(field, "-")) field.size = 0;
  for (size_t i = 0; i < field.size; i++) {
    int c = (unsigned char)field.data[i];
    if (c == '%') {
      if (field.size - i < 3 || digit(field.data[i + 1]) < 0 || digit(field.data[i + 2]) < 0) return false;
      c = digit(field.data[i + 1]) * 16 + digit(field.data[i + 2]);
      i += 2;
    }
    if (n + 1 >= room || c == 0) return false;
    out[n++] = (char)c;
  }
  out[n] = 0;
  return true;
}

/* Writes the fields that identify the file and this library, each followed by a space. */
static void put_key(tn__text *line, const tn__probe_key *key)
{
  put_text(line, key->path);
  tn__text_printf(line, " %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 " %ld %s %d.%d %s ", (uint64_t)key->id.dev,
                  (uint64_t)key->id.ino, (int64_t)key->id.size, (int64_t)key->id.mtime.tv_sec, key->id.mtime.tv_nsec,
                  key->build_id, TN_ABI_MAJOR, TN_ABI_MINOR, TN_VERSION_STRING);
}

/* Returns the line at *at in *line, without its newline, and moves *at past it. */
static bool next_line(const tn__text *text, size_t *at, tn__slice *line)
{
  if (*at >= text->size) return false;
  const char *from = text->data + *at, *end = memchr(from, '\n', text->size - *at);
  size_t size = end != NULL ? (size_t)(end - from) : text->size - *at;
  *line = (tn__slice){ from, size };
  *at += size + 1;
  return true;
}

/* Splits the line at single spaces; false unless there are exactly n fields. */
static bool cut_fields(tn__slice line, tn__slice *fields, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    const char *space = memchr(line.data, ' ', line.size);
    size_t size = space != NULL ? (size_t)(space - line.data) : line.size;
    if (size == 0 || (space == NULL) != (i + 1 == n)) return false;
    fields[i] = (tn__slice){ line.data, size };
    if (space != NULL) line = (tn__slice){ space + 1, line.size - size - 1 };
  }
  return true;
}

static bool number(tn__slice field, int64_t least, int64_t most, int64_t *out)
{
  return tn__parse_int(field, out) && *out >= least && *out <= most;
}

/* The code of the reason that a verdict is read with. Only a plugin's own error keeps its code. */
static tn_status code_of(int64_t verdict, int64_t status)
{
  if (verdict == TN_PROBE_ERROR) return (tn_status)status;
  return verdict == TN_PROBE_TIMEOUT ? TN_DEADLINE_EXCEEDED : TN_ABORTED;
}

/* Reads the fields after the key. */
static bool read_verdict(tn__slice line, tn_probe_report *out, tn_error *why)
{
  tn__slice f[N_FIELDS];
  int64_t n[7];
  char step[80], text[TN_PROBE_MAX_MESSAGE + 1];
  if (!cut_fields(line, f, N_FIELDS)) return false;
  const tn__slice *v = f + N_KEY_FIELDS;
  if (!number(v[0], TN_PROBE_WELL, TN_PROBE_MEMORY, &n[0]) || !number(v[1], 0, 128, &n[1]) ||
      !number(v[2], 0, 255, &n[2]) || !number(v[3], TN_OK, TN_UNAUTHENTICATED, &n[3]) ||
      !get_text(v[4], step, sizeof(step)) || !number(v[5], 0, INT64_MAX, &n[4]) || !number(v[6], 0, INT64_MAX, &n[5]) ||
      !get_text(v[7], text, sizeof(text)))
    return false;
  *out = (tn_probe_report){ .struct_size = sizeof(*out),
                            .verdict = (int32_t)n[0],
                            .signal = (int32_t)n[1],
                            .exit_status = (int32_t)n[2],
                            .status = (tn_status)n[3],
                            .duration_us = n[4],
                            .peak_bytes = (uint64_t)n[5],
                            .step = tn__step_text(tn__step_of_text(step)),
                            .cached = 1 };
  if (n[0] == TN_PROBE_WELL) return true;
  if (text[0] == 0) return false; /* an error has a text */
  tn_error_set(why, code_of(n[0], n[3]), "%s", text);
  return n[0] != TN_PROBE_ERROR || n[3] != TN_OK;
}

/* ---- look up and store ---- */

void tn__probe_key_init(const char *path, const tn__file_id *id, tn__probe_key *out)
{
  out->path = path;
  out->id = *id;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd >= 0)
    tn__elf_build_id(fd, out->build_id, sizeof(out->build_id));
  else
    memcpy(out->build_id, "-", 2);
  if (fd >= 0) close(fd);
}

bool tn__probe_cache_get(const tn__probe_key *key, tn_probe_report *out, tn_error *why)
{
  tn__text path, text, wanted;
  tn__slice line;
  bool found = false;
  size_t at = 0;
  tn__text_init(&path, 65536);
  tn__text_init(&text, MAX_BYTES + 1);
  tn__text_init(&wanted, 4 * TN_PROBE_MAX_PATH);
  put_key(&wanted, key);
  if (!wanted.failed && tn__probe_cache_path(&path)) read_cache(path.data, &text);
  bool known = !wanted.failed && next_line(&text, &at, &line) && line.size + 1 == strlen(HEAD) &&
               memcmp(line.data, HEAD, line.size) == 0;
  while (known && !found && next_line(&text, &at, &line))
    found = line.size > wanted.size && memcmp(line.data, wanted.data, wanted.size) == 0 && read_verdict(line, out, why);
  tn__text_fini(&path);
  tn__text_fini(&text);
  tn__text_fini(&wanted);
  return found;
}

/* Copies the verdicts on other files; if they do not fit, only the newest, which are at the end. */
static void keep_others(const tn__text *old, const tn__text *key_path, tn__text *out, size_t room)
{
  size_t at = 0, from = 0;
  tn__slice line, fields[N_FIELDS];
  if (old->size > room) from = old->size - room;
  while (next_line(old, &at, &line)) {
    bool same = line.size > key_path->size && memcmp(line.data, key_path->data, key_path->size) == 0;
    if (at <= from || same || !cut_fields(line, fields, N_FIELDS)) continue;
    tn__text_append(out, line.data, line.size);
    tn__text_puts(out, "\n");
  }
}

/* Replaces the file at once, readable and writable by its owner only. */
static tn_status write_cache(char *path, const tn__text *text, tn_error *err)
{
  tn__writer w;
  make_folders(path);
  tn_status status = tn__writer_open(&w, path, err);
  if (status != TN_OK) return status;
  if (w.fd >= 0) fchmod(w.fd, 0600);
  status = tn__writer_write(&w, text->data, text->size, err);
  if (status == TN_OK) return tn__writer_commit(&w, err);
  tn__writer_abandon(&w);
  return status;
}

void tn__probe_cache_put(const tn__probe_key *key, const tn_probe_report *report, const tn_error *why)
{
  tn__text path, old, text, same;
  tn_error e = TN_ERROR_INIT;
  tn__text_init(&path, 65536);
  tn__text_init(&old, MAX_BYTES + 1);
  tn__text_init(&text, MAX_BYTES);
  tn__text_init(&same, 4 * TN_PROBE_MAX_PATH);
  put_text(&same, key->path);
  tn__text_puts(&same, " ");
  tn__text_puts(&text, HEAD);
  if (!same.failed && tn__probe_cache_path(&path)) {
    read_cache(path.data, &old);
    keep_others(&old, &same, &text, MAX_BYTES / 2);
    put_key(&text, key);
    tn__text_printf(&text, "%d %d %d %d ", report->verdict, report->signal, report->exit_status, report->status);
    put_text(&text, report->step);
    tn__text_printf(&text, " %" PRId64 " %" PRIu64 " ", report->duration_us, report->peak_bytes);
    put_text(&text, tn_error_message(why));
    tn__text_puts(&text, "\n");
    if (text.failed || write_cache(path.data, &text, &e) != TN_OK)
      tn_log(TN_LOG_INFO, "the verdict on '%s' is not cached: %s", key->path, tn_error_message(&e));
  }
  tn_error_clear(&e);
  tn__text_fini(&path);
  tn__text_fini(&old);
  tn__text_fini(&text);
  tn__text_fini(&same);
}

tn_status tn_runtime_clear_cache(size_t *n, tn_error *err)
{
  tn__error_reset(err);
  tn__text path, text;
  tn__slice line, fields[N_FIELDS];
  size_t at = 0, count = 0;
  tn_status status = TN_OK;
  if (n != NULL) *n = 0;
  tn__text_init(&path, 65536);
  tn__text_init(&text, MAX_BYTES + 1);
  if (tn__probe_cache_path(&path)) {
    read_cache(path.data, &text);
    while (next_line(&text, &at, &line)) count += cut_fields(line, fields, N_FIELDS);
    if (unlink(path.data) != 0 && errno != ENOENT && errno != ENOTDIR)
      status = tn__system_error(err, errno, "cannot remove '%s'", path.data);
  } else if (path.failed) {
    status = tn__no_memory(err, "a path", 1);
  }
  if (status == TN_OK && n != NULL) *n = count;
  tn__text_fini(&path);
  tn__text_fini(&text);
  return status;
}
