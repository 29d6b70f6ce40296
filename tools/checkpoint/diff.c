/* SPDX-License-Identifier: Apache-2.0 */
/* tenon checkpoint diff: compares two checkpoints key by key. The exit status is that of diff(1). */
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <tools/checkpoint/checkpoint.h>

enum { SAME = 0, DIFFERENT = 1, TROUBLE = 2 };

typedef struct request {
  const char *paths[2];
  char *const *patterns;
  int n_patterns;
  double rtol, atol;
  bool json;
} request;

typedef struct difference {
  int64_t n;      /* elements that differ */
  double largest; /* the largest absolute difference of numbers; INFINITY if a NaN or infinity is involved */
} difference;

typedef struct comparison {
  const request *r;
  tn_checkpoint *sides[2];
  uint64_t equal, differ, only[2];
  tool_table table;
  json_t *array; /* NULL: text */
} comparison;

/* ---- values ---- */

static int64_t different_strings(const tn_tensor *a, const tn_tensor *b)
{
  int64_t n = 0;
  for (int64_t i = 0; i < tn_tensor_elements(a); i++) {
    const char *x = NULL, *y = NULL;
    size_t nx = 0, ny = 0;
    tn_tensor_get_string(a, i, &x, &nx, NULL);
    tn_tensor_get_string(b, i, &y, &ny, NULL);
    if (nx != ny || (nx > 0 && memcmp(x, y, nx) != 0)) n++;
  }
  return n;
}

static bool is_float(tn_dtype dtype)
{
  return dtype == TN_FLOAT || dtype == TN_DOUBLE || dtype == TN_COMPLEX64 || dtype == TN_COMPLEX128 ||
         tool_float_is_small(dtype);
}

/* The distance of two parts of a number: 0 for two NaNs and for equal infinities. */
static double distance(double x, double y)
{
  if (x == y || (isnan(x) && isnan(y))) return 0;
  double d = fabs(x - y);
  return isnan(d) ? (double)INFINITY : d;
}

static void compare_element(const request *r, const tool_values *a, const tool_values *b, int64_t i, difference *out)
{
  double xi, yi, x = tool_value_at(a, i, &xi), y = tool_value_at(b, i, &yi);
  double d = hypot(distance(x, y), distance(xi, yi));
  /* Large integers that a double does not tell apart. */
  if (d == 0 && !is_float(a->dtype)) d = 1;
  double allowed = r->atol + r->rtol * hypot(y, yi);
  if (!(d > 0) || d <= allowed) return;
  out->n++;
  if (d > out->largest) out->largest = d;
}

static tn_status compare_values(const request *r, const tn_tensor *a, const tn_tensor *b, difference *out,
                                tn_error *err)
{
  tool_values values[2];
  memset(out, 0, sizeof(*out));
  memset(values, 0, sizeof(values));
  if (tn_tensor_dtype(a) == TN_STRING) {
    out->n = different_strings(a, b);
    return TN_OK;
  }
  tn_status status = tool_values_init(&values[0], a, err);
  if (status == TN_OK) status = tool_values_init(&values[1], b, err);
  size_t size = tn_dtype_size(tn_tensor_dtype(a));
  if (status == TN_OK && values[0].data != NULL && tn_tensor_bytes(a) > 0 &&
      memcmp(values[0].data, values[1].data, tn_tensor_bytes(a)) != 0)
    for (int64_t i = 0; i < values[0].n; i++)
      if (memcmp(values[0].data + (size_t)i * size, values[1].data + (size_t)i * size, size) != 0)
        compare_element(r, &values[0], &values[1], i, out);
  tool_values_fini(&values[0]);
  tool_values_fini(&values[1]);
  return status;
}

/* ---- results ---- */

static json_t *json_side(const tn_checkpoint_entry *entry)
{
  json_t *object = json_object();
  tool_json_set(object, "dtype", tool_json_text(tn_dtype_name(entry->dtype)));
  tool_json_set(object, "shape", tool_json_shape(entry->dims, entry->rank));
  return object;
}

