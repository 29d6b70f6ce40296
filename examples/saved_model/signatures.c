/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the signatures of a model with their keys.
 *
 *   signatures FOLDER [TAG...] */
#include <inttypes.h>
#include <stdio.h>
#include <tenon/tenon.h>

static void print_endpoint(const char *what, const tn_model_endpoint *e)
{
  printf("  %s %s: %s [", what, e->key, tn_dtype_name(e->dtype));
  if (e->rank < 0) printf("any shape");
  for (int32_t i = 0; i < e->rank; i++) {
    if (i > 0) printf(", ");
    if (e->dims[i] < 0)
      printf("?");
    else
      printf("%" PRId64, e->dims[i]);
  }
  printf("], tensor %s%s\n", e->tensor, e->has_default ? ", has a default" : "");
}

static tn_status print_signatures(const tn_model *model, tn_error *err)
{
  tn_model_info info = { .struct_size = sizeof info };
  tn_status st = tn_model_info_of(model, &info, err);
  for (size_t i = 0; i < info.n_signatures && st == TN_OK; i++) {
    tn_model_signature s = { .struct_size = sizeof s };
    tn_model_endpoint e = { .struct_size = sizeof e };
    st = tn_model_signature_at(model, i, &s, err);
    if (st == TN_OK) printf("%s\n", s.name);
    for (size_t k = 0; st == TN_OK && k < s.n_inputs; k++)
      if ((st = tn_model_input_at(model, s.name, k, &e, err)) == TN_OK) print_endpoint("input", &e);
    for (size_t k = 0; st == TN_OK && k < s.n_outputs; k++)
      if ((st = tn_model_output_at(model, s.name, k, &e, err)) == TN_OK) print_endpoint("output", &e);
  }
  return st;
}

int main(int argc, char **argv)
{
  tn_error err = TN_ERROR_INIT;
  tn_model *model = NULL;
  tn_model_options options = { .struct_size = sizeof options };
  if (argc > 2) {
    options.tags = (const char *const *)(argv + 2);
    options.n_tags = (size_t)(argc - 2);
  }
  if (tn_model_open(argc > 1 ? argv[1] : "half_plus_two", &options, &model, &err) || print_signatures(model, &err))
    fprintf(stderr, "%s\n", tn_error_message(&err));
  int status = tn_error_code(&err) != TN_OK;
  tn_model_close(model);
  tn_error_clear(&err);
  return status;
}
