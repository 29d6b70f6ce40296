/* SPDX-License-Identifier: Apache-2.0 */
/* Which passes there are, and their order. Those without a function of their own are the rewrites that families of ops bring
 * under the pass's name. */
#include <core/compile/ir/passes.h>

#include <string.h>

typedef struct pass {
  const char *name, *about;
  tn__pass_fn run;
  bool from_end; /* of rewrites: the order in which nodes are offered */
} pass;

static const pass passes[] = {
  { "inline", "functions that are called become part of the plan", tn__pass_inline, false },
  { "control", "control edges that hold nothing up go", tn__pass_control, false },
  { "identity", "what hands its inputs on is its inputs", tn__pass_identity, false },
  { "common", "nodes that compute the same are one node", tn__pass_common, false }, /* so that they are folded once */
  { "fold", "what has only constant inputs is computed once", tn__pass_fold, false },
  { "common", NULL, tn__pass_common, false },
  { "algebra", "what changes nothing goes: x*1, reshapes and transposes in a row, paddings in front of convolutions", NULL,
    false },
  { "batch_norm", "normalisations by constants go into the filters in front of them", NULL, false },
  { "fold", NULL, tn__pass_fold, false }, /* what the rewrites made of constants */
  { "cell", "the steps of recurrent cells become one node each", NULL, false },
  { "layer", "the steps of a recurrent layer become one node", NULL, true },
  { "fuse", "biases, residuals and activations go into the product in front of them", NULL, false },
  { "elementwise", "elementwise operations in a row become one node", NULL, true },
};

#define N_PASSES (sizeof passes / sizeof *passes)

/* The first turn of pass i; NULL past the end. */
static const pass *first_turn(size_t i)
{
  for (size_t at = 0; at < N_PASSES; at++) {
    size_t first = 0;
    while (strcmp(passes[first].name, passes[at].name) != 0) first++;
    if (first == at && i-- == 0) return &passes[at];
  }
  return NULL;
}

const char *tn__pass_name(size_t i)
{
  const pass *p = first_turn(i);
  return p == NULL ? NULL : p->name;
}

const char *tn__pass_about(size_t i)
{
  const pass *p = first_turn(i);
  return p == NULL ? NULL : p->about;
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

static tn_status run(tn__ir *ir, const pass *p)
{
  if (!tn__grow((void **)&ir->passes, &ir->pass_room, ir->n_passes + 1, sizeof *ir->passes)) return tn__ir_no_memory(ir);
  tn__pass_note *note = &ir->passes[ir->n_passes++];
  *note = (tn__pass_note){ .name = p->name, .nodes = (uint32_t)ir->n_live, .first_rewrite = (uint32_t)ir->n_rewrites,
                           .off = tn__pass_is_off(ir->spec, p->name) };
  size_t changes = 0;
  if (note->off) return TN_OK;
  tn_status st = p->run != NULL ? p->run(ir, &changes) : tn__rewrites_run(ir, p->name, p->from_end, &changes);
  if (st != TN_OK || changes == 0) return st;
  tn__ir_sweep(ir);
  note->changes = (uint32_t)changes;
  note->nodes = (uint32_t)ir->n_live;
  note->n_rewrites = (uint32_t)ir->n_rewrites - note->first_rewrite;
  tn_log(TN_LOG_DEBUG, "pass '%s': %zu changes, %zu nodes left", p->name, changes, ir->n_live);
  return TN_OK;
}

tn_status tn__passes_run(tn__ir *ir)
{
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < N_PASSES; i++) {
    st = tn__prepare_check(NULL, ir->err);
    if (st == TN_OK) st = run(ir, &passes[i]);
  }
  return st;
}
