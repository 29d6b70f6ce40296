/* SPDX-License-Identifier: Apache-2.0 */
/* tenon graph: texts in boxes and beside arrows, and quoting for DOT. Op names and strings come from the file and may
 * contain any bytes. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <tools/picture/picture.h>

#define DOTS "\xE2\x80\xA6"
#define SMALL "<font point-size=\"9\" color=\"#4b5563\">"
#define TINY "<font point-size=\"8\" color=\"#6b7280\">"

enum { LONGEST_NAME = 44, LONGEST_TITLE = 28, LONGEST_VALUE = 28, MOST_LABELS = 6, MOST_OPS = 4 };

/* ---- quoting ---- */

/* The next character in displayable form: invalid bytes become U+FFFD. */
static const char *next(const char **text, size_t *length)
{
  static char buffer[5];
  size_t n = tool_utf8_length(*text, *length);
  unsigned char c = (unsigned char)**text;
  if (n == 0 || (c < 0x20 && c != '\n') || c == 0x7F) {
    memcpy(buffer, "\xEF\xBF\xBD", 4);
    n = 1;
  } else {
    memcpy(buffer, *text, n);
    buffer[n] = '\0';
  }
  *text += n;
  *length -= n;
  return buffer;
}

void picture_add_quoted(tool_text *out, const char *text)
{
  size_t length = strlen(text);
  tool_text_add(out, "\"", 1);
  while (length > 0) {
    const char *c = next(&text, &length);
    if (*c == '"' || *c == '\\') tool_text_add(out, "\\", 1);
    if (*c == '\n') c = "\\n";
    tool_text_add(out, c, strlen(c));
  }
  tool_text_add(out, "\"", 1);
}

static void add_html_character(tool_text *out, const char *c)
{
  const char *as = *c == '"' ? "&quot;" : *c == '&' ? "&amp;" : *c == '<' ? "&lt;" : *c == '>' ? "&gt;" : c;
  if (*c == '\n') as = " ";
  tool_text_add(out, as, strlen(as));
}

void picture_add_html(tool_text *out, const char *text, size_t longest)
{
  size_t length = strlen(text), count = 0, i = 0;
  const char *rest = text;
  for (size_t left = length; left > 0; count++) next(&rest, &left);
  size_t front = longest / 2, back = longest - front - 1;
  for (; length > 0; i++) {
    const char *c = next(&text, &length);
    if (longest == 0 || count <= longest || i < front || i >= count - back)
      add_html_character(out, c);
    else if (i == front)
      tool_text_add(out, DOTS, strlen(DOTS));
  }
}

const char *picture_relative(const char *name, const char *scope)
{
  size_t length = strlen(scope);
  return length > 0 && strncmp(name, scope, length) == 0 && name[length] == '/' ? name + length + 1 : name;
}

/* ---- values ---- */

static void add_dims(tool_text *out, const int64_t *dims, int32_t rank)
{
  if (rank == 0) tool_text_printf(out, "scalar");
  for (int32_t i = 0; i < rank; i++) {
    if (i > 0) tool_text_add(out, "x", 1);
    if (dims[i] < 0)
      tool_text_add(out, "?", 1);
    else
      tool_text_printf(out, "%" PRId64, dims[i]);
  }
}

/* Appends "?x8x8x1 float32", omitting unknown parts. */
static void add_shape(tool_text *out, tn_output output)
{
  int32_t rank;
  int64_t *dims = tool_output_dims(output, &rank);
  tn_dtype dtype = tn_operation_output_dtype(output.op, (size_t)output.index);
  add_dims(out, dims, rank);
  if (dtype != TN_DTYPE_INVALID) tool_text_printf(out, "%s%s", rank >= 0 ? " " : "", tn_dtype_name(dtype));
  free(dims);
}

/* The tensor of a constant, borrowed; NULL if there is none. */
static tn_tensor *constant_value(const tn_operation *op)
{
  tn_tensor *tensor;
  for (size_t i = 0; i < tn_operation_n_attrs(op); i++) {
    const char *name = tn_operation_attr_name(op, i);
    if (tn_operation_attr_kind(op, name) == TN_ATTR_TENSOR &&
        tn_operation_attr_tensor(op, name, &tensor, NULL) == TN_OK)
      return tensor;
  }
  return NULL;
}

