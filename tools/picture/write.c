/* SPDX-License-Identifier: Apache-2.0 */
/* tenon graph: writes boxes in clusters, and arrows, as DOT text. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <tools/picture/picture.h>

static void indent(tool_text *out, uint32_t depth)
{
  for (uint32_t i = 0; i <= depth; i++) tool_text_add(out, "  ", 2);
}

/* A node name cannot contain a star, so the id of a folded scope differs from every node's id. */
static void add_box_id(const picture *p, uint32_t box, const char *end, tool_text *out)
{
  tool_text id = { 0 };
  uint32_t unit = p->boxes[box].unit;
  if (p->prefix != NULL) tool_text_printf(&id, "%s", p->prefix);
  if (unit & PICTURE_IS_GROUP)
    tool_text_printf(&id, "%s/*", p->groups[unit & ~PICTURE_IS_GROUP].name);
  else
    tool_text_printf(&id, "%s", p->nodes[unit].name);
  tool_text_printf(&id, "%s", end);
  picture_add_quoted(out, id.data);
  tool_text_fini(&id);
}

/* ---- tooltips in an SVG file ---- */

static void add_text(const char *text, size_t length, tool_text *out)
{
  enum { MOST = 60 };
  for (size_t i = 0; i < length && i < MOST; i++) tool_text_add(out, text[i] != '\0' ? text + i : "?", 1);
  if (length > MOST) tool_text_printf(out, "...");
}

static void add_value(const tn_attr_value *value, int depth, tool_text *out);

/* Appends f[T = float32, N = 3], or only f if deeply nested. */
static void add_function(const tn_attr_value *func, int depth, tool_text *out)
{
  enum { MOST = 8, DEEP = 3 };
  add_text(func->text, func->length, out);
  if (func->n_attrs == 0 || depth == DEEP) return;
  for (size_t k = 0; k < func->n_attrs && k < MOST; k++) {
    tn_attr_value value = { .struct_size = sizeof(value) };
    const char *name;
    tool_text_printf(out, k == 0 ? "[" : ", ");
    if (tn_attr_value_attr(func, k, 0, &name, &value, NULL) != TN_OK) continue;
    tool_text_printf(out, "%s = ", name);
    if ((value.kind & TN_ATTR_LIST) != 0)
      tool_text_printf(out, "%zu values", value.n);
    else
      add_value(&value, depth + 1, out);
  }
  tool_text_printf(out, func->n_attrs > MOST ? ", ...]" : "]");
}

static void add_value(const tn_attr_value *value, int depth, tool_text *out)
{
  switch (value->kind & ~TN_ATTR_LIST) {
  case TN_ATTR_INT: tool_text_printf(out, "%" PRId64, value->i); break;
  case TN_ATTR_FLOAT: tool_text_printf(out, "%g", (double)value->f); break;
  case TN_ATTR_BOOL: tool_text_printf(out, "%s", value->b ? "true" : "false"); break;
  case TN_ATTR_TYPE: tool_text_printf(out, "%s", tn_dtype_name(value->type)); break;
  case TN_ATTR_SHAPE: tool_text_shape(out, value->dims, value->rank); break;
  case TN_ATTR_FUNC: add_function(value, depth, out); break;
  case TN_ATTR_STRING:
  case TN_ATTR_PLACEHOLDER: add_text(value->text, value->length, out); break;
  case TN_ATTR_TENSOR:
    tool_text_printf(out, "%s ", tn_dtype_name(tn_tensor_dtype(value->tensor)));
    tool_text_shape(out, tn_tensor_dims(value->tensor), tn_tensor_rank(value->tensor));
    break;
  default: break;
  }
}

static void add_attribute(const tn_operation *op, const char *name, tool_text *out)
{
  enum { MOST = 12 };
  tn_attr_value value = { .struct_size = sizeof(value) };
  if (tn_operation_attr_kind(op, name) == TN_ATTR_NONE) return;
  tool_text_printf(out, "\n%s = ", name);
  if (tn_operation_attr_value(op, name, 0, &value, NULL) != TN_OK) {
    tool_text_printf(out, "unreadable");
    return;
  }
  bool list = (value.kind & TN_ATTR_LIST) != 0;
  if (list) tool_text_printf(out, "[");
  for (size_t i = 0; i < value.n && i < MOST; i++) {
    if (i > 0) tool_text_printf(out, ", ");
    if (tn_operation_attr_value(op, name, i, &value, NULL) != TN_OK) break;
    add_value(&value, 0, out);
  }
  if (list) tool_text_printf(out, value.n > MOST ? ", ...]" : "]");
}

