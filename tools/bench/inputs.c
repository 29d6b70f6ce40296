/* SPDX-License-Identifier: Apache-2.0 */
/* The feeds and fetches of `tenon bench`. Inputs that are not given are generated from the shapes of the placeholders,
 * identically in each run. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <tools/bench/bench.h>

static void add_input(bench *b, const char *name, size_t length, bool made)
{
  b->inputs = tool_grow(b->inputs, b->n_inputs, &b->input_room, sizeof(*b->inputs));
  bench_input *input = &b->inputs[b->n_inputs++];
  memset(input, 0, sizeof(*input));
  input->name = tool_alloc(length + 1, 1);
  memcpy(input->name, name, length);
  input->made = made;
}

static char *copy_of(const char *text)
{
  size_t size = strlen(text) + 1;
  return memcpy(tool_alloc(size, 1), text, size);
}

/* ---- given inputs ---- */

static tn_status given_input(bench *b, const char *argument, tn_output *fed, tn_error *err)
{
  const tool_lookup lookup = { &b->source, "feed", true, { b->source.signature.name, NULL } };
  size_t length = strcspn(argument, "="), i = b->n_inputs;
  tool_tensor tensor;
  add_input(b, argument, length, false);
  bench_input *input = &b->inputs[i];
  if (argument[length] != '=')
    return tn_error_set(err, TN_INVALID_ARGUMENT, "--feed '%s': expected TENSOR=VALUE", argument);
  tn_status status = tool_source_find(&lookup, input->name, &tensor, err);
  fed[i] = tensor.output;
  for (size_t k = 0; k < i && status == TN_OK; k++)
    if (fed[k].op == fed[i].op && fed[k].index == fed[i].index)
      status = tn_error_set(err, TN_INVALID_ARGUMENT, "feed '%s': this tensor is fed more than once", input->name);
  if (status != TN_OK) return status;
  status = tool_make_feed(argument + length + 1, tensor.dtype, &input->value, err);
  if (status != TN_OK) tn_error_prefix(err, "feed '%s'", input->name);
  if (status == TN_OK && tensor.by_key) {
    free(input->name);
    input->name = copy_of(tensor.name);
  }
  return status;
}

/* ---- required inputs ---- */

typedef struct walk {
  const tool_model *model;
  const tn_output *fed;
  size_t n_fed;
  tool_node **stack;
  bool *reached;
  size_t n;
} walk;

static void visit(walk *w, const tn_operation *op)
{
  tool_node *node = op != NULL ? tool_model_node(w->model, op) : NULL;
  if (node == NULL || w->reached[node - w->model->nodes]) return;
  w->reached[node - w->model->nodes] = true;
  w->stack[w->n++] = node;
}

static void visit_output(walk *w, tn_output output)
{
  for (size_t i = 0; i < w->n_fed; i++)
    if (w->fed[i].op == output.op && w->fed[i].index == output.index) return;
  visit(w, output.op);
}

/* Adds the placeholders that fetches, targets and initialisers need and that are not fed. */
static void add_placeholders(bench *b, walk *w)
{
  while (w->n > 0) {
    const tool_node *node = w->stack[--w->n];
    for (size_t i = 0; i < tn_operation_n_inputs(node->op); i++) visit_output(w, tn_operation_input(node->op, i));
    for (size_t i = 0; i < tn_operation_n_control_inputs(node->op); i++)
      visit(w, tn_operation_control_input(node->op, i));
  }
  for (size_t i = 0; i < w->model->n; i++) {
    const tool_node *node = &w->model->nodes[i];
    const char *name = tn_operation_name(node->op);
    if (w->reached[i] && tool_node_is_input(node) && !tool_node_has_default(node))
      add_input(b, name, strlen(name), true);
  }
}

static tn_status find_wanted(bench *b, walk *w, tn_error *err)
{
  const bench_list *nodes[] = { &b->targets, &b->request->inits };
  static const char *const what[] = { "target", "init" };
  const tool_lookup lookup = { &b->source, "fetch", false, { b->source.signature.name, NULL } };
  tn_status status = TN_OK;
  tool_tensor tensor;
  tn_operation *op;
  for (size_t i = 0; i < b->fetches.n && status == TN_OK; i++) {
    status = tool_source_find(&lookup, b->fetches.items[i], &tensor, err);
    if (status == TN_OK) visit_output(w, tensor.output);
    b->fetches.items[i] = tensor.name;
  }
  for (size_t k = 0; k < 2; k++)
    for (size_t i = 0; i < nodes[k]->n && status == TN_OK; i++) {
      status = tool_find_node(b->source.graph, what[k], nodes[k]->items[i], &op, err);
      if (status == TN_OK) visit(w, op);
    }
  return status;
}

