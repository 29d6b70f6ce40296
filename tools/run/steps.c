/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of `tenon run`: runs the initialisers, then one signature repeatedly, measuring times, and saves the
 * variables. A save that has begun is completed: the first Ctrl-C takes effect after it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <tools/run/run.h>

enum { MOST_TIMES = 1000000 };

typedef struct times {
  uint64_t *ns; /* times of the first MOST_TIMES steps */
  size_t n;
  uint64_t total;
  uint64_t steps; /* successful steps */
  uint64_t saved; /* the last one of them after which the variables were saved */
} times;

/* ---- times ---- */

static int compare_times(const void *a, const void *b)
{
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static void print_duration(FILE *out, uint64_t ns)
{
  if (ns < 1000000)
    fprintf(out, "%.2f us", (double)ns / 1e3);
  else if (ns < 1000000000)
    fprintf(out, "%.2f ms", (double)ns / 1e6);
  else
    fprintf(out, "%.2f s", (double)ns / 1e9);
}

static void print_times(times *t)
{
  uint64_t first = t->ns[0];
  qsort(t->ns, t->n, sizeof(*t->ns), compare_times);
  fprintf(stderr, "%" PRIu64 " step%s in ", t->steps, t->steps == 1 ? "" : "s");
  print_duration(stderr, t->total);
  fputs("; the first ", stderr);
  print_duration(stderr, first);
  if (t->steps > 1) {
    fputs(", median ", stderr);
    print_duration(stderr, t->ns[t->n / 2]);
    fputs(", 99 % within ", stderr);
    print_duration(stderr, t->ns[t->n - 1 - t->n / 100]);
  }
  fputc('\n', stderr);
}

/* ---- values during the run ---- */

/* Appends "  loss 0.25" for a fetched scalar, "  logits float32 [64, 5]" for other tensors. */
static void add_values(const run_request *r, tool_text *text)
{
  for (size_t i = 0; i < r->n_stepped; i++) {
    const tn_tensor *tensor = r->fetched[i];
    tool_text_printf(text, "  %s ", r->fetch_names[i]);
    if (tn_tensor_rank(tensor) == 0 && tool_text_tensor(text, tensor, NULL) == TN_OK) continue;
    tool_text_printf(text, "%s ", tn_dtype_name(tn_tensor_dtype(tensor)));
    tool_text_shape(text, tn_tensor_dims(tensor), tn_tensor_rank(tensor));
  }
}

static void show_step(const run_request *r, tool_progress *progress, uint64_t step)
{
  tool_text text = { 0 };
  tool_progress_set(progress, step);
  if (tool_progress_wants_note(progress) && r->n_stepped > 0) {
    add_values(r, &text);
    tool_progress_note(progress, text.data);
    text.length = 0;
  }
  if (r->every > 0 && step % r->every == 0) {
    tool_text_printf(&text, "step %" PRIu64, step);
    add_values(r, &text);
    tool_text_add(&text, "\n", 1);
    tool_progress_print(progress, &text);
  }
  tool_text_fini(&text);
}

/* ---- saving ---- */

static tn_status save(const run_request *r, tn_session *session, tool_progress *progress, times *t, tn_error *err)
{
  tn_checkpoint_options options;
  memset(&options, 0, sizeof(options));
  options.struct_size = sizeof(options);
  options.update_state = 1;
  if (progress != NULL) tool_progress_note(progress, "  saving");
  uint64_t started = tool_now_ns();
  tn_status status = tn_session_save(session, r->save, NULL, 0, &options, err);
  if (progress != NULL) tool_progress_note(progress, "");
  if (status != TN_OK) {
    tn_error_prefix(err, "saving '%s' after %" PRIu64 " step%s", r->save, t->steps, t->steps == 1 ? "" : "s");
    return status;
  }
  t->saved = t->steps;
  if (r->verbose)
    fprintf(stderr, "'%s' saved in %.3f ms\n", r->save, (double)(tool_now_ns() - started) / 1e6);
  return TN_OK;
}

/* Saves the variables after the last step, unless that has been done. */
static tn_status save_last(const run_request *r, tn_session *session, times *t, tn_error *err)
{
  if (r->save == NULL || (t->steps > 0 && t->saved == t->steps)) return TN_OK;
  tool_progress *progress = tool_progress_start("saving", 0);
  tn_status status = save(r, session, NULL, t, err);
  tool_progress_end(progress);
  return status;
}

/* ---- steps ---- */

static void drop_fetched(const run_request *r)
{
  for (size_t i = 0; i < r->n_stepped; i++) {
    tn_tensor_unref(r->fetched[i]);
    r->fetched[i] = NULL;
  }
}

/* Adds the number of the failed step, or of steps completed before the interrupt, to the message. */
static void failed_step(const run_request *r, uint64_t step, tn_status status, tn_error *err)
{
  bool interrupted = status == TN_CANCELLED && tool_interrupted() != 0;
  if (r->steps == 1 && interrupted)
    tn_error_prefix(err, "interrupted");
  else if (interrupted)
    tn_error_prefix(err, "interrupted after %" PRIu64 " of %" PRIu64 " steps", step - 1, r->steps);
  else if (r->steps > 1)
    tn_error_prefix(err, "step %" PRIu64 " of %" PRIu64, step, r->steps);
}

static tn_status run_steps(const run_request *r, tn_session *session, tn_callable callable, times *t, tn_error *err)
{
  tn_status status = TN_OK;
  tool_progress *progress = tool_progress_start("running", r->steps);
  for (uint64_t step = 1; step <= r->steps && status == TN_OK && tool_interrupted() == 0; step++) {
    drop_fetched(r);
    uint64_t started = tool_now_ns();
    status = tn_session_run_callable(session, callable, r->feeds, r->feed_args.n, r->fetched, r->n_stepped,
                                     r->trace->metadata, err);
    uint64_t ns = tool_now_ns() - started;
    if (status != TN_OK) {
      failed_step(r, step, status, err);
      continue;
    }
    if (t->n < MOST_TIMES) t->ns[t->n++] = ns;
    t->total += ns;
    t->steps = step;
    trace_take(r->trace, step, started);
    show_step(r, progress, step);
    if (r->save_every > 0 && step % r->save_every == 0) status = save(r, session, progress, t, err);
  }
  tool_progress_end(progress);
  if (status == TN_OK && tool_interrupted() != 0)
    status = tn_error_set(err, TN_CANCELLED, "interrupted after %" PRIu64 " of %" PRIu64 " steps", t->steps, r->steps);
  if (status != TN_OK && t->saved > 0)
    fprintf(stderr, "'%s' has the variables after step %" PRIu64 "\n", r->save, t->saved);
  return status;
}

static tn_status run_inits(const run_request *r, tn_session *session, const tn_run_options *options, tn_error *err)
{
  tn_status status = TN_OK;
  for (size_t i = 0; i < r->inits.n && status == TN_OK; i++) {
    status = tn_session_run(session, options, r->feed_tensors, r->feeds, r->feed_args.n, NULL, NULL, 0,
                            &r->inits.items[i], 1, NULL, err);
    if (status == TN_CANCELLED && tool_interrupted() != 0)
      tn_error_prefix(err, "interrupted in init '%s'", r->inits.items[i]);
    else if (status != TN_OK)
      tn_error_prefix(err, "init '%s'", r->inits.items[i]);
    else if (tool_interrupted() != 0)
      status = tn_error_set(err, TN_CANCELLED, "interrupted after init '%s'", r->inits.items[i]);
  }
  return status;
}

/* Fetches the tensors of --after. */
static tn_status run_after(const run_request *r, tn_session *session, const tn_run_options *options, uint64_t steps,
                           tn_error *err)
{
  size_t n = r->fetch_args.n - r->n_stepped;
  if (n == 0) return TN_OK;
  tn_status status = tn_session_run(session, options, r->feed_tensors, r->feeds, r->feed_args.n,
                                    r->fetch_tensors + r->n_stepped, r->fetched + r->n_stepped, n, NULL, 0, NULL, err);
  if (status == TN_CANCELLED && tool_interrupted() != 0)
    tn_error_prefix(err, "interrupted after %" PRIu64 " of %" PRIu64 " steps", steps, steps);
  else if (status != TN_OK)
    tn_error_prefix(err, "after the steps");
  return status;
}

static tn_status make_callable(const run_request *r, tn_session *session, const tn_run_options *options,
                               tn_callable *out, tn_error *err)
{
  tool_interrupt_doing("the steps were prepared");
  uint64_t started = tool_now_ns();
  tn_status status = tn_session_make_callable(session, options, r->feed_tensors, r->feed_args.n, r->fetch_tensors,
                                              r->n_stepped, r->targets.items, r->targets.n, out, err);
  if (status == TN_OK && r->verbose)
    fprintf(stderr, "signature prepared in %.3f ms\n", (double)(tool_now_ns() - started) / 1e6);
  tool_interrupt_doing(NULL);
  return status;
}

/* Time limits apply to steps, not to the warm-up; Ctrl-C cancels it. */
static tn_status warm_up(const run_request *r, tn_session *session, tn_callable callable, tn_error *err)
{
  tn_run_options options;
  tn_bool ran;
  tn_run_options_init(&options);
  options.timeout_ms = INT64_MAX / 2000000;
  options.cancellation = r->cancellation;
  uint64_t started = tool_now_ns();
  tn_status status = tn_session_warm_callable(session, callable, &options, r->feeds, r->feed_args.n, &ran, err);
  if (status == TN_CANCELLED && tool_interrupted() != 0) tn_error_prefix(err, "interrupted while warming up");
  else if (status != TN_OK) tn_error_prefix(err, "warming up");
  else if (r->verbose)
    fprintf(stderr, "warmed up in %.3f ms%s\n", (double)(tool_now_ns() - started) / 1e6,
            ran ? "" : ", without running a step, because it has side effects");
  return status;
}

tn_status run_in_session(const run_request *r, tn_session *session, tn_error *err)
{
  tn_callable callable;
  tn_run_options options;
  times t = { 0 };
  tn_run_options_init(&options);
  options.timeout_ms = (int64_t)r->timeout_ms;
  options.cancellation = r->cancellation;
  tool_interrupt_doing(NULL);
  tn_status status = run_inits(r, session, &options, err);
  if (status == TN_OK && r->n_stepped + r->targets.n > 0) {
    t.ns = tool_alloc(r->steps < MOST_TIMES ? (size_t)r->steps : MOST_TIMES, sizeof(uint64_t));
    tn_run_options traced = options;
    if (trace_wanted(r->trace)) traced.trace_level = 3;
    if (trace_wants_protobuf(r->trace)) traced.output_partition_graphs = 1;
    status = trace_begin(r->trace, err);
    if (status == TN_OK) status = make_callable(r, session, &traced, &callable, err);
    if (status == TN_OK && r->warm_up) status = warm_up(r, session, callable, err);
    if (status == TN_OK) status = run_steps(r, session, callable, &t, err);
  }
  if (status == TN_OK) status = save_last(r, session, &t, err);
  if (status == TN_OK) status = run_after(r, session, &options, t.steps, err);
  if (t.steps > 0 && (r->measure || r->verbose) && (status == TN_OK || tool_interrupted() != 0)) print_times(&t);
  free(t.ns);
  return status;
}
