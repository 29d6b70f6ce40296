/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of graphs: assigns the needed operations to frames, and replaces each loop by one node.
 *
 * An Enter opens a frame, identified by its name and the frame of its input; an Exit leads out of it. Operations that
 * are connected within the outermost frames form one loop. Its body is compiled as a signature of the same graph. The
 * signature is fed at the Enters and at the Merges that begin an iteration, and fetches the NextIterations and the
 * Exits. Inner loops are found when the body is compiled. */
#include <core/compile/import/inline.h>
#include <core/compile/import/rotate.h>

#include <string.h>

#define MAX_DEPTH 100 /* maximum nesting of frames: each is compiled, recursively, inside the one around it */
#define MAX_TRIES 3   /* maximum depth at which every body may be compiled twice, with all the loops in it */

/* A frame. Number 0 is the plan's own. */
typedef struct frame_info {
  uint32_t parent, depth;
  char *key; /* number of the parent, then the name; owned. by_key borrows it */
  size_t key_size;
} frame_info;

typedef struct list {
  tn_operation **items;
  size_t n, room;
} list;

/* Operations of one loop. All lists but `targets` have only those of its outermost frame. */
typedef struct loop {
  list enters; /* without those of constants */
  list nexts, exits, merges;
  list targets;  /* in any of its frames */
  list own;      /* nexts, exits, and Enters of constants: in the body they only forward */
  uint8_t visit; /* 0 = not seen, 1 = on the stack, 2 = added */
} loop;

/* An entry of the plan's order: an operation of the plan's own frame, or a whole loop. */
typedef struct unit {
  tn_operation *op;
  uint32_t loop; /* index of the loop; TN__NONE = the operation */
  size_t next;   /* next edge to visit; of a loop, see next_needed */
} unit;

typedef struct finder {
  tn__pruner *c; /* borrowed */
  frame_info *frames;
  size_t n_frames, frame_room;
  tn__map by_key; /* to the number of a frame */
  loop *loops;
  size_t n_loops, loop_room;
  unit *stack; /* of the walk that adds units in order */
  size_t depth, stack_room;
  uint8_t *seen; /* by operation of the plan's own frame: 0 = not seen, 1 = on the stack, 2 = added */
  tn_error *err;
} finder;

static tn_status no_memory(const finder *f) { return tn__ir_no_memory(f->c->ir); }

static tn_status add(const finder *f, list *l, tn_operation *op)
{
  if (!tn__grow((void **)&l->items, &l->room, l->n + 1, sizeof *l->items)) return no_memory(f);
  l->items[l->n++] = op;
  return TN_OK;
}

static bool has(const tn_operation *op, uint32_t trait) { return (tn__operation_traits(op) & trait) != 0; }

/* ---- frames ---- */

/* The frame that `enter` opens inside `parent`. Creates it if it is new. */
static tn_status frame_in(finder *f, uint32_t parent, const tn_operation *enter, uint32_t *out)
{
  const char *name;
  size_t length;
  tn_status st = tn_operation_attr_string(enter, "frame_name", &name, &length, f->err);
  if (st != TN_OK) return tn__ir_refuse(f->c->ir, enter, st);
  uint32_t depth = f->frames[parent].depth + 1;
  if (depth + f->c->spec->depth > MAX_DEPTH)
    return tn__ir_refuse(f->c->ir, enter,
                         tn_error_set(f->err, TN_RESOURCE_EXHAUSTED,
                                      "node '%s': loops are nested more than "
                                      "%d deep",
                                      tn_operation_name(enter), MAX_DEPTH));
  size_t size = sizeof parent + length;
  char *key = tn__alloc(size);
  if (key == NULL) return no_memory(f);
  memcpy(key, &parent, sizeof parent);
  if (length > 0) memcpy(key + sizeof parent, name, length);
  uintptr_t known = (uintptr_t)tn__map_get(&f->by_key, key, size);
  *out = (uint32_t)known;
  bool ok = known != 0 || tn__grow((void **)&f->frames, &f->frame_room, f->n_frames + 1, sizeof *f->frames);
  if (known == 0 && ok && tn__map_put(&f->by_key, key, size, (void *)(uintptr_t)f->n_frames, NULL)) {
    *out = (uint32_t)f->n_frames;
    f->frames[f->n_frames++] = (frame_info){ parent, depth, key, size };
    return TN_OK;
  }
  tn__free(key, size);
  return known != 0 ? TN_OK : no_memory(f);
}

