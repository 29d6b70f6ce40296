/* SPDX-License-Identifier: Apache-2.0 */
/* Trains the variables of a SavedModel by one of its signatures, and saves them in three ways.
 *
 *   train [FOLDER]
 *
 * The model is y = a x + b. The result is ckpt/model, a checkpoint; trained, a SavedModel; trained.pb,
 * a graph without variables. */
#include <stdio.h>
#include <sys/stat.h>
#include <tenon/tenon.h>

/* Makes the tensors x and t, the values that y shall have: t = 3 x + 1. */
static tn_status make_examples(tn_tensor **feeds, tn_error *err)
{
  const float x[] = { 0, 1, 2, 3 }, t[] = { 1, 4, 7, 10 };
  const int64_t dims[] = { 4 };
  tn_status st = tn_tensor_from_data(TN_FLOAT, dims, 1, x, sizeof x, &feeds[0], err);
  return st != TN_OK ? st : tn_tensor_from_data(TN_FLOAT, dims, 1, t, sizeof t, &feeds[1], err);
}

/* Runs the signature again and again. A callable finds keys and names once. */
static tn_status train(tn_session *session, tn_error *err)
{
  const char *inputs[] = { "x", "t" }, *output = "loss";
  tn_tensor *feeds[] = { NULL, NULL }, *loss = NULL;
  tn_callable step;
  tn_status st = make_examples(feeds, err);
  if (st == TN_OK) st = tn_model_callable(session, NULL, "train", inputs, 2, &output, 1, &step, err);
  for (int i = 0; i < 500 && st == TN_OK; i++) /* writes into the same loss from the second step on */
    st = tn_session_run_callable(session, step, feeds, 2, &loss, 1, NULL, err);
  if (st == TN_OK) printf("loss %g\n", *(float *)tn_tensor_data(loss));
  for (int i = 0; i < 2; i++) tn_tensor_unref(feeds[i]);
  tn_tensor_unref(loss);
  return st;
}

static tn_status save(tn_session *session, tn_error *err)
{
  tn_checkpoint_options options = { .struct_size = sizeof options, .update_state = 1, .keep = 5 };
  tn_graph *frozen = NULL;
  mkdir("ckpt", 0777);
  tn_status st = tn_session_save(session, "ckpt/model", NULL, 0, &options, err);
  if (st == TN_OK) st = tn_model_save(session, "trained", NULL, err);
  if (st == TN_OK) st = tn_model_freeze(session, "serving_default", 0, &frozen, err);
  if (st == TN_OK) st = tn_graph_export_file(frozen, "trained.pb", 0, err);
  tn_graph_unref(frozen);
  return st;
}

/* Restores what the checkpoint has, and prints what it has not. */
static tn_status restore(tn_session *session, const char *path, tn_error *err)
{
  static const char *const kinds[] = { "restored", "missing", "left over", "misfit" };
  tn_restore_options options = { .struct_size = sizeof options, .flags = TN_RESTORE_PARTIAL };
  tn_checkpoint *checkpoint = NULL;
  tn_restore_report *report = NULL;
  const char *name, *text;
  tn_status st = tn_checkpoint_open(path, &checkpoint, err);
  if (st == TN_OK) st = tn_session_restore(session, checkpoint, &options, &report, err);
  for (int kind = TN_RESTORED; kind <= TN_RESTORE_MISFIT && st == TN_OK; kind++)
    for (size_t i = 0; (name = tn_restore_report_at(report, kind, i, &text)) != NULL; i++)
      printf("%s: %s%s%s\n", kinds[kind], name, *text ? ": " : "", text);
  tn_restore_report_destroy(report);
  tn_checkpoint_close(checkpoint);
  return st;
}

int main(int argc, char **argv)
{
  tn_error err = TN_ERROR_INIT;
  tn_model *model = NULL;
  tn_session *first = NULL, *second = NULL;
  if (tn_model_open(argc > 1 ? argv[1] : "half_plus_two", NULL, &model, &err) ||
      tn_model_session(model, NULL, &first, &err) || train(first, &err) || save(first, &err) ||
      tn_model_session(model, NULL, &second, &err) || restore(second, "ckpt", &err))
    fprintf(stderr, "%s\n", tn_error_message(&err));
  int status = tn_error_code(&err) != TN_OK;
  tn_session_destroy(second);
  tn_session_destroy(first);
  tn_model_close(model);
  tn_error_clear(&err);
  return status;
}
