/* SPDX-License-Identifier: Apache-2.0 */
/* The input map of an import, the control inputs that it adds, and its results.
 *
 * The input map is sorted by length of the node's name, name, and index, so that all outputs of a node are adjacent. */
#include <core/formats/graphdef/import.h>

#include <stdlib.h>
#include <string.h>

/* ---- the input map ---- */

static int compare_keys(tn__slice node, int32_t index, const tn__mapping *m)
{
  if (node.size != m->node.size) return node.size < m->node.size ? -1 : 1;
  int order = memcmp(node.data, m->node.data, node.size);
  return order != 0 ? order : (index > m->index) - (index < m->index);
}

static int compare_mappings(const void *a, const void *b)
{
  const tn__mapping *m = a;
  return compare_keys(m->node, m->index, b);
}

/* Finds control edges that are mapped to the same operation: a node must wait for it only once. */
static tn_status find_leaders(tn__importer *im)
{
  tn__map leaders;
  tn_status st = TN_OK;
  tn__map_init(&leaders);
  for (size_t i = 0; st == TN_OK && i < im->n_map; i++) {
    tn__mapping *m = &im->map[i];
    m->leader = i;
    if (m->index >= 0) continue;
    const char *key = (const char *)&m->target.op;
    const tn__mapping *there = tn__map_get(&leaders, key, sizeof m->target.op);
    if (there != NULL)
      m->leader = (size_t)(there - im->map);
    else if (!tn__map_put(&leaders, key, sizeof m->target.op, m, NULL))
      st = tn__import_no_memory(im);
  }
  tn__map_fini(&leaders);
  return st;
}

/* Makes the sorted table of the input map. The options have been checked. */
tn_status tn__import_begin_map(tn__importer *im)
{
  const tn_import_options *o = im->options;
  if (o->n_input_map == 0) return TN_OK;
  im->map = tn__alloc_array(o->n_input_map, sizeof *im->map);
  if (im->map == NULL) return tn__import_no_memory(im);
  im->n_map = o->n_input_map;
  for (size_t i = 0; i < im->n_map; i++) {
    tn__edge_name edge;
    tn__edge_name_parse(o->input_map[i].source, strlen(o->input_map[i].source), &edge);
    im->map[i] = (tn__mapping){ edge.node, edge.index, (uint32_t)i, o->input_map[i].target, 0, 0, false, false };
  }
  qsort(im->map, im->n_map, sizeof *im->map, compare_mappings);
  for (size_t i = 1; i < im->n_map; i++)
    if (compare_mappings(&im->map[i - 1], &im->map[i]) == 0)
      return tn_error_set(im->err, TN_INVALID_ARGUMENT, "%s: tn_import_options.input_map has '%.200s' twice", im->name,
                          o->input_map[im->map[i].number].source);
  return find_leaders(im);
}

void tn__import_end_map(tn__importer *im) { tn__free(im->map, im->n_map * sizeof *im->map); }

