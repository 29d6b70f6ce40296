/* SPDX-License-Identifier: Apache-2.0 */
/* Shape functions and kernels' prepare: the inferred shapes agree with the results of a step.
 *
 * The bytes describe one operation with its inputs, which is built twice. In one graph nothing is known before the
 * step: all inputs are fed, with unknown rank. In the other one inputs have partly known shapes, are constants, or
 * are made from the shapes of others. More knowledge must only refine the result: both graphs give the same shapes
 * or both give an error, and no step contradicts the inferred shapes. After a 'g' the bytes are a GraphDef instead:
 * each of its operations is queried. */
#include <fuzz/bytes.h>
#include <fuzz/runtime.h>

#include <stdbool.h>
#include <stdio.h>
#include <tenon/op.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST_INPUTS 8
#define MOST_OUTPUTS 8
#define MOST_ATTRS 32
#define RANKS 6
#define MOST_ELEMENTS 256

/* ---- the process ---- */

/* Memory limit of steps, which also bounds their time. */
#define MOST_MEMORY ((size_t)4 << 20)

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  (void)argc, (void)argv;
  fuzz_limit_memory(MOST_MEMORY);
  fuzz_make_options();
  return 0;
}

/* ---- an operation with its inputs ---- */

enum { TOLD = 0, CONSTANT = 1, MADE = 2 };

typedef struct shape {
  int32_t rank;
  int64_t dims[TN_MAX_RANK];
} shape;

typedef struct operand {
  tn_tensor *value; /* fed to the step */
  shape told;       /* the shape that the second graph knows */
  int how;          /* in the second graph: TOLD, CONSTANT or MADE (the shape of `of`, which is fed) */
  tn_tensor *of;
  tn_dtype dtype;
} operand;

typedef struct recipe {
  const tn_op_schema *schema;
  operand in[MOST_INPUTS];
  size_t n_in, n_args;
  size_t count[MOST_INPUTS];   /* operands of each argument */
  bool is_list[MOST_INPUTS];
  tn_dtype types[MOST_ATTRS];  /* by attribute, TN_DTYPE_INVALID: not chosen */
  int32_t numbers[MOST_ATTRS]; /* -1: not chosen */
  bytes attrs;                 /* read again for each graph */
  bool untrue;                 /* the known shapes are not those of the values: only query shapes */
} recipe;

static int64_t small(bytes *b)
{
  uint8_t kind = next(b);
  if (kind >= 250) return number(b);
  return kind < 160 ? kind % 4 : kind % 12 - 4;
}

/* One of the dtypes in the set, mostly a common one. */
static tn_dtype some_type(bytes *b, uint64_t set)
{
  static const tn_dtype common[] = { TN_FLOAT, TN_INT32, TN_INT64, TN_BOOL, TN_DOUBLE, TN_HALF, TN_UINT8, TN_FLOAT };
  uint8_t kind = next(b);
  if (kind < 160 && (set >> common[kind % 8] & 1)) return common[kind % 8];
  for (int d = 0; d < 64; d++)
    if (set >> (d + kind) % 64 & 1) return (d + kind) % 64;
  return TN_FLOAT;
}

static void some_shape(bytes *b, const recipe *r, shape *s)
{
  uint8_t kind = next(b);
  int64_t n = 1;
  if (kind >= 128 && r->n_in > 0) { /* compatible shapes are often equal */
    const tn_tensor *as = r->in[kind % r->n_in].value;
    s->rank = tn_tensor_rank(as);
    if (s->rank > 0) memcpy(s->dims, tn_tensor_dims(as), (size_t)s->rank * sizeof *s->dims);
    return;
  }
  s->rank = kind % RANKS;
  for (int32_t i = 0; i < s->rank; i++) {
    uint8_t dim = next(b);
    s->dims[i] = dim < 250 ? dim % 6 : dim % 3;
    if (dim >= 252 && n == 0) s->dims[i] = (int64_t)1 << (dim - 252) * 16; /* beside a 0 any size is valid */
    else if (s->dims[i] * n > MOST_ELEMENTS) s->dims[i] = 1;
    n *= s->dims[i];
  }
}

