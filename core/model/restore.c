/* SPDX-License-Identifier: Apache-2.0 */
/* tn_session_restore: variables of any session from any checkpoint, by name. First each variable gets its key, then the
 * report is written, then the values are read, and only then is any variable assigned. */
#include <core/model/checkpoint.h>
#include <core/model/model.h>
#include <core/model/report.h>

#include <string.h>

/* The variables of one restore, and what they are restored from. */
typedef struct restoring {
  const tn_checkpoint *checkpoint;
  tn_restore_report *report;
  tn__saver saver;     /* that of the session's model, empty if there is no usual one */
  tn_checkpoint *own;  /* the one that the model was saved with; NULL: none */
  tn_operation **ops;  /* n of them; owned */
  size_t n;
  tn__restored *items; /* the variables with a value that fits; room for n; owned */
  size_t n_items;
  tn__map used;        /* keys */
  tn__map by_variable; /* variable (its address) -> item of the saver */
  tn__map longer;      /* key of an item of the saver -> the entry with a longer key, or &several; made at first use */
  size_t longest;      /* of these keys, in bytes */
} restoring;

/* Stands for several entries. */
static const tn__stored several;

static void fini(restoring *r)
{
  tn__saver_fini(&r->saver);
  tn_checkpoint_close(r->own);
  tn__free(r->ops, r->n * sizeof *r->ops);
  tn__free(r->items, r->n * sizeof *r->items);
  tn__map_fini(&r->used);
  tn__map_fini(&r->by_variable);
  tn__map_fini(&r->longer);
}

/* ---- which variables ---- */

static tn_status check_options(const tn_restore_options *o, tn_error *err)
{
  if (o == NULL) return TN_OK;
  if (!TN_HAS_FIELD(o, tn_restore_options, n))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_restore_options.struct_size is %zu, wanted at least %zu",
                        o->struct_size, TN_SIZE_TO(tn_restore_options, n));
  if ((o->flags & ~(uint32_t)TN_RESTORE_PARTIAL) != 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_restore_options.flags has unknown bits 0x%x", o->flags);
  if (o->n > 0 && o->variables == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_restore_options.variables is NULL, but n is %zu", o->n);
  for (size_t i = 0; i < o->n; i++)
    if (o->variables[i] == NULL || (o->keys != NULL && o->keys[i] == NULL))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_restore_options.%s[%zu] is NULL",
                          o->variables[i] == NULL ? "variables" : "keys", i);
  return TN_OK;
}

/* Finds the named variables. */
static tn_status find_named(restoring *r, tn_graph *graph, const tn_restore_options *o, tn_error *err)
{
  r->ops = tn__zalloc(o->n * sizeof *r->ops);
  if (r->ops == NULL && o->n > 0) return tn__no_memory(err, "variables to restore", o->n);
  r->n = o->n;
  for (size_t i = 0; i < o->n; i++) {
    tn_operation *op = tn_graph_find(graph, o->variables[i]);
    if (op == NULL)
      return tn_error_set(err, TN_NOT_FOUND, "the graph has no variable '%.200s'", o->variables[i]);
    if (!tn__is_variable(op))
      return tn_error_set(err, TN_INVALID_ARGUMENT,
                          "'%s' is a node of type %s, wanted a variable (VarHandleOp, VariableV2)",
                          tn_operation_name(op), tn_operation_type(op));
    r->ops[i] = op;
  }
  return TN_OK;
}

/* The variables that the saver of the model restores. The graph may have others, which nothing gives a value. */
static tn_status find_saved(restoring *r, tn_error *err)
{
  r->ops = tn__zalloc(r->saver.n * sizeof *r->ops);
  if (r->ops == NULL) return tn__no_memory(err, "variables to restore", r->saver.n);
  r->n = r->saver.n;
  for (size_t i = 0; i < r->n; i++) r->ops[i] = r->saver.items[i].variable;
  return TN_OK;
}

static tn_status find_variables(restoring *r, tn_session *session, const tn_restore_options *o, tn_error *err)
{
  tn_graph *graph;
  tn_status st = tn__session_need_graph(session, &graph, err);
  if (st != TN_OK) return st;
  if (o != NULL && o->variables != NULL) st = find_named(r, graph, o, err);
  else if (r->saver.n > 0) st = find_saved(r, err);
  else st = tn__variables_list(graph, &r->ops, &r->n, err);
  if (st != TN_OK) return st;
  r->items = tn__zalloc(r->n * sizeof *r->items);
  return r->items == NULL && r->n > 0 ? tn__no_memory(err, "variables to restore", r->n) : TN_OK;
}

