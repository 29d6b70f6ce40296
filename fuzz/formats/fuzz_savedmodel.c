/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes give a SavedModel or a status. What was read is sorted and complete; each MetaGraph can be chosen by its
 * tags, and is the same after it was written and read again. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <core/formats/file.h>
#include <core/formats/savedmodel/savedmodel.h>
#include <tenon/tenon.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char written[40]; /* name of a file in memory */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  (void)argc, (void)argv;
  int file = memfd_create("saved_model", 0);
  if (file < 0) abort();
  snprintf(written, sizeof written, "/proc/self/fd/%d", file);
  return 0;
}

static void check(bool ok)
{
  if (!ok) abort();
}

static void check_endpoints(const tn__endpoint *e, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    check(e[i].key != NULL && strchr(e[i].tensor, ':') != NULL && e[i].rank >= -1 && e[i].rank <= TN_MAX_RANK);
    check(i == 0 || strcmp(e[i - 1].key, e[i].key) < 0);
    for (int32_t k = 0; k < e[i].rank; k++) check(e[i].dims[k] >= -1);
  }
}

static void check_graph(const tn__metagraph *m)
{
  check(m->graph.data != NULL && m->version != NULL && m->git_version != NULL);
  for (size_t i = 1; i < m->n_tags; i++) check(strcmp(m->tags[i - 1], m->tags[i]) < 0);
  for (size_t i = 0; i < m->n_signatures; i++) {
    const tn__signature_def *s = &m->signatures[i];
    check(s->method_name != NULL && (i == 0 || strcmp(m->signatures[i - 1].name, s->name) < 0));
    check_endpoints(s->inputs, s->n_inputs);
    check_endpoints(s->outputs, s->n_outputs);
  }
  for (size_t i = 0; i < m->n_assets; i++) check(m->assets[i].tensor[0] != 0 && m->assets[i].filename[0] != 0);
}

/* The tags of a MetaGraph choose it, unless another one has the same. */
static void check_choice(const tn__saved_model *model, size_t i, tn_error *err)
{
  size_t found;
  if (model->graphs[i].n_tags == 0) return;
  tn_status st = tn__saved_model_choose(model, model->graphs[i].tags, model->graphs[i].n_tags, &found, err);
  check(st == TN_OK ? found == i : st == TN_INVALID_ARGUMENT);
  tn_error_clear(err);
}

static bool same_text(const char *a, const char *b) { return a == NULL ? b == NULL : b != NULL && strcmp(a, b) == 0; }

static void check_same(const tn__metagraph *a, const tn__metagraph *b)
{
  check(a->n_tags == b->n_tags && a->n_signatures == b->n_signatures && a->n_assets == b->n_assets);
  check(same_text(a->init_op, b->init_op) && same_text(a->train_op, b->train_op));
  check(same_text(a->saver_restore, b->saver_restore) && same_text(a->version, b->version));
  for (size_t i = 0; i < a->n_signatures; i++)
    check(a->signatures[i].n_inputs == b->signatures[i].n_inputs &&
          a->signatures[i].n_outputs == b->signatures[i].n_outputs);
}

static void write_back(const tn__metagraph *m, tn_graph *graph, tn_error *err)
{
  tn__saved_model *again;
  if (tn__saved_model_write(m, graph, written, err) != TN_OK) return;
  check(tn__saved_model_open(written, &again, err) == TN_OK);
  check_same(m, &again->graphs[0]);
  tn__saved_model_close(again);
}

static void import(const tn__saved_model *model, const tn__metagraph *m, tn_error *err)
{
  tn_graph *graph;
  check(tn_graph_create(&graph, err) == TN_OK);
  tn_status st = tn__graph_import_slice(graph, m->graph, model->file, model->name, NULL, err);
  if (st == TN_OK)
    write_back(m, graph, err);
  else
    check(tn_graph_n_operations(graph) == 0 && tn_error_message(err)[0] != 0);
  tn_graph_unref(graph);
  tn_error_clear(err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  tn_error err = TN_ERROR_INIT;
  tn_buffer *file;
  tn__saved_model *model;
  check(tn__bytes_copy(data, size, &file, &err) == TN_OK);
  tn__saved_model_fits((tn__slice){ (const char *)data, size });
  tn_status st = tn__saved_model_read(file, "fuzz.pb", &model, &err);
  tn_buffer_unref(file);
  if (st != TN_OK) {
    check(model == NULL && st != TN_INTERNAL && st != TN_UNKNOWN && tn_error_message(&err)[0] != 0);
    tn_error_clear(&err);
    return 0;
  }
  check(model->n_graphs > 0);
  for (size_t i = 0; i < model->n_graphs && i < 4; i++) {
    check_graph(&model->graphs[i]);
    check_choice(model, i, &err);
    import(model, &model->graphs[i], &err);
  }
  tn__saved_model_close(model);
  tn_error_clear(&err);
  return 0;
}
