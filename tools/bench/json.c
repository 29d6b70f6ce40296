/* SPDX-License-Identifier: Apache-2.0 */
/* The results of `tenon bench` as JSON; docs/tenon.md documents the fields. */
#include <inttypes.h>

#include <tools/bench/bench.h>
#include <tools/bench/roofline/roofline.h>

static void set_count(json_t *object, const char *key, uint64_t value)
{
  tool_json_set(object, key, json_integer((json_int_t)(value < INT64_MAX ? value : INT64_MAX)));
}

static json_t *count_or_null(uint64_t value) { return value > 0 ? json_integer((json_int_t)value) : json_null(); }

static json_t *json_list(const bench_list *list)
{
  json_t *array = json_array();
  for (size_t i = 0; i < list->n; i++) tool_json_append(array, tool_json_text(list->items[i]));
  return array;
}

static json_t *json_inputs(const bench *b)
{
  json_t *array = json_array();
  for (size_t i = 0; i < b->n_inputs; i++) {
    const bench_input *input = &b->inputs[i];
    json_t *object = json_object();
    tool_json_set(object, "tensor", tool_json_text(input->name));
    tool_json_set(object, "type", tool_json_text(tn_dtype_name(tn_tensor_dtype(input->value))));
    tool_json_set(object, "shape", tool_json_shape(tn_tensor_dims(input->value), tn_tensor_rank(input->value)));
    tool_json_set(object, "made", json_boolean(input->made));
    tool_json_append(array, object);
  }
  return array;
}

static json_t *json_latency(const bench_histogram *h)
{
  json_t *object = json_object();
  if (h->n == 0) {
    json_decref(object);
    return json_null();
  }
  set_count(object, "min", h->min);
  tool_json_set(object, "mean", json_real(bench_histogram_mean(h)));
  set_count(object, "max", h->max);
  set_count(object, "p50", bench_histogram_quantile(h, 0.5));
  set_count(object, "p90", bench_histogram_quantile(h, 0.9));
  set_count(object, "p99", bench_histogram_quantile(h, 0.99));
  set_count(object, "p999", bench_histogram_quantile(h, 0.999));
  return object;
}

/* [from, to, count] for each non-empty bucket. */
static json_t *json_histogram(const bench_histogram *h)
{
  json_t *array = json_array();
  for (size_t i = 0; i < BENCH_BUCKETS && h->n > 0; i++) {
    if (h->counts[i] == 0) continue;
    json_t *bucket = json_array();
    tool_json_append(bucket, json_integer((json_int_t)bench_bucket_low(i)));
    tool_json_append(bucket, json_integer((json_int_t)bench_bucket_high(i)));
    tool_json_append(bucket, json_integer((json_int_t)h->counts[i]));
    tool_json_append(array, bucket);
  }
  return array;
}

static json_t *json_case(const bench *b, const bench_case *c)
{
  json_t *object = json_object(), *warm = json_object();
  double rate = bench_steps_per_second(c), ratio = bench_ratio(b, c);
  set_count(warm, "steps", c->warm_steps);
  set_count(warm, "ns", c->warm_ns);
  tool_json_set(warm, "stable", json_boolean(c->stable));
  tool_json_set(object, "runtime", c->runtime != NULL ? tool_json_text(c->runtime) : json_null());
  tool_json_set(object, "version", c->version != NULL ? tool_json_text(c->version) : json_null());
  tool_json_set(object, "target", tool_json_text(c->target));
  tool_json_set(object, "threads", count_or_null(c->threads));
  set_count(object, "session_ns", c->session_ns);
  set_count(object, "prepare_ns", c->prepare_ns);
  set_count(object, "first_step_ns", c->first_ns);
  tool_json_set(object, "warm_up", warm);
  set_count(object, "steps", c->latencies->n);
  set_count(object, "turns", c->turns);
  tool_json_set(object, "seconds", json_real((double)c->wall_ns / 1e9));
  tool_json_set(object, "latency_ns", json_latency(c->latencies));
  tool_json_set(object, "steps_per_second", json_real(rate));
  tool_json_set(object, "items_per_second",
                b->request->batch > 0 ? json_real(rate * (double)b->request->batch) : json_null());
  tool_json_set(object, "ratio", ratio > 0 ? json_real(ratio) : json_null());
  tool_json_set(object, "histogram", json_histogram(c->latencies));
  tool_json_set(object, "roofline", roof_json(c));
  return object;
}

int bench_print_json(const bench *b)
{
  json_t *object = json_object(), *runs = json_array(), *notes = json_array();
  for (size_t i = 0; i < b->n_cases; i++) tool_json_append(runs, json_case(b, &b->cases[i]));
  for (size_t i = 0; i < b->n_notes; i++) tool_json_append(notes, tool_json_text(b->notes[i]));
  tool_json_set(object, "model", tool_json_text(b->request->source.path));
  tool_json_set(object, "version", tool_json_text(tn_version()));
  tool_json_set(object, "seconds", json_real(b->request->seconds));
  tool_json_set(object, "batch", count_or_null(b->request->batch));
  set_count(object, "concurrency", b->request->concurrency);
  tool_json_set(object, "interrupted", json_boolean(tool_interrupted() != 0));
  set_count(object, "load_ns", b->load_ns);
  tool_json_set(object, "peak_memory_bytes", count_or_null(b->peak_bytes));
  tool_json_set(object, "inputs", json_inputs(b));
  tool_json_set(object, "fetches", json_list(&b->fetches));
  tool_json_set(object, "targets", json_list(&b->targets));
  tool_json_set(object, "notes", notes);
  tool_json_set(object, "runs", runs);
  return tool_json_print(object);
}