/* Removes spaces that only align columns. */
static void squeeze(tool_text *text)
{
  size_t n = 0;
  for (size_t i = 0; i < text->length; i++) {
    char next = text->data[i + 1];
    if (text->data[i] == ' ' && (next == ' ' || next == ']' || (n > 0 && text->data[n - 1] == '['))) continue;
    text->data[n++] = text->data[i];
  }
  text->data[n] = '\0';
  text->length = n;
}

/* Shows a few elements, or the shape if there are more. Never empty, as Graphviz rejects an empty font element. */
static void add_value(tool_text *out, const tn_operation *op)
{
  enum { FEW = 6 };
  tool_text text = { 0 };
  tn_tensor *tensor = constant_value(op);
  if (tensor != NULL && tn_tensor_rank(tensor) <= 1 && tn_tensor_elements(tensor) <= FEW &&
      tool_text_tensor(&text, tensor, NULL) == TN_OK && strchr(text.data, '\n') == NULL) {
    if (tn_tensor_dtype(tensor) != TN_STRING) squeeze(&text);
    picture_add_html(out, text.data, LONGEST_VALUE);
  } else if (tensor != NULL) {
    add_dims(out, tn_tensor_dims(tensor), tn_tensor_rank(tensor));
    if (tn_tensor_dtype(tensor) != TN_FLOAT) tool_text_printf(out, " %s", tn_dtype_name(tn_tensor_dtype(tensor)));
  } else if (tn_operation_schema(op) != NULL && !(tn_op_schema_traits(tn_operation_schema(op)) & TN_TRAIT_CONSTANT)) {
    add_shape(out, (tn_output){ (tn_operation *)op, 0 }); /* computed by the planner */
  } else {
    tool_text_printf(out, "unreadable");
  }
  tool_text_fini(&text);
}

/* ---- boxes of nodes ---- */

/* Name suffixes that only indicate the reading of a variable. */
static size_t without_reading(const char *name)
{
  static const char *const parts[] = { "/read", "/ReadVariableOp", "/resource", "/Read" };
  size_t length = strlen(name);
  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
    size_t n = strlen(parts[i]);
    if (length <= n || strncmp(name + length - n, parts[i], n) != 0) continue;
    length -= n;
    i = (size_t)-1; /* check again for further suffixes */
  }
  return length;
}

void picture_add_constant(const tn_operation *constant, const char *user, tool_text *out)
{
  tool_text name = { 0 };
  tool_text_add(&name, tn_operation_name(constant), strlen(tn_operation_name(constant)));
  name.length = without_reading(name.data);
  name.data[name.length] = '\0';
  tool_text_printf(out, "<br/>" TINY);
  picture_add_html(out, strcmp(name.data, user) == 0 ? "constant" : picture_last_part(name.data), LONGEST_TITLE);
  tool_text_add(out, " ", 1);
  add_value(out, constant);
  tool_text_printf(out, "</font>");
  tool_text_fini(&name);
}

/* Adds the constants shown as labels. */
static void add_label(const picture *p, const tn_operation *constant, const char *user, tool_text *out)
{
  while (p->nodes[tool_model_node(&p->model, constant) - p->model.nodes].label && tn_operation_n_inputs(constant) == 1)
    constant = tn_operation_input(constant, 0).op;
  picture_add_constant(constant, user, out);
}

static void add_labels(const picture *p, uint32_t node, tool_text *out)
{
  const tn_operation *op = p->nodes[node].op;
  size_t found = 0;
  for (size_t i = 0; i < tn_operation_n_inputs(op); i++) {
    const tool_node *from = tool_model_node(&p->model, tn_operation_input(op, i).op);
    if (from == NULL || !p->nodes[from - p->model.nodes].label) continue;
    if (++found <= MOST_LABELS) add_label(p, from->op, p->nodes[node].name, out);
  }
  if (found > MOST_LABELS) tool_text_printf(out, "<br/>" TINY "%zu more constants</font>", found - MOST_LABELS);
}