/* Opens the checkpoint that a SavedModel has. It may be missing, or damaged: then nothing is known of its names. */
static tn_status open_own(restoring *r, const tn_model *model, tn_error *err)
{
  static const char variables[] = "/variables/variables";
  if (model->kind != TN_MODEL_SAVED || r->saver.n == 0) return TN_OK;
  size_t n = strlen(model->folder);
  char *path = tn__alloc(n + sizeof variables);
  if (path == NULL) return tn__no_memory(err, "a path", n + sizeof variables);
  memcpy(path, model->folder, n);
  memcpy(path + n, variables, sizeof variables);
  tn_status st = tn_checkpoint_open(path, &r->own, err);
  tn__strfree(path);
  if (st == TN_RESOURCE_EXHAUSTED) return st;
  tn__error_reset(err);
  return TN_OK;
}

static tn_status index_saver(restoring *r, tn_error *err)
{
  for (size_t i = 0; i < r->saver.n; i++) {
    tn__restored *item = &r->saver.items[i];
    if (!tn__map_put(&r->by_variable, (const char *)&item->variable, sizeof item->variable, item, NULL))
      return tn__no_memory(err, "variables to restore", r->saver.n);
    if (item->key.size > r->longest) r->longest = item->key.size;
  }
  return TN_OK;
}

/* The item of the model's saver for a variable; NULL: there is none. */
static const tn__restored *item_of(const restoring *r, tn_operation *op)
{
  return tn__map_get(&r->by_variable, (const char *)&op, sizeof op);
}

/* The keys under which the model's own saver stores variables help where a checkpoint has the same layout. */
static tn_status read_saver(restoring *r, tn_session *session, tn_error *err)
{
  const tn_model *model = tn_session_model(session);
  const tn__metagraph *m = model == NULL ? NULL : tn__model_meta(model);
  if (m == NULL || m->saver_restore == NULL || m->saver_filename == NULL) return TN_OK;
  tn_status st = tn__saver_read(model, &r->saver, err);
  if (st == TN_OK && !r->saver.usual) tn__saver_fini(&r->saver);
  if (st == TN_OK) st = index_saver(r, err);
  return st == TN_OK ? open_own(r, model, err) : st;
}

/* ---- which values ---- */

/* Notes an entry under each part of its key that begins after a '/' and is a key of the saver. */
static tn_status note_longer(restoring *r, const tn__stored *e, const tn__map *keys, tn_error *err)
{
  size_t first = e->key_size > r->longest ? e->key_size - r->longest : 1;
  for (size_t at = first; at < e->key_size; at++) {
    void *old;
    if (e->key[at - 1] != '/' || tn__map_get(keys, e->key + at, e->key_size - at) == NULL) continue;
    if (!tn__map_put(&r->longer, e->key + at, e->key_size - at, (void *)e, &old) ||
        (old != NULL && !tn__map_put(&r->longer, e->key + at, e->key_size - at, (void *)&several, NULL)))
      return tn__no_memory(err, "keys of a restore", e->key_size);
  }
  return TN_OK;
}

static tn_status make_longer(restoring *r, tn_error *err)
{
  const tn__store *store = r->checkpoint->store;
  tn__map keys;
  tn_status st = TN_OK;
  tn__map_init(&keys);
  for (size_t i = 0; st == TN_OK && i < r->saver.n; i++)
    if (!tn__map_put(&keys, r->saver.items[i].key.data, r->saver.items[i].key.size, &r->saver.items[i], NULL))
      st = tn__no_memory(err, "keys of a restore", r->saver.n);
  for (size_t i = 0; st == TN_OK && i < store->n; i++) st = note_longer(r, &store->entries[i], &keys, err);
  tn__map_fini(&keys);
  r->longest = 0; /* made */
  return st;
}

/* The only tensor whose key is a path to this key: an object that was saved as a part of another one has a longer key.
 * *out is NULL if there is none, or several. */