/* Adds a row; a side without the key is NULL. */
static void report(comparison *c, const tn_checkpoint_entry *a, const tn_checkpoint_entry *b, const char *mark,
                   const char *text)
{
  tool_table_cell(&c->table, "%s", mark);
  tool_table_cell(&c->table, "%s", a != NULL ? a->key : b->key);
  tool_table_cell(&c->table, "%s", text);
}

static void report_json(comparison *c, const tn_checkpoint_entry *a, const tn_checkpoint_entry *b, const difference *d)
{
  json_t *object = json_object();
  tool_json_set(object, "key", tool_json_text(a != NULL ? a->key : b->key));
  tool_json_set(object, "a", a != NULL ? json_side(a) : json_null());
  tool_json_set(object, "b", b != NULL ? json_side(b) : json_null());
  if (d != NULL) tool_json_set(object, "elements", json_integer(d->n));
  if (d != NULL && a->dtype != TN_STRING)
    tool_json_set(object, "largest", isfinite(d->largest) ? json_real(d->largest) : json_null());
  tool_json_append(c->array, object);
}

static void only_in(comparison *c, int side, const tn_checkpoint_entry *entry)
{
  const tn_checkpoint_entry *a = side == 0 ? entry : NULL, *b = side == 1 ? entry : NULL;
  tool_text text = { 0 };
  c->only[side]++;
  checkpoint_text_type(&text, entry);
  if (c->array != NULL)
    report_json(c, a, b, NULL);
  else
    report(c, a, b, side == 0 ? "-" : "+", text.data);
  tool_text_fini(&text);
}

static void other_type(comparison *c, const tn_checkpoint_entry *a, const tn_checkpoint_entry *b)
{
  tool_text text = { 0 };
  c->differ++;
  checkpoint_text_type(&text, a);
  tool_text_printf(&text, " and ");
  checkpoint_text_type(&text, b);
  if (c->array != NULL)
    report_json(c, a, b, NULL);
  else
    report(c, a, b, "!", text.data);
  tool_text_fini(&text);
}

static void other_values(comparison *c, const tn_checkpoint_entry *a, const tn_checkpoint_entry *b, int64_t elements,
                         const difference *d)
{
  tool_text text = { 0 };
  c->differ++;
  checkpoint_text_type(&text, a);
  tool_text_printf(&text, ": %" PRId64 " of %" PRId64 " differ", d->n, elements);
  if (a->dtype != TN_STRING) tool_text_printf(&text, ", by at most %.3g", d->largest);
  if (c->array != NULL)
    report_json(c, a, b, d);
  else
    report(c, a, b, "~", text.data);
  tool_text_fini(&text);
}

/* ---- keys ---- */

static bool same_type(const tn_checkpoint_entry *a, const tn_checkpoint_entry *b)
{
  if (a->dtype != b->dtype || a->rank != b->rank) return false;
  for (int32_t i = 0; i < a->rank; i++)
    if (a->dims[i] != b->dims[i]) return false;
  return true;
}

static tn_status compare_key(comparison *c, const tn_checkpoint_entry *a, const tn_checkpoint_entry *b, tn_error *err)
{
  tn_tensor *x = NULL, *y = NULL;
  difference d = { 0, 0 };
  if (!same_type(a, b)) {
    other_type(c, a, b);
    return TN_OK;
  }
  tn_status status = tn_checkpoint_read(c->sides[0], a->key, &x, err);
  if (status == TN_OK) status = tn_checkpoint_read(c->sides[1], b->key, &y, err);
  if (status == TN_OK) status = compare_values(c->r, x, y, &d, err);
  if (status == TN_OK && d.n > 0) other_values(c, a, b, tn_tensor_elements(x), &d);
  if (status == TN_OK && d.n == 0) c->equal++;
  tn_tensor_unref(x);
  tn_tensor_unref(y);
  return status;
}

