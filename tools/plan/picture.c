/* SPDX-License-Identifier: Apache-2.0 */
/* tenon plan -o: draws the instructions before and after, as tenon graph draws nodes (tools/picture/picture.h). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <tools/picture/picture.h>
#include <tools/plan/plan.h>

/* One of the two plans. Feeds are the first nodes, instructions the others. */
typedef struct side {
  picture p;
  const tn_plan_report *report;
  uint64_t n_values, n_calls;
  uint32_t n_feeds;
  uint32_t *node_of_feed; /* by value */
} side;

static tn_plan_operand operand_of(const side *s, uint32_t value)
{
  tn_plan_operand v = { .struct_size = sizeof v };
  tn_plan_report_operand(s->report, value, &v, NULL);
  return v;
}

static tn_plan_call call_of(const side *s, uint32_t node)
{
  tn_plan_call c = { .struct_size = sizeof c };
  tn_plan_report_call(s->report, node - s->n_feeds, &c, NULL);
  return c;
}

/* ---- the text in a box ---- */

/* Returns the constant behind a value, also through an Identity shown only as a label; NULL if computed or fed. */
static const tn_operation *constant_of(const side *s, uint32_t value)
{
  tn_plan_operand v = operand_of(s, value);
  while (v.kind == 2 && v.producer != TN_NOT_IN_PLAN && s->p.nodes[v.producer + s->n_feeds].label)
    v = operand_of(s, call_of(s, v.producer + s->n_feeds).inputs[0]);
  return v.kind == 1 ? v.output.op : NULL;
}

/* Adds the constants that the instruction reads, and its kernel if known. */
static void add_lines(const picture *p, uint32_t node, tool_text *out)
{
  enum { MOST = 4 };
  const side *s = p->source;
  if (node < s->n_feeds) return;
  tn_plan_call c = call_of(s, node);
  uint32_t found = 0;
  for (uint32_t k = 0; k < c.n_inputs; k++) {
    const tn_operation *constant = constant_of(s, c.inputs[k]);
    if (constant != NULL && ++found <= MOST) picture_add_constant(constant, p->nodes[node].name, out);
  }
  if (found > MOST)
    tool_text_printf(out, "<br/><font point-size=\"8\" color=\"#6b7280\">%" PRIu32 " more constants</font>",
                     found - MOST);
  if (c.kernel == TN_NOT_IN_PLAN) return;
  tool_text_printf(out, "<br/><font point-size=\"8\" color=\"#54789f\">");
  picture_add_html(out, c.kernels[c.kernel], 40);
  tool_text_printf(out, "</font>");
}

/* ---- nodes and edges ---- */

static uint8_t role_of(const tn_operation *op)
{
  const tn_op_schema *schema = tn_operation_schema(op);
  if (strncmp(tn_operation_type(op), "_Tn", 3) == 0) return ROLE_MADE;
  return schema != NULL && (tn_op_schema_traits(schema) & TN_TRAIT_STATEFUL) ? ROLE_STATE : ROLE_OP;
}

static void set_node(side *s, uint32_t i, const tn_operation *op, const char *type, uint8_t role)
{
  tool_text name = { 0 };
  picture_node *node = &s->p.nodes[i];
  tool_text_printf(&name, "%s", tn_operation_name(op));
  *node = (picture_node){ .op = (tn_operation *)op,
                          .name = name.data,
                          .type = type,
                          .role = role,
                          .wanted = true,
                          .order = i,
                          .group = PICTURE_NONE,
                          .box = PICTURE_NONE };
}

static int compare_names(const void *a, const void *b)
{
  const picture_node *x = *(picture_node *const *)a, *y = *(picture_node *const *)b;
  int order = strcmp(x->name, y->name);
  if (order != 0) return order;
  return x->order < y->order ? -1 : 1;
}

/* An operation can have several instructions, but boxes need unique names. */
static void tell_names_apart(side *s)
{
  picture_node **list = tool_alloc(s->p.n, sizeof(*list));
  for (uint32_t i = 0; i < s->p.n; i++) list[i] = &s->p.nodes[i];
  qsort(list, s->p.n, sizeof(*list), compare_names);
  for (uint32_t i = 0, end; i < s->p.n; i = end)
    for (end = i + 1; end < s->p.n && strcmp(list[end]->name, list[i]->name) == 0; end++) {
      tool_text name = { 0 };
      tool_text_printf(&name, "%s (%" PRIu32 ")", list[end]->name, end - i + 1);
      free((char *)list[end]->name);
      list[end]->name = name.data;
    }
  free(list);
}

static void add_edge(side *s, uint32_t from, uint32_t to, int32_t output)
{
  picture *p = &s->p;
  p->edges = tool_grow(p->edges, p->n_edges, &p->edges_room, sizeof(*p->edges));
  p->edges[p->n_edges++] = (picture_edge){ from, to, output };
}

