/* SPDX-License-Identifier: Apache-2.0 */
/* One step, and the checks made for every step whatever its ops. */
#include "tests/oracle/run/oracle.h"

#include <stdlib.h>
#include <string.h>

void oracle_step_init(oracle_step *step, size_t n_feeds, size_t n_fetches, size_t n_targets)
{
  memset(step, 0, sizeof(*step));
  step->n_feeds = n_feeds;
  step->n_fetches = n_fetches;
  step->n_targets = n_targets;
  step->feed_names = oracle_alloc(n_feeds * sizeof(*step->feed_names));
  step->feeds = oracle_alloc(n_feeds * sizeof(*step->feeds));
  step->fetch_names = oracle_alloc(n_fetches * sizeof(*step->fetch_names));
  step->fetched = oracle_alloc(n_fetches * sizeof(*step->fetched));
  step->targets = oracle_alloc(n_targets * sizeof(*step->targets));
}

void oracle_step_free(oracle_step *step)
{
  for (size_t i = 0; i < step->n_feeds; i++) tn_tensor_unref(step->feeds[i]);
  for (size_t i = 0; i < step->n_fetches; i++) tn_tensor_unref(step->fetched[i]);
  free(step->feed_names);
  free(step->feeds);
  free(step->fetch_names);
  free(step->fetched);
  free(step->targets);
  tn_run_metadata_destroy(step->metadata);
  memset(step, 0, sizeof(*step));
}

/* Copies the bytes of the feeds before the step; NULL for feeds without plain bytes. */
static void **save_feeds(const oracle_step *step)
{
  void **saved = oracle_alloc(step->n_feeds * sizeof(*saved));
  for (size_t i = 0; i < step->n_feeds; i++) {
    size_t bytes = tn_tensor_bytes(step->feeds[i]);
    saved[i] = oracle_alloc(bytes);
    if (bytes) memcpy(saved[i], tn_tensor_data(step->feeds[i]), bytes);
  }
  return saved;
}

static bool feeds_untouched(const oracle_step *step, void **saved, oracle_result *result)
{
  bool ok = true;
  for (size_t i = 0; i < step->n_feeds; i++) {
    size_t bytes = tn_tensor_bytes(step->feeds[i]);
    if (ok && bytes && memcmp(saved[i], tn_tensor_data(step->feeds[i]), bytes) != 0)
      ok = oracle_fail(result, "the step wrote into its feed '%s'", step->feed_names[i]);
    free(saved[i]);
  }
  free(saved);
  return ok;
}

static bool fetches_keep_rules(const oracle_step *step, tn_status status, const tn_error *err, oracle_result *result)
{
  if (status != TN_OK && tn_error_message(err)[0] == 0)
    return oracle_fail(result, "the step failed with %s and no message", tn_status_name(status));
  if (status != tn_error_code(err))
    return oracle_fail(result, "the step returned %s and its error says %s", tn_status_name(status),
                       tn_status_name(tn_error_code(err)));
  for (size_t i = 0; i < step->n_fetches; i++) {
    tn_tensor *tensor = step->fetched[i];
    if (status != TN_OK && tensor)
      return oracle_fail(result, "the step failed with %s but returned '%s'", tn_status_name(status),
                         step->fetch_names[i]);
    if (status == TN_OK && !tensor) return oracle_fail(result, "the step is OK and '%s' is NULL", step->fetch_names[i]);
    if (status == TN_OK && tn_tensor_elements(tensor) > 0 && !tn_tensor_is_exclusive(tensor))
      return oracle_fail(result, "the fetched '%s' is not owned exclusively", step->fetch_names[i]);
  }
  return true;
}

bool oracle_step_run(tn_session *session, oracle_step *step, tn_status *status, tn_error *err, oracle_result *result)
{
  void **saved = save_feeds(step);
  tn_run_options options;
  tn_run_options_init(&options);
  if (step->metadata) options.trace_level = 1;
  *status = tn_session_run(session, &options, step->feed_names, step->feeds, step->n_feeds, step->fetch_names,
                           step->fetched, step->n_fetches, step->targets, step->n_targets, step->metadata, err);
  bool ok = feeds_untouched(step, saved, result);
  return fetches_keep_rules(step, *status, err, result) && ok;
}

