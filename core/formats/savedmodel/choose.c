/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses a MetaGraph of a SavedModel by its tags. */
#include <core/formats/savedmodel/savedmodel.h>

#include <string.h>

/* The maximum length of lists in messages, in bytes; what is longer is cut. */
#define MOST_SETS 1500
#define MOST_SET 400
#define MOST_TAG 100

/* ---- messages ---- */

/* Appends a set of tags, "{serve, gpu}". */
static void put_set(tn__text *to, const char *const *tags, size_t n)
{
  size_t begin = to->size, i = 0;
  tn__text_puts(to, "{");
  for (; i < n && to->size - begin < MOST_SET; i++)
    tn__text_printf(to, "%s%.*s", i > 0 ? ", " : "", MOST_TAG, tags[i]);
  tn__text_puts(to, i < n ? ", ...}" : "}");
}

/* Appends the sets of all MetaGraphs. */
static void put_sets(tn__text *to, const tn__saved_model *model)
{
  size_t begin = to->size, i = 0;
  for (; i < model->n_graphs && to->size - begin < MOST_SETS; i++) {
    tn__text_puts(to, i > 0 ? ", " : "");
    put_set(to, model->graphs[i].tags, model->graphs[i].n_tags);
  }
  if (i < model->n_graphs) tn__text_puts(to, ", ...");
}

/* Sets an error that lists the wanted tags, if n > 0, and those that there are. */
static tn_status refuse(const tn__saved_model *model, tn_status code, const char *what, const char *const *tags,
                        size_t n, tn_error *err)
{
  tn__text text;
  tn__text_init(&text, 2 * (MOST_SETS + MOST_SET + 2 * MOST_TAG));
  tn__text_puts(&text, what);
  if (n > 0) tn__text_puts(&text, " ");
  if (n > 0) put_set(&text, tags, n);
  tn__text_puts(&text, "; there are: ");
  put_sets(&text, model);
  tn_status st = text.failed ? tn__no_memory(err, "message", MOST_SETS)
                             : tn_error_set(err, code, "%s: %s", model->name, tn__text_get(&text));
  tn__text_fini(&text);
  return st;
}

/* ---- sets ---- */

static bool has(const char *const *tags, size_t n, const char *tag)
{
  for (size_t i = 0; i < n; i++)
    if (strcmp(tags[i], tag) == 0) return true;
  return false;
}

/* Whether the MetaGraph has exactly these tags, which may have duplicates. */
static bool fits(const tn__metagraph *m, const char *const *tags, size_t n)
{
  if (m->n_tags > n) return false;
  for (size_t i = 0; i < m->n_tags; i++)
    if (!has(tags, n, m->tags[i])) return false;
  for (size_t i = 0; i < n; i++)
    if (!has(m->tags, m->n_tags, tags[i])) return false;
  return true;
}

tn_status tn__saved_model_choose(const tn__saved_model *model, const char *const *tags, size_t n, size_t *out,
                                 tn_error *err)
{
  static const char *const serve[] = { "serve" };
  size_t found = 0;
  *out = 0;
  if (n == 0 && model->n_graphs == 1) return TN_OK;
  for (size_t i = 0; i < n; i++)
    if (tags[i] == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: tag %zu is NULL", model->name, i);
  const char *const *wanted = n == 0 ? serve : tags;
  size_t n_wanted = n == 0 ? 1 : n;
  for (size_t i = 0; i < model->n_graphs; i++) {
    if (!fits(&model->graphs[i], wanted, n_wanted)) continue;
    if (found++ == 0) *out = i;
  }
  if (found == 1) return TN_OK;
  *out = 0;
  if (found > 1)
    return refuse(model, TN_INVALID_ARGUMENT, "several MetaGraphs have exactly the tags", wanted, n_wanted, err);
  if (n > 0) return refuse(model, TN_NOT_FOUND, "no MetaGraph has exactly the tags", tags, n, err);
  return refuse(model, TN_INVALID_ARGUMENT, "tags must be given: several MetaGraphs, and none with only 'serve'",
                NULL, 0, err);
}