/* The index of the first entry that is not below the key; n_map if there is none. */
static size_t find_place(const tn__importer *im, tn__slice node, int32_t index)
{
  size_t low = 0, high = im->n_map;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (compare_keys(node, index, &im->map[middle]) > 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static tn__mapping *find_entry(const tn__importer *im, const tn__edge_name *edge)
{
  size_t at = find_place(im, edge->node, edge->index);
  return at < im->n_map && compare_keys(edge->node, edge->index, &im->map[at]) == 0 ? &im->map[at] : NULL;
}

tn__mapping *tn__import_mapped(tn__importer *im, const tn__edge_name *edge)
{
  tn__mapping *m = find_entry(im, edge);
  if (m != NULL) m->used = true;
  return m;
}

/* The entries of a node are adjacent, so it suffices to look at the first and the last output. */
bool tn__import_is_left_out(tn__importer *im, tn__slice name, const tn_operation *op)
{
  if (op->n_outputs == 0 || im->n_map < op->n_outputs) return false;
  size_t at = find_place(im, name, 0), n = op->n_outputs, control = find_place(im, name, -1);
  if (at + n > im->n_map || compare_keys(name, (int32_t)(n - 1), &im->map[at + n - 1]) != 0) return false;
  for (size_t i = control; i < at + n; i++) im->map[i].there = true;
  return true;
}

/* ---- control inputs ---- */

/* Whether the node depends on another node of the file. Then it follows the control inputs through that one. */
static bool waits_for_new(const tn__importer *im, const tn_operation *op)
{
  for (uint32_t i = 0; i < op->n_inputs; i++)
    if (op->inputs[i].op->id >= im->first && !tn__is_back_edge(op->inputs[i].op, op)) return true;
  for (uint32_t i = 0; i < op->n_controls; i++)
    if (op->controls[i]->id >= im->first) return true;
  return false;
}

static bool has_control(const tn_operation *op, const tn_operation *input)
{
  for (uint32_t i = 0; i < op->n_controls; i++)
    if (op->controls[i] == input) return true;
  return false;
}

/* Duplicates of existing control inputs are left out. */
tn_status tn__import_add_controls(tn__importer *im, tn_operation *op)
{
  if (waits_for_new(im, op)) return TN_OK;
  const tn_import_options *o = im->options;
  size_t most, bytes;
  if (!tn__size_add(op->n_controls, o->n_control_inputs, &most) || most > UINT32_MAX ||
      !tn__size_mul(most, sizeof *op->controls, &bytes))
    return tn__import_no_memory(im);
  tn_operation **controls = tn__arena_alloc(&im->graph->arena, bytes);
  if (controls == NULL) return tn__import_no_memory(im);
  if (op->n_controls > 0) memcpy(controls, op->controls, op->n_controls * sizeof *controls);
  op->controls = controls;
  for (size_t i = 0; i < o->n_control_inputs; i++) {
    if (has_control(op, o->control_inputs[i])) continue;
    controls[op->n_controls++] = o->control_inputs[i];
    op->edited = true;
  }
  return TN_OK;
}

/* ---- results ---- */

/* One heap block with all of its arrays and texts; the caller of the import owns it. */
struct tn_import_results {
  size_t bytes;        /* of the whole block */
  size_t first, n_new; /* id of the first new operation, and their number */
  const char *prefix;  /* without its slash */
  tn_output *outputs;
  tn_operation **operations;
  const char **unused; /* keys of the input map that no input has used */
  bool *missing;       /* for each of them: the file does not have the output */
  size_t n_outputs, n_operations, n_unused;
};

static tn_status return_error(tn__importer *im, const char *what, const char *name, const char *wrong)
{
  return tn_error_set(im->err, TN_INVALID_ARGUMENT, "%s: return %s '%.200s' %s", im->name, what, name, wrong);
}

/* A mapped output is returned as its target. */
static tn_status return_output(tn__importer *im, const char *name, tn_output *out)
{
  tn__edge_name edge;
  if (!tn__edge_name_parse(name, strlen(name), &edge) || edge.is_control)
    return return_error(im, "output", name, "is not an output name such as 'node:0'");
  const tn__mapping *mapped = find_entry(im, &edge);
  if (mapped != NULL) {
    *out = mapped->target;
    return TN_OK;
  }
  tn_operation *op = tn__import_find_new(im, edge.node);
  if (op == NULL) return return_error(im, "output", name, "belongs to no node of the file");
  if (op == &tn__import_left_out) return return_error(im, "output", name, "belongs to a node with fewer outputs");
  bool opaque = op->schema == NULL && op->n_outputs == 0;
  if (!opaque && (uint32_t)edge.index >= op->n_outputs)
    return tn_error_set(im->err, TN_INVALID_ARGUMENT, "%s: return output '%.200s': node '%s' (%s) has %u outputs",
                        im->name, name, op->name, op->type, op->n_outputs);
  *out = (tn_output){ op, edge.index };
  return TN_OK;
}

static tn_status return_operation(tn__importer *im, const char *name, tn_operation **out)
{
  *out = tn__import_find_new(im, tn__slice_of(name));
  if (*out == NULL) return return_error(im, "operation", name, "is not a node of the file");
  if (*out != &tn__import_left_out) return TN_OK;
  return return_error(im, "operation", name, "is left out because its outputs are mapped");
}

/* Whether the file has the output that a key names. */
static bool is_there(const tn__importer *im, const tn__mapping *m)
{
  if (m->there) return true;
  const tn_operation *op = tn__import_find_new(im, m->node);
  if (op == NULL || op == &tn__import_left_out) return false;
  return m->index < 0 || (op->schema == NULL && op->n_outputs == 0) || (uint32_t)m->index < op->n_outputs;
}

/* Allocates the block and sets the pointers to its parts, in the order of falling alignment. */
static tn_import_results *allocate_results(const tn__importer *im)
{
  const tn_import_options *o = im->options;
  size_t texts = im->names.prefix.size + 1, n_unused = 0, bytes = sizeof(tn_import_results), part;
  for (size_t i = 0; i < im->n_map; i++) {
    if (im->map[i].used) continue;
    texts += strlen(o->input_map[im->map[i].number].source) + 1;
    n_unused++;
  }
  const size_t sizes[][2] = { { o->n_return_outputs, sizeof(tn_output) },
                              { o->n_return_operations, sizeof(tn_operation *) },
                              { n_unused, sizeof(char *) },
                              { n_unused, sizeof(bool) },
                              { texts, 1 } };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    if (!tn__size_mul(sizes[i][0], sizes[i][1], &part) || !tn__size_add(bytes, part, &bytes)) return NULL;
  tn_import_results *r = tn__zalloc(bytes);
  if (r == NULL) return NULL;
  r->bytes = bytes;
  r->n_outputs = o->n_return_outputs;
  r->n_operations = o->n_return_operations;
  r->n_unused = n_unused;
  r->outputs = (tn_output *)(r + 1);
  r->operations = (tn_operation **)(r->outputs + r->n_outputs);
  r->unused = (const char **)(r->operations + r->n_operations);
  r->missing = (bool *)(r->unused + n_unused);
  r->prefix = (const char *)(r->missing + n_unused);
  return r;
}

/* Fills in the prefix and the unused keys. */
static void fill_texts(const tn__importer *im, tn_import_results *r)
{
  char *to = (char *)r + (r->prefix - (const char *)r);
  size_t n = im->names.prefix.size > 0 ? im->names.prefix.size - 1 : 0; /* without its slash */
  if (n > 0) memcpy(to, im->names.prefix.data, n);
  to += n + 1;
  n = 0;
  for (size_t i = 0; i < im->n_map; i++) {
    if (im->map[i].used) continue;
    const char *source = im->options->input_map[im->map[i].number].source;
    size_t size = strlen(source) + 1;
    r->unused[n] = memcpy(to, source, size);
    r->missing[n++] = !is_there(im, &im->map[i]);
    to += size;
  }
}

/* A name that cannot be returned is an error of the import. */
tn_status tn__import_make_results(tn__importer *im, tn_import_results **out)
{
  const tn_import_options *o = im->options;
  tn_import_results *r = allocate_results(im);
  if (r == NULL) return tn__import_no_memory(im);
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < r->n_outputs; i++) st = return_output(im, o->return_outputs[i], &r->outputs[i]);
  for (size_t i = 0; st == TN_OK && i < r->n_operations; i++)
    st = return_operation(im, o->return_operations[i], &r->operations[i]);
  r->first = im->first;
  r->n_new = im->graph->staged - im->first;
  if (st == TN_OK)
    *out = r;
  else
    tn_import_results_free(r);
  if (st == TN_OK) fill_texts(im, r);
  return st;
}

void tn_import_results_free(tn_import_results *results)
{
  if (results != NULL) tn__free(results, results->bytes);
}

tn_output tn_import_results_output(const tn_import_results *r, size_t i)
{
  return r != NULL && i < r->n_outputs ? r->outputs[i] : (tn_output){ NULL, 0 };
}

tn_operation *tn_import_results_operation(const tn_import_results *r, size_t i)
{
  return r != NULL && i < r->n_operations ? r->operations[i] : NULL;
}

size_t tn_import_results_new_operations(const tn_import_results *r, size_t *first)
{
  if (first != NULL) *first = r == NULL ? 0 : r->first;
  return r == NULL ? 0 : r->n_new;
}

const char *tn_import_results_prefix(const tn_import_results *r) { return r == NULL ? "" : r->prefix; }

size_t tn_import_results_n_unused(const tn_import_results *r) { return r == NULL ? 0 : r->n_unused; }

const char *tn_import_results_unused(const tn_import_results *r, size_t i, tn_bool *missing)
{
  bool there = r != NULL && i < r->n_unused;
  if (missing != NULL) *missing = there && r->missing[i];
  return there ? r->unused[i] : NULL;
}