void oracle_step_drop(oracle_step *step)
{
  for (size_t i = 0; i < step->n_fetches; i++) {
    tn_tensor_unref(step->fetched[i]);
    step->fetched[i] = NULL;
  }
}

/* Overwrites the tensors, so that earlier contents cannot pass as results. Strings and handles
 * are pointers, and are kept. */
static void spoil(const oracle_step *step)
{
  for (size_t i = 0; i < step->n_fetches; i++) {
    tn_dtype dtype = tn_tensor_dtype(step->fetched[i]);
    size_t bytes = tn_tensor_bytes(step->fetched[i]);
    if (bytes && dtype != TN_STRING && dtype != TN_RESOURCE && dtype != TN_VARIANT)
      memset(tn_tensor_data(step->fetched[i]), 0x5a, bytes);
  }
}

bool oracle_step_call(tn_session *session, oracle_step *step, tn_status *status, tn_error *err, oracle_result *result)
{
  tn_callable callable;
  *status = tn_session_make_callable(session, NULL, step->feed_names, step->n_feeds, step->fetch_names, step->n_fetches,
                                     step->targets, step->n_targets, &callable, err);
  if (*status != TN_OK) return oracle_fail_status(result, err, "making the callable");
  void **saved = save_feeds(step), **given = oracle_alloc(step->n_fetches * sizeof(*given));
  spoil(step);
  for (size_t i = 0; i < step->n_fetches; i++) given[i] = step->fetched[i];
  *status =
      tn_session_run_callable(session, callable, step->feeds, step->n_feeds, step->fetched, step->n_fetches, NULL, err);
  bool ok = feeds_untouched(step, saved, result);
  for (size_t i = 0; ok && i < step->n_fetches; i++)
    if (step->fetched[i] != given[i]) ok = oracle_fail(result, "'%s' is another tensor", step->fetch_names[i]);
  free(given);
  tn_error late = TN_ERROR_INIT;
  if (tn_session_release_callable(session, callable, &late) != TN_OK)
    ok = oracle_fail_status(result, &late, "releasing the callable");
  tn_error_clear(&late);
  return ok;
}

static bool set_options(const oracle_config *config, tn_session_options *options, tn_error *err)
{
  for (size_t i = 0; i < config->n_options; i++) {
    const char *text = config->options[i], *value = strchr(text, '=');
    char *field = oracle_format("%.*s", value == NULL ? (int)strlen(text) : (int)(value - text), text);
    tn_status st = tn_session_options_parse(options, field, value == NULL ? "" : value + 1, err);
    free(field);
    if (st != TN_OK) return false;
  }
  return true;
}

/* Cases write into folders below this one (tensor.c). */
static tn_status allow_scratch(tn_session_options *options, tn_error *err)
{
  const char *tmp = getenv("TMPDIR");
  return tn_session_options_add_write_folder(options, tmp && *tmp ? tmp : "/tmp", err);
}

/* Uses containers of its own, as cases use the same names for variables. */
bool oracle_open_session(const oracle_config *config, tn_graph *graph, tn_session **out, tn_error *err)
{
  tn_session_options *options = NULL;
  tn_session *session = NULL;
  *out = NULL;
  bool ok = tn_session_options_create(&options, err) == TN_OK &&
            tn_session_options_set_target(options, config->target, err) == TN_OK &&
            tn_session_options_set_int(options, "level", config->level, err) == TN_OK &&
            tn_session_options_set_bool(options, "isolate_session_state", 1, err) == TN_OK &&
            allow_scratch(options, err) == TN_OK && set_options(config, options, err) &&
            tn_session_create(options, &session, err) == TN_OK && tn_session_set_graph(session, graph, err) == TN_OK;
  tn_session_options_destroy(options);
  if (ok)
    *out = session;
  else
    tn_session_destroy(session);
  return ok;
}
