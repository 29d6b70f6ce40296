/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that write messages: Assert Print PrintV2. Printed text is passed to the sink of
 * tn_set_print_sink. */
#define _GNU_SOURCE
#include <core/base/alloc.h>
#include <core/base/file.h>
#include <core/base/print.h>
#include <core/base/text.h>
#include <core/resource/folders.h>
#include <errno.h>
#include <fcntl.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <ops/string/summary.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define MAX_TEXT ((size_t)1 << 20) /* of an assertion's message */

/* ---- Assert ---- */

typedef struct assert_state {
  int64_t summarize;
} assert_state;

static tn_status assert_create(const tn_operation *op, void **state, tn_error *err)
{
  assert_state *s = tn__alloc(sizeof *s);
  *state = s;
  if (s == NULL) return tn__no_memory(err, "kernel", sizeof *s);
  s->summarize = tn__attr_int(op, "summarize", 3);
  return TN_OK;
}

static void assert_destroy(void *state) { tn__free(state, sizeof(assert_state)); }

static tn_status assert_prepare(tn_prepare_ctx *ctx, tn_error *err) { return tn__want_rank(ctx, 0, 0, err); }

static tn_status assert_compute(tn_kernel_ctx *ctx)
{
  const assert_state *s = ctx->state;
  if (*(const uint8_t *)ctx->inputs[0]->data) return TN_OK;
  tn__text text;
  tn__text_init(&text, MAX_TEXT);
  for (uint32_t i = 1; i < ctx->n_inputs; i++) {
    tn__text_puts(&text, " ");
    tn__summarize_first(&text, ctx->inputs[i], s->summarize);
  }
  tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "assertion failed:%s%s", tn__text_get(&text), text.failed ? " ..." : "");
  tn__text_fini(&text);
  return TN_INVALID_ARGUMENT;
}

/* ---- Print ---- */

typedef struct print_state {
  char *message;
  int64_t first, summarize; /* first < 0: always */
  _Atomic int64_t said;
} print_state;

static void print_destroy(void *state)
{
  print_state *s = state;
  tn__strfree(s->message);
  tn__free(s, sizeof *s);
}

static tn_status print_create(const tn_operation *op, void **state, tn_error *err)
{
  const char *text = "";
  size_t n = 0;
  *state = NULL;
  tn_status st = tn_operation_attr_string(op, "message", &text, &n, err);
  if (st != TN_OK) return st;
  print_state *s = tn__zalloc(sizeof *s);
  if (s != NULL) s->message = tn__strndup(text, strnlen(text, n));
  if (s == NULL || s->message == NULL) {
    if (s != NULL) print_destroy(s);
    return tn__no_memory(err, "kernel", sizeof *s);
  }
  s->first = tn__attr_int(op, "first_n", -1);
  s->summarize = tn__attr_int(op, "summarize", 3);
  *state = s;
  return TN_OK;
}

static tn_status print_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn_prepare_output_like(ctx, 0, 0, err);
  return st == TN_OK ? tn_prepare_view(ctx, 0, 0, err) : st;
}

/* The state is the node's own. Only its counter changes, atomically. */
static tn_status print_compute(tn_kernel_ctx *ctx)
{
  print_state *s = (print_state *)ctx->state;
  if (s->first >= 0 && atomic_load(&s->said) >= s->first) return TN_OK;
  if (s->first >= 0 && atomic_fetch_add(&s->said, 1) >= s->first) return TN_OK;
  tn__text text;
  tn__text_init(&text, SIZE_MAX / 2);
  tn__text_puts(&text, s->message);
  for (uint32_t i = 1; i < ctx->n_inputs; i++) tn__summarize_first(&text, ctx->inputs[i], s->summarize);
  tn__text_puts(&text, "\n");
  tn_status st = text.failed ? tn__no_memory(ctx->err, "text to be printed", text.size) : TN_OK;
  if (st == TN_OK) tn__print(TN_PRINT_STDERR, tn__text_get(&text), text.size);
  tn__text_fini(&text);
  return st;
}

/* ---- PrintV2 ---- */

enum { TO_STDOUT, TO_STDERR, TO_LOG_INFO, TO_LOG_WARNING, TO_LOG_ERROR, TO_FILE };
static const char *const streams[] = { "stdout", "stderr", "log(info)", "log(warning)", "log(error)" };
#define FILE_PREFIX "file://"

typedef struct stream_state {
  int to;
  char *path; /* for a file */
  char *end;
} stream_state;

static void stream_destroy(void *state)
{
  stream_state *s = state;
  tn__strfree(s->path);
  tn__strfree(s->end);
  tn__free(s, sizeof *s);
}

