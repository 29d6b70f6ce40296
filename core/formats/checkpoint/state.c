/* SPDX-License-Identifier: Apache-2.0 */
/* The state file `checkpoint` of a folder: a CheckpointState in text form, which names the newest checkpoint and those
 * that are kept, oldest first. Names are relative to the folder, or absolute. */
#include <core/formats/checkpoint/checkpoint.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_BYTES ((uint64_t)64 << 20) /* of a state file */

typedef struct state {
  tn__arena arena;
  const char *latest; /* NULL: none */
  const char **paths; /* owned */
  tn__slice *times;   /* owned; numbers as they were written */
  size_t n, room, n_times, room_times;
  tn__slice preserved; /* last_preserved_timestamp; empty: none */
} state;

static void state_init(state *st)
{
  memset(st, 0, sizeof(*st));
  tn__arena_init(&st->arena, 1024);
}

static void state_fini(state *st)
{
  tn__free(st->paths, st->room * sizeof(*st->paths));
  tn__free(st->times, st->room_times * sizeof(*st->times));
  tn__arena_fini(&st->arena);
}

static tn_status no_room(tn_error *err) { return tn__no_memory(err, "the state of a folder of checkpoints", 0); }

/* ---- names ---- */

static size_t folder_size(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

/* The folder with its slash and a name in it; of an absolute name the name. NULL: out of memory. */
static char *join(tn__slice folder, const char *name, tn__arena *arena)
{
  bool slash = folder.size > 0 && folder.data[folder.size - 1] != '/';
  size_t n = name[0] == '/' ? 0 : folder.size, length = strlen(name);
  char *path = tn__arena_alloc(arena, n + slash + length + 1);
  if (path == NULL) return NULL;
  memcpy(path, folder.data, n);
  if (n > 0 && slash) path[n++] = '/';
  memcpy(path + n, name, length + 1);
  return path;
}

/* ---- parsing ---- */

typedef struct parser {
  const char *path;
  const char *begin, *p, *end;
  state *st;
  tn_error *err;
} parser;

static tn_status bad(const parser *r, const char *what)
{
  return tn_error_set(r->err, TN_DATA_LOSS, "'%s' at byte %zu: %s; it is not the state file of a folder of checkpoints",
                      r->path, (size_t)(r->p - r->begin), what);
}

static void skip_space(parser *r)
{
  while (r->p < r->end) {
    if (*r->p == '#')
      while (r->p < r->end && *r->p != '\n') r->p++;
    else if (memchr(" \t\r\n\v\f", *r->p, 6) != NULL)
      r->p++;
    else
      return;
  }
}

static bool at(const parser *r, char c) { return r->p < r->end && *r->p == c; }

static bool skip_char(parser *r, char c)
{
  skip_space(r);
  bool is = at(r, c);
  r->p += is;
  return is;
}

static bool is_word(char c)
{
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' ||
         c == '-' || c == '+';
}

/* A name or a number; empty: there is none. */
static tn__slice take_word(parser *r)
{
  skip_space(r);
  const char *begin = r->p;
  while (r->p < r->end && is_word(*r->p)) r->p++;
  return (tn__slice){ begin, (size_t)(r->p - begin) };
}

static int digit(char c)
{
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

/* Takes up to `most` digits of a base. */
static uint32_t take_digits(parser *r, int base, int most)
{
  uint32_t value = 0;
  for (int i = 0; i < most && r->p < r->end && digit(*r->p) < base; i++)
    value = value * (uint32_t)base + (uint32_t)digit(*r->p++);
  return value;
}

static void put_utf8(tn__text *out, uint32_t c)
{
  static const unsigned char heads[] = { 0, 0xc0, 0xe0, 0xf0 };
  int more = (c >= 0x80) + (c >= 0x800) + (c >= 0x10000);
  char bytes[4];
  bytes[0] = (char)(heads[more] | c >> (6 * more));
  for (int i = 1; i <= more; i++) bytes[i] = (char)(0x80 | (c >> (6 * (more - i)) & 0x3f));
  tn__text_append(out, bytes, (size_t)more + 1);
}

/* Takes what follows a backslash. */
static tn_status take_escape(parser *r, tn__text *out)
{
  static const char letters[] = "abfnrtv", meanings[] = "\a\b\f\n\r\t\v";
  if (r->p == r->end) return bad(r, "a text has no end");
  char c = *r->p;
  const char *letter = memchr(letters, c, sizeof(letters) - 1);
  if (c >= '0' && c <= '7') {
    c = (char)take_digits(r, 8, 3);
    tn__text_append(out, &c, 1);
    return TN_OK;
  }
  r->p++;
  if (c == 'x' || c == 'X') {
    c = (char)take_digits(r, 16, 2);
    tn__text_append(out, &c, 1);
  } else if (c == 'u' || c == 'U') {
    uint32_t value = take_digits(r, 16, c == 'u' ? 4 : 8);
    if (value > 0x10ffff) return bad(r, "a character is none of Unicode");
    put_utf8(out, value);
  } else {
    tn__text_append(out, letter != NULL ? &meanings[letter - letters] : &c, 1);
  }
  return TN_OK;
}

/* Takes one or several texts in quotes, which are joined. */
static tn_status take_text(parser *r, tn__text *out)
{
  tn_status s = TN_OK;
  if (!at(r, '"') && !at(r, '\'')) return bad(r, "wanted a text in quotes");
  while (s == TN_OK && (at(r, '"') || at(r, '\''))) {
    char quote = *r->p++;
    while (s == TN_OK && !at(r, quote)) {
      if (r->p == r->end || *r->p == '\n') return bad(r, "a text has no end");
      char c = *r->p++;
      if (c == '\\')
        s = take_escape(r, out);
      else
        tn__text_append(out, &c, 1);
    }
    r->p += s == TN_OK;
    skip_space(r);
  }
  return s;
}

static tn_status take_path(parser *r, const char **out)
{
  tn__text text;
  tn__text_init(&text, SIZE_MAX / 2);
  tn_status s = take_text(r, &text);
  if (s == TN_OK && memchr(tn__text_get(&text), 0, text.size) != NULL) s = bad(r, "a name has a zero byte");
  if (s == TN_OK && (text.failed || (*out = tn__arena_string(&r->st->arena, tn__text_get(&text), text.size)) == NULL))
    s = no_room(r->err);
  tn__text_fini(&text);
  return s;
}

static tn_status add_path(state *st, const char *path, tn_error *err)
{
  if (!tn__grow((void **)&st->paths, &st->room, st->n + 1, sizeof(*st->paths))) return no_room(err);
  st->paths[st->n++] = path;
  return TN_OK;
}

static tn_status add_time(state *st, tn__slice number, tn_error *err)
{
  if (!tn__grow((void **)&st->times, &st->room_times, st->n_times + 1, sizeof(*st->times))) return no_room(err);
  char *copy = tn__arena_string(&st->arena, number.data, number.size);
  if (copy == NULL) return no_room(err);
  st->times[st->n_times++] = (tn__slice){ copy, number.size };
  return TN_OK;
}

/* Skips a nested message, whose bracket was taken. */
static tn_status skip_message(parser *r)
{
  for (size_t depth = 1; depth > 0;) {
    skip_space(r);
    if (r->p == r->end) return bad(r, "a message has no end");
    if (at(r, '"') || at(r, '\'')) {
      const char *ignored;
      tn_status s = take_path(r, &ignored);
      if (s != TN_OK) return s;
      continue;
    }
    depth += at(r, '{') || at(r, '<');
    depth -= at(r, '}') || at(r, '>');
    r->p++;
  }
  return TN_OK;
}

/* Takes the value of a field; fields that are not known are skipped. */
static tn_status take_value(parser *r, tn__slice name)
{
  const char *path = NULL;
  skip_space(r);
  if (skip_char(r, '{') || skip_char(r, '<')) return skip_message(r);
  if (!at(r, '"') && !at(r, '\'')) {
    tn__slice number = take_word(r);
    if (number.size == 0) return bad(r, "wanted a value");
    if (tn__slice_is(name, "all_model_checkpoint_timestamps")) return add_time(r->st, number, r->err);
    if (tn__slice_is(name, "last_preserved_timestamp")) {
      char *copy = tn__arena_string(&r->st->arena, number.data, number.size);
      r->st->preserved = (tn__slice){ copy, number.size };
      return copy == NULL ? no_room(r->err) : TN_OK;
    }
    return TN_OK;
  }
  tn_status s = take_path(r, &path);
  if (s == TN_OK && tn__slice_is(name, "model_checkpoint_path")) r->st->latest = path;
  if (s == TN_OK && tn__slice_is(name, "all_model_checkpoint_paths")) s = add_path(r->st, path, r->err);
  return s;
}

/* Takes a field: "name: value", "name { ... }" or "name: [value, value]". */
static tn_status take_field(parser *r)
{
  tn__slice name = take_word(r);
  if (name.size == 0) return bad(r, "wanted the name of a field");
  bool colon = skip_char(r, ':');
  skip_space(r);
  if (!colon && !at(r, '{') && !at(r, '<')) return bad(r, "wanted ':'");
  if (!skip_char(r, '[')) return take_value(r, name);
  if (skip_char(r, ']')) return TN_OK;
  for (;;) {
    tn_status s = take_value(r, name);
    if (s != TN_OK) return s;
    if (skip_char(r, ']')) return TN_OK;
    if (!skip_char(r, ',')) return bad(r, "wanted ',' or ']'");
  }
}

static tn_status parse(parser *r)
{
  tn_status s = TN_OK;
  for (skip_space(r); s == TN_OK && r->p < r->end; skip_space(r)) {
    s = take_field(r);
    while (s == TN_OK && (skip_char(r, ';') || skip_char(r, ','))) continue;
  }
  return s;
}

static tn_status read_state(const char *path, state *st, tn_error *err)
{
  tn__file file;
  tn_status s = tn__file_open(path, &file, err);
  if (s != TN_OK) return s;
  if (file.size > MOST_BYTES) s = tn_error_set(err, TN_DATA_LOSS, "'%s' is too large for a state file", path);
  size_t size = (size_t)file.size;
  char *text = s == TN_OK && size > 0 ? tn__alloc(size) : NULL;
  if (s == TN_OK && size > 0 && text == NULL) s = tn__no_memory(err, "a state file", size);
  if (s == TN_OK && size > 0) s = tn__file_read(&file, 0, text, size, err);
  tn__file_close(&file);
  if (s == TN_OK && size > 0) {
    parser r = { .path = path, .begin = text, .p = text, .end = text + size, .st = st, .err = err };
    s = parse(&r);
  }
  tn__free(text, size);
  return s;
}

/* ---- the newest checkpoint ---- */

static tn_status find_latest(state *st, const char *folder, char **prefix, tn_error *err)
{
  const char *path = join(tn__slice_of(folder), "checkpoint", &st->arena), *found;
  if (path == NULL) return no_room(err);
  tn_status s = read_state(path, st, err);
  if (s != TN_OK) return s;
  if (st->latest == NULL || st->latest[0] == 0)
    return tn_error_set(err, TN_NOT_FOUND, "'%s' names no checkpoint", path);
  if ((found = join(tn__slice_of(folder), st->latest, &st->arena)) == NULL) return no_room(err);
  if (!tn__checkpoint_exists(found))
    return tn_error_set(err, TN_NOT_FOUND, "'%s' names the checkpoint '%s', which is not there", path, found);
  *prefix = tn__strdup(found);
  return *prefix == NULL ? no_room(err) : TN_OK;
}

tn_status tn__checkpoint_latest(const char *folder, char **prefix, tn_error *err)
{
  state st;
  *prefix = NULL;
  state_init(&st);
  tn_status s = find_latest(&st, folder, prefix, err);
  state_fini(&st);
  return s;
}

/* ---- writing ---- */

/* As Python's protobuf writes texts: bytes outside of ASCII as octal numbers. */
static void put_quoted(tn__text *out, const char *text)
{
  tn__text_puts(out, "\"");
  for (; *text != 0; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\')
      tn__text_printf(out, "\\%c", c);
    else if (c < 0x20 || c >= 0x7f)
      tn__text_printf(out, "\\%03o", c);
    else
      tn__text_append(out, text, 1);
  }
  tn__text_puts(out, "\"\n");
}

static void format_state(const state *st, tn__text *out)
{
  tn__text_puts(out, "model_checkpoint_path: ");
  put_quoted(out, st->latest);
  for (size_t i = 0; i < st->n; i++) {
    tn__text_puts(out, "all_model_checkpoint_paths: ");
    put_quoted(out, st->paths[i]);
  }
  for (size_t i = 0; i < st->n_times; i++)
    tn__text_printf(out, "all_model_checkpoint_timestamps: %s\n", st->times[i].data);
  if (st->preserved.size > 0) tn__text_printf(out, "last_preserved_timestamp: %s\n", st->preserved.data);
}

static tn_status write_state(const state *st, const char *path, tn_error *err)
{
  tn__writer w;
  tn__text text;
  tn__text_init(&text, SIZE_MAX / 2);
  format_state(st, &text);
  tn_status s = text.failed ? no_room(err) : tn__writer_open(&w, path, err);
  if (s == TN_OK) {
    s = tn__writer_write(&w, text.data, text.size, err);
    if (s == TN_OK) s = tn__writer_sync(&w, err);
    if (s == TN_OK)
      s = tn__writer_commit(&w, err);
    else
      tn__writer_abandon(&w);
  }
  tn__text_fini(&text);
  return s == TN_OK ? tn__folder_sync(path, err) : s;
}

/* Removes checkpoint i from the list. */
static void remove_path(state *st, size_t i)
{
  memmove(&st->paths[i], &st->paths[i + 1], (st->n - i - 1) * sizeof(*st->paths));
  if (st->n_times == st->n) {
    memmove(&st->times[i], &st->times[i + 1], (st->n - i - 1) * sizeof(*st->times));
    st->n_times--;
  }
  st->n--;
}

/* Names a checkpoint as the newest, last in the list. Times are kept if there is one for each checkpoint. */
static tn_status add_latest(state *st, tn__slice folder, const char *name, tn_error *err)
{
  char now[40];
  struct timespec t = { 0, 0 };
  const char *full = join(folder, name, &st->arena);
  if (full == NULL) return no_room(err);
  if (st->n_times != st->n) st->n_times = 0;
  for (size_t i = st->n; i-- > 0;) {
    const char *other = join(folder, st->paths[i], &st->arena);
    if (other == NULL) return no_room(err);
    if (strcmp(other, full) == 0) remove_path(st, i);
  }
  clock_gettime(CLOCK_REALTIME, &t);
  tn__snprintf(now, sizeof(now), "%" PRId64 ".%06ld", (int64_t)t.tv_sec, t.tv_nsec / 1000);
  bool timed = st->n_times == st->n;
  st->latest = tn__arena_string(&st->arena, name, strlen(name));
  if (st->latest == NULL) return no_room(err);
  tn_status s = add_path(st, st->latest, err);
  return s == TN_OK && timed ? add_time(st, tn__slice_of(now), err) : s;
}

/* ---- deleting ---- */

static void delete_file(void *arg, const char *path, uint32_t shards)
{
  (void)arg, (void)shards;
  if (unlink(path) != 0) tn_log(TN_LOG_DEBUG, "cannot delete '%s'", path);
}

/* Deletes the files of a checkpoint, the index first: what is left after a crash is no checkpoint. Errors are logged.
 */
static void delete_checkpoint(const char *prefix)
{
  static const char *const ends[] = { ".index", ".meta" };
  for (size_t i = 0; i < 2; i++) {
    tn__text path;
    tn__text_init(&path, SIZE_MAX / 2);
    tn__text_printf(&path, "%s%s", prefix, ends[i]);
    if (!path.failed) unlink(path.data);
    tn__text_fini(&path);
  }
  tn__data_files(prefix, delete_file, NULL, NULL);
}

/* A state file may name files anywhere. Only checkpoints in its own folder are deleted. */
static bool is_inside(tn__slice folder, const char *path)
{
  size_t size = folder_size(path);
  return size == 0 || (size == folder.size && memcmp(path, folder.data, size) == 0);
}

/* Takes checkpoints beyond the newest `keep` from the list, and deletes them once the list is written. */
static tn_status update(state *st, tn__slice folder, const char *path, const char *name, int32_t keep, tn_error *err)
{
  bool absent = access(path, F_OK) != 0 && errno == ENOENT;
  tn_status s = absent ? TN_OK : read_state(path, st, err);
  if (s == TN_OK) s = add_latest(st, folder, name, err);
  size_t extra = s == TN_OK && keep > 0 && st->n > (size_t)keep ? st->n - (size_t)keep : 0;
  const char **old = extra == 0 ? NULL : tn__arena_array(&st->arena, extra, sizeof(*old));
  if (extra > 0 && old == NULL) s = no_room(err);
  for (size_t i = 0; i < extra && s == TN_OK; i++) {
    old[i] = join(folder, st->paths[0], &st->arena);
    if (old[i] == NULL) s = no_room(err);
    remove_path(st, 0);
  }
  if (s == TN_OK) s = write_state(st, path, err);
  for (size_t i = 0; i < extra && s == TN_OK; i++)
    if (is_inside(folder, old[i])) delete_checkpoint(old[i]);
  return s;
}

tn_status tn__checkpoint_update_state(const char *prefix, int32_t keep, tn_error *err)
{
  state st;
  tn__slice folder = { prefix, folder_size(prefix) };
  state_init(&st);
  const char *path = join(folder, "checkpoint", &st.arena);
  tn_status s = path == NULL ? no_room(err) : update(&st, folder, path, prefix + folder.size, keep, err);
  state_fini(&st);
  return s;
}
