/* SPDX-License-Identifier: Apache-2.0 */
/* Restoring the variables of a new session from its model's checkpoint. If the saver only assigns tensors of the
 * checkpoint to variables, that is done directly: all tensors are read, several at a time, then assigned. Otherwise the
 * saver's graph is run. Both give the same values. */
#include <core/model/model.h>
#include <tenon/checkpoint.h>

#include <string.h>

/* ---- with the saver's graph ---- */

static tn_status run_saver(tn_model *model, tn_session *session, const char *prefix, tn_error *err)
{
  const tn__metagraph *m = tn__model_meta(model);
  tn_tensor *path;
  tn_status st = tn_tensor_from_strings(NULL, 0, &prefix, NULL, &path, err);
  if (st != TN_OK) return st;
  const char *target = tn_operation_name(tn__node_of(model->graph, m->saver_restore)); /* tn__saver_read has found it */
  st = tn_session_run(session, NULL, &m->saver_filename, &path, 1, NULL, NULL, 0, &target, 1, NULL, err);
  tn_tensor_unref(path);
  return st;
}

/* ---- both ---- */

/* Whether the model can do without a checkpoint: its graph has no variables. */
static tn_status has_variables(const tn_model *model, bool *out, tn_error *err)
{
  tn_operation **ops;
  size_t n;
  tn_status st = tn__variables_list(model->graph, &ops, &n, err);
  *out = n > 0;
  if (st == TN_OK) tn__free(ops, n * sizeof *ops);
  return st;
}

/* A model without variables may lack the files of its checkpoint. Then *store is NULL. */
static tn_status open_store(const tn_model *model, tn__store **store, tn_error *err)
{
  bool needed = true;
  tn_status st = tn__store_open(model->checkpoint, store, err);
  if (st != TN_NOT_FOUND || !model->own_checkpoint) return st;
  if (has_variables(model, &needed, NULL) == TN_RESOURCE_EXHAUSTED)
    return tn__no_memory(err, "variables of a model", 0);
  if (needed)
    return tn_error_wrap(err, TN_NOT_FOUND, "the variables of '%s' cannot be restored", model->path);
  tn__error_reset(err);
  return TN_OK;
}

static tn_status restore_by_saver(tn_model *model, tn_session *session, tn__store *store, tn_error *err)
{
  tn__saver saver;
  bool done = false;
  tn_status st = tn__saver_read(model, &saver, err);
  if (st == TN_OK && saver.usual) st = tn__restored_assign(session, store, saver.items, saver.n, &done, err);
  if (st == TN_OK && !done) st = run_saver(model, session, store->prefix, err);
  tn__saver_fini(&saver);
  return st;
}

/* A checkpoint that the caller chose may have been written by another saver, with keys of its own: then variables are
 * restored by name. */
static tn_status restore_by_name(tn_model *model, tn_session *session, tn_error *err)
{
  tn_checkpoint *checkpoint;
  tn_status st = tn_checkpoint_open(model->checkpoint, &checkpoint, err);
  if (st == TN_OK) st = tn_session_restore(session, checkpoint, NULL, NULL, err);
  tn_checkpoint_close(checkpoint);
  return st;
}

/* Whether the checkpoint has all keys that the saver asks for. Those of a saver that is not usual are not known: its
 * graph is run, which also restores its tables. */
static tn_status has_keys(const tn_model *model, const tn__store *store, bool *out, tn_error *err)
{
  tn__saver saver;
  tn_status st = tn__saver_read(model, &saver, err);
  *out = st == TN_OK;
  for (size_t i = 0; *out && saver.usual && i < saver.n; i++) *out = tn__store_find(store, saver.items[i].key) != NULL;
  tn__saver_fini(&saver);
  return st;
}

tn_status tn__model_restore(tn_model *model, tn_session *session, tn_error *err)
{
  const tn__metagraph *m = tn__model_meta(model);
  tn__store *store = NULL;
  bool fits = true;
  if (model->checkpoint == NULL) return TN_OK;
  if (m == NULL || m->saver_restore == NULL || m->saver_filename == NULL) return restore_by_name(model, session, err);
  tn_status st = open_store(model, &store, err);
  if (st == TN_OK && store != NULL && !model->own_checkpoint) st = has_keys(model, store, &fits, err);
  if (st == TN_OK && store != NULL && fits) st = restore_by_saver(model, session, store, err);
  tn__store_close(store);
  return st == TN_OK && !fits ? restore_by_name(model, session, err) : st;
}
