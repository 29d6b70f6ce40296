/* SPDX-License-Identifier: Apache-2.0 */
/* From the keys of a call to the names of tensors. */
#include <core/base/near.h>
#include <core/model/model.h>

#include <string.h>

static const tn__endpoint *find(const tn__endpoint *list, size_t n, const char *key)
{
  size_t low = 0, high = n;
  while (low < high) { /* sorted by key */
    size_t middle = low + (high - low) / 2;
    int order = strcmp(list[middle].key, key);
    if (order == 0) return &list[middle];
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return NULL;
}

/* Names the keys there are; of a composite one that was asked for without a component, those of its components. */
static tn_status no_key(const tn_model *model, const tn__signature_def *s, bool outputs, const char *key, tn_error *err)
{
  const tn__endpoint *list = outputs ? s->outputs : s->inputs;
  size_t n = outputs ? s->n_outputs : s->n_inputs, length = strlen(key);
  const char *what = outputs ? "output" : "input";
  tn__text text;
  tn__near near;
  tn__text_init(&text, 2000);
  tn__near_init(&near, key);
  for (size_t i = 0; i < n; i++) {
    tn__near_offer(&near, list[i].key);
    if (strncmp(list[i].key, key, length) == 0 && list[i].key[length] == '/')
      tn__text_printf(&text, "%s'%s'", text.size == 0 ? " has several tensors: " : ", ", list[i].key);
  }
  bool composite = text.size > 0;
  if (!composite) tn__near_append(&near, &text);
  for (size_t i = 0; !composite && i < n; i++)
    tn__text_printf(&text, "%s'%s'", i == 0 ? "; its keys: " : ", ", list[i].key);
  tn_status st;
  if (composite)
    st = tn_error_set(err, TN_NOT_FOUND, "%s '%.200s' of signature '%s'%s", what, key, s->name, tn__text_get(&text));
  else
    st = tn_error_set(err, TN_NOT_FOUND, "signature '%s' of '%s' has no %s '%.200s'%s", s->name, model->path, what, key,
                      tn__text_get(&text));
  tn__text_fini(&text);
  return st;
}

tn_status tn__model_tensors(const tn_model *model, const tn__signature_def *s, bool outputs, const char *const *keys,
                            size_t n, const char **tensors, tn_error *err)
{
  for (size_t i = 0; i < n; i++) {
    const tn__endpoint *e = NULL;
    if (keys[i] == NULL)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_model_call: %s %zu is NULL", outputs ? "output" : "input", i);
    if (s != NULL && outputs) e = find(s->outputs, s->n_outputs, keys[i]);
    else if (s != NULL) e = find(s->inputs, s->n_inputs, keys[i]);
    tensors[i] = e != NULL ? e->tensor : keys[i];
    /* Without a signature the session checks the names. */
    if (s != NULL && e == NULL && tn__node_of(model->graph, keys[i]) == NULL)
      return no_key(model, s, outputs, keys[i], err);
  }
  return TN_OK;
}

bool tn__endpoint_has_default(const tn_model *model, const tn__endpoint *endpoint)
{
  const tn_operation *op = tn__node_of(model->graph, endpoint->tensor);
  return op != NULL && strcmp(tn_operation_type(op), "PlaceholderWithDefault") == 0;
}

tn_status tn__model_check_inputs(const tn_model *model, const tn__signature_def *s, const char *const *tensors,
                                 size_t n, tn_error *err)
{
  for (size_t i = 0; s != NULL && i < s->n_inputs; i++) {
    bool fed = false;
    for (size_t k = 0; k < n && !fed; k++) fed = strcmp(tensors[k], s->inputs[i].tensor) == 0;
    if (!fed && !tn__endpoint_has_default(model, &s->inputs[i]))
      return tn_error_wrap(err, TN_INVALID_ARGUMENT, "input '%s' of signature '%s' was not given", s->inputs[i].key,
                           s->name);
  }
  return TN_OK;
}
