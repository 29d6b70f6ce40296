/* SPDX-License-Identifier: Apache-2.0 */
/* case.json of a model: its inputs, its expected outputs, and the comparison with them. */
#include <bench/model.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *join(const char *folder, const char *file)
{
  size_t size = strlen(folder) + strlen(file) + 2;
  char *path = model_alloc(size);
  snprintf(path, size, "%s/%s", folder, file);
  return path;
}

/* The value repeated `times` times along dimension 0; scalars are unchanged. */
static tn_tensor *tiled(tn_tensor *t, int times)
{
  tn_error err = TN_ERROR_INIT;
  int64_t dims[TN_MAX_RANK];
  tn_tensor *out;
  int32_t rank = tn_tensor_rank(t);
  if (times <= 1 || rank == 0) return t;
  if (tn_tensor_dtype(t) == TN_STRING) model_fail("strings cannot be tiled");
  memcpy(dims, tn_tensor_dims(t), (size_t)rank * sizeof *dims);
  dims[0] *= times;
  model_check(tn_tensor_create(tn_tensor_dtype(t), dims, rank, &out, &err), &err, "tile");
  size_t bytes = tn_tensor_bytes(t);
  for (int i = 0; i < times; i++) memcpy((char *)tn_tensor_data(out) + (size_t)i * bytes, tn_tensor_data(t), bytes);
  tn_tensor_unref(t);
  return out;
}

static void read_tensors(model_tensors *out, const json_t *list, const char *folder, int tile)
{
  tn_error err = TN_ERROR_INIT;
  out->n = json_array_size(list);
  out->names = model_alloc((out->n + 1) * sizeof *out->names);
  out->values = model_alloc((out->n + 1) * sizeof(tn_tensor *));
  for (size_t i = 0; i < out->n; i++) {
    const json_t *entry = json_array_get(list, i);
    const char *file = json_string_value(json_object_get(entry, "file"));
    out->names[i] = json_string_value(json_object_get(entry, "tensor"));
    if (out->names[i] == NULL || file == NULL || json_object_get(entry, "offsets") != NULL)
      model_fail("%s/case.json: entry %zu has no tensor or file, or holds strings", folder, i);
    char *path = join(folder, file);
    model_check(tn_npy_load(path, TN_DTYPE_INVALID, &out->values[i], &err), &err, path);
    out->values[i] = tiled(out->values[i], tile);
    free(path);
  }
}

void model_case_read(model_case *c, const char *folder, int tile)
{
  json_error_t bad;
  char *path = join(folder, "case.json");
  json_t *json = json_load_file(path, 0, &bad);
  if (json == NULL) model_fail("%s:%d: %s", path, bad.line, bad.text);
  const char *format = json_string_value(json_object_get(json, "format"));
  const char *model = json_string_value(json_object_get(json, "model"));
  if (format == NULL || model == NULL || strcmp(format, "graphdef") != 0) model_fail("%s: not a GraphDef", path);
  c->json = json;
  c->model = join(folder, model);
  c->rtol = json_number_value(json_object_get(json, "rtol"));
  c->atol = json_number_value(json_object_get(json, "atol"));
  read_tensors(&c->feeds, json_object_get(json, "feeds"), folder, tile);
  read_tensors(&c->fetches, json_object_get(json, "fetches"), folder, tile);
  free(path);
}

static void free_tensors(model_tensors *t)
{
  for (size_t i = 0; i < t->n; i++) tn_tensor_unref(t->values[i]);
  free(t->values);
  free(t->names);
}

void model_case_free(model_case *c)
{
  free_tensors(&c->feeds);
  free_tensors(&c->fetches);
  free(c->model);
  json_decref(c->json);
}

static bool same_shape(const tn_tensor *a, const tn_tensor *b)
{
  size_t rank = (size_t)tn_tensor_rank(a);
  return tn_tensor_dtype(a) == tn_tensor_dtype(b) && tn_tensor_rank(a) == tn_tensor_rank(b) &&
         (rank == 0 || memcmp(tn_tensor_dims(a), tn_tensor_dims(b), rank * sizeof(int64_t)) == 0);
}

double model_case_compare(const model_case *c, tn_tensor *const *fetched)
{
  double worst = 0;
  for (size_t i = 0; i < c->fetches.n; i++) {
    const tn_tensor *wanted = c->fetches.values[i];
    const char *name = c->fetches.names[i];
    if (!same_shape(fetched[i], wanted)) model_fail("'%s' has another type or shape than expected", name);
    if (tn_tensor_dtype(wanted) != TN_FLOAT) {
      if (memcmp(tn_tensor_data(fetched[i]), tn_tensor_data(wanted), tn_tensor_bytes(wanted)) != 0)
        model_fail("'%s' has another value than expected", name);
      continue;
    }
    const float *got = tn_tensor_data(fetched[i]), *want = tn_tensor_data(wanted);
    for (int64_t k = 0; k < tn_tensor_elements(wanted); k++) {
      double limit = c->atol + c->rtol * fabs((double)want[k]), d = fabs((double)got[k] - (double)want[k]);
      if (isnan(got[k]) && isnan(want[k])) continue;
      if (!(d <= limit)) model_fail("'%s'[%lld] is %g, wanted %g", name, (long long)k, (double)got[k], (double)want[k]);
      if (d > worst * limit) worst = d / limit;
    }
  }
  return worst;
}