/* Merges the sorted keys of both. */
static tn_status compare_all(comparison *c, tn_error *err)
{
  tn_status status = TN_OK;
  size_t n[2] = { tn_checkpoint_count(c->sides[0]), tn_checkpoint_count(c->sides[1]) }, i = 0, k = 0;
  tool_progress *progress = tool_progress_start("comparing", n[0] + n[1]);
  while (status == TN_OK && (i < n[0] || k < n[1])) {
    tn_checkpoint_entry a = { 0 }, b = { 0 };
    if (i < n[0]) a = checkpoint_entry_at(c->sides[0], i);
    if (k < n[1]) b = checkpoint_entry_at(c->sides[1], k);
    int order = a.key == NULL ? 1 : -1;
    if (a.key != NULL && b.key != NULL) order = strcmp(a.key, b.key);
    if (order <= 0) i++;
    if (order >= 0) k++;
    tool_progress_set(progress, i + k);
    if (!checkpoint_matches(c->r->patterns, c->r->n_patterns, order <= 0 ? a.key : b.key)) continue;
    if (order < 0) only_in(c, 0, &a);
    if (order > 0) only_in(c, 1, &b);
    if (order == 0) status = compare_key(c, &a, &b, err);
  }
  tool_progress_end(progress);
  return status;
}

/* ---- the command ---- */

static int print_json(comparison *c)
{
  json_t *root = json_object();
  tool_json_set(root, "equal", json_integer((json_int_t)c->equal));
  tool_json_set(root, "differ", json_integer((json_int_t)c->differ));
  tool_json_set(root, "only_in_a", json_integer((json_int_t)c->only[0]));
  tool_json_set(root, "only_in_b", json_integer((json_int_t)c->only[1]));
  tool_json_set(root, "differences", json_incref(c->array));
  return tool_json_print(root);
}

static void print_text(comparison *c)
{
  tool_table_print(&c->table, "", stdout);
  printf("%" PRIu64 " equal, %" PRIu64 " differ (! in type, ~ in values), %" PRIu64 " only in the first (-), %" PRIu64
         " only in the second (+)\n",
         c->equal, c->differ, c->only[0], c->only[1]);
}

static int diff(const request *r)
{
  tn_error err = TN_ERROR_INIT;
  comparison c = { .r = r, .array = r->json ? json_array() : NULL };
  tn_status status = TN_OK;
  tool_table_init(&c.table, 3, 0);
  for (int i = 0; i < 2 && status == TN_OK; i++) status = tn_checkpoint_open(r->paths[i], &c.sides[i], &err);
  if (status == TN_OK) status = compare_all(&c, &err);
  int result = c.differ + c.only[0] + c.only[1] > 0 ? DIFFERENT : SAME;
  if (status == TN_OK && r->json) print_json(&c);
  if (status == TN_OK && !r->json) print_text(&c);
  if (status != TN_OK) {
    tool_fail(&err);
    result = TROUBLE;
  }
  tool_table_fini(&c.table);
  json_decref(c.array);
  for (int i = 0; i < 2; i++) tn_checkpoint_close(c.sides[i]);
  return result;
}

static int parse_tolerance(const char *option, const char *text, double *out)
{
  char *end;
  *out = (text[0] >= '0' && text[0] <= '9') || text[0] == '.' ? strtod(text, &end) : -1;
  if (*out >= 0 && isfinite(*out) && *end == '\0') return TOOL_OK;
  return tool_usage("checkpoint", "--%s '%s': expected a number, such as 1e-6", option, text);
}

int checkpoint_diff(int argc, char **argv)
{
  static const struct option options[] = {
    { "rtol", required_argument, NULL, 'r' },
    { "atol", required_argument, NULL, 'a' },
    { "json", no_argument, NULL, 'j' },
    { NULL, 0, NULL, 0 },
  };
  request r;
  int c, status = TOOL_OK;
  memset(&r, 0, sizeof(r));
  while (status == TOOL_OK && (c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
    switch (c) {
    case 'r': status = parse_tolerance("rtol", optarg, &r.rtol); break;
    case 'a': status = parse_tolerance("atol", optarg, &r.atol); break;
    case 'j': r.json = true; break;
    default: return tool_bad_option("checkpoint", c, argv);
    }
  }
  if (status == TOOL_OK) status = checkpoint_arguments(argc, argv, 2, "two checkpoints");
  if (status != TOOL_OK) return status;
  r.paths[0] = argv[optind];
  r.paths[1] = argv[optind + 1];
  r.patterns = argv + optind + 2;
  r.n_patterns = argc - optind - 2;
  return diff(&r);
}
