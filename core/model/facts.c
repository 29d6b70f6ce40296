/* SPDX-License-Identifier: Apache-2.0 */
/* What a model is: its signatures, tags, assets. */
#include <core/model/model.h>
#include <core/plan/plan.h>

#include <string.h>

static tn_status no_model(const char *call, const void *out, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %s is NULL", call, out == NULL ? "out" : "model");
}

/* Sets the fields that the caller's struct has. */
static tn_status give(void *out, const void *all, size_t size, size_t given, const char *type, tn_error *err)
{
  if (given < sizeof(size_t))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s.struct_size is %zu, wanted at least %zu", type, given,
                        sizeof(size_t));
  tn__copy_sized(out, all, size, given);
  return TN_OK;
}

tn_status tn_model_info_of(const tn_model *model, tn_model_info *out, tn_error *err)
{
  tn__error_reset(err);
  if (model == NULL || out == NULL) return no_model("tn_model_info_of", out, err);
  tn_model_info info = { .kind = model->kind, .path = model->path, .made_by = "", .git_version = "",
                         .checkpoint = model->checkpoint, .n_assets = model->n_assets };
  const tn__metagraph *m = tn__model_meta(model);
  if (m != NULL) {
    info.made_by = m->version;
    info.git_version = m->git_version;
    info.restore_op = m->saver_restore;
    info.init_op = m->init_op;
    info.n_tag_sets = model->saved->n_graphs;
    info.tag_set = model->chosen;
    info.n_signatures = m->n_signatures;
    info.stripped_defaults = m->stripped_defaults;
  }
  return give(out, &info, sizeof info, out->struct_size, "tn_model_info", err);
}

const char *tn_model_tag(const tn_model *model, size_t i, size_t k)
{
  if (model == NULL || model->saved == NULL || i >= model->saved->n_graphs) return NULL;
  const tn__metagraph *m = &model->saved->graphs[i];
  return k < m->n_tags ? m->tags[k] : NULL;
}

const char *tn_model_asset(const tn_model *model, size_t i, const char **tensor)
{
  if (tensor != NULL) *tensor = NULL;
  if (model == NULL || i >= model->n_assets) return NULL;
  if (tensor != NULL) *tensor = tn__model_meta(model)->assets[i].tensor;
  return model->assets[i];
}

tn_graph *tn_model_graph(const tn_model *model) { return model == NULL ? NULL : model->graph; }

/* ---- signatures ---- */

static const tn__signature_def *find(const tn__metagraph *m, const char *name)
{
  for (size_t i = 0; m != NULL && i < m->n_signatures; i++)
    if (strcmp(m->signatures[i].name, name) == 0) return &m->signatures[i];
  return NULL;
}

static tn_status no_signature(const tn_model *model, const char *name, tn_error *err)
{
  const tn__metagraph *m = tn__model_meta(model);
  tn__text list;
  tn__text_init(&list, 1000);
  for (size_t i = 0; m != NULL && i < m->n_signatures; i++)
    tn__text_printf(&list, "%s'%s'", i == 0 ? "" : ", ", m->signatures[i].name);
  const char *there = m == NULL || m->n_signatures == 0 ? "none" : tn__text_get(&list);
  tn_status st;
  if (name == NULL)
    st = tn_error_set(err, TN_NOT_FOUND, "'%s' has no signature 'serving_default'; name one of its signatures: %s",
                      model->path, there);
  else
    st = tn_error_set(err, TN_NOT_FOUND, "'%s' has no signature '%.200s'; its signatures: %s", model->path, name,
                      there);
  tn__text_fini(&list);
  return st;
}

tn_status tn__model_signature(const tn_model *model, const char *name, const tn__signature_def **out, tn_error *err)
{
  const tn__metagraph *m = tn__model_meta(model);
  *out = find(m, name == NULL ? "serving_default" : name);
  if (*out == NULL && name == NULL && m != NULL && m->n_signatures == 1) *out = &m->signatures[0];
  return *out != NULL ? TN_OK : no_signature(model, name, err);
}

static tn_status give_signature(const tn__signature_def *s, tn_model_signature *out, tn_error *err)
{
  const tn_model_signature all = { .name = s->name, .method_name = s->method_name, .n_inputs = s->n_inputs,
                                   .n_outputs = s->n_outputs };
  return give(out, &all, sizeof all, out->struct_size, "tn_model_signature", err);
}

tn_status tn_model_signature_at(const tn_model *model, size_t i, tn_model_signature *out, tn_error *err)
{
  tn__error_reset(err);
  if (model == NULL || out == NULL) return no_model("tn_model_signature_at", out, err);
  const tn__metagraph *m = tn__model_meta(model);
  size_t n = m == NULL ? 0 : m->n_signatures;
  if (i >= n) return tn_error_set(err, TN_OUT_OF_RANGE, "signature %zu of '%s', which has %zu", i, model->path, n);
  return give_signature(&m->signatures[i], out, err);
}

tn_status tn_model_signature_find(const tn_model *model, const char *name, tn_model_signature *out, tn_error *err)
{
  tn__error_reset(err);
  if (model == NULL || out == NULL) return no_model("tn_model_signature_find", out, err);
  const tn__signature_def *s;
  tn_status st = tn__model_signature(model, name, &s, err);
  return st == TN_OK ? give_signature(s, out, err) : st;
}

/* ---- inputs and outputs ---- */

static tn_status give_endpoint(const tn_model *model, const tn__endpoint *e, bool input, tn_model_endpoint *out,
                               tn_error *err)
{
  tn_model_endpoint all = { .key = e->key, .tensor = e->tensor, .dtype = e->dtype, .rank = e->rank, .dims = e->dims };
  all.has_default = input && tn__endpoint_has_default(model, e);
  return give(out, &all, sizeof all, out->struct_size, "tn_model_endpoint", err);
}

tn_status tn_model_input_at(const tn_model *model, const char *signature, size_t i, tn_model_endpoint *out,
                            tn_error *err)
{
  tn__error_reset(err);
  if (model == NULL || out == NULL) return no_model("tn_model_input_at", out, err);
  const tn__signature_def *s;
  tn_status st = tn__model_signature(model, signature, &s, err);
  if (st != TN_OK) return st;
  if (i < s->n_inputs) return give_endpoint(model, &s->inputs[i], true, out, err);
  return tn_error_set(err, TN_OUT_OF_RANGE, "input %zu of signature '%s', which has %zu", i, s->name, s->n_inputs);
}

tn_status tn_model_output_at(const tn_model *model, const char *signature, size_t i, tn_model_endpoint *out,
                             tn_error *err)
{
  tn__error_reset(err);
  if (model == NULL || out == NULL) return no_model("tn_model_output_at", out, err);
  const tn__signature_def *s;
  tn_status st = tn__model_signature(model, signature, &s, err);
  if (st != TN_OK) return st;
  if (i < s->n_outputs) return give_endpoint(model, &s->outputs[i], false, out, err);
  return tn_error_set(err, TN_OUT_OF_RANGE, "output %zu of signature '%s', which has %zu", i, s->name, s->n_outputs);
}
