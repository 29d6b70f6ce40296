/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for kernels of arbitrary ops, from the schema, attributes that can be guessed from it, and a few shapes. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>

#include <conformance/plugin/plugin_cases.h>

#define TWO(r, ...) { 2, { r, r, 0 }, { __VA_ARGS__ } }

const pg_shapes pg_all_shapes[] = {
  { 1, { 2 }, { { 3, 8 } } },
  { 1, { 4 }, { { 2, 6, 6, 4 } } },
  { 1, { 5 }, { { 1, 4, 4, 4, 3 } } },
  TWO(2, { 3, 5 }, { 5, 7 }),
  TWO(2, { 4, 6 }, { 4, 6 }),
  TWO(3, { 2, 3, 5 }, { 2, 5, 4 }),
  TWO(4, { 2, 7, 7, 4 }, { 3, 3, 4, 8 }),
  TWO(5, { 1, 5, 5, 5, 2 }, { 2, 2, 2, 2, 3 }),
  { 1, { 2 }, { { 64, 512 } } }, /* and some that are worth a plugin's while */
  { 1, { 4 }, { { 2, 28, 28, 32 } } },
  { 1, { 5 }, { { 1, 8, 16, 16, 16 } } },
  TWO(2, { 96, 128 }, { 128, 64 }),
  TWO(3, { 4, 64, 96 }, { 4, 96, 64 }),
  TWO(4, { 2, 28, 28, 32 }, { 3, 3, 32, 64 }),
  TWO(4, { 2, 28, 28, 32 }, { 3, 3, 32, 1 }),
  TWO(5, { 1, 8, 12, 12, 16 }, { 3, 3, 3, 16, 32 }),
  { 3, { 4, 4, 4 }, { { 2, 28, 28, 32 }, { 2, 28, 28, 32 }, { 2, 28, 28, 32 } } },
  { 2, { 4, 1 }, { { 2, 6, 6, 4 }, { 4 } } },
  { 3, { 2, 2, 1 }, { { 3, 5 }, { 5, 7 }, { 7 } } },
  { 3, { 4, 4, 1 }, { { 2, 7, 7, 4 }, { 3, 3, 4, 8 }, { 8 } } },
  { 3, { 4, 4, 4 }, { { 2, 6, 6, 4 }, { 2, 6, 6, 4 }, { 2, 6, 6, 4 } } },
  { 1, { 2 }, { { 0, 8 } } },
  { 1, { 4 }, { { 0, 6, 6, 4 } } },
  TWO(2, { 0, 5 }, { 5, 7 }),
  TWO(3, { 0, 3, 5 }, { 0, 5, 4 }),
  TWO(4, { 0, 7, 7, 4 }, { 3, 3, 4, 8 }),
  TWO(5, { 0, 5, 5, 5, 2 }, { 2, 2, 2, 2, 3 }),
};
const size_t pg_n_shapes = sizeof(pg_all_shapes) / sizeof(pg_all_shapes[0]), pg_first_empty = 21;

/* ---- claims ---- */

/* "MatMul@CPU:float|bfloat16" of `size` bytes. */
static bool read_claim(const char *text, size_t size, pg_claim *claims, size_t *n)
{
  char entry[1100];
  snprintf(entry, sizeof(entry), "%.*s", (int)size, text);
  char *device = strchr(entry, '@'), *types;
  if (device == NULL || device == entry || device[1] == '\0' || size >= sizeof(entry)) return false;
  *device++ = '\0';
  types = strchr(device, ':');
  if (types != NULL) *types++ = '\0';
  do {
    pg_claim *c = &claims[(*n)++];
    *c = (pg_claim){ .dtype = TN_DTYPE_INVALID };
    snprintf(c->op, sizeof(c->op), "%.127s", entry);
    snprintf(c->device, sizeof(c->device), "%.31s", device);
    if (types == NULL) break;
    char *next = strchr(types, '|');
    if (next != NULL) *next++ = '\0';
    c->dtype = tn_dtype_from_name(types);
    if (c->dtype == TN_DTYPE_INVALID) return false;
    types = next;
  } while (types != NULL);
  return true;
}

