/* SPDX-License-Identifier: Apache-2.0 */
/* What `tenon graph` draws. The steps are one file each:
 *   graph_nodes.c   nodes and edges of the graph, in order, which of them are labels only, and which are wanted
 *   graph_scopes.c  a tree of groups from the names, with groups for what is too wide to show at once
 *   graph_fold.c    which groups are open, and so which boxes and arrows there are
 *   graph_columns.c where a long chain turns into the next column
 *   graph_write.c   boxes and arrows as DOT text
 *   graph_text.c    what stands in boxes and beside arrows, and quoting
 *   graph_render.c  Graphviz's program `dot`, and files
 * `tenon plan -o` draws plans by the same steps (plan_picture.c): it makes the nodes and edges.
 * Everything depends on the graph alone, so one graph gives the same text every time. */
#ifndef TENON_TOOLS_PICTURE_PICTURE_H
#define TENON_TOOLS_PICTURE_PICTURE_H

#include <tools/tool.h>

#define PICTURE_NONE UINT32_MAX
#define PICTURE_BOXES 150 /* about so many boxes can be read */
/* More boxes than this are drawn plainly, with straight arrows and nothing beside them: Graphviz would take hours. */
#define PICTURE_MUCH 1500

/* What a node is for a reader of the picture; the highest one that fits. */
enum { ROLE_OP = 0, ROLE_CONSTANT = 1, ROLE_MADE = 2, ROLE_STATE = 3, ROLE_OUTPUT = 4, ROLE_INPUT = 5, N_ROLES = 6 };

typedef struct picture_node {
  tn_operation *op;
  const char *name;
  const char *type; /* what its box is headed by */
  uint8_t role;
  bool label; /* a constant, or an Identity of one, that is a line in the boxes of its users */
  bool wanted;
  bool seed;      /* asked for by --around */
  uint32_t order; /* what feeds comes before what is fed, as far as there is no loop */
  uint32_t group;
  uint32_t box;
} picture_node;

typedef struct picture_edge {
  uint32_t from, to;
  int32_t output; /* -1: a control edge */
} picture_edge;

/* A scope is what stands before a slash. A family has the beginning of a name in common ("conv5_*"), a run follows each
 * other in order; both only help to fold, and are not seen when they are open. */
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
  uint32_t order;     /* of the first node */
  uint64_t signature; /* equal for groups of the same ops */
  bool open;
  uint32_t n_boxes; /* once folded */
} picture_group;

typedef struct picture_box {
  uint32_t unit;
  uint32_t more_in, more_out; /* edges to nodes that are not wanted */
} picture_box;

/* All edges of one kind between two boxes: arrows[first_edge...] in picture.merged. */
typedef struct picture_arrow {
  uint32_t from, to;
  size_t first, n;
  bool control;
  uint32_t turn; /* the number of the turn at which it ends and goes on; 0 for none */
} picture_arrow;

typedef struct picture_options {
  const char *around; /* NULL: all */
  uint32_t depth;     /* PICTURE_NONE: 2 for a node, 1 for a scope */
  uint32_t boxes;     /* 0: nothing is folded */
  uint32_t columns;   /* 0: as many as make a tall picture readable */
  bool constants, names;
} picture_options;

typedef struct picture {
  const picture_options *options;
  const char *title;
  const char *prefix; /* of the names of boxes, where one file has several pictures; NULL for none */
  /* Lines of a node's box, NULL: those of a node of a graph. */
  void (*lines)(const struct picture *p, uint32_t node, tool_text *out);
  const void *source; /* for them */
  tool_model model;
  picture_node *nodes;
  uint32_t n;
  picture_edge *edges; /* sorted by `to` */
  size_t n_edges, edges_room;
  uint32_t *by_order; /* wanted nodes */
  uint32_t n_wanted;
  uint32_t n_labels;
  uint32_t depth;
  uint32_t around_scope; /* length of the scope's name that --around asks for, 0 when it is a node */
  picture_group *groups; /* the first is the whole graph */
  size_t n_groups, groups_room;
  picture_box *boxes;
  uint32_t n_boxes;
  picture_edge *merged; /* edges between boxes, sorted into arrows */
  picture_arrow *arrows;
  size_t n_arrows;
  uint32_t n_turns;    /* arrows that end in one column and go on in the next */
  uint32_t turn_group; /* the open group that has the columns */
  uint32_t turn_box;   /* the first box of it */
} picture;

tn_status picture_read(picture *p, tn_graph *graph, const picture_options *options, tn_error *err);
void picture_group_names(picture *p);
void picture_fold(picture *p);
/* Whether a frame is drawn around an open group: around two boxes and more, and not where it would hold another frame only. */
bool picture_has_frame(const picture_group *group);
/* Divides what would be one tall column (graph_columns.c); the picture is folded. */
void picture_divide(picture *p);
void picture_write(const picture *p, tool_text *out);
/* The parts of it: what all boxes have in common, with a line of text and a legend of the roles in `roles` (bits); boxes and
 * arrows. */
void picture_write_settings(const char *title, uint32_t roles, bool folded, bool plain, tool_text *out);
void picture_write_body(const picture *p, uint32_t depth, tool_text *out);
uint32_t picture_roles(const picture *p); /* bits 1 << ROLE_... of what is drawn */
uint32_t picture_n_folded(const picture *p, uint32_t *inside); /* boxes, and the nodes in them */
/* Lists all nodes as wanted, in the order that they have. */
void picture_list_wanted(picture *p);
void picture_free(picture *p);

/* The last part of a name, behind its slashes. */
const char *picture_last_part(const char *name);
/* Whether name is scope, or lies in it. */
bool picture_in_scope(const char *name, const char *scope);

/* ---- text (graph_text.c) ---- */

/* "..." for DOT. */
void picture_add_quoted(tool_text *out, const char *text);
/* Text in an HTML-like label: what means something there is replaced. Shortened in the middle beyond `longest`
 * characters, when that is not 0. */
void picture_add_html(tool_text *out, const char *text, size_t longest);
/* "?x8x8x1 float32"; nothing of what is not known. */
void picture_add_shape(tool_text *out, tn_output output);
/* Lines in a box: of a node with its labels, of a folded group. `scope` is what the cluster around it says. */
void picture_add_node(const picture *p, uint32_t node, const char *scope, tool_text *out);
void picture_add_group(const picture *p, uint32_t group, const char *scope, tool_text *out);
/* "weights 3x3x1x32": the name of a constant without what only reads it, none where that is the user's, and its value. */
void picture_add_constant(const tn_operation *constant, const char *user, tool_text *out);
/* Beside an arrow, as plain text. */
void picture_add_arrow(const picture *p, const picture_arrow *arrow, tool_text *out);
/* Name without the scope in front; scope is "" for none. */
const char *picture_relative(const char *name, const char *scope);

/* ---- files (graph_render.c) ---- */

/* Whether a file can be put there, as far as this is known before. */
tn_status picture_check_place(const char *path, tn_error *err);
/* Puts a file there, whole or not at all. */
tn_status picture_save(const char *path, const char *data, size_t size, tn_error *err);
/* Runs `dot -T<format>`. */
tn_status picture_render(const char *format, const tool_text *dot, tool_text *out, tn_error *err);

#endif