/* Attributes whose names begin with an underscore are internal; skip them. */
static void add_tooltip(const picture *p, uint32_t node, tool_text *out)
{
  const tn_operation *op = p->nodes[node].op;
  tool_text text = { 0 };
  tool_text_printf(&text, "%s (%s)", p->nodes[node].name, p->nodes[node].type);
  if (tn_operation_device(op)[0] != '\0') tool_text_printf(&text, "\ndevice %s", tn_operation_device(op));
  for (size_t i = 0; i < tn_operation_n_attrs(op); i++)
    if (tn_operation_attr_name(op, i)[0] != '_') add_attribute(op, tn_operation_attr_name(op, i), &text);
  tool_text_printf(out, ", tooltip=");
  picture_add_quoted(out, text.data);
  tool_text_fini(&text);
}

/* ---- boxes ---- */

typedef struct look {
  const char *fill, *line;
  const char *name; /* legend text, or NULL */
} look;

static const look looks[N_ROLES] = {
  [ROLE_OP] = { "#ffffff", "#8a94a3", NULL },        [ROLE_CONSTANT] = { "#f3f4f6", "#c5cad2", "constant" },
  [ROLE_MADE] = { "#fff6d6", "#b08a1e", "made by the planner" }, [ROLE_STATE] = { "#ece5f7", "#8562b5", "state" },
  [ROLE_OUTPUT] = { "#fde7cf", "#c9741a", "output" }, [ROLE_INPUT] = { "#d9f0dd", "#2f8f4a", "input" },
};
#define FOLDED_LINE "#54789f"

static void write_node(const picture *p, uint32_t node, const char *scope, uint32_t depth, tool_text *out)
{
  const picture_node *n = &p->nodes[node];
  indent(out, depth);
  add_box_id(p, n->box, "", out);
  tool_text_printf(out, " [label=<");
  picture_add_node(p, node, scope, out);
  tool_text_printf(out, ">");
  if (n->role != ROLE_OP) tool_text_printf(out, ", fillcolor=\"%s\"", looks[n->role].fill);
  if (n->seed)
    tool_text_printf(out, ", color=\"#d0342c\", penwidth=3");
  else if (n->role != ROLE_OP)
    tool_text_printf(out, ", color=\"%s\"", looks[n->role].line);
  add_tooltip(p, node, out);
  tool_text_printf(out, "];\n");
}

static uint8_t highest_role(const picture *p, uint32_t group)
{
  uint8_t role = ROLE_OP;
  for (uint32_t i = 0; i < p->groups[group].n_units; i++) {
    uint32_t unit = p->groups[group].units[i];
    uint8_t its = unit & PICTURE_IS_GROUP ? highest_role(p, unit & ~PICTURE_IS_GROUP) : p->nodes[unit].role;
    if (its > role) role = its;
  }
  return role;
}

/* A folded group has a double border, coloured by the most important role in it. */
static void write_folded(const picture *p, uint32_t group, const char *scope, uint32_t depth, tool_text *out)
{
  uint32_t node = group;
  uint8_t role = highest_role(p, group);
  while (p->groups[node].units[0] & PICTURE_IS_GROUP) node = p->groups[node].units[0] & ~PICTURE_IS_GROUP;
  uint32_t box = p->nodes[p->groups[node].units[0]].box;
  indent(out, depth);
  add_box_id(p, box, "", out);
  tool_text_printf(out, " [label=<");
  picture_add_group(p, group, scope, out);
  tool_text_printf(out, ">, peripheries=2, style=filled, fillcolor=\"#e3ecf8\", color=\"%s\", tooltip=",
                   role >= ROLE_OUTPUT ? looks[role].line : FOLDED_LINE);
  picture_add_quoted(out, p->groups[group].name);
  tool_text_printf(out, "];\n");
}

