/* SPDX-License-Identifier: Apache-2.0 */
/* The passes and their order. A pass without a function of its own applies the rewrites that families of ops register
 * under its name. */
#include <core/compile/ir/passes.h>

#include <string.h>

typedef struct pass {
  const char *name;
  const char *about; /* description for users; NULL if the pass has run before */
  tn__pass_fn run;   /* NULL = rewrites */
  bool from_end;     /* rewrites only: whether nodes are offered from last to first */
} pass;

static const pass passes[] = {
  { "inline", "inlines function calls into the plan", tn__pass_inline, false },
  { "control", "removes redundant control edges", tn__pass_control, false },
  { "identity", "removes nodes that only forward their inputs", tn__pass_identity, false },
  { "common", "merges nodes that compute the same value", tn__pass_common, false }, /* fold then computes each once */
  { "fold", "computes nodes with only constant inputs once, at plan time", tn__pass_fold, false },
  { "common", NULL, tn__pass_common, false },
  { "algebra",
    "removes operations without effect (x*1, reshapes to the same shape) and moves steps beside their product", NULL,
    false },
  { "batch_norm", "folds normalisation by constants into the preceding filters", NULL, false },
  { "fold", NULL, tn__pass_fold, false }, /* constants that the rewrites produced */
  { "cell", "fuses each step of a recurrent cell into one node", NULL, false },
  { "layer", "fuses the steps of a recurrent layer into one node", NULL, true },
  { "norm", "fuses layer and RMS normalisation, and softmax, into one node each", NULL, false },
  { "attention", "fuses products by softmax of products into one node", NULL, false },
  { "activation", "fuses the steps of swish, hard swish, hard sigmoid, mish and GELU into one node", NULL, false },
  { "fuse", "fuses biases, residuals and activations into the preceding product", NULL, false },
  { "elementwise", "fuses chains of elementwise operations into one node", NULL, true },
  { "weights", "keeps constants of products in the type of the option weights", NULL, false },
};

#define N_PASSES (sizeof passes / sizeof *passes)

/* The first entry of pass i, counting each name once; NULL past the end. */
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
      tn_error_set(err, TN_INVALID_ARGUMENT, "option disable_passes: unknown pass '%.*s'; the passes are: %s",
                   (int)(n > 99 ? 99 : n), at, tn__text_get(&all));
      tn__text_fini(&all);
      return TN_INVALID_ARGUMENT;
    }
    at += n;
  }
  return TN_OK;
}

/* Runs a pass unless it is off, and appends a note of it for reports. */
static tn_status run(tn__ir *ir, const pass *p)
{
  if (!tn__grow((void **)&ir->notes.passes, &ir->notes.pass_room, ir->notes.n_passes + 1, sizeof *ir->notes.passes))
    return tn__ir_no_memory(ir);
  tn__pass_note *note = &ir->notes.passes[ir->notes.n_passes++];
  *note = (tn__pass_note){ .name = p->name,
                           .nodes = (uint32_t)ir->n_live,
                           .first_rewrite = (uint32_t)ir->notes.n_rewrites,
                           .off = tn__pass_is_off(ir->spec, p->name) };
  size_t changes = 0;
  if (note->off) return TN_OK;
  tn_status st = p->run != NULL ? p->run(ir, &changes) : tn__rewrites_run(ir, p->name, p->from_end, &changes);
  if (st != TN_OK || changes == 0) return st;
  tn__ir_sweep(ir);
  note->changes = (uint32_t)changes;
  note->nodes = (uint32_t)ir->n_live;
  note->n_rewrites = (uint32_t)ir->notes.n_rewrites - note->first_rewrite;
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