pg_claim *pg_claims(size_t *n)
{
  const char *text = pg_value(pg_the_file(), "kernels");
  size_t most = 1;
  *n = 0;
  for (const char *at = text; at != NULL && *at != '\0'; at++) most += *at == ';' || *at == '|';
  pg_claim *claims = cf_alloc(most, sizeof(pg_claim));
  for (const char *at = text; at != NULL && *at != '\0';) {
    size_t size = strcspn(at, ";");
    CHECK_MSG(read_claim(at, size, claims, n), "'%.*s' in its manifest is no \"Op@DEVICE:type|type\"",
              (int)(size < 80 ? size : 80), at);
    at += size + (at[size] == ';');
  }
  return claims;
}

/* ---- graphs ---- */

static void set_numbers(tn_operation_builder *b, const tn_op_attr *a, int32_t rank)
{
  int64_t numbers[PG_MOST_RANK];
  bool window = strcmp(a->name, "ksize") == 0;
  for (int i = 0; i < rank; i++) numbers[i] = window && i > 0 && i < rank - 1 ? 2 : 1;
  tn_operation_set_ints(b, a->name, numbers, (size_t)rank);
}

/* False: it cannot be guessed. */
static bool set_attr(tn_operation_builder *b, const tn_op_schema *schema, size_t i, const pg_shapes *shapes)
{
  tn_op_attr a = { .struct_size = TN_OP_ATTR_SIZE };
  if (tn_op_schema_attr(schema, i, &a, NULL) != TN_OK) return false;
  if (a.has_default) return true;
  const char *text = a.n_strings > 0 ? tn_op_schema_attr_string(schema, i, 0) : "";
  switch (a.kind) {
  case TN_ATTR_TYPE: return true; /* it follows from the inputs */
  case TN_ATTR_INT: tn_operation_set_int(b, a.name, a.has_minimum && a.minimum > 1 ? a.minimum : 1); return true;
  case TN_ATTR_FLOAT: tn_operation_set_float(b, a.name, 1); return true;
  case TN_ATTR_BOOL: tn_operation_set_bool(b, a.name, 0); return true;
  case TN_ATTR_STRING: tn_operation_set_string(b, a.name, text, strlen(text)); return true;
  case TN_ATTR_INT | TN_ATTR_LIST: set_numbers(b, &a, shapes->rank[0]); return true;
  default: return false;
  }
}

/* The element type of an argument; TN_DTYPE_INVALID: it is a list, or unspecified. */
static tn_dtype type_of(const tn_op_schema *schema, size_t i, const pg_claim *claim)
{
  tn_op_arg arg = { .struct_size = TN_OP_ARG_SIZE };
  if (tn_op_schema_input(schema, i, &arg, NULL) != TN_OK || arg.number_attr >= 0 || arg.list_attr >= 0 || arg.is_ref)
    return TN_DTYPE_INVALID;
  if (arg.dtype != TN_DTYPE_INVALID) return arg.dtype;
  return claim->dtype != TN_DTYPE_INVALID ? claim->dtype : TN_FLOAT;
}

static tn_output placeholder(tn_graph *graph, int i, tn_dtype dtype)
{
  char name[16];
  tn_operation *op = NULL;
  snprintf(name, sizeof(name), "in%d", i);
  tn_operation_builder *b = tn_operation_begin(graph, "Placeholder", name, 0);
  tn_operation_set_type(b, "dtype", dtype);
  return (tn_output){ tn_operation_finish(b, &op, NULL) == TN_OK ? op : NULL, 0 };
}

/* A node with an op that the library lacks loads the plugin that provides it. */
static const tn_op_schema *schema_of(const char *op)
{
  const tn_op_schema *schema = tn_op_schema_find(op);
  tn_graph *graph = NULL;
  if (schema != NULL || tn_graph_create(&graph, NULL) != TN_OK) return schema;
  tn_operation_abandon(tn_operation_begin(graph, op, "node", 0));
  tn_graph_unref(graph);
  return tn_op_schema_find(op);
}