/* Adds the functions that a node calls, "then_branch: cond_true_3", which are more informative than its op. */
static void add_functions(const tn_operation *op, tool_text *out)
{
  size_t found = 0;
  for (size_t i = 0; i < tn_operation_n_attrs(op); i++) {
    const char *name = tn_operation_attr_name(op, i);
    if ((tn_operation_attr_kind(op, name) & ~TN_ATTR_LIST) != TN_ATTR_FUNC) continue;
    tn_attr_value value = { .struct_size = sizeof(value), .n = 1 };
    for (size_t k = 0; k < value.n; k++) {
      if (tn_operation_attr_value(op, name, k, &value, NULL) != TN_OK || value.text == NULL) break;
      if (value.length == 0 || ++found > MOST_LABELS) continue;
      tool_text_printf(out, "<br/>" TINY);
      picture_add_html(out, name, LONGEST_TITLE);
      tool_text_printf(out, ": ");
      picture_add_html(out, value.text, LONGEST_TITLE);
      tool_text_printf(out, "</font>");
    }
  }
  if (found > MOST_LABELS) tool_text_printf(out, "<br/>" TINY "%zu more functions</font>", found - MOST_LABELS);
}

/* Adds the type of an unused output, as it has no arrow to label. */
static void add_output_shapes(const tn_operation *op, tool_text *out)
{
  enum { MOST = 3 };
  for (size_t i = 0; i < tn_operation_n_outputs(op) && i < MOST; i++) {
    tool_text text = { 0 };
    tool_text_add(&text, "", 0);
    add_shape(&text, (tn_output){ (tn_operation *)op, (int32_t)i });
    if (text.length > 0) tool_text_printf(out, "<br/>" TINY "%s</font>", text.data);
    tool_text_fini(&text);
  }
}

void picture_add_node(const picture *p, uint32_t node, const char *scope, tool_text *out)
{
  const picture_node *n = &p->nodes[node];
  const char *op = n->type, *name = n->name;
  if (!p->options->names && strcmp(name, scope) == 0) name = picture_last_part(name);
  if (!p->options->names) name = picture_relative(name, scope);
  tool_text_printf(out, n->role == ROLE_CONSTANT ? SMALL : "<b>");
  picture_add_html(out, op[0] != '\0' ? op : "?", LONGEST_NAME);
  tool_text_printf(out, n->role == ROLE_CONSTANT ? "</font>" : "</b>");
  tool_text_printf(out, "<br/>" SMALL);
  picture_add_html(out, name, p->options->names ? 0 : LONGEST_NAME);
  tool_text_printf(out, "</font>");
  if (n->role == ROLE_CONSTANT) {
    tool_text_printf(out, "<br/>" TINY);
    add_value(out, n->op);
    tool_text_printf(out, "</font>");
  }
  if (p->lines != NULL) {
    p->lines(p, node, out);
  } else {
    add_functions(n->op, out);
    add_labels(p, node, out);
  }
  if (n->role == ROLE_OUTPUT) add_output_shapes(n->op, out);
}

/* ---- boxes of groups ---- */

typedef struct op_count {
  const char *op;
  uint32_t n;
} op_count;

static void collect_ops(const picture *p, uint32_t group, op_count *ops, size_t *n)
{
  for (uint32_t i = 0; i < p->groups[group].n_units; i++) {
    uint32_t unit = p->groups[group].units[i];
    if (unit & PICTURE_IS_GROUP)
      collect_ops(p, unit & ~PICTURE_IS_GROUP, ops, n);
    else
      ops[(*n)++] = (op_count){ p->nodes[unit].type, 1 };
  }
}

static int compare_ops(const void *a, const void *b)
{
  return strcmp(((const op_count *)a)->op, ((const op_count *)b)->op);
}

static int compare_counts(const void *a, const void *b)
{
  const op_count *x = a, *y = b;
  if (x->n == y->n) return strcmp(x->op, y->op);
  return x->n > y->n ? -1 : 1;
}

