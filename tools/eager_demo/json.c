/* SPDX-License-Identifier: Apache-2.0 */
/* The results of `tenon eager-demo` as JSON; docs/tenon.md documents the fields. */
#include <tools/eager_demo/eager_demo.h>

enum { POINTS = 500 };

static json_t *count(uint64_t value) { return json_integer((json_int_t)(value < INT64_MAX ? value : INT64_MAX)); }

static json_t *rate(double value) { return value > 0 ? json_real(value) : json_null(); }

/* [from_ns, least, most] for each time interval. */
static json_t *json_memory(const demo_run *run)
{
  json_t *array = json_array();
  uint64_t wide = run->end_ns / POINTS + 1;
  if (wide < run->track.bin_ns) wide = run->track.bin_ns;
  for (uint64_t at = 0; at < run->end_ns; at += wide) {
    demo_bin bin = demo_track_between(&run->track, at, at + wide);
    json_t *point = json_array();
    tool_json_append(point, count(at));
    tool_json_append(point, count(bin.least));
    tool_json_append(point, count(bin.most));
    tool_json_append(array, point);
  }
  return array;
}

static json_t *json_run(const demo *d, const demo_run *run)
{
  json_t *object = json_object();
  tool_json_set(object, "strategy", tool_json_text(demo_strategy_name(run->strategy)));
  tool_json_set(object, "iterations", count(run->done));
  tool_json_set(object, "allocated", count(run->made));
  tool_json_set(object, "deleted", count(run->deleted));
  tool_json_set(object, "deleted_before_close", count(run->deleted_before));
  tool_json_set(object, "peak_bytes", count(run->peak_bytes));
  tool_json_set(object, "peak_iterations", json_real(demo_in_iterations(d, run->peak_bytes)));
  tool_json_set(object, "pauses", count(run->pauses));
  tool_json_set(object, "pause_ns", count(run->pause_ns));
  tool_json_set(object, "longest_pause_ns", count(run->longest_pause_ns));
  tool_json_set(object, "loop_ns", count(run->loop_ns));
  tool_json_set(object, "close_ns", count(run->close_ns));
  tool_json_set(object, "deletions_per_second", rate(demo_deletions_per_second(run)));
  tool_json_set(object, "memory", json_memory(run));
  return object;
}

static json_t *json_plain(const demo_plain *plain)
{
  json_t *object = json_object();
  tool_json_set(object, "at_end", json_boolean(plain->at_end));
  tool_json_set(object, "tensors", count(plain->tensors));
  tool_json_set(object, "ns", count(plain->ns));
  tool_json_set(object, "deletions_per_second", rate(demo_plain_per_second(plain)));
  return object;
}

int demo_print_json(const demo *d)
{
  json_t *object = json_object(), *runs = json_array(), *plains = json_array(), *notes = json_array();
  for (size_t i = 0; i < d->n_begun; i++)
    if (d->runs[i].end_ns > 0) tool_json_append(runs, json_run(d, &d->runs[i]));
  for (size_t i = 0; i < d->n_plains; i++) tool_json_append(plains, json_plain(&d->plains[i]));
  if (d->note.length > 0) tool_json_append(notes, tool_json_text(d->note.data));
  tool_json_set(object, "version", tool_json_text(tn_version()));
  tool_json_set(object, "runtime", tool_json_text(d->runtime));
  tool_json_set(object, "runtime_version", tool_json_text(d->version));
  tool_json_set(object, "ops", count(d->ops));
  tool_json_set(object, "iterations", count(d->iterations));
  tool_json_set(object, "bytes", count(d->bytes));
  tool_json_set(object, "interrupted", json_boolean(tool_interrupted() != 0));
  tool_json_set(object, "notes", notes);
  tool_json_set(object, "runs", runs);
  tool_json_set(object, "plain", plains);
  return tool_json_print(object);
}