static void add_signature_outputs(bench *b)
{
  tn_model_endpoint output = { .struct_size = sizeof(output) };
  for (size_t i = 0; tn_model_output_at(b->source.model, b->source.signature.name, i, &output, NULL) == TN_OK; i++)
    bench_list_add(&b->fetches, output.key);
}

/* If the request names no fetches or targets, fetches the signature's outputs, or else all outputs that can run. */
static tn_status choose_outputs(bench *b, const tool_model *model, tn_error *err)
{
  for (size_t i = 0; i < b->request->fetches.n; i++) bench_list_add(&b->fetches, b->request->fetches.items[i]);
  for (size_t i = 0; i < b->request->targets.n; i++) bench_list_add(&b->targets, b->request->targets.items[i]);
  if (b->fetches.n + b->targets.n == 0 && b->source.signature.name != NULL) add_signature_outputs(b);
  if (b->fetches.n + b->targets.n > 0) return TN_OK;
  for (size_t i = 0; i < model->n; i++) {
    const tool_node *node = &model->nodes[i];
    if (node->blocked_by != NULL || !tool_node_is_output(node)) continue;
    for (size_t k = 0; k < tn_operation_n_outputs(node->op); k++) {
      tool_text name = { 0 };
      tool_text_printf(&name, "%s:%zu", tn_operation_name(node->op), k);
      b->made = tool_grow(b->made, b->n_made, &b->made_room, sizeof(*b->made));
      b->made[b->n_made++] = name.data;
      bench_list_add(&b->fetches, name.data);
    }
  }
  if (b->fetches.n > 0) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT,
                      "the model has no output that can run: select one with --fetch or --target");
}

/* ---- generated inputs ---- */

/* Pseudo-random numbers from 0 to 1, identical on all machines. */
static double next_number(uint64_t *state)
{
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(*state >> 33) / 2147483648.0;
}

/* Generates elements; false if the type is not supported. */
static bool fill(tn_tensor *tensor, tn_dtype dtype)
{
  int64_t least;
  uint64_t most, random = 1, one = 1;
  uint32_t bits;
  size_t n = (size_t)tn_tensor_elements(tensor), size = tn_dtype_size(dtype);
  char *data = tn_tensor_data(tensor);
  if (n == 0 || dtype == TN_STRING) return true; /* strings are initially empty */
  bool integer = tool_integer_range(dtype, &least, &most), small = tool_float_is_small(dtype);
  bool complex = dtype == TN_COMPLEX64 || dtype == TN_COMPLEX128;
  bool wide = dtype == TN_DOUBLE || dtype == TN_COMPLEX128;
  if (dtype == TN_BOOL) {
    for (size_t i = 0; i < n; i++) data[i] = (char)(i & 1);
  } else if (integer) {
    /* The first byte in memory: configure rejects big-endian machines. */
    memset(data, 0, n * size);
    for (size_t i = 0; i < n; i++) memcpy(data + i * size, &one, size < sizeof(one) ? size : sizeof(one));
  } else if (small) {
    for (size_t i = 0; i < n; i++)
      if (tool_float_encode(dtype, next_number(&random), &bits)) memcpy(data + i * size, &bits, size);
  } else if (wide) {
    for (size_t i = 0; i < (complex ? 2 * n : n); i++) ((double *)(void *)data)[i] = next_number(&random);
  } else if (dtype == TN_FLOAT || complex) {
    for (size_t i = 0; i < (complex ? 2 * n : n); i++) ((float *)(void *)data)[i] = (float)next_number(&random);
  } else {
    return false;
  }
  return true;
}

static const char *content_of(tn_dtype dtype)
{
  int64_t least;
  uint64_t most;
  if (dtype == TN_STRING) return "empty strings";
  if (dtype == TN_BOOL) return "false and true";
  return tool_integer_range(dtype, &least, &most) ? "ones" : "numbers from 0 to 1";
}