/* The frame in which the outputs of an operation are read. */
static uint32_t frame_of_outputs(const finder *f, const tn_operation *op)
{
  const tn__op_state *s = tn__pruned(f->c, op);
  return has(op, TN_TRAIT_EXIT) && !s->own ? f->frames[s->frame].parent : s->frame;
}

/* The operation that op needs at edge k; NULL if it needs none there: the edge is fed, has the value of the previous
 * iteration, or delays nothing. *n is the number of edges. */
static tn_operation *source(const finder *f, const tn_operation *op, size_t k, size_t *n)
{
  size_t n_in, n_control;
  const tn_output *in = tn__operation_inputs(op, &n_in);
  tn_operation *const *control = tn__operation_control_inputs(op, &n_control);
  *n = n_in + n_control;
  if (k >= n_in + n_control) return NULL;
  if (k >= n_in) return tn__is_past(f->c, control[k - n_in]) ? NULL : control[k - n_in];
  if (tn__is_fed(f->c, in[k]) || (tn__is_back_edge(in[k].op, op) && tn__pruned(f->c, in[k].op)->back != TN__NONE))
    return NULL;
  return tn__rotated(f->c, in[k].op);
}

static tn_status two_frames(const finder *f, const tn_operation *op, const tn_operation *a, const tn_operation *b)
{
  return tn__ir_refuse(f->c->ir, op,
                       tn_error_set(f->err, TN_INVALID_ARGUMENT,
                                    "node '%s': its inputs '%s' and '%s' come from "
                                    "different frames of loops",
                                    tn_operation_name(op), tn_operation_name(a), tn_operation_name(b))); /* S-EXE-18 */
}

/* Assigns the operation to the frame of its inputs. The inputs precede it in the order, except those of the previous
 * iteration, so their frames are known. */
static tn_status assign_frame(finder *f, tn_operation *op)
{
  tn__op_state *s = tn__pruned(f->c, op);
  const tn_operation *first = NULL;
  uint32_t in = 0;
  size_t n = 1;
  for (size_t k = 0; k < n; k++) {
    const tn_operation *from = source(f, op, k, &n);
    if (from == NULL || tn__is_back_edge(from, op)) continue;
    uint32_t here = frame_of_outputs(f, from);
    if (first != NULL && here != in) return two_frames(f, op, first, from);
    if (first == NULL) first = from;
    in = here;
  }
  size_t n_in;
  const tn_output *inputs = tn__operation_inputs(op, &n_in);
  for (size_t k = 0; k < n_in; k++)
    if (inputs[k].index == 1 && has(inputs[k].op, TN_TRAIT_MERGE)) tn__pruned(f->c, inputs[k].op)->index_read = true;
  if (s->own) in = 0;
  else if (has(op, TN_TRAIT_ENTER)) return frame_in(f, in, op, &s->frame);
  else if (in == 0 && has(op, TN_TRAIT_EXIT | TN_TRAIT_NEXT_ITERATION))
    return tn__ir_refuse(f->c->ir, op,
                         tn_error_set(f->err, TN_INVALID_ARGUMENT,
                                      "node '%s' (%s) is not in a loop: no Enter leads to it",
                                      tn_operation_name(op), tn_operation_type(op)));
  s->frame = in;
  return TN_OK;
}

/* ---- loops ---- */

/* The root of the operation's union-find set. Halves the path on the way. */
static uint32_t part_of(finder *f, uint32_t id)
{
  tn__op_state *ops = f->c->ops;
  while (ops[id].part != id) id = ops[id].part = ops[ops[id].part].part;
  return id;
}

/* Puts an operation in a frame and its inputs in frames into one set: they belong to one loop. */
static tn_status connect(finder *f, const tn_operation *op)
{
  uint32_t id = tn__operation_id(op);
  size_t n = 1;
  for (size_t k = 0; k < n; k++) {
    const tn_operation *from = source(f, op, k, &n);
    if (from == NULL || frame_of_outputs(f, from) == 0) continue;
    if (tn__is_back_edge(from, op) && frame_of_outputs(f, from) != f->c->ops[id].frame)
      return two_frames(f, op, op, from);
    f->c->ops[part_of(f, tn__operation_id(from))].part = part_of(f, id);
  }
  return TN_OK;
}

