/* SPDX-License-Identifier: Apache-2.0 */
/* A saver for a graph that has none, of the usual shape: SaveV2 writes the values of all variables, RestoreV2 reads
 * them, and an assignment for each variable depends on it. The nodes are added to a copy of the graph. */
#include <core/model/save.h>

#include <string.h>

/* The nodes while they are added. Names begin with `scope`, which the graph does not use. */
typedef struct adding {
  tn__saving *saving;
  tn_graph *copy;
  const tn__restored *items;
  size_t n;
  char scope[32];
} adding;

static const char *named(const adding *a, const char *name, char *buffer, size_t size)
{
  tn__snprintf(buffer, size, "%s/%s", a->scope, name);
  return buffer;
}

static tn_operation_builder *begin(const adding *a, const char *op, const char *name)
{
  char full[96];
  return tn_operation_begin(a->copy, op, named(a, name, full, sizeof full), 0);
}

static tn_status finish(tn_operation_builder *b, tn_operation **out, tn_error *err)
{
  if (b == NULL) return tn__no_memory(err, "a node of the saver", 0);
  return tn_operation_finish(b, out, err);
}

/* A constant of strings: rank 0 or 1. */
static tn_status add_texts(const adding *a, const char *name, int32_t rank, const char *const *texts,
                           const size_t *lengths, size_t n, tn_output *out, tn_error *err)
{
  const int64_t dims[] = { (int64_t)n };
  tn_tensor *value;
  tn_status st = tn_tensor_from_strings(dims, rank, texts, lengths, &value, err);
  if (st != TN_OK) return st;
  tn_operation_builder *b = begin(a, "Const", name);
  if (b != NULL) {
    tn_operation_set_type(b, "dtype", TN_STRING);
    tn_operation_set_tensor(b, "value", value);
  }
  out->index = 0;
  st = finish(b, &out->op, err);
  tn_tensor_unref(value);
  return st;
}

/* The tensor that is fed with the prefix of the files. */
static tn_status add_prefix(const adding *a, tn_output *out, tn_error *err)
{
  static const char *const model[] = { "model" };
  tn_output by_default;
  tn_status st = add_texts(a, "filename", 0, model, NULL, 1, &by_default, err);
  if (st != TN_OK) return st;
  tn_operation_builder *b = begin(a, "PlaceholderWithDefault", "Const");
  if (b != NULL) {
    tn_operation_add_input(b, by_default);
    tn_operation_set_shape(b, "shape", NULL, 0);
  }
  out->index = 0;
  return finish(b, &out->op, err);
}

static tn_operation *variable_of(const adding *a, size_t i)
{
  return tn_graph_find(a->copy, tn_operation_name(a->items[i].variable));
}

static bool is_handle(const tn_operation *op) { return strcmp(tn_operation_type(op), "VarHandleOp") == 0; }

/* The value of variable i: a variable that is passed by reference is its own value. */
static tn_status add_read(const adding *a, size_t i, tn_output *out, tn_error *err)
{
  char name[48];
  tn_operation *v = variable_of(a, i);
  tn_dtype dtype;
  *out = (tn_output){ v, 0 };
  if (!is_handle(v)) return TN_OK;
  tn_status st = tn_operation_attr_type(v, "dtype", &dtype, err);
  if (st != TN_OK) return st;
  tn__snprintf(name, sizeof name, "Read_%zu", i);
  tn_operation_builder *b = begin(a, "ReadVariableOp", name);
  if (b != NULL) {
    tn_operation_add_input(b, (tn_output){ v, 0 });
    tn_operation_set_type(b, "dtype", dtype);
  }
  return finish(b, &out->op, err);
}