static void fill(bytes *b, tn_tensor *t)
{
  static const float floats[] = { 0, 1, -1, 0.5f, 2, -3, 1e30f, -1e30f };
  static const double doubles[] = { 0, 1, -1, 0.5, 2, -3, 1e300, 1e-300 };
  tn_dtype dtype = tn_tensor_dtype(t);
  size_t size = tn_dtype_size(dtype);
  uint8_t *at = tn_tensor_data(t);
  bool real = is_real(dtype);
  for (int64_t k = 0; k < tn_tensor_elements(t); k++, at += size) {
    if (real && b->at < b->end && *b->at >= 232) { /* the whole range; otherwise numbers usable as shapes and indices */
      next(b);
      next_real(b, dtype, at);
      continue;
    }
    int64_t value = small(b);
    if (dtype == TN_STRING)
      tn_tensor_set_string(t, k, "a1", (size_t)value % 3, NULL);
    else if (dtype == TN_FLOAT)
      memcpy(at, &floats[value & 7], size);
    else if (dtype == TN_DOUBLE)
      memcpy(at, &doubles[value & 7], size);
    else if (dtype == TN_BOOL || size > 8)
      memset(at, 0, size), *at = value & 1;
    else
      memcpy(at, &value, size);
  }
}

/* The second graph knows a part of the value's shape, or any shape if the recipe is untrue. */
static void tell(bytes *b, recipe *r, operand *o, const tn_tensor *value)
{
  uint8_t kind = next(b), hidden = next(b);
  o->told.rank = kind % 4 == 0 ? -1 : tn_tensor_rank(value);
  for (int32_t i = 0; i < o->told.rank; i++) {
    o->told.dims[i] = hidden >> i % 8 & 1 ? -1 : tn_tensor_dims(value)[i];
    if (r->untrue && kind >= 128) {
      int64_t any = number(b);
      o->told.dims[i] = any < -1 ? -1 : any;
    }
  }
}

/* Whether the value can be the shape of a tensor. If so, creates that tensor in `of`. */
static bool make(const tn_tensor *value, tn_tensor **of)
{
  int64_t dims[TN_MAX_RANK], n = tn_tensor_elements(value), product = 1;
  tn_dtype dtype = tn_tensor_dtype(value);
  const void *data = tn_tensor_data(value);
  if ((dtype != TN_INT32 && dtype != TN_INT64) || tn_tensor_rank(value) != 1 || n > RANKS) return false;
  for (int64_t i = 0; i < n; i++) {
    dims[i] = dtype == TN_INT32 ? ((const int32_t *)data)[i] : ((const int64_t *)data)[i];
    if (dims[i] < 0 || dims[i] > MOST_ELEMENTS || (product *= dims[i]) > MOST_ELEMENTS) return false;
  }
  return tn_tensor_create(TN_BOOL, dims, (int32_t)n, of, NULL) == TN_OK;
}

static bool some_operand(bytes *b, recipe *r, tn_dtype dtype)
{
  if (r->n_in == MOST_INPUTS) return false;
  operand *o = &r->in[r->n_in];
  shape s;
  memset(&s, 0, sizeof s);
  some_shape(b, r, &s);
  *o = (operand){ .dtype = dtype };
  if (dtype == TN_RESOURCE || dtype == TN_VARIANT) return false;
  if (tn_tensor_create(dtype, s.dims, s.rank, &o->value, NULL) != TN_OK) return false;
  fill(b, o->value);
  uint8_t how = next(b);
  o->how = how % 3;
  if (o->how == MADE && !make(o->value, &o->of)) o->how = TOLD;
  tell(b, r, o, o->of != NULL ? o->of : o->value);
  r->n_in++;
  return true;
}