/* The loop of an operation in a frame. Creates it if it is new. */
static tn_status loop_of(finder *f, const tn_operation *op, uint32_t *out)
{
  tn__op_state *root = &f->c->ops[part_of(f, tn__operation_id(op))];
  if (root->loop == TN__NONE) {
    if (!tn__grow((void **)&f->loops, &f->loop_room, f->n_loops + 1, sizeof *f->loops)) return no_memory(f);
    f->loops[f->n_loops] = (loop){ .visit = 0 };
    root->loop = (uint32_t)f->n_loops++;
  }
  *out = root->loop;
  return TN_OK;
}

static bool begins_iteration(const tn_operation *merge)
{
  size_t n;
  const tn_output *in = tn__operation_inputs(merge, &n);
  for (size_t k = 0; k < n; k++)
    if (has(in[k].op, TN_TRAIT_NEXT_ITERATION)) return true;
  return false;
}

/* A feed has one value, but an edge in a loop has one for each iteration. Only the input of an outermost Enter can be
 * fed. */
static tn_status check_feeds(const finder *f, const tn_operation *op)
{
  size_t n;
  const tn_output *in = tn__operation_inputs(op, &n);
  for (size_t k = 0; k < n; k++)
    if (tn__is_fed(f->c, in[k]) && !(has(op, TN_TRAIT_ENTER) && f->frames[tn__pruned(f->c, op)->frame].depth == 1))
      return tn__ir_refuse(f->c->ir, op,
                           tn_error_set(f->err, TN_INVALID_ARGUMENT,
                                        "'%s:%d' is fed but node '%s' reads it inside a loop: "
                                        "only inputs of a loop can be fed",
                                        tn_operation_name(in[k].op), (int)in[k].index, tn_operation_name(op)));
  return TN_OK;
}

/* Adds an operation in a frame to the lists of its loop. */
static tn_status sort_in(finder *f, tn_operation *op)
{
  tn__op_state *s = tn__pruned(f->c, op);
  uint32_t k;
  tn_status st = check_feeds(f, op);
  if (st == TN_OK) st = loop_of(f, op, &k);
  if (st != TN_OK) return st;
  loop *l = &f->loops[k];
  s->in_loop = true;
  if (s->wanted) st = add(f, &l->targets, op);
  if (st != TN_OK || f->frames[s->frame].depth != 1) return st;
  if (has(op, TN_TRAIT_ENTER)) return add(f, tn__enters_constant(f->c, op) ? &l->own : &l->enters, op);
  if (has(op, TN_TRAIT_MERGE)) return begins_iteration(op) ? add(f, &l->merges, op) : TN_OK;
  list *to;
  if (has(op, TN_TRAIT_EXIT)) to = &l->exits;
  else if (has(op, TN_TRAIT_NEXT_ITERATION)) to = &l->nexts;
  else return TN_OK;
  s->exit = (uint32_t)to->n;
  s->leaves = to == &l->exits;
  st = add(f, to, op);
  return st == TN_OK ? add(f, &l->own, op) : st;
}

/* Assigns frames, joins the operations of each loop, then fills the lists of the loops. */
static tn_status find_loops(finder *f)
{
  tn__pruner *c = f->c;
  if (!tn__grow((void **)&f->frames, &f->frame_room, 1, sizeof *f->frames)) return no_memory(f);
  f->frames[f->n_frames++] = (frame_info){ 0, 0, NULL, 0 };
  tn_status st = TN_OK;
  for (size_t i = 0; i < c->n_ops; i++) {
    c->ops[i].part = (uint32_t)i;
    c->ops[i].loop = TN__NONE;
  }
  for (size_t i = 0; st == TN_OK && i < c->n_order; i++) st = assign_frame(f, c->order[i]);
  for (size_t i = 0; st == TN_OK && i < c->n_order; i++)
    if (tn__pruned(c, c->order[i])->frame != 0) st = connect(f, c->order[i]);
  for (size_t i = 0; st == TN_OK && i < c->n_order; i++)
    if (tn__pruned(c, c->order[i])->frame != 0) st = sort_in(f, c->order[i]);
  return st;
}

/* ---- one loop ---- */

/* The signature of a loop's body. */
typedef struct body {
  tn__frame_feed *feeds; /* n: where the loop takes the value of each feed from */
  tn_output *cuts;       /* n: the output that each feed replaces */
  bool *gated;           /* n: the feed may be dead; NULL = no feed may be */
  size_t n, room, cut_room;
  size_t n_plain;        /* the feeds from here on are values of NextIterations (TN__FEED_BACK) */
  tn_output *fetches;    /* the NextIterations, then the Exits */
  tn__body_spec spec;    /* borrows from this and from the loop */
} body;

