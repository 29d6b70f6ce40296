/* SPDX-License-Identifier: Apache-2.0 */
/* tenon eager-demo: runs the loop and records the memory held. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tools/eager_demo/eager_demo.h>

/* Reading the counters costs about as much as an addition of a few KiB, so they are read after each operation only if
 * there are few. */
enum { FEW_OPS = 8192, LEAST_BETWEEN = 16, LOOKS_AN_ITERATION = 16 };

/* After the loop the session stays idle for a twentieth of the loop's time, to show what happens without calls.
 */
#define IDLE_MIN_NS UINT64_C(2000000)
#define IDLE_MAX_NS UINT64_C(200000000)
#define LOOK_NS 50000

typedef struct loop {
  const demo *d;
  demo_run *run;
  tn_eager_session *session;
  tn_eager_op *add;
  tn_eager_handle x;
  tn_eager_handle *made;
  tn_eager_counters base;  /* counters before the loop */
  uint64_t between, since; /* operations between two readings */
} loop;

/* ---- bytes over time ---- */

static void halve(demo_track *track)
{
  for (size_t i = 0; i < DEMO_BINS / 2; i++) {
    demo_bin a = track->bins[2 * i], b = track->bins[2 * i + 1];
    track->bins[i] = (demo_bin){ a.least < b.least ? a.least : b.least, a.most > b.most ? a.most : b.most };
  }
  track->n = DEMO_BINS / 2;
  track->bin_ns *= 2;
}

static void track_add(demo_track *track, uint64_t now_ns, uint64_t bytes)
{
  uint64_t since = now_ns - track->began_ns;
  while (since / track->bin_ns >= DEMO_BINS) {
    while (track->n < DEMO_BINS) track->bins[track->n++] = (demo_bin){ track->last, track->last };
    halve(track);
  }
  size_t at = (size_t)(since / track->bin_ns);
  while (track->n <= at) track->bins[track->n++] = (demo_bin){ track->last, track->last };
  demo_bin *bin = &track->bins[at];
  if (bytes < bin->least) bin->least = bytes;
  if (bytes > bin->most) bin->most = bytes;
  track->last = bytes;
}

demo_bin demo_track_between(const demo_track *track, uint64_t from_ns, uint64_t to_ns)
{
  demo_bin all = { UINT64_MAX, 0 };
  size_t first = (size_t)(from_ns / track->bin_ns), end = (size_t)((to_ns + track->bin_ns - 1) / track->bin_ns);
  for (size_t i = first; i < (end > first ? end : first + 1) && i < track->n; i++) {
    if (track->bins[i].least < all.least) all.least = track->bins[i].least;
    if (track->bins[i].most > all.most) all.most = track->bins[i].most;
  }
  return all.least <= all.most ? all : (demo_bin){ track->last, track->last };
}

static tn_eager_counters counters_of(const loop *l)
{
  tn_eager_counters c = { .struct_size = TN_EAGER_COUNTERS_SIZE };
  tn_eager_get_counters(l->session, &c, NULL);
  return c;
}

static uint64_t above(uint64_t value, uint64_t base) { return value > base ? value - base : 0; }

static void look(loop *l)
{
  tn_eager_counters c = counters_of(l);
  uint64_t bytes = above(c.bytes, l->base.bytes);
  if (bytes > l->run->peak_bytes) l->run->peak_bytes = bytes;
  track_add(&l->run->track, tool_now_ns(), bytes);
  l->since = 0;
}

static void rest(uint64_t ns)
{
  struct timespec time = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
  nanosleep(&time, NULL);
}

/* ---- the session ---- */

static tn_status set_options(const demo *d, tn_session_options *options, tn_error *err)
{
  tn_status status = tool_set_target(options, d->target, err);
  for (size_t i = 0; i < d->n_options && status == TN_OK; i++) {
    const char *item = d->options[i], *equals = strchr(item, '=');
    tool_text field = { 0 };
    tool_text_add(&field, item, (size_t)(equals - item));
    status = tn_session_options_parse(options, field.data, equals + 1, err);
    tool_text_fini(&field);
  }
  return status;
}

static tn_status open_session(loop *l, tn_error *err)
{
  tn_eager_options options;
  tn_session_options *session = NULL;
  tn_eager_options_init(&options);
  tn_status status = tn_session_options_create(&session, err);
  if (status == TN_OK) status = set_options(l->d, session, err);
  options.session = session;
  options.strategy = l->run->strategy;
  if (status == TN_OK) status = tn_eager_session_create(&options, &l->session, err);
  tn_session_options_destroy(session);
  return status;
}

