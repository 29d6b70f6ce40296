/* SPDX-License-Identifier: Apache-2.0 */
/* Names that the nodes of a file get in the graph: with a prefix, and with a number if the name is taken.
 *
 * A name is taken if a node has it, or if it is a scope: the name of a node begins with it and a slash. Both are looked
 * up in sorted lists of names, because a set of all scopes would be quadratic in the length of a hostile name. */
#include <core/formats/graphdef/import.h>

#include <stdlib.h>
#include <string.h>

/* Field numbers of GraphDef and NodeDef. */
enum { G_NODE = 1, N_NAME = 1 };

const tn_operation tn__import_left_out;

/* ---- sorted names ---- */

static int compare(tn__slice a, tn__slice b)
{
  size_t n = a.size < b.size ? a.size : b.size;
  int order = n == 0 ? 0 : memcmp(a.data, b.data, n);
  return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

static int compare_names(const void *a, const void *b) { return compare(*(const tn__slice *)a, *(const tn__slice *)b); }

static void sort(tn__slices *names)
{
  if (names->n > 1) qsort(names->at, names->n, sizeof *names->at, compare_names);
}

static bool begins_with(tn__slice text, tn__slice with)
{
  return text.size >= with.size && (with.size == 0 || memcmp(text.data, with.data, with.size) == 0);
}

/* The first name that is not below `key`; empty if there is none. */
static tn__slice at_least(const tn__slices *names, tn__slice key)
{
  size_t low = 0, high = names->n;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (compare(names->at[middle], key) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low < names->n ? names->at[low] : (tn__slice){ "", 0 };
}

/* Whether a node has this name or it is a scope. There must be room for a slash after the name. */
static bool is_taken(const tn__slices *names, char *name, size_t size)
{
  tn__slice node = { name, size }, scope = { name, size + 1 };
  char behind = name[size];
  if (size == 0 || names->n == 0) return false;
  if (tn__slice_equal(at_least(names, node), node)) return true;
  name[size] = '/';
  bool taken = begins_with(at_least(names, scope), scope);
  name[size] = behind;
  return taken;
}

/* Collects the names in the graph that begin with `with`. */
static tn_status list_taken(tn__importer *im, tn__slice with)
{
  for (size_t i = 0; i < im->first; i++) {
    const tn_operation *op = tn__graph_at(im->graph, i);
    tn__slice name = { op->name, op->name_size };
    if (begins_with(name, with) && !tn__import_add_slice(im, &im->names.taken, name)) return tn__import_no_memory(im);
  }
  sort(&im->names.taken);
  return TN_OK;
}

/* Collects the names in the file. */
static tn_status list_coming(tn__importer *im)
{
  tn__wire w = tn__wire_read(im->bytes);
  while (tn__wire_next(&w)) {
    if (!tn__wire_is(&w, G_NODE, TN__WIRE_BYTES)) continue;
    tn__slice name = { "", 0 };
    tn__wire node = tn__wire_read(w.bytes);
    while (tn__wire_next(&node))
      if (tn__wire_is(&node, N_NAME, TN__WIRE_BYTES)) name = node.bytes;
    if (!tn__import_add_slice(im, &im->names.coming, name)) return tn__import_no_memory(im);
  }
  sort(&im->names.coming);
  return TN_OK;
}

/* ---- unused names ---- */

enum { SUFFIX = 24 }; /* room for _, a number, a slash and a NUL */

/* Writes before + name to im->text, with room for a suffix. */
static tn_status put_text(tn__importer *im, tn__slice before, tn__slice name)
{
  size_t size;
  if (!tn__size_add(before.size, name.size, &size) || !tn__size_add(size, SUFFIX, &size) ||
      !tn__import_grow(im, (void **)&im->names.text, &im->names.text_room, size, 1))
    return tn__import_no_memory(im);
  if (before.size > 0) memcpy(im->names.text, before.data, before.size);
  if (name.size > 0) memcpy(im->names.text + before.size, name.data, name.size);
  im->names.text[before.size + name.size] = 0;
  return TN_OK;
}

/* Appends to the name in im->text, whose first `before` bytes are the prefix, the first number with which neither the
 * graph nor the file has the name. Returns the new size. Each existing name is skipped for at most one new name, so all
 * searches together take at most as many steps as there are names. */
static size_t number_text(tn__importer *im, size_t before, size_t size)
{
  for (unsigned long long k = 1;; k++) {
    size_t n = size + (size_t)tn__snprintf(im->names.text + size, SUFFIX, "_%llu", k);
    if (!is_taken(&im->names.taken, im->names.text, n) &&
        !is_taken(&im->names.coming, im->names.text + before, n - before))
      return n;
  }
}

static tn_status keep_text(tn__importer *im, size_t size, tn__slice *out)
{
  *out = (tn__slice){ tn__arena_string(&im->graph->arena, im->names.text, size), size };
  return out->data != NULL ? TN_OK : tn__import_no_memory(im);
}

/* Returns the numbered name for `name`, the same one each time: nodes are also renamed in attributes "_class". */
static tn_status uniquify(tn__importer *im, tn__slice name, tn__slice *out)
{
  const char *known = tn__map_get(&im->names.unique, name.data, name.size);
  if (known != NULL) {
    *out = tn__slice_of(known);
    return TN_OK;
  }
  size_t size = number_text(im, im->names.prefix.size, im->names.prefix.size + name.size);
  tn_status st = keep_text(im, size, out);
  if (st == TN_OK && (!tn__arena_charge(&im->graph->arena, TN__IMPORT_ENTRY) ||
                      !tn__map_put(&im->names.unique, name.data, name.size, (void *)out->data, NULL)))
    st = tn__import_no_memory(im);
  return st;
}

/* A name that is free keeps its form, with the prefix. */
tn_status tn__import_rename(tn__importer *im, tn__slice name, tn__slice *out)
{
  tn_status st = put_text(im, im->names.prefix, name);
  if (st != TN_OK) return st;
  size_t size = im->names.prefix.size + name.size;
  if (is_taken(&im->names.taken, im->names.text, size)) return uniquify(im, name, out);
  return keep_text(im, size, out);
}

/* Whether the name in a "_class" refers to a node of the file. With a prefix all names do. */
static bool is_coming(const tn__importer *im, tn__slice name)
{
  return im->names.prefix.size > 0 || tn__slice_equal(at_least(&im->names.coming, name), name);
}

/* Items of the form "loc:@NAME" are renamed; others are kept. A changed attribute loses its bytes, so an export
 * encodes it. */
tn_status tn__import_rename_class(tn__importer *im, tn_operation *op, const tn__attr_head *head, tn__attr *a)
{
  static const tn__slice location = { "loc:@", 5 };
  if (head->kind != TN_ATTR_LIST + TN_ATTR_STRING || head->mixed) return TN_OK;
  tn_status st = tn__attr_decode(head, im->file, &im->graph->arena, a, im->err);
  if (st != TN_OK) return st;
  a->lazy = 0;
  tn__slice *items = (tn__slice *)a->v.list.items; /* decoded above, so they may be changed */
  for (size_t i = 0; st == TN_OK && i < a->v.list.n; i++) {
    if (!begins_with(items[i], location)) continue;
    tn__slice old = { items[i].data + location.size, items[i].size - location.size }, name;
    if (old.size == 0 || !is_coming(im, old)) continue;
    st = tn__import_rename(im, old, &name);
    if (st == TN_OK && tn__slice_equal(name, old)) continue;
    if (st == TN_OK) st = put_text(im, location, name);
    if (st == TN_OK) st = keep_text(im, location.size + name.size, &items[i]);
    a->proto = (tn__slice){ NULL, 0 };
    op->edited = true;
  }
  return st;
}

/* ---- the prefix ---- */

/* Sets im->prefix, with a number if the options ask for an unused one. */
static tn_status make_prefix(tn__importer *im, tn__slice name)
{
  tn_status st = put_text(im, name, (tn__slice){ "", 0 });
  size_t size = name.size;
  if (st == TN_OK && (im->flags & TN_IMPORT_UNIQUIFY_PREFIX) != 0) {
    st = list_taken(im, name);
    if (st == TN_OK && is_taken(&im->names.taken, im->names.text, size)) size = number_text(im, 0, size);
    im->names.taken.n = 0;
  }
  if (st == TN_OK) {
    im->names.text[size] = '/';
    st = keep_text(im, size + 1, &im->names.prefix);
  }
  return st;
}

/* An import that changes no names needs no lists and no map: it looks into the graph's index. */
tn_status tn__import_begin_names(tn__importer *im)
{
  tn__slice prefix = tn__slice_of(im->options->prefix == NULL ? "" : im->options->prefix);
  tn__map_init(&im->names.nodes);
  tn__map_init(&im->names.unique);
  if (prefix.size > 0 && prefix.data[prefix.size - 1] == '/') prefix.size--;
  bool unique = (im->flags & TN_IMPORT_UNIQUIFY_NAMES) != 0;
  bool new_scope = prefix.size > 0 && (im->flags & TN_IMPORT_UNIQUIFY_PREFIX) != 0; /* no name in it can be taken */
  im->names.renames = unique || prefix.size > 0 || (im->flags & TN_IMPORT_SKIP_MAPPED_NODES) != 0;
  tn_status st = prefix.size > 0 ? make_prefix(im, prefix) : TN_OK;
  if (st == TN_OK && unique && !new_scope) {
    st = list_coming(im);
    if (st == TN_OK) st = list_taken(im, im->names.prefix);
  }
  return st;
}

void tn__import_end_names(tn__importer *im)
{
  tn__map_fini(&im->names.nodes);
  tn__map_fini(&im->names.unique);
  tn__free(im->names.taken.at, im->names.taken.room * sizeof *im->names.taken.at);
  tn__free(im->names.coming.at, im->names.coming.room * sizeof *im->names.coming.at);
  tn__free(im->names.text, im->names.text_room);
}

/* ---- looking for nodes ---- */

tn_operation *tn__import_find_new(const tn__importer *im, tn__slice name)
{
  if (im->names.renames) return tn__map_get(&im->names.nodes, name.data, name.size);
  tn_operation *op = tn__graph_find_staged(im->graph, name.data, name.size);
  return op != NULL && op->id >= im->first ? op : NULL;
}

tn_operation *tn__import_find(const tn__importer *im, tn__slice name)
{
  if (!im->names.renames) return tn__graph_find_staged(im->graph, name.data, name.size);
  tn_operation *op = tn__import_find_new(im, name);
  /* The file's node of this name has priority over the graph's, so wait until all of the file's nodes are known. */
  if (op != NULL || im->names.prefix.size > 0 || !im->all_read) return op;
  op = tn__graph_find_staged(im->graph, name.data, name.size);
  return op != NULL && op->id < im->first ? op : NULL;
}
