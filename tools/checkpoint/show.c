/* SPDX-License-Identifier: Apache-2.0 */
/* tenon checkpoint show: the values of tensors, their statistics, and a histogram. */
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <tools/checkpoint/checkpoint.h>

enum { LEAST_VALUES = 10 /* for which a histogram shows more than the values themselves */ };

typedef struct request {
  const char *path;
  char *const *keys;
  int n_keys;
  bool no_histogram, json;
} request;

/* A key, or else a path through the object graph. */
static tn_status find_key(const tn_checkpoint *checkpoint, const char *name, tn_checkpoint_entry *out, tn_error *err)
{
  tn_error by_path = TN_ERROR_INIT;
  const char *key;
  memset(out, 0, sizeof(*out));
  out->struct_size = sizeof(*out);
  tn_status status = tn_checkpoint_find(checkpoint, name, out, err);
  if (status != TN_NOT_FOUND || tn_checkpoint_path_count(checkpoint) == 0) return status;
  if (tn_checkpoint_resolve(checkpoint, name, &key, &by_path) == TN_OK) {
    tn_error_clear(err);
    return tn_checkpoint_find(checkpoint, key, out, err);
  }
  /* The object path is what users of such a checkpoint type. */
  if (strstr(name, "/.ATTRIBUTES/") == NULL) {
    tool_text as_key = { 0 };
    tool_text_printf(&as_key, "%s", tn_error_message(err));
    tn_error_clear(err);
    tn_error_set(err, tn_error_code(&by_path), "%s", as_key.data);
    tn_error_wrap(err, TN_OK, "%s", tn_error_message(&by_path));
    tool_text_fini(&as_key);
  }
  tn_error_clear(&by_path);
  return status;
}

/* ---- strings ---- */

typedef struct lengths {
  uint64_t shortest, longest, all;
} lengths;

static lengths lengths_of(const tn_tensor *tensor)
{
  lengths out = { UINT64_MAX, 0, 0 };
  for (int64_t i = 0; i < tn_tensor_elements(tensor); i++) {
    const char *text;
    size_t length = 0;
    tn_tensor_get_string(tensor, i, &text, &length, NULL);
    if (length < out.shortest) out.shortest = length;
    if (length > out.longest) out.longest = length;
    out.all += length;
  }
  return out;
}

/* ---- as text ---- */

static void print_paths(const tn_checkpoint *checkpoint, const char *key)
{
  checkpoint_paths paths = checkpoint_paths_read(checkpoint);
  size_t n;
  const checkpoint_path *path = checkpoint_paths_find(&paths, key, &n);
  tool_table table;
  tool_table_init(&table, 1, 0);
  for (size_t i = 0; i < n; i++) tool_table_cell(&table, "= %s", path[i].path);
  tool_table_print(&table, "  ", stdout);
  free(paths.items);
}

static void print_title(const tn_checkpoint_entry *entry)
{
  char bytes[32];
  tool_text text = { 0 };
  tool_table table;
  checkpoint_text_type(&text, entry);
  tool_text_printf(&text, "  %s", tool_bytes_text(bytes, entry->bytes));
  if (entry->n_slices > 0) tool_text_printf(&text, "  in %" PRIu64 " slices", entry->n_slices);
  tool_table_init(&table, 2, 0);
  tool_table_cell(&table, "%s", entry->key);
  tool_table_cell(&table, "%s", text.data);
  tool_table_print(&table, "", stdout);
  tool_text_fini(&text);
}

static void print_lengths(const tn_tensor *tensor)
{
  char bytes[32];
  lengths l = lengths_of(tensor);
  if (tn_tensor_elements(tensor) == 0) return;
  printf("\n%" PRId64 " strings of %" PRIu64 " to %" PRIu64 " bytes, %s in all\n", tn_tensor_elements(tensor),
         l.shortest, l.longest, tool_bytes_text(bytes, l.all));
}

static void add_number(tool_table *table, const char *title, double value)
{
  tool_table_cell(table, "%s", title);
  tool_table_cell(table, "%.8g", value + 0.0); /* -0 becomes 0 */
}

static void add_count(tool_table *table, const char *title, uint64_t count, uint64_t of)
{
  tool_table_cell(table, "%s", title);
  tool_table_cell(table, "%" PRIu64 " (%.2f %%)", count, (double)count / (double)of * 100);
}

static void print_statistics(const request *r, const tool_values *values)
{
  checkpoint_statistics s;
  tool_table table;
  checkpoint_statistics_of(values, &s);
  if (s.n == 0) return;
  tool_table_init(&table, 2, 0);
  bool complex = values->dtype == TN_COMPLEX64 || values->dtype == TN_COMPLEX128;
  if (s.finite > 0) {
    add_number(&table, complex ? "min of |x|" : "min", s.min);
    add_number(&table, "max", s.max);
    add_number(&table, "mean", s.mean);
    add_number(&table, "std", s.std);
  }
  add_count(&table, "zeros", s.zeros, s.n);
  if (s.nans > 0) add_count(&table, "NaN", s.nans, s.n);
  if (s.infinities > 0) add_count(&table, "infinite", s.infinities, s.n);
  fputc('\n', stdout);
  tool_table_print(&table, "", stdout);
  if (r->no_histogram || s.finite < LEAST_VALUES) return;
  checkpoint_histogram h;
  checkpoint_histogram_of(values, &s, &h);
  fputc('\n', stdout);
  checkpoint_print_histogram(&h, &s);
}