static void read_edges(side *s)
{
  for (uint32_t i = s->n_feeds; i < s->p.n; i++) {
    tn_plan_call c = call_of(s, i);
    for (uint32_t k = 0; k < c.n_inputs; k++) {
      tn_plan_operand v = operand_of(s, c.inputs[k]);
      if (v.kind == 0) add_edge(s, s->node_of_feed[c.inputs[k]], i, v.output.index);
      else if (v.producer != TN_NOT_IN_PLAN) add_edge(s, v.producer + s->n_feeds, i, v.output.index);
    }
  }
}

/* Outputs have no readers. An Identity of a constant is a line in its readers' boxes. */
static void find_roles(side *s)
{
  bool *read = tool_alloc(s->p.n, sizeof(*read));
  for (size_t e = 0; e < s->p.n_edges; e++) read[s->p.edges[e].from] = true;
  for (uint32_t i = s->n_feeds; i < s->p.n; i++) {
    picture_node *node = &s->p.nodes[i];
    const tn_op_schema *schema = tn_operation_schema(node->op);
    tn_plan_call c = call_of(s, i);
    bool hands_on = schema != NULL && (tn_op_schema_traits(schema) & TN_TRAIT_IDENTITY) && c.n_inputs == 1;
    node->label = read[i] && hands_on && constant_of(s, c.inputs[0]) != NULL;
    node->wanted = !node->label;
    if (!read[i]) node->role = ROLE_OUTPUT;
  }
  free(read);
}

static void side_read(side *s, const tn_plan_report *report, const char *prefix, const picture_options *options)
{
  tn_plan_summary sum = { .struct_size = sizeof sum };
  memset(s, 0, sizeof(*s));
  tn_plan_report_summary(report, &sum, NULL);
  s->report = report;
  s->n_values = sum.values;
  s->n_calls = sum.instructions;
  s->node_of_feed = tool_alloc(sum.values, sizeof(*s->node_of_feed));
  for (uint32_t v = 0; v < sum.values; v++) {
    tn_plan_operand o = operand_of(s, v);
    if (o.kind == 0 && o.output.op != NULL) s->node_of_feed[v] = s->n_feeds++;
  }
  picture *p = &s->p;
  *p = (picture){
    .options = options, .prefix = prefix, .lines = add_lines, .source = s, .n = s->n_feeds + (uint32_t)sum.instructions
  };
  p->nodes = tool_alloc(p->n, sizeof(*p->nodes));
  for (uint32_t v = 0, feed = 0; v < sum.values; v++) {
    tn_plan_operand o = operand_of(s, v);
    if (o.kind == 0 && o.output.op != NULL)
      set_node(s, feed++, o.output.op, tn_operation_type(o.output.op), ROLE_INPUT);
  }
  for (uint32_t i = s->n_feeds; i < p->n; i++) {
    const tn_operation *op = call_of(s, i).op;
    set_node(s, i, op, plan_op(op), role_of(op));
  }
  tell_names_apart(s);
  read_edges(s);
  find_roles(s);
  picture_list_wanted(p);
  picture_group_names(p);
  picture_fold(p);
  picture_divide(p);
}

static void side_free(side *s)
{
  for (uint32_t i = 0; i < s->p.n; i++) free((char *)s->p.nodes[i].name);
  free(s->node_of_feed);
  picture_free(&s->p);
}

/* ---- both ---- */

static void side_write(const side *s, const char *id, const char *title, tool_text *out)
{
  tool_text_printf(out, "  subgraph %s {\n    label=\"%s: %" PRIu64 " instruction%s\"; fontsize=12;\n", id, title,
                   s->n_calls, s->n_calls == 1 ? "" : "s");
  picture_write_body(&s->p, 1, out);
  tool_text_printf(out, "  }\n");
}

void plan_picture(const plan_view *view, uint32_t boxes, tool_text *out)
{
  const picture_options options = { .boxes = boxes };
  side sides[2];
  size_t n = 0;
  uint32_t roles = 0, folded = 0, inside = 0, all = 0, hidden = 0;
  if (view->before != NULL) side_read(&sides[n++], view->before, "before ", &options);
  side_read(&sides[n++], view->after, "", &options);
  for (size_t i = 0; i < n; i++) {
    roles |= picture_roles(&sides[i].p);
    folded += picture_n_folded(&sides[i].p, &inside);
    hidden += inside;
    all += sides[i].p.n_boxes;
  }
  tool_text title = { 0 };
  tool_text_printf(&title, "%s: its plan", view->model);
  if (folded > 0) tool_text_printf(&title, "; %" PRIu32 " in %" PRIu32 " folded boxes", hidden, folded);
  tool_text_printf(out, "digraph plan {\n");
  picture_write_settings(title.data, roles, folded > 0, all > PICTURE_MUCH, out);
  if (n > 1) side_write(&sides[0], "cluster_b", "before", out);
  side_write(&sides[n - 1], "cluster_a", n > 1 ? "after" : "plan", out);
  tool_text_printf(out, "}\n");
  for (size_t i = 0; i < n; i++) side_free(&sides[i]);
  tool_text_fini(&title);
}