/* The operands of one argument. */
static bool some_argument(bytes *b, recipe *r, const tn_op_arg *arg)
{
  int32_t most = arg->type_attr > arg->number_attr ? arg->type_attr : arg->number_attr;
  size_t *count = &r->count[r->n_args], n = 1;
  if (most >= MOST_ATTRS || arg->list_attr >= MOST_ATTRS || arg->is_ref) return false;
  tn_op_attr attr = { .struct_size = sizeof attr };
  tn_dtype dtype = arg->dtype;
  if (arg->type_attr >= 0) {
    tn_op_schema_attr(r->schema, (size_t)arg->type_attr, &attr, NULL);
    tn_dtype *chosen = &r->types[arg->type_attr];
    if (*chosen == TN_DTYPE_INVALID) *chosen = some_type(b, attr.types);
    dtype = *chosen;
  }
  if (arg->number_attr >= 0) {
    if (r->numbers[arg->number_attr] < 0) r->numbers[arg->number_attr] = next(b) % 4;
    n = (size_t)r->numbers[arg->number_attr];
  } else if (arg->list_attr >= 0) {
    n = next(b) % 4;
    tn_op_schema_attr(r->schema, (size_t)arg->list_attr, &attr, NULL);
  }
  r->is_list[r->n_args] = arg->number_attr >= 0 || arg->list_attr >= 0;
  r->n_args++;
  for (*count = 0; *count < n; (*count)++)
    if (!some_operand(b, r, arg->list_attr >= 0 ? some_type(b, attr.types) : dtype)) return false;
  return true;
}

static bool some_recipe(bytes *b, recipe *r)
{
  memset(r, 0, sizeof *r);
  for (size_t i = 0; i < MOST_ATTRS; i++) r->types[i] = TN_DTYPE_INVALID, r->numbers[i] = -1;
  r->schema = next_op(b);
  r->untrue = next(b) >= 192;
  size_t n = tn_op_schema_n_inputs(r->schema);
  for (size_t i = 0; i < n; i++) {
    tn_op_arg arg = { .struct_size = sizeof arg };
    if (tn_op_schema_input(r->schema, i, &arg, NULL) != TN_OK) abort();
    if (i == MOST_INPUTS || !some_argument(b, r, &arg)) return false;
  }
  r->attrs = *b;
  return true;
}

static void recipe_free(recipe *r)
{
  for (size_t i = 0; i < r->n_in; i++) {
    tn_tensor_unref(r->in[i].value);
    tn_tensor_unref(r->in[i].of);
  }
}

/* ---- its graphs ---- */

typedef struct feeds {
  char names[MOST_INPUTS][4];
  const char *at[MOST_INPUTS];
  tn_tensor *tensors[MOST_INPUTS];
  size_t n;
} feeds;