/* SaveV2, and an identity of the prefix that waits for it. */
static tn_status add_save(const adding *a, const tn_output in[3], tn_error *err)
{
  tn_operation *save;
  tn_status st = TN_OK;
  tn_output *values = tn__alloc(a->n * sizeof *values);
  if (values == NULL) return tn__no_memory(err, "a saver", a->n);
  for (size_t i = 0; st == TN_OK && i < a->n; i++) st = add_read(a, i, &values[i], err);
  if (st == TN_OK) {
    tn_operation_builder *b = begin(a, "SaveV2", "SaveV2");
    for (int k = 0; b != NULL && k < 3; k++) tn_operation_add_input(b, in[k]);
    if (b != NULL) tn_operation_add_input_list(b, values, a->n);
    st = finish(b, &save, err);
  }
  tn__free(values, a->n * sizeof *values);
  if (st != TN_OK) return st;
  tn_operation_builder *b = begin(a, "Identity", "control_dependency");
  if (b != NULL) tn_operation_add_input(b, in[0]);
  if (b != NULL) tn_operation_add_control_input(b, save);
  return finish(b, NULL, err);
}

static tn_status add_assign(const adding *a, size_t i, tn_output value, tn_operation **out, tn_error *err)
{
  char name[48];
  tn_operation *v = variable_of(a, i);
  tn__snprintf(name, sizeof name, "Assign_%zu", i);
  tn_operation_builder *b = begin(a, is_handle(v) ? "AssignVariableOp" : "Assign", name);
  if (b != NULL) {
    tn_operation_add_input(b, (tn_output){ v, 0 });
    tn_operation_add_input(b, value);
  }
  return finish(b, out, err);
}

static tn_status restore_dtypes(const adding *a, tn_dtype *dtypes, tn_error *err)
{
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < a->n; i++)
    st = tn_operation_attr_type(a->items[i].variable, "dtype", &dtypes[i], err);
  return st;
}

/* RestoreV2, an assignment for each variable, and the restore op, which waits for all of them. */
static tn_status add_restore(const adding *a, const tn_output in[3], tn_error *err)
{
  tn_operation *restore = NULL, *assign;
  tn_dtype *dtypes = tn__alloc(a->n * sizeof *dtypes);
  tn_status st = dtypes == NULL ? tn__no_memory(err, "a saver", a->n) : restore_dtypes(a, dtypes, err);
  if (st == TN_OK) {
    tn_operation_builder *b = begin(a, "RestoreV2", "RestoreV2");
    for (int k = 0; b != NULL && k < 3; k++) tn_operation_add_input(b, in[k]);
    if (b != NULL) tn_operation_set_types(b, "dtypes", dtypes, a->n);
    st = finish(b, &restore, err);
  }
  tn__free(dtypes, a->n * sizeof *dtypes);
  if (st != TN_OK) return st;
  tn_operation_builder *all = begin(a, "NoOp", "restore_all");
  for (size_t i = 0; st == TN_OK && all != NULL && i < a->n; i++) {
    st = add_assign(a, i, (tn_output){ restore, (int32_t)i }, &assign, err);
    if (st == TN_OK) tn_operation_add_control_input(all, assign);
  }
  if (st == TN_OK) return finish(all, NULL, err);
  if (all != NULL) tn_operation_abandon(all);
  return st;
}

/* ---- the copy ---- */

static tn_status copy_graph(adding *a, tn_error *err)
{
  void *bytes = NULL;
  size_t size = 0;
  tn_status st = tn_graph_export(a->saving->graph, 0, &bytes, &size, err);
  if (st == TN_OK) st = tn_graph_create(&a->copy, err);
  if (st == TN_OK) st = tn_graph_import(a->copy, bytes, size, NULL, err);
  tn_free(bytes);
  return st;
}

/* Chooses a scope that no node of the graph has. */
static void choose_scope(adding *a)
{
  char name[96];
  for (unsigned i = 0;; i++) {
    if (i == 0) tn__snprintf(a->scope, sizeof a->scope, "save");
    else tn__snprintf(a->scope, sizeof a->scope, "save_%u", i);
    if (tn_graph_find(a->copy, a->scope) == NULL &&
        tn_graph_find(a->copy, named(a, "Const", name, sizeof name)) == NULL &&
        tn_graph_find(a->copy, named(a, "restore_all", name, sizeof name)) == NULL)
      return;
  }
}