/* All ones: floats if the size allows, else bytes. */
static tn_status make_tensor(const demo *d, tn_tensor **out, tn_error *err)
{
  bool floats = d->bytes % sizeof(float) == 0;
  const int64_t dims[] = { (int64_t)(floats ? d->bytes / sizeof(float) : d->bytes) };
  tn_status status = tn_tensor_create(floats ? TN_FLOAT : TN_UINT8, dims, 1, out, err);
  for (int64_t i = 0; status == TN_OK && i < dims[0]; i++) {
    if (floats)
      ((float *)tn_tensor_data(*out))[i] = 1;
    else
      ((uint8_t *)tn_tensor_data(*out))[i] = 1;
  }
  return status;
}

/* The first addition creates the plan. Like the input, it is not counted. */
static tn_status warm_up(loop *l, tn_error *err)
{
  tn_eager_handle sum;
  tn_tensor *x = NULL;
  tn_status status = make_tensor(l->d, &x, err);
  if (status == TN_OK) status = tn_eager_from_tensor(l->session, x, &l->x, err);
  tn_tensor_unref(x);
  if (status == TN_OK) status = tn_eager_op_create(l->session, "AddV2", NULL, NULL, 0, &l->add, err);
  if (status != TN_OK) return status;
  const tn_eager_handle inputs[] = { l->x, l->x };
  status = tn_eager_op_call(l->add, inputs, 2, &sum, 1, NULL, err);
  if (status == TN_OK) status = tn_eager_release(l->session, sum, err);
  if (status == TN_OK) status = tn_eager_safe_point(l->session, err);
  l->base = counters_of(l);
  for (int i = 0; i < 100 && status == TN_OK && l->run->strategy == TN_EAGER_IN_BACKGROUND && l->base.unused > 0; i++) {
    rest(1000000);
    l->base = counters_of(l);
  }
  return status;
}

/* ---- the loop ---- */

static tn_status iterate(loop *l, tn_error *err)
{
  for (uint64_t i = 0; i < l->d->ops; i++) {
    const tn_eager_handle inputs[] = { i == 0 ? l->x : l->made[i - 1], l->x };
    tn_status status = tn_eager_op_call(l->add, inputs, 2, &l->made[i], 1, NULL, err);
    if (status != TN_OK) {
      tn_error_prefix(err, "%s: iteration %" PRIu64 ": operation %" PRIu64, demo_strategy_name(l->run->strategy),
                      l->run->done + 1, i + 1);
      return status;
    }
    if (++l->since < l->between) continue;
    look(l);
    if (tool_interrupted() != 0) return TN_OK; /* closing the session releases the rest */
  }
  for (uint64_t i = 0; i < l->d->ops; i++) tn_eager_release(l->session, l->made[i], NULL);
  l->since += l->between > 1 ? 0 : 1;
  if (l->since >= l->between || l->since >= LEAST_BETWEEN) look(l);
  l->run->done++;
  return TN_OK;
}

/* Waits until the counters show that everything is deleted. */
static tn_status close_session(loop *l, tn_error *err)
{
  look(l);
  uint64_t began = tool_now_ns();
  tn_status status = tn_eager_session_close(l->session, err);
  l->run->close_ns = tool_now_ns() - began;
  look(l);
  l->run->end_ns = tool_now_ns() - l->run->track.began_ns;
  return status;
}

static void note_end(loop *l)
{
  demo_run *run = l->run;
  tn_eager_counters c = counters_of(l);
  uint64_t peak = above(c.peak_bytes, l->base.bytes);
  if (peak > run->peak_bytes) run->peak_bytes = peak;
  run->made = above(c.allocated, l->base.allocated);
  run->deleted_before = above(c.deleted, l->base.deleted);
  run->pauses = above(c.pauses, l->base.pauses);
  run->pause_ns = above(c.pause_ns, l->base.pause_ns);
  run->longest_pause_ns = run->pauses > 0 ? c.longest_pause_ns : 0;
}

static tn_status run_loop(loop *l, tool_progress *progress, tn_error *err)
{
  demo_run *run = l->run;
  tn_status status = TN_OK;
  look(l);
  while (run->done < run->iterations && status == TN_OK && tool_interrupted() == 0) {
    status = iterate(l, err);
    tool_progress_set(progress, run->done);
  }
  run->loop_ns = tool_now_ns() - run->track.began_ns;
  tn_eager_safe_point(l->session, NULL);
  uint64_t idle = run->loop_ns / 20, began = tool_now_ns();
  if (idle < IDLE_MIN_NS) idle = IDLE_MIN_NS;
  if (idle > IDLE_MAX_NS) idle = IDLE_MAX_NS;
  for (look(l); status == TN_OK && tool_now_ns() - began < idle && tool_interrupted() == 0; look(l)) rest(LOOK_NS);
  note_end(l);
  return status;
}