static tn_status print_tensor(const request *r, const tn_checkpoint *checkpoint, const tn_checkpoint_entry *entry,
                              const tn_tensor *tensor, tn_error *err)
{
  tool_values values;
  tool_text text = { 0 };
  tn_status status = tool_values_init(&values, tensor, err);
  if (status == TN_OK) status = tool_text_tensor(&text, tensor, err);
  if (status == TN_OK) {
    print_title(entry);
    print_paths(checkpoint, entry->key);
    tool_text_add(&text, "\n", 1);
    fwrite(text.data, 1, text.length, stdout);
    if (tn_tensor_dtype(tensor) == TN_STRING)
      print_lengths(tensor);
    else if (values.data != NULL)
      print_statistics(r, &values);
  }
  tool_text_fini(&text);
  tool_values_fini(&values);
  return status;
}

/* ---- as JSON ---- */

static json_t *json_number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static json_t *json_histogram(const checkpoint_histogram *h)
{
  json_t *object = json_object(), *limits = json_array(), *counts = json_array();
  for (size_t i = 0; i < h->n; i++) {
    tool_json_append(limits, json_number(checkpoint_bin_low(h, i)));
    tool_json_append(counts, json_integer((json_int_t)h->counts[i]));
  }
  if (h->n > 0) tool_json_append(limits, json_number(checkpoint_bin_low(h, h->n)));
  tool_json_set(object, "limits", limits);
  tool_json_set(object, "counts", counts);
  return object;
}

static void set_statistics(json_t *object, const tool_values *values)
{
  checkpoint_statistics s;
  checkpoint_histogram h;
  json_t *numbers = json_object();
  checkpoint_statistics_of(values, &s);
  checkpoint_histogram_of(values, &s, &h);
  bool any = s.finite > 0;
  tool_json_set(numbers, "min", any ? json_number(s.min) : json_null());
  tool_json_set(numbers, "max", any ? json_number(s.max) : json_null());
  tool_json_set(numbers, "mean", any ? json_number(s.mean) : json_null());
  tool_json_set(numbers, "std", any ? json_number(s.std) : json_null());
  tool_json_set(numbers, "elements", json_integer((json_int_t)s.n));
  tool_json_set(numbers, "zeros", json_integer((json_int_t)s.zeros));
  tool_json_set(numbers, "nan", json_integer((json_int_t)s.nans));
  tool_json_set(numbers, "infinite", json_integer((json_int_t)s.infinities));
  tool_json_set(object, "statistics", numbers);
  tool_json_set(object, "histogram", json_histogram(&h));
}

static tn_status add_json(const tn_checkpoint_entry *entry, const tn_tensor *tensor, json_t *array, tn_error *err)
{
  tool_values values;
  tn_status status = tool_values_init(&values, tensor, err);
  if (status != TN_OK) return status;
  json_t *object = checkpoint_json_entry(entry);
  if (tn_tensor_dtype(tensor) == TN_STRING) {
    lengths l = lengths_of(tensor);
    bool any = tn_tensor_elements(tensor) > 0;
    tool_json_set(object, "shortest", any ? json_integer((json_int_t)l.shortest) : json_null());
    tool_json_set(object, "longest", any ? json_integer((json_int_t)l.longest) : json_null());
  } else if (values.data != NULL) {
    set_statistics(object, &values);
  }
  tool_json_append(array, object);
  tool_values_fini(&values);
  return TN_OK;
}

/* ---- the command ---- */

static tn_status show_key(const request *r, tn_checkpoint *checkpoint, int i, json_t *array, tn_error *err)
{
  tn_checkpoint_entry entry;
  tn_tensor *tensor = NULL;
  tn_status status = find_key(checkpoint, r->keys[i], &entry, err);
  if (status == TN_OK) {
    tool_progress *progress = tool_progress_start_reading("reading", entry.bytes);
    status = tn_checkpoint_read(checkpoint, entry.key, &tensor, err);
    tool_progress_end(progress);
  }
  if (status == TN_OK && i > 0 && !r->json) fputc('\n', stdout);
  if (status == TN_OK)
    status = r->json ? add_json(&entry, tensor, array, err) : print_tensor(r, checkpoint, &entry, tensor, err);
  tn_tensor_unref(tensor);
  return status;
}

static int show(const request *r)
{
  tn_error err = TN_ERROR_INIT;
  tn_checkpoint *checkpoint = NULL;
  json_t *array = json_array();
  tn_status status = tn_checkpoint_open(r->path, &checkpoint, &err);
  for (int i = 0; i < r->n_keys && status == TN_OK; i++) status = show_key(r, checkpoint, i, array, &err);
  tn_checkpoint_close(checkpoint);
  if (status == TN_OK && r->json) return tool_json_print(array);
  json_decref(array);
  return status == TN_OK ? TOOL_OK : tool_fail(&err);
}

int checkpoint_show(int argc, char **argv)
{
  static const struct option options[] = {
    { "no-histogram", no_argument, NULL, 'H' },
    { "json", no_argument, NULL, 'j' },
    { NULL, 0, NULL, 0 },
  };
  request r;
  int c;
  memset(&r, 0, sizeof(r));
  while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
    switch (c) {
    case 'H': r.no_histogram = true; break;
    case 'j': r.json = true; break;
    default: return tool_bad_option("checkpoint", c, argv);
    }
  }
  int status = checkpoint_arguments(argc, argv, 2, "PREFIX KEY...");
  if (status != TOOL_OK) return status;
  r.path = argv[optind];
  r.keys = argv + optind + 1;
  r.n_keys = argc - optind - 1;
  return show(&r);
}
