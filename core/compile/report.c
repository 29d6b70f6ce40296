/* SPDX-License-Identifier: Apache-2.0 */
/* Reports on plans (<tenon/plan.h>). A report is a copy that outlives the plan. Plans keep short notes of each pass;
 * all else is derived from the plan when a report is requested. */
#include <core/compile/ir/passes.h>
#include <core/compile/report.h>

#include <string.h>

/* An instruction. The arrays are in the report's arena. */
typedef struct call {
  const tn_operation *op;
  const char *const *kernels; /* names, best first */
  const uint32_t *operands;   /* inputs, then outputs */
  uint32_t n_kernels;
  uint32_t kernel; /* index of the kernel that the latest layout uses; TN_NOT_IN_PLAN = none yet */
  uint32_t segment, n_inputs, n_outputs;
  bool with_layout; /* computed when a layout is made, not in steps */
} call;

struct tn_plan_report {
  tn__arena arena;         /* all arrays and names */
  tn_graph *graph, *extra; /* owned references: they hold the operations */
  tn_graph **inlined;      /* owned references, for the same reason */
  uint32_t n_inlined;
  tn_plan_summary summary;
  tn__pass_note *passes;
  tn__rewrite_note *rewrites;
  call *calls;
  tn_plan_operand *operands;
  tn_plan_layout_info *layouts;
};

/* ---- making ---- */

static bool keep_bodies(tn_plan_report *r, const tn_plan *plan)
{
  r->inlined = tn__arena_array(&r->arena, plan->graphs.n_inlined, sizeof *r->inlined);
  while (r->inlined != NULL && r->n_inlined < plan->graphs.n_inlined) {
    r->inlined[r->n_inlined] = tn_graph_ref(plan->graphs.inlined[r->n_inlined]);
    r->n_inlined++;
  }
  return r->inlined != NULL;
}

static bool copy_passes(tn_plan_report *r, const tn_plan *plan)
{
  tn__arena *a = &r->arena;
  r->passes = tn__arena_array(a, plan->notes.n_passes, sizeof *r->passes);
  r->rewrites = tn__arena_array(a, plan->notes.n_rewrites, sizeof *r->rewrites);
  if (r->passes == NULL || r->rewrites == NULL) return false;
  for (uint32_t i = 0; i < plan->notes.n_passes; i++)
    r->passes[i] = plan->notes.passes[i]; /* names of passes are static */
  for (uint32_t i = 0; i < plan->notes.n_rewrites; i++) {
    r->rewrites[i] = plan->notes.rewrites[i];
    r->rewrites[i].name = tn__arena_string(a, plan->notes.rewrites[i].name, strlen(plan->notes.rewrites[i].name));
    if (r->rewrites[i].name == NULL) return false;
  }
  return true;
}

static bool copy_kernels(tn_plan_report *r, const tn__plan_kernels *from, call *to)
{
  if (from == NULL) return true;
  const char **names = tn__arena_array(&r->arena, from->n, sizeof *names);
  to->kernels = names;
  to->n_kernels = from->n;
  for (uint32_t k = 0; names != NULL && k < from->n; k++) {
    names[k] = tn__arena_string(&r->arena, from->items[k].def->name, strlen(from->items[k].def->name));
    if (names[k] == NULL) return false;
  }
  return names != NULL;
}

static bool follows_from_shapes(const tn_plan *plan, const tn__plan_instr *instr)
{
  bool all = instr->n_outputs > 0;
  const uint32_t *out = tn__instr_outputs(plan, instr);
  for (uint32_t k = 0; all && k < instr->n_outputs; k++) all = plan->values[out[k]].from_shapes;
  return all;
}

static bool copy_calls(tn_plan_report *r, const tn_plan *plan)
{
  r->calls = tn__arena_array(&r->arena, plan->n_instrs, sizeof *r->calls);
  if (r->calls == NULL) return false;
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const tn__plan_instr *instr = &plan->instrs[i];
    uint32_t n = instr->n_inputs + instr->n_outputs;
    uint32_t *operands = tn__arena_array(&r->arena, n, sizeof *operands);
    if (operands == NULL) return false;
    for (uint32_t k = 0; k < n; k++) operands[k] = tn__instr_inputs(plan, instr)[k];
    r->calls[i] = (call){ .op = instr->op, .operands = operands, .kernel = TN_NOT_IN_PLAN, .segment = instr->segment,
                          .n_inputs = instr->n_inputs, .n_outputs = instr->n_outputs,
                          .with_layout = follows_from_shapes(plan, instr) };
    if (!copy_kernels(r, tn__instr_kernels(instr), &r->calls[i])) return false;
  }
  return true;
}