static tn_status read_stream(const tn_operation *op, stream_state *s, tn_error *err)
{
  const char *text = "", *end = "";
  size_t n = 0, n_end = 0, prefix = strlen(FILE_PREFIX);
  tn_status st = tn_operation_attr_string(op, "output_stream", &text, &n, err);
  if (st == TN_OK) st = tn_operation_attr_string(op, "end", &end, &n_end, err);
  if (st != TN_OK) return st;
  s->end = tn__strndup(end, strnlen(end, n_end));
  if (s->end == NULL) return tn__no_memory(err, "kernel", n_end);
  if (n > prefix && memcmp(text, FILE_PREFIX, prefix) == 0 && memchr(text, 0, n) == NULL) {
    s->to = TO_FILE;
    s->path = tn__strndup(text + prefix, n - prefix);
    return s->path != NULL ? TN_OK : tn__no_memory(err, "kernel", n);
  }
  return tn__attr_choice(op, "output_stream", streams, sizeof streams / sizeof streams[0], &s->to, err);
}

static tn_status stream_create(const tn_operation *op, void **state, tn_error *err)
{
  stream_state *s = tn__zalloc(sizeof *s);
  *state = NULL;
  if (s == NULL) return tn__no_memory(err, "kernel", sizeof *s);
  tn_status st = read_stream(op, s, err);
  if (st == TN_OK) *state = s;
  else stream_destroy(s);
  return st;
}

static tn_status stream_prepare(tn_prepare_ctx *ctx, tn_error *err) { return tn__want_rank(ctx, 0, 0, err); }

/* Normally a single write, so that lines of concurrent steps do not mix. */
static tn_status append_file(const char *path, const char *text, size_t n, tn_error *err)
{
  int fd = tn__sys_open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (fd < 0) return tn__system_error(err, errno, "%s", path);
  tn_status st = TN_OK;
  while (st == TN_OK && n > 0) {
    ssize_t written = tn__sys_write(fd, text, n);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) st = tn__system_error(err, errno, "%s", path);
    else text += written, n -= (size_t)written;
  }
  if (tn__sys_close(fd) != 0 && st == TN_OK) st = tn__system_error(err, errno, "%s", path);
  return st;
}

static tn_status append_named(const tn_kernel_ctx *ctx, const char *name, const tn__text *text)
{
  char *path;
  tn_status st = tn__folders_find(tn__kernel_folders(ctx), TN__TO_WRITE, name, &path, ctx->err);
  if (st == TN_OK) st = append_file(path, tn__text_get(text), text->size, ctx->err);
  tn__strfree(path);
  return st;
}

static tn_status say(const tn_kernel_ctx *ctx, const stream_state *s, const tn__text *text)
{
  static const int32_t levels[] = { [TO_LOG_INFO] = TN_LOG_INFO, [TO_LOG_WARNING] = TN_LOG_WARNING,
                                    [TO_LOG_ERROR] = TN_LOG_ERROR };
  switch (s->to) {
  case TO_STDOUT: tn__print(TN_PRINT_STDOUT, tn__text_get(text), text->size); return TN_OK;
  case TO_STDERR: tn__print(TN_PRINT_STDERR, tn__text_get(text), text->size); return TN_OK;
  case TO_FILE: return append_named(ctx, s->path, text);
  default: tn_log(levels[s->to], "%s", tn__text_get(text)); return TN_OK;
  }
}

static tn_status stream_compute(tn_kernel_ctx *ctx)
{
  const stream_state *s = ctx->state;
  size_t n;
  const char *given = tn_string_data(ctx->inputs[0]->data, &n);
  tn__text text;
  tn__text_init(&text, SIZE_MAX / 2);
  tn__text_append(&text, given, n);
  bool is_log = s->to == TO_LOG_INFO || s->to == TO_LOG_WARNING || s->to == TO_LOG_ERROR;
  if (!is_log) tn__text_puts(&text, s->end); /* a log ends lines itself */
  tn_status st = text.failed ? tn__no_memory(ctx->err, "text to be printed", n) : say(ctx, s, &text);
  tn__text_fini(&text);
  return st;
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "Assert", .inputs = "condition: bool, data: T", .outputs = "",
    .attrs = "T: list(type) >= 1; summarize: int = 3", .traits = TN_TRAIT_STATEFUL | TN_TRAIT_READS,
    .summary = "fails and prints the data if the condition is false" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "Print", .inputs = "input: T, data: U", .outputs = "output: T",
    .attrs = "T: type; U: list(type) >= 0; message: string = ''; first_n: int = -1; summarize: int = 3",
    .traits = TN_TRAIT_STATEFUL, .infer = tn__infer_unchanged, .summary = "prints tensors and forwards its input" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "PrintV2", .inputs = "input: string", .outputs = "",
    .attrs = "output_stream: string = 'stderr'; end: string = '\n'", .traits = TN_TRAIT_STATEFUL,
    .summary = "prints a string" },
};

#define KERNEL(which, title, name_)                                                                         \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C,      \
    .create = name_##_create, .destroy = name_##_destroy, .prepare = name_##_prepare, .compute = name_##_compute }

static const tn_kernel_def kernels[] = {
  KERNEL("Assert", "assert_cpu", assert),
  KERNEL("Print", "print_cpu", print),
  KERNEL("PrintV2", "print_v2_cpu", stream),
};

TN_OP_FAMILY(messages)
