/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of `tenon bench`: each combination of runtime and thread count, with its own session. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <tools/bench/bench.h>
#include <tools/bench/roofline/roofline.h>

/* Runtimes that always run each step on the calling thread, so a thread count has no effect. Any other runtime is
 * assumed to use it. */
static const char *const on_the_caller[] = { "direct" };

static char *copy_of(const char *text)
{
  size_t size = strlen(text) + 1;
  return memcpy(tool_alloc(size, 1), text, size);
}

void bench_case_text(const bench_case *c, tool_text *out)
{
  tool_text_printf(out, "runtime '%s'", c->label);
  if (c->threads > 0) tool_text_printf(out, ", %" PRIu64 " thread%s", c->threads, c->threads == 1 ? "" : "s");
}

/* ---- options ---- */

static tn_status set_fields(const bench_request *r, tn_session_options *options, tn_error *err)
{
  /* Rows must not share variables; --option can override this. */
  tn_status status = tn_session_options_set_bool(options, "isolate_session_state", 1, err);
  if (status == TN_OK)
    status = tn_session_options_set_bool(options, "strict_shapes", 1, err); /* a wrong shape is an error */
  if (status == TN_OK && r->level != NULL) status = tn_session_options_parse(options, "level", r->level, err);
  for (size_t i = 0; i < r->options.n && status == TN_OK; i++) {
    const char *item = r->options.items[i], *equals = strchr(item, '=');
    tool_text field = { 0 };
    tool_text_add(&field, item, (size_t)(equals - item));
    status = tn_session_options_parse(options, field.data, equals + 1, err);
    tool_text_fini(&field);
  }
  return status;
}

static tn_status make_options(const bench_request *r, const char *target, tn_session_options **out, tn_error *err)
{
  tn_status status = tn_session_options_create(out, err);
  if (status == TN_OK) status = tool_set_target(*out, target, err);
  if (status == TN_OK) status = set_fields(r, *out, err);
  if (status == TN_OK) return TN_OK;
  tn_session_options_destroy(*out);
  *out = NULL;
  return status;
}

/* ---- how a runtime uses a thread count ---- */

typedef struct candidate {
  const char *target; /* from --runtime, or "" */
  char *name;         /* the runtime that the target selects */
  bool has_settings;
  bool names_threads; /* the target itself sets threads= */
  bool takes_threads; /* the runtime has the setting threads= */
  bool ignores;
} candidate;

static void add_setting(const candidate *c, uint64_t threads, tool_text *out)
{
  tool_text_printf(out, "%s%cthreads=%" PRIu64, c->has_settings ? c->target : c->name, c->has_settings ? ',' : ':',
                   threads);
}

static bool takes_threads(const bench_request *r, const candidate *c)
{
  tn_session_options *options = NULL;
  const tn_session_factory *factory = NULL;
  tn_error err = TN_ERROR_INIT;
  tool_text target = { 0 };
  add_setting(c, 1, &target);
  tn_status status = make_options(r, target.data, &options, &err);
  if (status == TN_OK) status = tn_runtime_find(options, &factory, &err);
  tn_session_options_destroy(options);
  tool_text_fini(&target);
  tn_error_clear(&err);
  return status == TN_OK;
}

/* Finds the runtime. Loads it now, so that no row's time includes loading. */
static tn_status look_at(const bench_request *r, candidate *c, tn_error *err)
{
  tn_session_options *options = NULL;
  tn_session *session = NULL;
  tn_status status = make_options(r, c->target, &options, err);
  if (status == TN_OK) status = tn_session_create(options, &session, err);
  if (status == TN_OK) {
    c->name = copy_of(tn_session_runtime(session)->name);
    c->has_settings = tn_session_options_setting_at(options, 0, NULL) != NULL;
    c->names_threads = tn_session_options_setting(options, "threads") != NULL;
  }
  tn_session_destroy(session);
  tn_session_options_destroy(options);
  if (status != TN_OK || r->n_threads == 0) return status;
  if (c->names_threads)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "runtime '%s': the number of threads is set both here and by --threads", c->target);
  c->takes_threads = takes_threads(r, c);
  for (size_t i = 0; i < sizeof(on_the_caller) / sizeof(on_the_caller[0]) && !c->takes_threads; i++)
    if (strcmp(c->name, on_the_caller[i]) == 0) c->ignores = true;
  return TN_OK;
}

/* ---- rows ---- */

static void add_case(bench *b, const candidate *c, uint64_t threads)
{
  b->cases = tool_grow(b->cases, b->n_cases, &b->case_room, sizeof(*b->cases));
  bench_case *row = &b->cases[b->n_cases++];
  memset(row, 0, sizeof(*row));
  tool_text target = { 0 };
  if (threads > 0 && c->takes_threads)
    add_setting(c, threads, &target);
  else
    tool_text_printf(&target, "%s", c->target);
  row->target = copy_of(target.data != NULL ? target.data : "");
  row->label = copy_of(c->target[0] != '\0' ? c->target : c->name);
  row->threads = threads;
  row->by_options = threads > 0 && !c->takes_threads;
  row->latencies = tool_alloc(1, sizeof(*row->latencies));
  bench_histogram_clear(row->latencies);
  tool_text_fini(&target);
}

static void add_cases(bench *b, const candidate *c)
{
  const bench_request *r = b->request;
  if (c->ignores)
    bench_note(b, "runtime '%s' runs each step on the calling thread: measured once, without --threads", c->name);
  if (r->n_threads == 0 || c->ignores) {
    add_case(b, c, 0);
    return;
  }
  if (!c->takes_threads)
    bench_note(b, "runtime '%s' has no setting 'threads': --threads sets inter_op_threads and intra_op_threads",
               c->name);
  for (size_t i = 0; i < r->n_threads; i++) add_case(b, c, r->threads[i]);
}

tn_status bench_make_cases(bench *b, tn_error *err)
{
  const bench_request *r = b->request;
  tn_status status = TN_OK;
  size_t n = r->runtimes.n > 0 ? r->runtimes.n : 1;
  for (size_t i = 0; i < n && status == TN_OK; i++) {
    candidate c = { .target = r->runtimes.n > 0 ? r->runtimes.items[i] : "" };
    status = look_at(r, &c, err);
    if (status == TN_OK) add_cases(b, &c);
    free(c.name);
  }
  return status;
}

tn_status bench_open_case(const bench *b, bench_case *c, tn_error *err)
{
  tn_session_options *options = NULL;
  uint64_t started = tool_now_ns();
  tn_status status = make_options(b->request, c->target, &options, err);
  if (status == TN_OK && c->by_options) {
    status = tn_session_options_set_int(options, "inter_op_threads", (int64_t)c->threads, err);
    if (status == TN_OK) status = tn_session_options_set_int(options, "intra_op_threads", (int64_t)c->threads, err);
  }
  if (status == TN_OK) status = tool_source_session(&b->source, options, &c->session, err);
  c->session_ns = tool_now_ns() - started;
  tn_session_options_destroy(options);
  if (status != TN_OK) return status;
  const tn_runtime_info *info = tn_session_runtime(c->session);
  c->runtime = copy_of(info->name);
  c->version = copy_of(info->version != NULL ? info->version : "");
  return TN_OK;
}

void bench_free_cases(bench *b)
{
  for (size_t i = 0; i < b->n_cases; i++) {
    bench_case *c = &b->cases[i];
    tn_session_destroy(c->session);
    free(c->target);
    free(c->label);
    free(c->runtime);
    free(c->version);
    free(c->latencies);
    roof_free(c->roofline);
  }
  free(b->cases);
}
