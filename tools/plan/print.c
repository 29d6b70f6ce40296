/* SPDX-License-Identifier: Apache-2.0 */
/* tenon plan: a plan as text. Reads with indices from the report itself cannot fail and are not checked. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <tools/plan/plan.h>

enum { SHOWN = 40, LONGEST = 44, SHOWN_OPERANDS = 6, VALUE_CONSTANT = 1, VALUE_COMPUTED = 2 };

const char *plan_op(const tn_operation *op)
{
  return tn_op_schema_traits(tn_operation_schema(op)) & TN_TRAIT_ENTER ? "(loop)" : tn_operation_type(op);
}

/* ---- ops before and after ---- */

typedef struct op_count {
  const char *op;
  size_t before, after;
} op_count;

typedef struct op_counts {
  op_count *items;
  size_t n, room;
} op_counts;

static int by_name(const void *a, const void *b)
{
  return strcmp(((const op_count *)a)->op, ((const op_count *)b)->op);
}

static int by_count(const void *a, const void *b)
{
  const op_count *x = a, *y = b;
  size_t m = x->before > x->after ? x->before : x->after, n = y->before > y->after ? y->before : y->after;
  if (m == n) return by_name(a, b);
  return m < n ? 1 : -1;
}

static void count_ops(op_counts *counts, const tn_plan_report *report, bool after)
{
  tn_plan_summary s = { .struct_size = sizeof s };
  tn_plan_report_summary(report, &s, NULL);
  for (size_t i = 0; i < s.instructions; i++) {
    tn_plan_call c = { .struct_size = sizeof c };
    tn_plan_report_call(report, i, &c, NULL);
    counts->items = tool_grow(counts->items, counts->n, &counts->room, sizeof(*counts->items));
    counts->items[counts->n++] = (op_count){ plan_op(c.op), !after, after };
  }
}

static void merge_counts(op_counts *counts)
{
  size_t kept = 0;
  if (counts->n == 0) return;
  qsort(counts->items, counts->n, sizeof(*counts->items), by_name);
  for (size_t i = 1; i < counts->n; i++) {
    if (by_name(&counts->items[kept], &counts->items[i]) == 0) {
      counts->items[kept].before += counts->items[i].before;
      counts->items[kept].after += counts->items[i].after;
    } else {
      counts->items[++kept] = counts->items[i];
    }
  }
  counts->n = kept + 1;
  qsort(counts->items, counts->n, sizeof(*counts->items), by_count);
}

static void print_ops(const plan_view *view)
{
  op_counts counts = { 0 };
  tool_table table;
  if (view->before == NULL) return;
  count_ops(&counts, view->before, false);
  count_ops(&counts, view->after, true);
  merge_counts(&counts);
  tool_table_init(&table, 3, 6);
  tool_table_cell(&table, "Op");
  tool_table_cell(&table, "before");
  tool_table_cell(&table, "after");
  for (size_t i = 0; i < counts.n; i++) {
    tool_table_cell(&table, "%s", counts.items[i].op);
    tool_table_cell(&table, "%zu", counts.items[i].before);
    tool_table_cell(&table, "%zu", counts.items[i].after);
  }
  fputc('\n', stdout);
  tool_table_print(&table, "  ", stdout);
  free(counts.items);
}

/* ---- passes ---- */

static void add_rewrites(const plan_view *view, size_t pass, const tn_plan_pass *p, tool_text *text)
{
  tool_text_printf(text, "%s", p->off ? "off" : "");
  for (size_t k = 0; k < p->rewrites; k++) {
    tn_plan_rewrite r = { .struct_size = sizeof r };
    tn_plan_report_rewrite(view->after, pass, k, &r, NULL);
    tool_text_printf(text, "%s%s %" PRIu64, k > 0 ? ", " : "", r.name, r.count);
  }
}