static tn_status add_placeholder(tn_graph *graph, feeds *f, tn_tensor *value, const shape *told, tn_output *out,
                                 tn_error *err)
{
  char *name = f->names[f->n];
  snprintf(name, sizeof f->names[0], "p%zu", f->n);
  tn_operation_builder *op = tn_operation_begin(graph, "Placeholder", name, 0);
  if (op == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no builder");
  tn_operation_set_type(op, "dtype", tn_tensor_dtype(value));
  if (told != NULL) tn_operation_set_shape(op, "shape", told->dims, told->rank);
  f->at[f->n] = name;
  f->tensors[f->n++] = value;
  return tn_operation_finish(op, &out->op, err);
}

static tn_status add_input(tn_graph *graph, feeds *f, const operand *o, bool knows, size_t i, tn_output *out,
                           tn_error *err)
{
  char name[8];
  out->index = 0;
  if (!knows) return add_placeholder(graph, f, o->value, NULL, out, err);
  if (o->how == TOLD) return add_placeholder(graph, f, o->value, &o->told, out, err);
  snprintf(name, sizeof name, "c%zu", i);
  if (o->how == MADE) {
    tn_status st = add_placeholder(graph, f, o->of, &o->told, out, err);
    if (st != TN_OK) return st;
  }
  tn_operation_builder *op = tn_operation_begin(graph, o->how == MADE ? "Shape" : "Const", name, 0);
  if (op == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no builder");
  if (o->how == MADE) {
    tn_operation_add_input(op, *out);
    tn_operation_set_type(op, "out_type", o->dtype);
  } else {
    tn_operation_set_type(op, "dtype", o->dtype);
    tn_operation_set_tensor(op, "value", o->value);
  }
  return tn_operation_finish(op, &out->op, err);
}

static void add_attrs(tn_operation_builder *op, const recipe *r)
{
  static const char *const texts[] = { "", "NHWC", "ij->ji", "ij,jk->ik", "...ij,...jk->...ik", "x" };
  bytes b = r->attrs;
  for (size_t i = 0; i < tn_op_schema_n_attrs(r->schema) && i < MOST_ATTRS; i++) {
    tn_op_attr attr = { .struct_size = sizeof attr };
    if (tn_op_schema_attr(r->schema, i, &attr, NULL) != TN_OK) abort();
    if (r->types[i] != TN_DTYPE_INVALID) {
      tn_operation_set_type(op, attr.name, r->types[i]);
    } else if (r->numbers[i] >= 0) {
      tn_operation_set_int(op, attr.name, r->numbers[i]);
    } else if (attr.kind != TN_ATTR_LIST + TN_ATTR_TYPE) { /* the inputs determine those lists */
      uint8_t what = next(&b);
      if (attr.has_default && what < 100) continue;
      const char *text =
          attr.n_strings > 0 ? tn_op_schema_attr_string(r->schema, i, what % attr.n_strings) : texts[what % 6];
      if (attr.kind == TN_ATTR_TYPE)
        tn_operation_set_type(op, attr.name, some_type(&b, attr.types));
      else
        set_attr(op, attr.name, attr.kind, &b, small, text);
    }
  }
}

static tn_status build(const recipe *r, tn_graph *graph, bool knows, feeds *f, tn_operation **made, tn_error *err)
{
  tn_output in[MOST_INPUTS];
  size_t first = 0;
  *made = NULL;
  f->n = 0;
  for (size_t i = 0; i < r->n_in; i++) {
    tn_status st = add_input(graph, f, &r->in[i], knows, i, &in[i], err);
    if (st != TN_OK) return st;
  }
  tn_operation_builder *op = tn_operation_begin(graph, tn_op_schema_name(r->schema), "op", 0);
  if (op == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no builder");
  for (size_t i = 0; i < r->n_args; first += r->count[i++]) {
    if (r->is_list[i])
      tn_operation_add_input_list(op, in + first, r->count[i]);
    else
      tn_operation_add_input(op, in[first]);
  }
  add_attrs(op, r);
  return tn_operation_finish(op, made, err);
}

/* ---- steps ---- */

typedef struct results {
  tn_status status;
  bool built;
  tn_tensor *at[MOST_OUTPUTS];
  size_t n;
} results;

static void run(tn_graph *graph, const char *name, size_t n_outputs, const feeds *f, int level, results *r,
                tn_error *err)
{
  char names[MOST_OUTPUTS][80];
  const char *fetches[MOST_OUTPUTS], *feed_names[MOST_INPUTS];
  tn_session *session;
  r->n = n_outputs < MOST_OUTPUTS ? n_outputs : MOST_OUTPUTS;
  for (size_t i = 0; i < r->n; i++) {
    snprintf(names[i], sizeof names[i], "%s:%zu", name, i);
    fetches[i] = names[i];
    r->at[i] = NULL;
  }
  for (size_t i = 0; i < f->n; i++) feed_names[i] = f->at[i];
  tn_run_options limited; /* some steps would wait forever */
  tn_run_options_init(&limited);
  limited.timeout_ms = 300;
  r->status = tn_session_create(options_of[level], &session, err);
  if (r->status != TN_OK) {
    if (r->status != TN_RESOURCE_EXHAUSTED) abort();
    return;
  }
  r->status = tn_session_set_graph(session, graph, err);
  if (r->status == TN_OK)
    r->status = tn_session_run(session, &limited, feed_names, f->tensors, f->n, fetches, r->at, r->n, &name, r->n == 0,
                               NULL, err);
  check_status(r->status, err);
  for (size_t i = 0; i < r->n; i++)
    if ((r->at[i] != NULL) != (r->status == TN_OK)) abort();
  tn_session_destroy(session);
}

static void results_free(results *r)
{
  for (size_t i = 0; i < r->n; i++) tn_tensor_unref(r->at[i]);
}

static void print_shape(const char *what, const int64_t *dims, int32_t rank)
{
  fprintf(stderr, "  %s", what);
  if (rank < 0) fprintf(stderr, " ?");
  for (int32_t i = 0; i < rank; i++) fprintf(stderr, " %lld", (long long)dims[i]);
  fprintf(stderr, rank == 0 ? " scalar\n" : "\n");
}

static _Noreturn void contradiction(const char *op, const char *what)
{
  fprintf(stderr, "%s: %s\n", op, what);
  abort();
}

/* Its shape is a claim of the graph's author, as with tn_graph_set_shape: no step checks it. */
static bool only_claims(const char *op) { return strcmp(op, "PlaceholderWithDefault") == 0; }

/* The inferred shapes must hold for the step's results. */
static void compare(tn_operation *op, const results *r, tn_error *err)
{
  if (only_claims(tn_operation_type(op))) return;
  for (size_t i = 0; i < r->n; i++) {
    int64_t dims[TN_MAX_RANK];
    int32_t rank;
    tn_status st = tn_output_shape((tn_output){ op, (int32_t)i }, dims, TN_MAX_RANK, &rank, err);
    if (st != TN_OK && st != TN_RESOURCE_EXHAUSTED) abort();
    if (st != TN_OK || rank < 0 || r->status != TN_OK) continue;
    const tn_tensor *t = r->at[i];
    bool same = rank == tn_tensor_rank(t);
    for (int32_t k = 0; same && k < rank; k++) same = dims[k] < 0 || dims[k] == tn_tensor_dims(t)[k];
    tn_dtype dtype = tn_operation_output_dtype(op, i);
    if (dtype > TN_DTYPE_REF) dtype -= TN_DTYPE_REF; /* a fetch returns the value */
    if (same && tn_tensor_dtype(t) == dtype) continue;
    print_shape("inferred", dims, rank);
    print_shape("step", tn_tensor_dims(t), tn_tensor_rank(t));
    contradiction(tn_operation_type(op), "a step gives another shape or type than was inferred");
  }
}

/* If so, some kernels do not check their other operands (as in TensorFlow), while the shape functions do. */
static bool has_nothing_to_do(const recipe *r)
{
  return r->n_in > 0 && (tn_tensor_elements(r->in[0].value) == 0 || tn_tensor_rank(r->in[0].value) == 0);
}

static void compare_steps(const recipe *r, const results *blind, const results *told, const tn_error *err)
{
  const char *op = tn_op_schema_name(r->schema);
  if (blind->status == TN_RESOURCE_EXHAUSTED || told->status == TN_RESOURCE_EXHAUSTED || only_claims(op)) return;
  if (blind->status == TN_DEADLINE_EXCEEDED || told->status == TN_DEADLINE_EXCEEDED) return; /* the step waits */
  if (blind->built && !told->built && has_nothing_to_do(r)) return;
  if ((blind->status == TN_OK) != (told->status == TN_OK)) {
    fprintf(stderr, "  %s\n", tn_error_message(err));
    contradiction(op, blind->status == TN_OK ? "known shapes make a valid operation an error"
                                             : "known shapes make an error a valid operation");
  }
  for (size_t i = 0; i < blind->n && blind->status == TN_OK; i++) {
    const tn_tensor *a = blind->at[i], *b = told->at[i];
    int32_t rank = tn_tensor_rank(a);
    if (rank == tn_tensor_rank(b) &&
        (rank == 0 || memcmp(tn_tensor_dims(a), tn_tensor_dims(b), (size_t)rank * sizeof(int64_t)) == 0))
      continue;
    print_shape("unknown", tn_tensor_dims(a), rank);
    print_shape("known", tn_tensor_dims(b), tn_tensor_rank(b));
    contradiction(op, "known shapes change those of the result");
  }
}

/* ---- one run ---- */

static void one(const recipe *r, bool knows, int level, results *out, tn_error *err)
{
  tn_graph *graph;
  tn_operation *op = NULL;
  feeds f;
  *out = (results){ .status = tn_graph_create(&graph, err) };
  if (out->status != TN_OK) return;
  out->status = build(r, graph, knows, &f, &op, err);
  check_status(out->status, err);
  out->built = op != NULL;
  if (op != NULL) {
    size_t n = tn_operation_n_outputs(op);
    if (!knows || !r->untrue) run(graph, "op", n, &f, level, out, err);
    results asked = *out;
    tn_error quiet = TN_ERROR_INIT;
    if (knows && r->untrue) asked = (results){ .status = TN_CANCELLED, .n = n < MOST_OUTPUTS ? n : MOST_OUTPUTS };
    compare(op, &asked, &quiet);
    tn_error_clear(&quiet);
  }
  tn_graph_unref(graph);
}

static void run_recipe(bytes *b)
{
  recipe r;
  results blind, told;
  tn_error blind_err = TN_ERROR_INIT, told_err = TN_ERROR_INIT;
  if (some_recipe(b, &r)) {
    one(&r, true, next(b) % 2, &told, &told_err);
    if (!r.untrue) {
      one(&r, false, 0, &blind, &blind_err);
      compare_steps(&r, &blind, &told, blind.status == TN_OK ? &told_err : &blind_err);
      results_free(&blind);
    }
    results_free(&told);
  }
  recipe_free(&r);
  tn_error_clear(&blind_err);
  tn_error_clear(&told_err);
}

/* ---- imported graphs ---- */

/* A tensor of zeros for a placeholder; unknown dimensions are small. */
static bool feed_of(tn_operation *op, feeds *f)
{
  int64_t dims[TN_MAX_RANK], n = 1;
  int32_t rank;
  if (f->n == MOST_INPUTS || tn_output_shape((tn_output){ op, 0 }, dims, TN_MAX_RANK, &rank, NULL) != TN_OK)
    return false;
  for (int32_t i = 0; i < rank; i++) {
    if (dims[i] < 0) dims[i] = 2;
    if (dims[i] > 4096 || (n *= dims[i]) > 4096) return false;
  }
  tn_tensor *t;
  if (tn_tensor_create(tn_operation_output_dtype(op, 0), dims, rank < 0 ? 0 : rank, &t, NULL) != TN_OK) return false;
  bytes none = { NULL, NULL };
  fill(&none, t);
  f->at[f->n] = tn_operation_name(op);
  f->tensors[f->n++] = t;
  return true;
}

static void run_graph(const uint8_t *data, size_t size)
{
  tn_graph *graph;
  tn_error err = TN_ERROR_INIT;
  feeds f = { .n = 0 };
  if (tn_graph_create(&graph, &err) != TN_OK) abort();
  tn_status st = tn_graph_import(graph, data, size, NULL, &err);
  check_status(st, &err);
  size_t n = tn_graph_n_operations(graph), tried = 0;
  for (size_t i = 0; i < n; i++) {
    tn_operation *op = tn_graph_operation(graph, i);
    const tn_op_schema *schema = tn_operation_schema(op);
    if (schema != NULL && (tn_op_schema_traits(schema) & TN_TRAIT_PLACEHOLDER) != 0) feed_of(op, &f);
  }
  for (size_t i = n; i-- > 0 && tried < 8;) {
    tn_operation *op = tn_graph_operation(graph, i);
    const tn_op_schema *schema = tn_operation_schema(op);
    const uint32_t none = TN_TRAIT_PLACEHOLDER | TN_TRAIT_CONSTANT;
    if (schema == NULL || (tn_op_schema_traits(schema) & none) != 0 || strlen(tn_operation_name(op)) > 70) continue;
    results r;
    run(graph, tn_operation_name(op), tn_operation_n_outputs(op), &f, (int)(i % 2), &r, &err);
    compare(op, &r, &err);
    results_free(&r);
    tried++;
  }
  for (size_t i = 0; i < f.n; i++) tn_tensor_unref(f.tensors[i]);
  tn_graph_unref(graph);
  tn_error_clear(&err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  bytes b = { data, data + size };
  if (size > 0 && data[0] == 'g')
    run_graph(data + 1, size - 1);
  else if (size > 0)
    run_recipe(&b);
  return 0;
}
