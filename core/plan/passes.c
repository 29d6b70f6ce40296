/* SPDX-License-Identifier: Apache-2.0 */
/* Which passes there are, and their order. Those without a function of their own are the rewrites that families of ops bring
 * under the pass's name. */
#include <core/plan/passes.h>

#include <string.h>

typedef struct pass {
  const char *name;
  tn__pass_fn run;
  bool from_end; /* of rewrites: the order in which nodes are offered */
} pass;

static const pass passes[] = {
  { "control", tn__pass_control },
  { "identity", tn__pass_identity },
  { "fold", tn__pass_fold },
  { "common", tn__pass_common },
  { "algebra", NULL },
  { "batch_norm", NULL },
  { "fold", tn__pass_fold }, /* what the rewrites made of constants */
  { "cell", NULL },
  { "fuse", NULL },
  { "elementwise", NULL, true },
};

#define N_PASSES (sizeof passes / sizeof *passes)

const char *tn__pass_name(size_t i)
{
  for (size_t at = 0; at < N_PASSES; at++) {
    size_t first = 0;
    while (strcmp(passes[first].name, passes[at].name) != 0) first++;
    if (first == at && i-- == 0) return passes[at].name;
  }
  return NULL;
}

/* Whether a list of names between commas has this one. */
static bool is_listed(const char *list, const char *name)
{
  size_t size = strlen(name);
  for (const char *at = list; at != NULL && *at != 0; at += *at == ',') {
    size_t n = strcspn(at, ",");
    if (n == size && memcmp(at, name, size) == 0) return true;
    at += n;
  }
  return false;
}

tn_status tn__passes_check(const char *list, tn_error *err)
{
  for (const char *at = list; *at != 0; at += *at == ',') {
    size_t n = strcspn(at, ",");
    size_t i = 0;
    const char *name;
    while ((name = tn__pass_name(i)) != NULL && (strlen(name) != n || memcmp(name, at, n) != 0)) i++;
    if (name == NULL) {
      tn__text all;
      tn__text_init(&all, 1000);
      for (i = 0; (name = tn__pass_name(i)) != NULL; i++) tn__text_printf(&all, "%s%s", i == 0 ? "" : ", ", name);
      tn_error_set(err, TN_INVALID_ARGUMENT, "option disable_passes names '%.*s'; there are: %s", (int)(n > 99 ? 99 : n),
                   at, tn__text_get(&all));
      tn__text_fini(&all);
      return TN_INVALID_ARGUMENT;
    }
    at += n;
  }
  return TN_OK;
}

tn_status tn__passes_run(tn__ir *ir)
{
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < N_PASSES; i++) {
    size_t changes = 0;
    if (is_listed(ir->spec->disabled, passes[i].name)) continue;
    st = passes[i].run != NULL ? passes[i].run(ir, &changes)
                               : tn__rewrites_run(ir, passes[i].name, passes[i].from_end, &changes);
    if (st != TN_OK || changes == 0) continue;
    tn__ir_sweep(ir);
    tn_log(TN_LOG_DEBUG, "pass '%s': %zu changes, %zu nodes left", passes[i].name, changes, ir->n_live);
  }
  return st;
}
