/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <tenon/tenon.h>

int main(int argc, char **argv)
{
  const float numbers[] = { 1, 2, 5 };
  const int64_t dims[] = { 3 };
  const char *input = "x", *output = "y";
  tn_error err = TN_ERROR_INIT;
  tn_model *model = NULL;
  tn_session *session = NULL;
  tn_tensor *x = NULL, *y = NULL;
  if (tn_model_open(argc > 1 ? argv[1] : "half_plus_two", NULL, &model, &err) ||
      tn_model_session(model, NULL, &session, &err) ||
      tn_tensor_from_data(TN_FLOAT, dims, 1, numbers, sizeof numbers, &x, &err) ||
      tn_model_call(session, "serving_default", &input, &x, 1, &output, &y, 1, &err))
    fprintf(stderr, "%s\n", tn_error_message(&err));
  else
    for (int i = 0; i < 3; i++) printf("%g -> %g\n", numbers[i], ((float *)tn_tensor_data(y))[i]);
  int status = tn_error_code(&err) != TN_OK;
  tn_tensor_unref(y);
  tn_tensor_unref(x);
  tn_session_destroy(session);
  tn_model_close(model);
  tn_error_clear(&err);
  return status;
}
