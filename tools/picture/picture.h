/* SPDX-License-Identifier: Apache-2.0 */
/* The picture drawn by `tenon graph`. Each step has its own file:
 *   nodes.c    creates and sorts the nodes and edges, and selects labels and wanted nodes
 *   scopes.c   builds a tree of groups from the names, splitting groups that are too wide
 *   fold.c     chooses the open groups, and thereby the boxes and arrows
 *   columns.c  splits a long chain into columns
 *   write.c    writes boxes and arrows as DOT text
 *   text.c     texts in boxes and beside arrows, and quoting
 *   render.c   runs Graphviz's program `dot` and writes files
 * `tenon plan -o` draws plans by the same steps, but creates its own nodes and edges (tools/plan/picture.c).
 * The output depends only on the graph, so the same graph always gives the same text. */
#ifndef TENON_TOOLS_PICTURE_PICTURE_H
#define TENON_TOOLS_PICTURE_PICTURE_H

#include <tools/tool.h>

#define PICTURE_NONE UINT32_MAX
#define PICTURE_BOXES 150 /* approximate number of readable boxes */
/* Pictures with more boxes than this use straight arrows without labels; otherwise Graphviz would take hours. */
#define PICTURE_MUCH 1500

/* The role of a node in the picture; the highest one that applies. */
enum { ROLE_OP = 0, ROLE_CONSTANT = 1, ROLE_MADE = 2, ROLE_STATE = 3, ROLE_OUTPUT = 4, ROLE_INPUT = 5, N_ROLES = 6 };

typedef struct picture_node {
  tn_operation *op;
  const char *name;
  const char *type; /* heading of its box */
  uint8_t role;
  bool label; /* a constant, or an Identity of one, shown as a line in its users' boxes */
  bool wanted;
  bool seed;      /* selected by --around */
  uint32_t order; /* producers precede consumers, except in loops */
  uint32_t group;
  uint32_t box;
} picture_node;

typedef struct picture_edge {
  uint32_t from, to;
  int32_t output; /* -1: a control edge */
} picture_edge;

/* Members of a scope share the name before a slash, members of a family share a name prefix ("conv5_*"), and members of
 * a run are consecutive. Families and runs exist only for folding and are invisible when open. */
enum { GROUP_SCOPE = 0, GROUP_FAMILY = 1, GROUP_RUN = 2 };

/* A node, or a group with PICTURE_IS_GROUP added. */
#define PICTURE_IS_GROUP UINT32_C(0x80000000)

typedef struct picture_group {
  char *name; /* the path of a scope */
  uint32_t parent;
  uint32_t depth;
  uint32_t kind;
  uint32_t *units; /* in order */
  uint32_t n_units, units_room;
  uint32_t n_nodes;
  uint32_t order;     /* order of the first node */
  uint64_t signature; /* equal for groups with the same ops */
  bool open;
  uint32_t n_boxes; /* valid once folded */
} picture_group;

typedef struct picture_box {
  uint32_t unit;
  uint32_t more_in, more_out; /* edges to nodes that are not drawn */
} picture_box;

/* All edges of one kind between two boxes: arrows[first_edge...] in picture.merged. */
typedef struct picture_arrow {
  uint32_t from, to;
  size_t first, n;
  bool control;
  uint32_t turn; /* number of the column turn that it crosses; 0: none */
} picture_arrow;

typedef struct picture_options {
  const char *around; /* NULL: all */
  uint32_t depth;     /* PICTURE_NONE: 2 for a node, 1 for a scope */
  uint32_t boxes;     /* 0: do not fold */
  uint32_t columns;   /* 0: as many as a tall picture needs */
  bool constants, names;
} picture_options;

typedef struct picture {
  const picture_options *options;
  const char *title;
  const char *prefix; /* prefix of box names if a file has several pictures, or NULL */
  /* Adds the lines of a node's box. NULL: the lines for a graph node. */
  void (*lines)(const struct picture *p, uint32_t node, tool_text *out);
  const void *source; /* passed to the callback */
  tool_model model;
  picture_node *nodes;
  uint32_t n;
  picture_edge *edges; /* sorted by `to` */
  size_t n_edges, edges_room;
  uint32_t *by_order; /* wanted nodes in order */
  uint32_t n_wanted;
  uint32_t n_labels;
  uint32_t depth;
  uint32_t around_scope; /* length of the scope name selected by --around; 0 for a node */
  picture_group *groups; /* the first is the whole graph */
  size_t n_groups, groups_room;
  picture_box *boxes;
  uint32_t n_boxes;
  picture_edge *merged; /* edges between boxes, grouped by arrow */
  picture_arrow *arrows;
  size_t n_arrows;
  uint32_t n_turns;    /* number of arrows that continue in another column */
  uint32_t turn_group; /* the open group split into columns */
  uint32_t turn_box;   /* its first box */
} picture;

tn_status picture_read(picture *p, tn_graph *graph, const picture_options *options, tn_error *err);
void picture_group_names(picture *p);
void picture_fold(picture *p);
/* Whether an open group has a frame: it has at least two boxes, and its only content is not another frame. */
bool picture_has_frame(const picture_group *group);
/* Splits a tall column into several (columns.c). The picture must be folded. */
void picture_divide(picture *p);
void picture_write(const picture *p, tool_text *out);
/* Parts of the DOT text: common attributes with a headline and a legend of the roles in `roles` (bits); the boxes and
 * arrows. */
void picture_write_settings(const char *title, uint32_t roles, bool folded, bool plain, tool_text *out);
void picture_write_body(const picture *p, uint32_t depth, tool_text *out);
uint32_t picture_roles(const picture *p); /* bits 1 << ROLE_... of drawn nodes */
uint32_t picture_n_folded(const picture *p, uint32_t *inside); /* number of folded boxes, and of the nodes in them */
/* Marks all nodes as wanted, in their current order. */
void picture_list_wanted(picture *p);
void picture_free(picture *p);

/* The last part of a name, after its slashes. */
const char *picture_last_part(const char *name);

/* ---- text (text.c) ---- */

/* Appends a quoted string for DOT. */
void picture_add_quoted(tool_text *out, const char *text);
/* Appends text to an HTML-like label, escaping special characters. If `longest` is not 0, longer texts are shortened in
 * the middle. */
void picture_add_html(tool_text *out, const char *text, size_t longest);
/* Appends the lines in a box: of a node with its labels, or of a folded group. `scope` is the enclosing cluster's
 * name. */
void picture_add_node(const picture *p, uint32_t node, const char *scope, tool_text *out);
void picture_add_group(const picture *p, uint32_t group, const char *scope, tool_text *out);
/* Appends a constant's name and value: "weights 3x3x1x32". Suffixes such as /read and names equal to the user's are
 * omitted. */
void picture_add_constant(const tn_operation *constant, const char *user, tool_text *out);
/* Appends an arrow's label, as plain text. */
void picture_add_arrow(const picture *p, const picture_arrow *arrow, tool_text *out);
/* The name without its leading scope; scope may be "". */
const char *picture_relative(const char *name, const char *scope);

/* ---- files (render.c) ---- */

/* Checks in advance, as far as possible, that the file can be written. */
tn_status picture_check_place(const char *path, tn_error *err);
/* Writes a file completely or not at all. */
tn_status picture_save(const char *path, const char *data, size_t size, tn_error *err);
/* Runs `dot -T<format>`. */
tn_status picture_render(const char *format, const tool_text *dot, tool_text *out, tn_error *err);

#endif