/* ---- clusters ---- */

static void write_units(const picture *p, uint32_t group, const char *scope, uint32_t depth, tool_text *out);

bool picture_has_frame(const picture_group *g)
{
  return g->kind == GROUP_SCOPE && g->n_boxes > 1 && (g->n_units > 1 || !(g->units[0] & PICTURE_IS_GROUP));
}

static void write_open(const picture *p, uint32_t group, const char *scope, uint32_t depth, tool_text *out)
{
  const picture_group *g = &p->groups[group];
  tool_text id = { 0 };
  if (!picture_has_frame(g)) {
    write_units(p, group, scope, depth, out);
    return;
  }
  indent(out, depth);
  tool_text_printf(&id, "cluster %s%s", p->prefix != NULL ? p->prefix : "", g->name);
  tool_text_printf(out, "subgraph ");
  picture_add_quoted(out, id.data);
  tool_text_fini(&id);
  tool_text_printf(out, " {\n");
  indent(out, depth + 1);
  tool_text_printf(out, "label=<");
  picture_add_html(out, p->options->names ? g->name : picture_relative(g->name, scope), p->options->names ? 0 : 48);
  tool_text_printf(out, ">; bgcolor=\"%s\"; tooltip=", depth % 2 == 0 ? "#f6f8fa" : "#eef1f5");
  picture_add_quoted(out, g->name);
  tool_text_printf(out, ";\n");
  write_units(p, group, g->name, depth + 1, out);
  indent(out, depth);
  tool_text_printf(out, "}\n");
}

static void add_turn_id(const picture *p, uint32_t turn, const char *end, tool_text *out)
{
  tool_text id = { 0 };
  tool_text_printf(&id, "%s*%" PRIu32 "%s", p->prefix != NULL ? p->prefix : "", turn, end);
  picture_add_quoted(out, id.data);
  tool_text_fini(&id);
}

/* Draws two circles with the same number for an arrow that continues in another column. The circles at column starts
 * are aligned, as are those at column ends; invisible arrows keep them in order. */
static void write_turns(const picture *p, uint32_t depth, tool_text *out)
{
  static const char *const ends[] = { " out", " in" };
  for (uint32_t t = 0; t <= p->n_turns; t++)
    for (int end = 0; end < 2; end++) {
      if (t == 0 && end == 0) continue; /* no arrow enters the first column */
      indent(out, depth);
      add_turn_id(p, t, ends[end], out);
      if (t == 0) tool_text_printf(out, " [style=invis, shape=point, width=0.01];\n");
      else
        tool_text_printf(out,
                         " [label=\"%" PRIu32 "\", shape=circle, fixedsize=true, width=0.25, height=0.25, fontsize=9, "
                         "fillcolor=\"#dbe7fb\", color=\"#2f5fb3\"];\n",
                         t);
    }
  for (int end = 0; end < 2; end++) {
    indent(out, depth);
    tool_text_printf(out, "{ rank=same; edge [style=invis]; ");
    for (uint32_t t = end == 0 ? 1 : 0; t <= p->n_turns; t++) {
      add_turn_id(p, t, ends[end], out);
      if (t < p->n_turns) tool_text_printf(out, " -> ");
    }
    tool_text_printf(out, "; }\n");
  }
  indent(out, depth);
  add_turn_id(p, 0, ends[1], out);
  tool_text_printf(out, " -> ");
  add_box_id(p, p->turn_box, "", out);
  tool_text_printf(out, " [style=invis];\n");
}

static void write_units(const picture *p, uint32_t group, const char *scope, uint32_t depth, tool_text *out)
{
  const picture_group *g = &p->groups[group];
  for (uint32_t i = 0; i < g->n_units; i++) {
    uint32_t inner = g->units[i] & ~PICTURE_IS_GROUP;
    if (!(g->units[i] & PICTURE_IS_GROUP))
      write_node(p, inner, scope, depth, out);
    else if (p->groups[inner].open)
      write_open(p, inner, scope, depth, out);
    else
      write_folded(p, inner, scope, depth, out);
  }
  if (p->n_turns > 0 && group == p->turn_group) write_turns(p, depth, out);
}

/* ---- arrows ---- */