static tn_status add_feed(const finder *f, body *b, tn__frame_feed feed, tn_operation *op, int32_t index)
{
  if (!tn__grow((void **)&b->feeds, &b->room, b->n + 1, sizeof *b->feeds) ||
      !tn__grow((void **)&b->cuts, &b->cut_room, b->n + 1, sizeof *b->cuts))
    return no_memory(f);
  b->feeds[b->n] = feed;
  b->cuts[b->n++] = (tn_output){ op, index };
  return TN_OK;
}

/* Whether a Merge has an Enter and a NextIteration, in this order, and no other input: then its value is known before
 * the iteration runs, and *feed describes the feed in its place. */
static bool is_plain(const finder *f, const loop *l, const tn_operation *merge, tn__frame_feed *feed)
{
  size_t n, n_control;
  const tn_output *in = tn__operation_inputs(merge, &n);
  tn__operation_control_inputs(merge, &n_control);
  if (n != 2 || n_control != 0 || tn__is_fed(f->c, in[0]) || tn__is_fed(f->c, in[1])) return false;
  int back = has(in[1].op, TN_TRAIT_NEXT_ITERATION);
  const tn_operation *enter = in[1 - back].op;
  if (!has(in[back].op, TN_TRAIT_NEXT_ITERATION)) return false;
  *feed = (tn__frame_feed){ TN__FEED_ROUND, 0, tn__pruned(f->c, in[back].op)->exit };
  while (feed->enter < l->enters.n && l->enters.items[feed->enter] != enter) feed->enter++;
  return feed->enter < l->enters.n && back == 1;
}

/* The body runs a Merge that is not plain: feeds for the NextIterations that it reads. */
static tn_status add_back_edges(const finder *f, body *b, const tn_operation *merge)
{
  size_t n;
  tn_status st = TN_OK;
  const tn_output *in = tn__operation_inputs(merge, &n);
  for (size_t k = 0; st == TN_OK && k < n; k++) {
    bool known = !has(in[k].op, TN_TRAIT_NEXT_ITERATION) || tn__is_fed(f->c, in[k]);
    for (size_t i = b->n_plain; !known && i < b->n; i++) known = b->cuts[i].op == in[k].op;
    if (!known)
      st = add_feed(f, b, (tn__frame_feed){ TN__FEED_BACK, 0, tn__pruned(f->c, in[k].op)->exit }, in[k].op, 0);
  }
  return st;
}

static tn_status list_feeds(const finder *f, const loop *l, body *b)
{
  tn_status st = TN_OK;
  tn__frame_feed feed;
  for (size_t i = 0; st == TN_OK && i < l->enters.n; i++) {
    tn_bool constant = 0;
    tn_operation_attr_bool(l->enters.items[i], "is_constant", &constant, NULL);
    feed = (tn__frame_feed){ constant ? TN__FEED_CONSTANT : TN__FEED_FIRST, (uint32_t)i, 0 };
    st = add_feed(f, b, feed, l->enters.items[i], 0);
  }
  for (size_t i = 0; st == TN_OK && i < l->merges.n; i++) {
    tn_operation *merge = l->merges.items[i];
    if (!is_plain(f, l, merge, &feed)) continue;
    st = add_feed(f, b, feed, merge, 0);
    feed.kind = TN__FEED_INDEX;
    if (st == TN_OK && tn__pruned(f->c, merge)->index_read) st = add_feed(f, b, feed, merge, 1);
  }
  b->n_plain = b->n;
  for (size_t i = 0; st == TN_OK && i < l->merges.n; i++)
    if (!is_plain(f, l, l->merges.items[i], &feed)) st = add_back_edges(f, b, l->merges.items[i]);
  return st;
}

/* Compiles the body into *out, and releases the plan that was there. */
static tn_status compile(const finder *f, const loop *l, body *b, tn_plan **out)
{
  const tn__signature_spec *around = f->c->spec;
  b->spec = (tn__body_spec){ .own = l->own.items, .n_own = l->own.n, .n_plain = b->n_plain, .gated = b->gated };
  tn__signature_spec spec = *around;
  spec.feeds = b->cuts;
  spec.n_feeds = b->n;
  spec.fetches = b->fetches;
  spec.n_fetches = l->nexts.n + l->exits.n;
  spec.targets = l->targets.items;
  spec.n_targets = l->targets.n;
  spec.body = &b->spec;
  spec.inlined_nodes = tn__inlined_nodes(f->c->ir);
  spec.depth++;
  uint32_t failed = 0; /* counts in all loops inside */
  if (spec.failed_tries == NULL) spec.failed_tries = &failed;
  tn__plan_unref(*out);
  *out = NULL;
  return spec.compile(f->c->graph, &spec, out, f->err);
}