static void print_pass_table(const plan_view *view, const tn_plan_summary *s)
{
  tool_table table;
  if (s->passes == 0) return;
  tool_table_init(&table, 4, 6);
  tool_table_cell(&table, "Pass");
  tool_table_cell(&table, "changes");
  tool_table_cell(&table, "nodes left");
  tool_table_cell(&table, "%s", "");
  for (size_t i = 0; i < s->passes; i++) {
    tool_text text = { 0 };
    tn_plan_pass p = { .struct_size = sizeof p };
    tn_plan_report_pass(view->after, i, &p, NULL);
    add_rewrites(view, i, &p, &text);
    tool_table_cell(&table, "%s", p.name);
    tool_table_cell(&table, "%" PRIu64, p.changes);
    tool_table_cell(&table, "%" PRIu64, p.nodes);
    tool_table_cell(&table, "%s", text.length > 0 ? text.data : "");
    tool_text_fini(&text);
  }
  fputc('\n', stdout);
  tool_table_print(&table, "  ", stdout);
}

void plan_print_passes(void)
{
  tool_table table;
  tn_pass_info info = { .struct_size = sizeof info };
  tool_table_init(&table, 2, 0);
  for (size_t i = 0; tn_pass_at(i, &info, NULL) == TN_OK; i++) {
    tool_table_cell(&table, "%s", info.name);
    tool_table_cell(&table, "%s", info.about);
  }
  tool_table_print(&table, "", stdout);
}

/* ---- instructions ---- */

/* Appends "image" for a feed or constant; "%3" or "%3:1" for a value computed by instruction 3. */
static void operand_name(const tn_plan_report *report, uint32_t value, tool_text *out)
{
  tn_plan_operand v = { .struct_size = sizeof v };
  tn_plan_report_operand(report, value, &v, NULL);
  if (v.kind == VALUE_COMPUTED)
    tool_text_printf(out, "%%%" PRIu32, v.producer);
  else
    tool_text_printf(out, "%s", v.output.op != NULL ? tn_operation_name(v.output.op) : "?");
  if (v.output.index != 0) tool_text_printf(out, ":%d", (int)v.output.index);
}

static void add_inputs(const plan_view *view, const tn_plan_call *c, tool_text *text)
{
  for (uint32_t k = 0; k < c->n_inputs; k++) {
    if (!view->all && k == SHOWN_OPERANDS && c->n_inputs > SHOWN_OPERANDS + 1) {
      tool_text_printf(text, ", ... %" PRIu32 " more", c->n_inputs - k);
      return;
    }
    if (k > 0) tool_text_printf(text, ", ");
    operand_name(view->after, c->inputs[k], text);
  }
}

/* Appends the selected kernel, or the first candidate. */
static void add_kernel(const tn_plan_call *c, tool_text *text)
{
  size_t at = c->kernel == TN_NOT_IN_PLAN ? 0 : c->kernel;
  if (c->n_kernels == 0) {
    tool_text_printf(text, "-");
    return;
  }
  tool_text_printf(text, "%s", c->kernels[at]);
  if (c->n_kernels > 1 && c->kernel == TN_NOT_IN_PLAN) tool_text_printf(text, " (first of %zu)", c->n_kernels);
  if (c->n_kernels > 1 && c->kernel != TN_NOT_IN_PLAN) tool_text_printf(text, " (%zu of %zu)", at + 1, c->n_kernels);
  if (c->with_layout) tool_text_printf(text, ", with the layout");
}

/* Shorten long names at the start: the end is the most informative part. */
static void add_name(const plan_view *view, const char *name, tool_table *table)
{
  size_t length = strlen(name);
  bool whole = view->all || length <= LONGEST;
  tool_table_cell(table, "%s%s", whole ? "" : "...", whole ? name : name + length - LONGEST + 3);
}