tn_graph *pg_case_graph(const pg_claim *claim, const pg_shapes *shapes)
{
  tn_graph *graph = NULL;
  const tn_op_schema *schema = schema_of(claim->op);
  size_t n_outputs = schema != NULL ? tn_op_schema_n_outputs(schema) : 0;
  if (schema == NULL || tn_op_schema_n_inputs(schema) != (size_t)shapes->n || n_outputs == 0) return NULL;
  if (tn_op_schema_traits(schema) & (TN_TRAIT_STATEFUL | TN_TRAIT_RANDOM)) return NULL;
  for (int i = 0; i < shapes->n; i++) /* integers are usually sizes and axes with a meaning */
    if (type_of(schema, (size_t)i, claim) != (claim->dtype != TN_DTYPE_INVALID ? claim->dtype : TN_FLOAT)) return NULL;
  if (tn_graph_create(&graph, NULL) != TN_OK) return NULL;
  tn_output inputs[PG_MOST_INPUTS];
  bool good = true;
  for (int i = 0; i < shapes->n; i++) {
    inputs[i] = placeholder(graph, i, type_of(schema, (size_t)i, claim));
    good = good && inputs[i].op != NULL;
  }
  tn_operation_builder *b = good ? tn_operation_begin(graph, claim->op, "node", 0) : NULL;
  for (int i = 0; b != NULL && i < shapes->n; i++) tn_operation_add_input(b, inputs[i]);
  for (size_t i = 0; b != NULL && i < tn_op_schema_n_attrs(schema); i++) good = set_attr(b, schema, i, shapes) && good;
  tn_operation *op = NULL;
  if (b != NULL) good = tn_operation_finish(b, &op, NULL) == TN_OK && good;
  if (good && op != NULL) return graph;
  tn_graph_unref(graph);
  return NULL;
}

/* ---- values ---- */

static uint16_t to_bfloat16(float value)
{
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return (uint16_t)(bits >> 16);
}

/* Numbers of few bits, exact in every type. */
static bool fill(tn_dtype dtype, void *data, int64_t n)
{
  for (int64_t i = 0; i < n; i++) {
    int small = (int)((i * 7 + 3) % 11) - 5;
    switch (dtype) {
    case TN_FLOAT: ((float *)data)[i] = (float)small / 4; break;
    case TN_DOUBLE: ((double *)data)[i] = (double)small / 4; break;
    case TN_BFLOAT16: ((uint16_t *)data)[i] = to_bfloat16((float)small / 4); break;
    case TN_INT32: ((int32_t *)data)[i] = small; break;
    case TN_INT64: ((int64_t *)data)[i] = small; break;
    default: return false;
    }
  }
  return true;
}

static void unmap(void *user, void *data, size_t bytes)
{
  (void)user;
  munmap(data, bytes > 0 ? bytes : 1);
}

bool pg_case_feeds(const pg_claim *claim, const pg_shapes *shapes, tn_tensor **feeds)
{
  tn_dtype dtype = claim->dtype != TN_DTYPE_INVALID ? claim->dtype : TN_FLOAT;
  for (int i = 0; i < PG_MOST_INPUTS; i++) feeds[i] = NULL;
  for (int i = 0; i < shapes->n; i++) {
    size_t bytes = 0;
    int64_t n = 0;
    if (tn_shape_bytes(dtype, shapes->dims[i], shapes->rank[i], &bytes, NULL) != TN_OK) return false;
    if (tn_shape_elements(shapes->dims[i], shapes->rank[i], &n, NULL) != TN_OK) return false;
    size_t room = bytes > 0 ? bytes : 1;
    void *data = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED || !fill(dtype, data, n) || mprotect(data, room, PROT_READ) != 0) return false;
    if (tn_tensor_wrap(dtype, shapes->dims[i], shapes->rank[i], data, bytes, unmap, NULL, &feeds[i], NULL) != TN_OK)
      return false;
  }
  return true;
}