/* Whether the loop is simple: its NextIterations are live or dead together, its Exits are live exactly when these are
 * dead, and no feed can be dead. */
static bool is_simple(const body *b, const loop *l, const tn_plan *plan)
{
  const uint32_t *contexts = plan->output_contexts;
  for (size_t i = 0; i < b->n; i++)
    if ((b->feeds[i].kind == TN__FEED_FIRST && plan->inputs[i] != TN__NONE) || b->feeds[i].kind == TN__FEED_BACK)
      return false;
  for (size_t i = 1; i < l->nexts.n; i++)
    if (contexts[i] != contexts[0]) return false;
  for (size_t i = 1; i < l->exits.n; i++)
    if (contexts[l->nexts.n + i] != contexts[l->nexts.n]) return false;
  if (l->nexts.n == 0) return l->exits.n == 0 || contexts[0] == 0;
  return l->exits.n == 0 || tn__contexts_oppose(plan, contexts[0], contexts[l->nexts.n]);
}

/* Compiles the body on the assumption that no feed can be dead. That is correct if the loop turns out to be simple, as
 * most are. From depth MAX_TRIES on, the first body that is not simple fails the attempt for all its enclosing loops
 * out to the one at depth MAX_TRIES. These are then compiled directly with feeds that may be dead, so each of these
 * bodies is compiled at most twice. The caller checks frame->simple. */
static tn_status try_simple(const finder *f, const loop *l, body *b, tn__plan_frame *frame)
{
  const tn__signature_spec *around = f->c->spec;
  uint32_t *failed = around->failed_tries, unused = 0;
  if (failed == NULL) failed = &unused;
  if (around->depth >= MAX_TRIES && *failed > 0) return TN_OK;
  tn_status st = compile(f, l, b, &frame->body);
  if (st != TN_OK && (around->depth != MAX_TRIES || *failed == 0)) return st;
  frame->simple = st == TN_OK && is_simple(b, l, frame->body);
  if (frame->simple || around->depth < MAX_TRIES) return st;
  ++*failed;
  if (around->depth > MAX_TRIES)
    return tn_error_set(f->err, TN_ABORTED, "the body of a loop has values that may be dead");
  tn__error_reset(f->err);
  return TN_OK;
}

/* Rotates the loop if it has the usual form (rotate.c). */
static tn_status turn(const finder *f, const loop *l, const body *b, tn__plan_frame *frame)
{
  const tn__loop_ops ops = { l->enters.items, l->merges.items, l->nexts.items, l->exits.items, l->enters.n, l->merges.n,
                             l->nexts.n, l->exits.n, l->targets.n };
  return tn__loop_rotate(f->c, &ops, &b->spec, frame);
}

/* *out may be set also after a failure; the caller frees it. */
static tn_status make_frame(const finder *f, const loop *l, body *b, tn__plan_frame **out)
{
  tn__plan_frame *frame = *out = tn__zalloc(sizeof *frame + b->n * sizeof *frame->feeds);
  if (frame == NULL) return no_memory(f);
  frame->n_feeds = (uint32_t)b->n;
  b->fetches = tn__alloc_array(l->nexts.n + l->exits.n + 1, sizeof *b->fetches);
  if (b->fetches == NULL) return no_memory(f);
  frame->n_nexts = (uint32_t)l->nexts.n;
  frame->n_exits = (uint32_t)l->exits.n;
  if (b->n > 0) memcpy(frame->feeds, b->feeds, b->n * sizeof *b->feeds);
  for (size_t i = 0; i < l->nexts.n; i++) b->fetches[i].op = l->nexts.items[i];
  for (size_t i = 0; i < l->exits.n; i++) b->fetches[l->nexts.n + i].op = l->exits.items[i];
  tn_status st = try_simple(f, l, b, frame);
  if (st != TN_OK) return st;
  if (frame->simple) return turn(f, l, b, frame);
  b->gated = tn__alloc_array(b->n + 1, sizeof *b->gated);
  if (b->gated == NULL) return no_memory(f);
  for (size_t i = 0; i < b->n; i++) b->gated[i] = b->feeds[i].kind != TN__FEED_CONSTANT;
  return compile(f, l, b, &frame->body);
}