/* Whether the arrow closes a loop. Such arrows do not affect the ranks, so that loops read from top to bottom. */
static bool is_back(const picture *p, const picture_arrow *arrow)
{
  for (size_t i = 0; i < arrow->n; i++) {
    const picture_edge *edge = &p->merged[arrow->first + i];
    if (p->nodes[edge->from].order <= p->nodes[edge->to].order) return false;
  }
  return true;
}

static void write_arrow(const picture *p, const picture_arrow *arrow, tool_text *out)
{
  const char *back = is_back(p, arrow) ? "constraint=false" : "";
  tool_text label = { 0 };
  tool_text_add(&label, "", 0);
  tool_text_printf(out, "  ");
  add_box_id(p, arrow->from, "", out);
  tool_text_printf(out, " -> ");
  if (arrow->turn > 0) add_turn_id(p, arrow->turn, " out", out);
  else add_box_id(p, arrow->to, "", out);
  if (arrow->control) {
    tool_text_printf(out, " [style=dashed, color=\"#9aa3af\", arrowhead=empty%s%s]", *back != '\0' ? ", " : "", back);
  } else {
    if (p->n_boxes <= PICTURE_MUCH) picture_add_arrow(p, arrow, &label);
    if (label.length > 0) {
      tool_text_printf(out, " [label=");
      picture_add_quoted(out, label.data);
      tool_text_printf(out, "%s%s]", *back != '\0' ? ", " : "", back);
    } else if (*back != '\0') {
      tool_text_printf(out, " [%s]", back);
    }
  }
  tool_text_printf(out, ";\n");
  tool_text_fini(&label);
  if (arrow->turn == 0) return;
  tool_text_printf(out, "  ");
  add_turn_id(p, arrow->turn, " in", out);
  tool_text_printf(out, " -> ");
  add_box_id(p, arrow->to, "", out);
  tool_text_printf(out, "%s;\n", arrow->control ? " [style=dashed, color=\"#9aa3af\", arrowhead=empty]" : "");
}

/* Marks that the graph continues beyond a box. */
static void write_more(const picture *p, uint32_t box, bool in, uint32_t n, tool_text *out)
{
  if (n == 0) return;
  const char *end = in ? "*in" : "*out";
  tool_text_printf(out, "  ");
  add_box_id(p, box, end, out);
  tool_text_printf(out,
                   " [label=\"%" PRIu32 " more\", shape=plaintext, style=\"\", fontsize=8, fontcolor=\"#6b7280\", ", n);
  tool_text_printf(out, "height=0.1, width=0.1, margin=0.02];\n  ");
  add_box_id(p, box, in ? end : "", out);
  tool_text_printf(out, " -> ");
  add_box_id(p, box, in ? "" : end, out);
  tool_text_printf(out, " [style=dotted];\n");
}

/* ---- the head ---- */

uint32_t picture_n_folded(const picture *p, uint32_t *inside)
{
  uint32_t folded = 0;
  *inside = 0;
  for (uint32_t i = 0; i < p->n_boxes; i++) {
    if (!(p->boxes[i].unit & PICTURE_IS_GROUP)) continue;
    folded++;
    *inside += p->groups[p->boxes[i].unit & ~PICTURE_IS_GROUP].n_nodes;
  }
  return folded;
}

uint32_t picture_roles(const picture *p)
{
  uint32_t roles = 0;
  for (uint32_t i = 0; i < p->n_boxes; i++)
    if (!(p->boxes[i].unit & PICTURE_IS_GROUP)) roles |= UINT32_C(1) << p->nodes[p->boxes[i].unit].role;
  return roles;
}

static void make_title(const picture *p, tool_text *text)
{
  uint32_t inside, folded = picture_n_folded(p, &inside);
  tool_text_printf(text, "%s: %" PRIu32 " node%s", p->title, p->n, p->n == 1 ? "" : "s");
  if (p->options->around != NULL) {
    tool_text_printf(text, "; %" PRIu32 " around %s, %" PRIu32 " step%s", p->n_wanted, p->options->around, p->depth,
                     p->depth == 1 ? "" : "s");
  } else if (p->n_labels > 0) {
    tool_text_printf(text, "; %" PRIu32 " constants are shown in the boxes of their users", p->n_labels);
  }
  if (folded > 0)
    tool_text_printf(text, "; %" PRIu32 " in %" PRIu32 " folded box%s", inside, folded, folded == 1 ? "" : "es");
}