static tn_status run_session(loop *l, tool_progress *progress, tn_error *err)
{
  demo_run *run = l->run;
  tool_interrupt_doing("a session was opened");
  tn_status status = open_session(l, err);
  if (status == TN_OK) status = warm_up(l, err);
  tool_interrupt_doing(NULL);
  if (status != TN_OK) {
    tn_error_prefix(err, "%s", demo_strategy_name(run->strategy));
    return status;
  }
  run->track =
      (demo_track){ .began_ns = tool_now_ns(), .bin_ns = 1000, .bins = tool_alloc(DEMO_BINS, sizeof(demo_bin)) };
  status = run_loop(l, progress, err);
  tn_status closed = close_session(l, status == TN_OK ? err : NULL);
  tn_eager_counters c = counters_of(l);
  run->deleted = above(c.deleted, l->base.allocated); /* close also deleted tensors from before the loop */
  return status == TN_OK ? closed : status;
}

static tn_status run_strategy(demo *d, demo_run *run, tn_eager_handle *made, tn_error *err)
{
  loop l = { .d = d, .run = run, .made = made };
  l.between = d->ops / LOOKS_AN_ITERATION < LEAST_BETWEEN ? LEAST_BETWEEN : d->ops / LOOKS_AN_ITERATION;
  if (d->ops <= FEW_OPS / run->iterations) l.between = 1;
  tool_progress *progress = tool_progress_start(demo_strategy_name(run->strategy), run->iterations);
  tn_status status = run_session(&l, progress, err);
  tool_progress_end(progress);
  if (d->runtime == NULL && l.session != NULL) {
    const tn_runtime_info *info = tn_eager_session_runtime(l.session);
    tool_text name = { 0 }, version = { 0 };
    tool_text_printf(&name, "%s", info->name);
    tool_text_printf(&version, "%s", info->version != NULL ? info->version : "");
    d->runtime = name.data;
    d->version = version.data;
  }
  tn_eager_op_destroy(l.add);
  tn_eager_session_destroy(l.session);
  return status;
}

/* ---- without a session ---- */

/* Creates n tensors and writes them as the additions do. */
static tn_status make_plain(const demo *d, tn_tensor **tensors, uint64_t n, tn_error *err)
{
  for (uint64_t i = 0; i < n; i++) {
    tn_status status = make_tensor(d, &tensors[i], err);
    if (status == TN_OK) continue;
    while (i > 0) tn_tensor_unref(tensors[--i]);
    return status;
  }
  return TN_OK;
}

static tn_status time_plain(const demo *d, demo_plain *plain, uint64_t iterations, tn_error *err)
{
  uint64_t rounds = plain->at_end ? 1 : iterations, n = plain->at_end ? d->ops * iterations : d->ops;
  tn_tensor **tensors = tool_alloc((size_t)n, sizeof(*tensors));
  tool_progress *progress = tool_progress_start("without a session", rounds);
  tn_status status = TN_OK;
  for (uint64_t r = 0; r < rounds && status == TN_OK && tool_interrupted() == 0; r++) {
    status = make_plain(d, tensors, n, err);
    uint64_t began = tool_now_ns();
    for (uint64_t i = 0; i < n && status == TN_OK; i++) tn_tensor_unref(tensors[i]);
    plain->ns += status == TN_OK ? tool_now_ns() - began : 0;
    plain->tensors += status == TN_OK ? n : 0;
    tool_progress_set(progress, r + 1);
  }
  tool_progress_end(progress);
  free(tensors);
  if (status != TN_OK) tn_error_prefix(err, "--plain");
  return status;
}

/* Measures the release patterns of the strategies that were run. */
static tn_status time_plains(demo *d, tn_error *err)
{
  bool done[2] = { false, false };
  tn_status status = TN_OK;
  for (size_t i = 0; i < d->n_runs && status == TN_OK && tool_interrupted() == 0; i++) {
    bool at_end = d->runs[i].strategy == TN_EAGER_ON_SESSION_CLOSE;
    if (done[at_end]) continue;
    done[at_end] = true;
    d->plains[d->n_plains] = (demo_plain){ .at_end = at_end };
    status = time_plain(d, &d->plains[d->n_plains++], d->runs[i].iterations, err);
  }
  return status;
}

tn_status demo_run_all(demo *d, tn_error *err)
{
  tn_eager_handle *made = tool_alloc((size_t)d->ops, sizeof(*made));
  tn_status status = TN_OK;
  for (size_t i = 0; i < d->n_runs && status == TN_OK && tool_interrupted() == 0; i++) {
    d->n_begun = i + 1;
    status = run_strategy(d, &d->runs[i], made, err);
  }
  free(made);
  if (status == TN_OK && d->plain) status = time_plains(d, err);
  if (status != TN_OK || tool_interrupted() == 0) return status;
  const demo_run *last = &d->runs[d->n_begun - 1];
  if (last->done == last->iterations && d->n_begun == d->n_runs)
    return tn_error_set(err, TN_CANCELLED, "interrupted at the end");
  return tn_error_set(err, TN_CANCELLED, "interrupted after %" PRIu64 " of %" PRIu64 " iterations with %s", last->done,
                      last->iterations, demo_strategy_name(last->strategy));
}