static void body_fini(body *b, const loop *l)
{
  if (b->fetches != NULL) tn__free(b->fetches, (l->nexts.n + l->exits.n + 1) * sizeof *b->fetches);
  if (b->gated != NULL) tn__free(b->gated, (b->n + 1) * sizeof *b->gated);
  tn__free(b->feeds, b->room * sizeof *b->feeds);
  tn__free(b->cuts, b->cut_room * sizeof *b->cuts);
}

typedef struct nodes { /* a list of ids */
  uint32_t *ids;
  size_t n, room;
} nodes;

static tn_status add_node(const finder *f, nodes *l, uint32_t id)
{
  if (!tn__grow((void **)&l->ids, &l->room, l->n + 1, sizeof *l->ids)) return no_memory(f);
  l->ids[l->n++] = id;
  return TN_OK;
}

/* The loop waits for what its Enters wait for. Makes these nodes before the loop's own node. */
static tn_status list_controls(const finder *f, const loop *l, nodes *out)
{
  tn__pruner *c = f->c;
  uint32_t begin;
  tn_status st = tn__scope_begin(c->ir, c->scope, &begin);
  if (st == TN_OK && begin != TN__NONE) st = add_node(f, out, begin);
  for (size_t i = 0; st == TN_OK && i < l->enters.n; i++) {
    size_t n_control, n = 0;
    tn_operation *const *control = tn__operation_control_inputs(l->enters.items[i], &n_control);
    st = tn__prune_controls(c, control, n_control, &n);
    for (size_t k = 0; st == TN_OK && k < n; k++) st = add_node(f, out, c->controls[k]);
  }
  return st;
}

/* The node reads the inputs of the Enters and outputs the Exits. It owns the frame from here on. */
static tn_status add_loop_node(finder *f, const loop *l, tn__plan_frame *frame, uint32_t *id)
{
  tn__ir *ir = f->c->ir;
  uint32_t *inputs = tn__alloc_array(l->enters.n + 1, sizeof *inputs);
  if (inputs == NULL) return no_memory(f);
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < l->enters.n; i++)
    st = tn__prune_inputs(f->c, l->enters.items[i], &inputs[i], 1);
  const tn_operation *name = l->enters.n > 0 ? l->enters.items[0] : l->own.items[0];
  if (st == TN_OK)
    st = tn__ir_add_special(ir, name, TN_TRAIT_ENTER | TN_TRAIT_STATEFUL, inputs, (uint32_t)l->enters.n,
                            (uint32_t)l->exits.n, id);
  tn__free(inputs, (l->enters.n + 1) * sizeof *inputs);
  if (st != TN_OK) return st;
  ir->nodes[*id].frame = frame;
  ir->nodes[*id].may_be_dead |= !frame->simple;
  for (size_t i = 0; i < l->exits.n; i++) {
    tn__ir_value *v = &ir->values[ir->nodes[*id].first_value + i];
    tn_dtype dtype = tn_operation_output_dtype(l->exits.items[i], 0);
    v->by_ref = tn__dtype_is_ref(dtype);
    v->dtype = v->by_ref ? TN_RESOURCE : dtype;
    v->output = (tn_output){ l->exits.items[i], 0 };
  }
  return TN_OK;
}

static tn_status add_loop(finder *f, loop *l)
{
  body b = { .n = 0 };
  nodes controls = { .n = 0 };
  tn__plan_frame *frame = NULL;
  uint32_t id = TN__NONE;
  tn_status st = list_feeds(f, l, &b);
  if (st == TN_OK) st = make_frame(f, l, &b, &frame);
  if (st == TN_OK) st = list_controls(f, l, &controls);
  if (st == TN_OK) st = add_loop_node(f, l, frame, &id);
  if (id != TN__NONE && f->c->ir->nodes[id].frame == frame) frame = NULL;
  for (size_t i = 0; st == TN_OK && i < controls.n; i++) st = tn__ir_add_control(f->c->ir, id, controls.ids[i]);
  tn__free(controls.ids, controls.room * sizeof *controls.ids);
  body_fini(&b, l);
  tn__plan_frame_destroy(frame);
  if (st != TN_OK) return st;
  for (size_t i = 0; i < l->own.n; i++) tn__pruned(f->c, l->own.items[i])->node = id;
  for (size_t i = 0; i < l->targets.n; i++) tn__pruned(f->c, l->targets.items[i])->node = id;
  return TN_OK;
}