/* Ends a line of text. A viewer without Helvetica may use a wider font than the layout's and cut off a line as wide as
 * the picture, so the line is padded by a fifth of its letters. */
static void end_line(size_t letters, tool_text *out)
{
  for (size_t i = 0; i < letters / 5 + 2; i++) tool_text_printf(out, "&#160;");
  tool_text_printf(out, "<br align=\"left\"/>");
}

/* One line for each part, so that a narrow picture stays narrow. */
static void add_title_lines(const char *title, tool_text *out)
{
  for (const char *part = title;; part += 2) {
    const char *end = strstr(part, "; ");
    size_t length = end != NULL ? (size_t)(end - part) : strlen(part);
    tool_text line = { 0 };
    tool_text_add(&line, part, length);
    picture_add_html(out, line.data, 0);
    end_line(length, out);
    tool_text_fini(&line);
    if (end == NULL) break;
    part = end;
  }
}

static void add_legend(uint32_t roles, bool folded, tool_text *out)
{
  size_t letters = 0;
  for (int role = N_ROLES - 1; role >= 0; role--) {
    if (!(roles >> role & 1) || looks[role].name == NULL) continue;
    tool_text_printf(out, "%s<font color=\"%s\">\xE2\x96\xA0</font> %s", letters > 0 ? "&#160;&#160; " : "",
                     looks[role].line, looks[role].name);
    letters += strlen(looks[role].name) + 5;
  }
  if (folded)
    tool_text_printf(out, "%s<font color=\"" FOLDED_LINE "\">\xE2\x96\xA3</font> folded",
                     letters > 0 ? "&#160;&#160; " : "");
  if (folded || letters > 0) end_line(letters + 10, out);
}

void picture_write_settings(const char *title, uint32_t roles, bool folded, bool plain, tool_text *out)
{
  tool_text_printf(out, "  graph [label=<");
  add_title_lines(title, out);
  add_legend(roles, folded, out);
  tool_text_printf(out, ">, labelloc=t, labeljust=l, fontname=\"Helvetica,Arial,sans-serif\", fontsize=10, "
                        "fontcolor=\"#4b5563\", color=\"#d5dae1\", style=rounded, nodesep=0.2, ranksep=0.2");
  if (plain) tool_text_printf(out, ", splines=line, nslimit=0.1, nslimit1=0.1, mclimit=0.01, searchsize=5");
  tool_text_printf(out, "];\n"
                        "  node [shape=box, style=\"rounded,filled\", fillcolor=\"#ffffff\", color=\"#8a94a3\", "
                        "fontname=\"Helvetica,Arial,sans-serif\", fontsize=11, height=0.3, margin=\"0.1,0.05\"];\n"
                        "  edge [color=\"#6b7280\", fontcolor=\"#6b7280\", fontname=\"Helvetica,Arial,sans-serif\", "
                        "fontsize=8, arrowsize=0.6];\n");
}

void picture_write_body(const picture *p, uint32_t depth, tool_text *out)
{
  write_units(p, 0, "", depth, out);
  for (size_t i = 0; i < p->n_arrows; i++) write_arrow(p, &p->arrows[i], out);
  for (uint32_t i = 0; i < p->n_boxes && p->options->around != NULL; i++) {
    write_more(p, i, true, p->boxes[i].more_in, out);
    write_more(p, i, false, p->boxes[i].more_out, out);
  }
}

void picture_write(const picture *p, tool_text *out)
{
  uint32_t inside;
  tool_text title = { 0 };
  make_title(p, &title);
  tool_text_printf(out, "digraph ");
  picture_add_quoted(out, p->title);
  tool_text_printf(out, " {\n");
  picture_write_settings(title.data, picture_roles(p), picture_n_folded(p, &inside) > 0, p->n_boxes > PICTURE_MUCH,
                         out);
  picture_write_body(p, 0, out);
  tool_text_printf(out, "}\n");
  tool_text_fini(&title);
}