static tn_status find_longer(restoring *r, tn__slice key, const tn__stored **out, tn_error *err)
{
  tn_status st = r->longest > 0 ? make_longer(r, err) : TN_OK;
  *out = st == TN_OK ? tn__map_get(&r->longer, key.data, key.size) : NULL;
  if (*out == &several) *out = NULL;
  return st;
}

/* The graph of the model's own checkpoint. Without it, or if it is damaged, nothing is known of the names. */
static tn_status own_graph(const restoring *r, const tn__object_graph **out, tn_error *err)
{
  *out = NULL;
  tn_status st = r->own == NULL ? TN_OK : tn__checkpoint_graph(r->own, out, err);
  if (st == TN_OK || st == TN_RESOURCE_EXHAUSTED) return st;
  tn__error_reset(err);
  return TN_OK;
}

/* Finds the value of a variable of an object-based model in a checkpoint with other keys: by the name that the variable
 * had in the program that saved the model, else by its key. *entry is NULL if there is none. */
static tn_status find_saved_value(restoring *r, tn__slice key, const tn__stored **entry, tn_error *err)
{
  const tn__object_graph *graph;
  tn_status st = own_graph(r, &graph, err);
  tn__slice name = graph == NULL ? (tn__slice){ "", 0 } : tn__object_graph_name_of(graph, key);
  char *text = name.size == 0 ? NULL : tn__strndup(name.data, name.size);
  if (st == TN_OK && text == NULL && name.size > 0) st = tn__no_memory(err, "the name of a variable", name.size);
  if (st == TN_OK && text != NULL) st = tn__checkpoint_named(r->checkpoint, text, entry, err);
  tn__strfree(text);
  return st == TN_OK && *entry == NULL ? find_longer(r, key, entry, err) : st;
}

/* Finds the value of variable i. *entry is NULL if there is none. */
static tn_status find_value(restoring *r, size_t i, const char *key, tn__restored *item, const tn__stored **entry,
                            tn_error *err)
{
  const tn__restored *saved = key == NULL ? item_of(r, r->ops[i]) : NULL;
  tn_status st = TN_OK;
  *item = (tn__restored){ .variable = r->ops[i], .spec = { "", 0 } };
  *entry = saved == NULL ? NULL : tn__store_find(r->checkpoint->store, saved->key);
  if (*entry != NULL) {
    *item = *saved;
    return TN_OK;
  }
  if (key != NULL) st = tn__checkpoint_locate(r->checkpoint, key, entry, err);
  else st = tn__checkpoint_named(r->checkpoint, tn_operation_name(r->ops[i]), entry, err);
  if (st == TN_OK && *entry == NULL && saved != NULL) st = find_saved_value(r, saved->key, entry, err);
  if (st == TN_OK && *entry != NULL) item->key = (tn__slice){ (*entry)->key, (*entry)->key_size };
  return st;
}

static tn_status report_misfit(restoring *r, const tn_operation *op, const tn__stored *e, tn_error *err)
{
  char text[512], found[160], wanted[160];
  tn_dtype dtype = TN_DTYPE_INVALID;
  const int64_t *dims = NULL;
  int32_t rank = -1;
  tn__variable_declared(op, &dtype, &dims, &rank, NULL);
  tn__snprintf(text, sizeof text, "%s %s in the checkpoint, %s %s wanted", tn_dtype_name(e->dtype),
               tn__format_shape(found, sizeof found, e->dims, e->rank), tn_dtype_name(dtype),
               tn__format_shape(wanted, sizeof wanted, dims, rank));
  return tn__restore_report_add(r->report, TN_RESTORE_MISFIT, tn_operation_name(op), text, err);
}

/* A value that an explicit key does not find is an error, unless the restore is partial. */
static tn_status take_variable(restoring *r, size_t i, const char *key, bool partial, tn_error *err)
{
  tn__restored item;
  const tn__stored *entry;
  const char *name = tn_operation_name(r->ops[i]);
  tn_status st = find_value(r, i, key, &item, &entry, err);
  if (st == TN_NOT_FOUND && partial) {
    tn__error_reset(err);
    st = TN_OK;
  }
  if (st != TN_OK) return st;
  if (entry == NULL) return tn__restore_report_add(r->report, TN_RESTORE_MISSING, name, key == NULL ? "" : key, err);
  if (!tn__map_put(&r->used, entry->key, entry->key_size, (void *)entry, NULL))
    return tn__no_memory(err, "keys of a restore", entry->key_size);
  if (!tn__restored_fits(&item, entry)) return report_misfit(r, r->ops[i], entry, err);
  r->items[r->n_items++] = item;
  return TN_OK;
}