static tn_status add_names(const adding *a, tn_output in[3], tn_error *err)
{
  const char **texts = tn__alloc(a->n * sizeof *texts);
  size_t *lengths = tn__alloc(a->n * sizeof *lengths);
  tn_status st = texts == NULL || lengths == NULL ? tn__no_memory(err, "a saver", a->n) : add_prefix(a, &in[0], err);
  for (size_t i = 0; st == TN_OK && i < a->n; i++) {
    texts[i] = a->items[i].key.data;
    lengths[i] = a->items[i].key.size;
  }
  if (st == TN_OK) st = add_texts(a, "tensor_names", 1, texts, lengths, a->n, &in[1], err);
  for (size_t i = 0; st == TN_OK && i < a->n; i++) texts[i] = "";
  for (size_t i = 0; st == TN_OK && i < a->n; i++) lengths[i] = 0;
  if (st == TN_OK) st = add_texts(a, "shape_and_slices", 1, texts, lengths, a->n, &in[2], err);
  tn__free(texts, a->n * sizeof *texts);
  tn__free(lengths, a->n * sizeof *lengths);
  return st;
}

static tn_status keep_name(tn__saving *s, const adding *a, const char *name, const char **out, tn_error *err)
{
  char full[96];
  named(a, name, full, sizeof full);
  *out = tn__arena_string(&s->arena, full, strlen(full));
  return *out == NULL ? tn__no_memory(err, "the names of a saver", sizeof full) : TN_OK;
}

static tn_status add_nodes(adding *a, tn_error *err)
{
  tn__saving *s = a->saving;
  tn_output in[3] = { { NULL, 0 } };
  tn_status st = copy_graph(a, err);
  if (st != TN_OK) return st;
  choose_scope(a);
  st = add_names(a, in, err);
  if (st == TN_OK) st = add_save(a, in, err);
  if (st == TN_OK) st = add_restore(a, in, err);
  if (st == TN_OK) st = keep_name(s, a, "Const:0", &s->meta.saver_filename, err);
  if (st == TN_OK) st = keep_name(s, a, "control_dependency:0", &s->meta.saver_save, err);
  if (st == TN_OK) st = keep_name(s, a, "restore_all", &s->meta.saver_restore, err);
  s->meta.saver_version = 2;
  return st;
}

/* ---- the variables ---- */

static tn_status list_variables(tn__saving *s, tn__saver *out, tn_error *err)
{
  tn_operation **ops;
  size_t n;
  tn_status st = tn__variables_list(s->graph, &ops, &n, err);
  if (st != TN_OK) return st;
  for (size_t i = 0; st == TN_OK && i < n; i++) {
    tn_tensor *value;
    st = tn__variable_value(s->session, ops[i], &value, err);
    if (st != TN_OK || value == NULL) continue;
    tn_tensor_unref(value);
    st = tn__saver_add(out, (tn__restored){ ops[i], tn__slice_of(tn_operation_name(ops[i])), { "", 0 } }, err);
  }
  tn__free(ops, n * sizeof *ops);
  return st;
}

tn_status tn__saver_add_new(tn__saving *s, tn__saver *out, tn_error *err)
{
  *out = (tn__saver){ .usual = true };
  s->meta.saver = (tn__slice){ NULL, 0 };
  s->meta.saver_filename = s->meta.saver_restore = s->meta.saver_save = NULL;
  tn_status st = list_variables(s, out, err);
  if (st != TN_OK || out->n == 0) return st;
  adding a = { .saving = s, .items = out->items, .n = out->n };
  st = add_nodes(&a, err);
  if (st != TN_OK) {
    tn_graph_unref(a.copy);
    return st;
  }
  s->held = s->graph; /* the items are operations of it */
  s->graph = a.copy;
  return TN_OK;
}