static bool copy_operands(tn_plan_report *r, const tn_plan *plan)
{
  r->operands = tn__arena_array(&r->arena, plan->n_values, sizeof *r->operands);
  if (r->operands == NULL) return false;
  for (uint32_t i = 0; i < plan->n_values; i++) {
    const tn__plan_value *v = &plan->values[i];
    r->operands[i] = (tn_plan_operand){ .struct_size = sizeof *r->operands, .kind = v->kind, .dtype = v->dtype,
                                        .output = v->output, .producer = v->producer, .n_uses = v->n_uses };
    if (v->constant == NULL) continue;
    r->operands[i].bytes = v->constant->bytes;
    if (v->n_uses == 0) continue;
    r->summary.constants++;
    r->summary.constant_bytes += v->constant->bytes;
    if (v->recipe == NULL) r->summary.held_bytes += v->constant->bytes;
  }
  return true;
}

/* ---- layouts: call these with plan->mu held ---- */

/* Records which kernels a layout uses. */
static void note_choices(tn_plan_report *r, const tn__layout *l)
{
  for (uint32_t i = l->segment->begin; i < l->segment->end; i++) {
    const tn__plan_kernel *taken = tn__layout_kernel(l, i);
    for (uint32_t k = 0; taken != NULL && k < r->calls[i].n_kernels; k++)
      if (strcmp(r->calls[i].kernels[k], taken->def->name) == 0) r->calls[i].kernel = k;
  }
}

/* Segments run one after the other in one arena, so the summary has the maximum over all segments. */
static void note_segment(tn_plan_report *r, const tn__segment *segment, uint32_t number, size_t *at)
{
  if (segment->layouts != NULL) note_choices(r, segment->layouts);
  for (const tn__layout *l = segment->layouts; l != NULL; l = l->next) {
    r->layouts[(*at)++] = (tn_plan_layout_info){ .struct_size = sizeof *r->layouts, .segment = number,
                                                 .calls = l->n_tape, .arena_bytes = l->memory.arena_bytes,
                                                 .live_bytes = l->memory.live_bytes,
                                                 .in_place_bytes = l->memory.in_place_bytes };
    if (l->memory.arena_bytes > r->summary.arena_bytes) r->summary.arena_bytes = l->memory.arena_bytes;
    if (l->memory.live_bytes > r->summary.live_bytes) r->summary.live_bytes = l->memory.live_bytes;
  }
}

static bool copy_layouts(tn_plan_report *r, tn_plan *plan)
{
  size_t n = 0, at = 0;
  tn__mutex_lock(&plan->caches.mu);
  for (uint32_t s = 0; s < plan->n_segments; s++) n += plan->segments[s].n_layouts;
  r->layouts = tn__arena_array(&r->arena, n, sizeof *r->layouts);
  for (uint32_t s = 0; r->layouts != NULL && s < plan->n_segments; s++) note_segment(r, &plan->segments[s], s, &at);
  for (uint32_t i = 0; i < plan->n_values; i++)
    if (plan->values[i].elements != NULL && plan->values[i].n_uses > 0)
      r->summary.held_bytes += plan->values[i].constant->bytes;
  tn__packs_count(plan, &r->summary.packed, &r->summary.packed_bytes);
  tn__mutex_unlock(&plan->caches.mu);
  r->summary.layouts = at;
  return r->layouts != NULL;
}

tn_status tn__plan_report(tn_plan *plan, tn_plan_report **out, tn_error *err)
{
  *out = NULL;
  tn_plan_report *r = tn__zalloc(sizeof *r);
  if (r == NULL) return tn__no_memory(err, "report", sizeof *r);
  tn__arena_init(&r->arena, 4096);
  r->graph = tn_graph_ref(plan->graphs.main);
  r->extra = tn_graph_ref(plan->graphs.extra);
  r->summary = (tn_plan_summary){
    .struct_size = sizeof r->summary, .level = plan->settings.level, .graph_nodes = plan->notes.n_graph_nodes,
    .needed_nodes = plan->notes.n_needed_nodes, .nodes = plan->notes.n_nodes, .instructions = plan->n_instrs,
    .values = plan->n_values, .segments = plan->n_segments, .passes = plan->notes.n_passes,
  };
  bool ok = keep_bodies(r, plan) && copy_passes(r, plan) && copy_calls(r, plan) && copy_operands(r, plan) &&
            copy_layouts(r, plan);
  if (ok) *out = r;
  else tn_plan_report_release(r);
  return ok ? TN_OK : tn__no_memory(err, "report", 0);
}

void tn_plan_report_release(tn_plan_report *report)
{
  if (report == NULL) return;
  for (uint32_t i = 0; i < report->n_inlined; i++) tn_graph_unref(report->inlined[i]);
  tn_graph_unref(report->extra);
  tn_graph_unref(report->graph);
  tn__arena_fini(&report->arena);
  tn__free(report, sizeof *report);
}