/* ---- the order ---- */

/* The next operation that a unit needs: one of the plan's own frame, or one in a loop. NULL if there is none left. For
 * a loop, the upper 32 bits of u->next are the index of an Enter, the lower 32 bits that of an edge of it. */
static tn_operation *next_needed(finder *f, unit *u)
{
  size_t n = SIZE_MAX;
  if (u->loop == TN__NONE) {
    while (u->next < n) {
      tn_operation *from = source(f, u->op, u->next, &n);
      u->next++;
      if (from != NULL && !tn__is_back_edge(from, u->op)) return from;
    }
    return NULL;
  }
  const loop *l = &f->loops[u->loop];
  while (u->next >> 32 < l->enters.n) {
    tn_operation *from = source(f, l->enters.items[u->next >> 32], (uint32_t)u->next, &n);
    u->next = (uint32_t)u->next + 1 < n ? u->next + 1 : ((u->next >> 32) + 1) << 32;
    if (from != NULL) return from;
  }
  return NULL;
}

/* Pushes the unit of an operation unless it has been seen. */
static tn_status push(finder *f, tn_operation *op)
{
  uint8_t *seen = &f->seen[tn__operation_id(op)];
  unit u = { op, TN__NONE, 0 };
  if (tn__pruned(f->c, op)->frame != 0) {
    tn_status st = loop_of(f, op, &u.loop);
    if (st != TN_OK) return st;
    seen = &f->loops[u.loop].visit;
    if (*seen == 1) /* the graph refuses cycles outside loops */
      return tn__ir_refuse(f->c->ir, op,
                           tn_error_set(f->err, TN_INVALID_ARGUMENT,
                                        "node '%s': an input of its loop depends on "
                                        "an output of the loop",
                                        tn_operation_name(op)));
  }
  if (*seen != 0) return TN_OK;
  if (!tn__grow((void **)&f->stack, &f->stack_room, f->depth + 1, sizeof *f->stack)) return no_memory(f);
  *seen = 1;
  f->stack[f->depth++] = u;
  return TN_OK;
}

/* Adds the nodes of a unit after those of everything that it needs. */
static tn_status add_in_order(finder *f, tn_operation *root)
{
  tn_status st = push(f, root);
  while (st == TN_OK && f->depth > 0) {
    tn_operation *from = next_needed(f, &f->stack[f->depth - 1]);
    if (from != NULL) {
      st = push(f, from);
      continue;
    }
    const unit u = f->stack[--f->depth];
    st = u.loop == TN__NONE ? tn__prune_add(f->c, u.op) : add_loop(f, &f->loops[u.loop]);
    if (u.loop == TN__NONE) f->seen[tn__operation_id(u.op)] = 2;
    else f->loops[u.loop].visit = 2;
  }
  return st;
}

static void list_fini(list *l) { tn__free(l->items, l->room * sizeof *l->items); }

static void finder_fini(finder *f)
{
  for (size_t i = 1; i < f->n_frames; i++) tn__free(f->frames[i].key, f->frames[i].key_size);
  tn__free(f->frames, f->frame_room * sizeof *f->frames);
  tn__map_fini(&f->by_key);
  for (size_t i = 0; i < f->n_loops; i++) {
    loop *l = &f->loops[i];
    list *const lists[] = { &l->enters, &l->nexts, &l->exits, &l->merges, &l->targets, &l->own };
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) list_fini(lists[k]);
  }
  tn__free(f->loops, f->loop_room * sizeof *f->loops);
  tn__free(f->stack, f->stack_room * sizeof *f->stack);
  tn__free(f->seen, f->c->n_ops + 1);
}

tn_status tn__prune_add_loops(tn__pruner *c)
{
  finder f = { .c = c, .err = c->ir->err };
  tn__map_init(&f.by_key);
  f.seen = tn__alloc_array(c->n_ops + 1, 1);
  tn_status st = f.seen == NULL ? no_memory(&f) : find_loops(&f);
  for (size_t i = 0; st == TN_OK && i < c->n_order; i++) st = add_in_order(&f, c->order[i]);
  finder_fini(&f);
  return st;
}