static tn_status report_left_over(restoring *r, tn_error *err)
{
  const tn__store *store = r->checkpoint->store;
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < store->n; i++) {
    const tn__stored *e = &store->entries[i];
    if (tn__map_get(&r->used, e->key, e->key_size) != NULL || strcmp(e->key, TN__OBJECT_GRAPH_KEY) == 0) continue;
    st = tn__restore_report_add(r->report, TN_RESTORE_LEFT_OVER, e->key, "", err);
  }
  return st;
}

/* The error of a restore that is not partial, if a value is missing or does not fit. */
static tn_status check_report(const restoring *r, tn_error *err)
{
  const char *text, *prefix = r->checkpoint->store->prefix;
  size_t n = tn_restore_report_count(r->report, TN_RESTORE_MISSING);
  if (n > 0)
    return tn_error_set(err, TN_NOT_FOUND, "'%s' has no value for %zu of %zu variables, such as '%s'", prefix, n, r->n,
                        tn_restore_report_at(r->report, TN_RESTORE_MISSING, 0, NULL));
  n = tn_restore_report_count(r->report, TN_RESTORE_MISFIT);
  if (n == 0) return TN_OK;
  const char *name = tn_restore_report_at(r->report, TN_RESTORE_MISFIT, 0, &text);
  return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s' does not fit %zu of %zu variables, such as '%s': %s", prefix, n,
                      r->n, name, text);
}

static tn_status find_values(restoring *r, const tn_restore_options *o, tn_error *err)
{
  bool partial = o != NULL && (o->flags & TN_RESTORE_PARTIAL) != 0;
  const char *const *keys = o != NULL && o->variables != NULL ? o->keys : NULL;
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < r->n; i++)
    st = take_variable(r, i, keys == NULL ? NULL : keys[i], partial, err);
  if (st == TN_OK) st = report_left_over(r, err);
  return st == TN_OK && !partial ? check_report(r, err) : st;
}

/* ---- the call ---- */

/* The report is complete before anything is assigned, so that afterwards nothing can fail. */
static tn_status assign(restoring *r, tn_session *session, tn_error *err)
{
  bool fits = true;
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < r->n_items; i++)
    st = tn__restore_report_add(r->report, TN_RESTORED, tn_operation_name(r->items[i].variable), "", err);
  if (st == TN_OK)
    st = tn__restored_assign(session, r->checkpoint->store, r->items, r->n_items, &fits, err);
  if (st == TN_OK && !fits) /* only a slice is found not to fit this late */
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "'%s': a slice does not fit its variable",
                      r->checkpoint->store->prefix);
  if (st != TN_OK) r->report->lists[TN_RESTORED].n = 0;
  return st;
}

static tn_status restore(restoring *r, tn_session *session, const tn_restore_options *options, tn_error *err)
{
  tn_status st = read_saver(r, session, err);
  if (st == TN_OK) st = find_variables(r, session, options, err);
  if (st == TN_OK) st = find_values(r, options, err);
  return st == TN_OK ? assign(r, session, err) : st;
}

tn_status tn_session_restore(tn_session *session, tn_checkpoint *checkpoint, const tn_restore_options *options,
                             tn_restore_report **report, tn_error *err)
{
  restoring r = { .checkpoint = checkpoint };
  tn__error_reset(err);
  if (report != NULL) *report = NULL;
  if (session == NULL || checkpoint == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_session_restore: %s is NULL",
                        session == NULL ? "session" : "checkpoint");
  tn_status st = check_options(options, err);
  if (st == TN_OK) st = tn__session_enter(session, err);
  if (st != TN_OK) return st;
  tn__map_init(&r.used);
  tn__map_init(&r.by_variable);
  tn__map_init(&r.longer);
  st = tn__restore_report_create(&r.report, err);
  if (st == TN_OK) st = restore(&r, session, options, err);
  tn__session_leave(session);
  fini(&r);
  if (report != NULL) *report = r.report;
  else tn_restore_report_destroy(r.report);
  return st;
}