static double from_bits(uint32_t bits)
{
  float value;
  memcpy(&value, &bits, sizeof(value));
  return (double)value;
}

static double from_half(uint16_t h)
{
  double fraction = h & 0x3ff, sign = h >> 15 ? -1 : 1;
  int exponent = h >> 10 & 31;
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  return sign * (exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25));
}

double pg_element(const tn_tensor *t, int64_t i)
{
  const void *data = tn_tensor_data(t);
  switch (tn_tensor_dtype(t)) {
  case TN_FLOAT: return (double)((const float *)data)[i];
  case TN_DOUBLE: return ((const double *)data)[i];
  case TN_BFLOAT16: return from_bits((uint32_t)((const uint16_t *)data)[i] << 16);
  case TN_HALF: return from_half(((const uint16_t *)data)[i]);
  case TN_INT32: return ((const int32_t *)data)[i];
  case TN_INT64: return (double)((const int64_t *)data)[i];
  default: return 0;
  }
}

bool pg_same_values(const tn_tensor *a, const tn_tensor *b, int64_t *at)
{
  bool short_type = tn_tensor_dtype(a) == TN_BFLOAT16 || tn_tensor_dtype(a) == TN_HALF;
  double relative = short_type ? 2e-2 : 1e-3;
  int64_t n = tn_tensor_elements(a);
  *at = -1;
  if (tn_tensor_dtype(a) != tn_tensor_dtype(b) || n != tn_tensor_elements(b) || tn_tensor_rank(a) != tn_tensor_rank(b))
    return false;
  for (*at = 0; *at < n; ++*at) {
    double x = pg_element(a, *at), y = pg_element(b, *at);
    if (isnan(x) != isnan(y)) return false;
    if (!isnan(x) && x != y && fabs(x - y) > relative * fmax(1, fmax(fabs(x), fabs(y)))) return false;
  }
  return true;
}

/* ---- sessions ---- */

tn_session *pg_case_session(tn_graph *graph, const char *plugins)
{
  tn_session *session = NULL;
  tn_session_options *options = NULL;
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(tn_session_options_create(&options, &err), &err);
  REQUIRE_OK(tn_session_options_set_target(options, "direct", &err), &err);
  REQUIRE_OK(tn_session_options_set_string(options, "kernel_plugins", plugins, &err), &err);
  tn_status st = tn_session_create(options, &session, &err);
  if (st == TN_OK) st = tn_session_set_graph(session, graph, &err);
  tn_session_options_destroy(options);
  tn_error_clear(&err);
  if (st == TN_OK) return session;
  tn_session_destroy(session);
  return NULL;
}

static void find_kernel(const tn_run_metadata *metadata, char *kernel)
{
  tn_node_record record = { .struct_size = sizeof(record) };
  for (size_t i = 0; tn_run_metadata_record(metadata, i, &record, NULL) == TN_OK; i++)
    if (strcmp(record.node, "node") == 0 && record.kind == TN_RECORD_NODE) snprintf(kernel, 80, "%s", record.kernel);
}

tn_status pg_case_run(tn_session *session, tn_tensor *const *feeds, int n, tn_tensor **out, char *kernel, tn_error *err)
{
  static const char *const names[] = { "in0", "in1", "in2" }, *const fetch = "node";
  tn_run_metadata *metadata = NULL;
  tn_run_options options;
  tn_run_options_init(&options);
  options.trace_level = kernel != NULL ? 3 : 0;
  if (kernel != NULL && tn_run_metadata_create(&metadata, err) != TN_OK) return TN_RESOURCE_EXHAUSTED;
  *out = NULL;
  tn_status st = tn_session_run(session, &options, names, feeds, (size_t)n, &fetch, out, 1, NULL, 0, metadata, err);
  if (kernel != NULL) {
    kernel[0] = '\0';
    find_kernel(metadata, kernel);
  }
  tn_run_metadata_destroy(metadata);
  return st;
}