static void add_row(const plan_view *view, size_t i, tool_table *table)
{
  tn_plan_call c = { .struct_size = sizeof c };
  tool_text kernel = { 0 }, inputs = { 0 };
  tn_plan_report_call(view->after, i, &c, NULL);
  add_kernel(&c, &kernel);
  add_inputs(view, &c, &inputs);
  tool_table_cell(table, "%%%zu", i);
  tool_table_cell(table, "%s", plan_op(c.op));
  add_name(view, tn_operation_name(c.op), table);
  tool_table_cell(table, "%s", kernel.data);
  tool_table_cell(table, "%s", inputs.length > 0 ? inputs.data : "");
  tool_text_fini(&kernel);
  tool_text_fini(&inputs);
}

static void print_calls(const plan_view *view, const tn_plan_summary *s)
{
  bool cut = !view->all && s->instructions > SHOWN;
  size_t head = cut ? SHOWN / 2 : (size_t)s->instructions, tail = cut ? (size_t)s->instructions - SHOWN / 2 : head;
  tool_table table;
  if (s->instructions == 0) return;
  tool_table_init(&table, 5, 1);
  tool_table_cell(&table, "%s", "");
  tool_table_cell(&table, "Instruction");
  tool_table_cell(&table, "node");
  tool_table_cell(&table, "kernel");
  tool_table_cell(&table, "reads");
  for (size_t i = 0; i < s->instructions; i++) {
    if (i >= head && i < tail) continue;
    if (cut && i == tail) {
      tool_table_cell(&table, "...");
      tool_table_cell(&table, "%zu more (--all)", tail - head);
      for (int k = 0; k < 3; k++) tool_table_cell(&table, "%s", "");
    }
    add_row(view, i, &table);
  }
  fputc('\n', stdout);
  tool_table_print(&table, "  ", stdout);
}

static void print_fetches(const plan_view *view)
{
  fputs("\nGives", stdout);
  for (size_t i = 0; i < view->n_fetches; i++) printf("%s %s", i > 0 ? "," : "", view->fetches[i]);
  for (size_t i = 0; i < view->n_targets; i++)
    printf("%s runs %s", i + view->n_fetches > 0 ? "," : "", view->targets[i]);
  fputc('\n', stdout);
}

/* ---- the whole plan ---- */

static void print_memory(const tn_plan_summary *s)
{
  char a[32], b[32];
  printf("%" PRIu64 " constant%s with %s", s->constants, s->constants == 1 ? "" : "s",
         tool_bytes_text(a, s->constant_bytes));
  if (s->packed > 0) printf(", %" PRIu64 " packed form%s with %s", s->packed, s->packed == 1 ? "" : "s",
                            tool_bytes_text(b, s->packed_bytes));
  if (s->held_bytes < s->constant_bytes)
    printf(", %s of the constants held unpacked", tool_bytes_text(b, s->held_bytes));
  fputc('\n', stdout);
  if (s->layouts == 0) return;
  printf("memory of a step %s, of which at most %s live at one time", tool_bytes_text(a, s->arena_bytes),
         tool_bytes_text(b, s->live_bytes));
  if (s->live_bytes > 0) printf(" (%.2f times)", (double)s->arena_bytes / (double)s->live_bytes);
  fputc('\n', stdout);
}

void plan_print_text(const plan_view *view)
{
  tn_plan_summary s = { .struct_size = sizeof s };
  tn_plan_report_summary(view->after, &s, NULL);
  printf("%s: %" PRIu64 " nodes, %" PRIu64 " needed, %" PRIu64 " left at level %d\n", view->model, s.graph_nodes,
         s.needed_nodes, s.nodes, (int)s.level);
  printf("%" PRIu64 " instruction%s in %" PRIu64 " segment%s; ", s.instructions, s.instructions == 1 ? "" : "s",
         s.segments, s.segments == 1 ? "" : "s");
  print_memory(&s);
  print_pass_table(view, &s);
  print_ops(view);
  print_calls(view, &s);
  print_fetches(view);
}