/* ---- reading ---- */

/* Checks the arguments of a public function. `out` must begin with its struct_size, and index i must be less than n. */
static tn_status check(const char *function, const void *report, const void *out, const char *what, uint64_t i,
                       uint64_t n, tn_error *err)
{
  tn__error_reset(err);
  if (report == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: report is NULL", function);
  if (out == NULL || *(const size_t *)out < sizeof(size_t))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: out is NULL or its struct_size is not set", function);
  if (i < n) return TN_OK;
  return tn_error_set(err, TN_OUT_OF_RANGE, "%s: %s %llu is out of range, there are %llu", function, what,
                      (unsigned long long)i, (unsigned long long)n);
}

tn_status tn_pass_at(size_t i, tn_pass_info *out, tn_error *err)
{
  size_t n = 0;
  while (tn__pass_name(n) != NULL) n++;
  tn_status st = check("tn_pass_at", "", out, "pass", i, n, err);
  if (st != TN_OK) return st;
  const tn_pass_info full = { sizeof full, tn__pass_name(i), tn__pass_about(i) };
  tn__copy_sized(out, &full, sizeof full, out->struct_size);
  return TN_OK;
}

tn_status tn_plan_report_summary(const tn_plan_report *report, tn_plan_summary *out, tn_error *err)
{
  tn_status st = check("tn_plan_report_summary", report, out, "summary", 0, 1, err);
  if (st == TN_OK) tn__copy_sized(out, &report->summary, sizeof report->summary, out->struct_size);
  return st;
}

tn_status tn_plan_report_pass(const tn_plan_report *report, size_t i, tn_plan_pass *out, tn_error *err)
{
  tn_status st = check("tn_plan_report_pass", report, out, "pass", i, report == NULL ? 0 : report->summary.passes, err);
  if (st != TN_OK) return st;
  const tn__pass_note *p = &report->passes[i];
  const tn_plan_pass full = { .struct_size = sizeof full, .name = p->name, .off = p->off, .changes = p->changes,
                              .nodes = p->nodes, .rewrites = p->n_rewrites };
  tn__copy_sized(out, &full, sizeof full, out->struct_size);
  return TN_OK;
}

tn_status tn_plan_report_rewrite(const tn_plan_report *report, size_t pass, size_t i, tn_plan_rewrite *out,
                                 tn_error *err)
{
  const char *function = "tn_plan_report_rewrite";
  tn_status st = check(function, report, out, "pass", pass, report == NULL ? 0 : report->summary.passes, err);
  if (st == TN_OK) st = check(function, report, out, "rewrite", i, report->passes[pass].n_rewrites, err);
  if (st != TN_OK) return st;
  const tn__rewrite_note *n = &report->rewrites[report->passes[pass].first_rewrite + i];
  const tn_plan_rewrite full = { .struct_size = sizeof full, .name = n->name, .count = n->count };
  tn__copy_sized(out, &full, sizeof full, out->struct_size);
  return TN_OK;
}

tn_status tn_plan_report_call(const tn_plan_report *report, size_t i, tn_plan_call *out, tn_error *err)
{
  tn_status st = check("tn_plan_report_call", report, out, "instruction", i,
                       report == NULL ? 0 : report->summary.instructions, err);
  if (st != TN_OK) return st;
  const call *c = &report->calls[i];
  const tn_plan_call full = { .struct_size = sizeof full, .op = c->op, .kernels = c->kernels, .n_kernels = c->n_kernels,
                              .kernel = c->kernel, .segment = c->segment, .inputs = c->operands,
                              .outputs = c->operands + c->n_inputs, .n_inputs = c->n_inputs, .n_outputs = c->n_outputs,
                              .with_layout = c->with_layout };
  tn__copy_sized(out, &full, sizeof full, out->struct_size);
  return TN_OK;
}

tn_status tn_plan_report_operand(const tn_plan_report *report, size_t i, tn_plan_operand *out, tn_error *err)
{
  tn_status st = check("tn_plan_report_operand", report, out, "value", i,
                       report == NULL ? 0 : report->summary.values, err);
  if (st == TN_OK) tn__copy_sized(out, &report->operands[i], sizeof report->operands[i], out->struct_size);
  return st;
}

tn_status tn_plan_report_layout(const tn_plan_report *report, size_t i, tn_plan_layout_info *out, tn_error *err)
{
  tn_status st = check("tn_plan_report_layout", report, out, "layout", i,
                       report == NULL ? 0 : report->summary.layouts, err);
  if (st == TN_OK) tn__copy_sized(out, &report->layouts[i], sizeof report->layouts[i], out->struct_size);
  return st;
}