static void add_ops(const picture *p, uint32_t group, tool_text *out)
{
  op_count *ops = tool_alloc(p->groups[group].n_nodes, sizeof(*ops));
  size_t n = 0, kinds = 0;
  collect_ops(p, group, ops, &n);
  qsort(ops, n, sizeof(*ops), compare_ops);
  for (size_t i = 0; i < n; i++) {
    if (kinds > 0 && strcmp(ops[kinds - 1].op, ops[i].op) == 0)
      ops[kinds - 1].n++;
    else
      ops[kinds++] = ops[i];
  }
  qsort(ops, kinds, sizeof(*ops), compare_counts);
  for (size_t i = 0; i < kinds && i < MOST_OPS; i++) {
    tool_text_printf(out, "%s%" PRIu32 " ", i % 2 == 0 ? "<br/>" TINY : ", ", ops[i].n);
    picture_add_html(out, ops[i].op, LONGEST_TITLE);
    if (i == MOST_OPS - 1 && kinds > MOST_OPS) tool_text_printf(out, ", " DOTS);
    if (i % 2 == 1 || i + 1 == kinds) tool_text_printf(out, "</font>");
  }
  free(ops);
}

/* The number of equal parts if a run consists of them, else 1. */
static uint32_t repeats(const picture *p, const picture_group *g)
{
  if (g->kind == GROUP_SCOPE) return 1;
  uint64_t first = 0;
  for (uint32_t i = 0; i < g->n_units; i++) {
    if (!(g->units[i] & PICTURE_IS_GROUP)) return 1;
    const picture_group *part = &p->groups[g->units[i] & ~PICTURE_IS_GROUP];
    if (i == 0) first = part->signature;
    if (part->signature != first) return 1;
  }
  return g->n_units;
}

void picture_add_group(const picture *p, uint32_t group, const char *scope, tool_text *out)
{
  const picture_group *g = &p->groups[group];
  uint32_t times = repeats(p, g);
  tool_text_printf(out, "<b>");
  picture_add_html(out, p->options->names ? g->name : picture_relative(g->name, scope),
                   p->options->names ? 0 : LONGEST_NAME);
  tool_text_printf(out, "</b><br/>" SMALL);
  if (times > 1) tool_text_printf(out, "%" PRIu32 " \xC3\x97 ", times);
  tool_text_printf(out, "%" PRIu32 " nodes</font>", g->n_nodes / times);
  add_ops(p, group, out);
}

/* ---- arrows ---- */

void picture_add_arrow(const picture *p, const picture_arrow *arrow, tool_text *out)
{
  uint32_t tensors = 0;
  bool alike = true;
  tool_text first = { 0 };
  tool_text_add(&first, "", 0);
  for (size_t i = 0; i < arrow->n; i++) {
    const picture_edge *edge = &p->merged[arrow->first + i], *before = edge - 1;
    if (i > 0 && before->from == edge->from && before->output == edge->output) continue;
    tool_text text = { 0 };
    tool_text_add(&text, "", 0);
    add_shape(&text, (tn_output){ p->nodes[edge->from].op, edge->output });
    if (tensors++ == 0)
      tool_text_add(&first, text.data, text.length);
    else
      alike &= strcmp(first.data, text.data) == 0;
    tool_text_fini(&text);
  }
  const picture_edge *edge = &p->merged[arrow->first];
  size_t before = out->length;
  tool_text_add(out, " ", 1); /* distance from the line */
  /* for an unknown op, label every output except the first */
  if (tensors == 1 && (tn_operation_n_outputs(p->nodes[edge->from].op) > 1 || edge->output > 0))
    tool_text_printf(out, ":%d%s", (int)edge->output, first.length > 0 ? "  " : "");
  if (tensors > 1)
    tool_text_printf(out, "%" PRIu32 "%s", tensors, alike && first.length > 0 ? " \xC3\x97 " : " tensors");
  if (alike) tool_text_add(out, first.data, first.length);
  if (out->length == before + 1) out->data[out->length = before] = '\0';
  tool_text_fini(&first);
}