static tn_status make_input(bench *b, bench_input *input, tn_error *err)
{
  tn_output output;
  int32_t rank;
  tool_text shape = { 0 };
  tn_status status = tool_find_output(b->source.graph, "feed", input->name, &output, err);
  if (status != TN_OK) return status;
  int64_t *dims = tool_output_dims(output, &rank);
  tn_dtype dtype = tool_output_dtype(b->source.graph, output);
  if (rank < 0 || dtype == TN_DTYPE_INVALID)
    status = tn_error_set(err, TN_INVALID_ARGUMENT,
                          "input '%s': its %s is unknown, so no value can be generated: use --feed %s=VALUE",
                          input->name, rank < 0 ? "shape" : "type", input->name);
  for (int32_t d = 0; d < rank; d++)
    if (dims[d] < 0) dims[d] = d == 0 && b->request->batch > 0 ? (int64_t)b->request->batch : 1;
  if (status == TN_OK) {
    status = tn_tensor_create(dtype, dims, rank, &input->value, err);
    if (status != TN_OK) tn_error_prefix(err, "input '%s'", input->name);
  }
  if (status == TN_OK && !fill(input->value, dtype))
    status = tn_error_set(err, TN_UNIMPLEMENTED, "input '%s': cannot generate a value of type %s: use --feed %s=VALUE",
                          input->name, tn_dtype_name(dtype), input->name);
  if (status == TN_OK) {
    tool_text_shape(&shape, dims, rank);
    bench_note(b, "input '%s' is generated: %s %s, %s", input->name, tn_dtype_name(dtype), shape.data,
               content_of(dtype));
  }
  tool_text_fini(&shape);
  free(dims);
  return status;
}

/* --batch must be the first dimension of some input; otherwise items per step would be wrong. */
static tn_status check_batch(const bench *b, tn_error *err)
{
  if (b->request->batch == 0) return TN_OK;
  for (size_t i = 0; i < b->n_inputs; i++)
    if (tn_tensor_rank(b->inputs[i].value) > 0 && tn_tensor_dims(b->inputs[i].value)[0] == (int64_t)b->request->batch)
      return TN_OK;
  tool_text shape = { 0 };
  tool_text_printf(&shape, "%s", b->n_inputs > 0 ? "" : "the step has no inputs");
  if (b->n_inputs > 0) {
    tool_text_printf(&shape, "'%s' is ", b->inputs[0].name);
    tool_text_shape(&shape, tn_tensor_dims(b->inputs[0].value), tn_tensor_rank(b->inputs[0].value));
  }
  tn_status status =
      tn_error_set(err, TN_INVALID_ARGUMENT, "--batch %" PRIu64 ": no input has this first dimension: %s",
                   b->request->batch, shape.data);
  tool_text_fini(&shape);
  return status;
}

/* ---- the signature ---- */

static tn_status collect(bench *b, tn_output *fed, tn_error *err)
{
  tool_model model;
  tn_status status = TN_OK;
  for (size_t i = 0; i < b->request->feed_args.n && status == TN_OK; i++)
    status = given_input(b, b->request->feed_args.items[i], fed, err);
  if (status != TN_OK) return status;
  tool_model_scan(&model, b->source.graph);
  walk w = { &model, fed, b->n_inputs, tool_alloc(model.n, sizeof(tool_node *)), tool_alloc(model.n, sizeof(bool)), 0 };
  status = choose_outputs(b, &model, err);
  if (status == TN_OK) status = find_wanted(b, &w, err);
  if (status == TN_OK) add_placeholders(b, &w);
  free(w.stack);
  free(w.reached);
  tool_model_fini(&model);
  return status;
}

tn_status bench_make_signature(bench *b, tn_error *err)
{
  tn_output *fed = tool_alloc(b->request->feed_args.n, sizeof(*fed));
  tn_status status = collect(b, fed, err);
  for (size_t i = 0; i < b->n_inputs && status == TN_OK; i++)
    if (b->inputs[i].made) status = make_input(b, &b->inputs[i], err);
  if (status == TN_OK) status = check_batch(b, err);
  b->feed_names = tool_alloc(b->n_inputs, sizeof(*b->feed_names));
  b->feeds = tool_alloc(b->n_inputs, sizeof(tn_tensor *));
  for (size_t i = 0; i < b->n_inputs; i++) {
    b->feed_names[i] = b->inputs[i].name;
    b->feeds[i] = b->inputs[i].value;
  }
  free(fed);
  return status;
}

void bench_free_signature(bench *b)
{
  for (size_t i = 0; i < b->n_inputs; i++) {
    free(b->inputs[i].name);
    tn_tensor_unref(b->inputs[i].value);
  }
  for (size_t i = 0; i < b->n_made; i++) free(b->made[i]);
  free(b->inputs);
  free(b->made);
  free(b->feed_names);
  free(b->feeds);
  free(b->fetches.items);
  free(b->targets.items);
}
