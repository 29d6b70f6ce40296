/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces a loop by one node: compiles its body, and rotates the loop if it can be rotated. */
#include <core/compile/import/frames.h>
#include <core/compile/import/inline.h>
#include <core/compile/import/rotate.h>

#include <string.h>

#define MAX_TRIES 3   /* maximum depth at which every body may be compiled twice, with all the loops in it */

/* ---- one loop ---- */

/* The signature of a loop's body. */
typedef struct body {
  tn__frame_feed *feeds; /* n: where the loop takes the value of each feed from */
  tn_output *cuts;       /* n: the output that each feed replaces */
  bool *gated;           /* n: the feed may be dead; NULL = no feed may be */
  size_t n, room, cut_room;
  size_t n_plain;        /* the feeds from here on are values of NextIterations (TN__FEED_BACK) */
  tn_output *fetches;    /* the NextIterations, then the Exits */
  tn__body_spec spec;    /* borrows from this and from the tn__frame_loop */
} body;

static tn_status add_feed(const tn__frame_finder *f, body *b, tn__frame_feed feed, tn_operation *op, int32_t index)
{
  if (!tn__grow((void **)&b->feeds, &b->room, b->n + 1, sizeof *b->feeds) ||
      !tn__grow((void **)&b->cuts, &b->cut_room, b->n + 1, sizeof *b->cuts))
    return tn__frames_no_memory(f);
  b->feeds[b->n] = feed;
  b->cuts[b->n++] = (tn_output){ op, index };
  return TN_OK;
}

/* Whether a Merge has an Enter and a NextIteration, in this order, and no other input: then its value is known before
 * the iteration runs, and *feed describes the feed in its place. */
static bool is_plain(const tn__frame_finder *f, const tn__frame_loop *l, const tn_operation *merge,
                     tn__frame_feed *feed)
{
  size_t n, n_control;
  const tn_output *in = tn__operation_inputs(merge, &n);
  tn__operation_control_inputs(merge, &n_control);
  if (n != 2 || n_control != 0 || tn__is_fed(f->c, in[0]) || tn__is_fed(f->c, in[1])) return false;
  int back = tn__op_has(in[1].op, TN_TRAIT_NEXT_ITERATION);
  const tn_operation *enter = in[1 - back].op;
  if (!tn__op_has(in[back].op, TN_TRAIT_NEXT_ITERATION)) return false;
  *feed = (tn__frame_feed){ TN__FEED_ROUND, 0, tn__pruned(f->c, in[back].op)->exit };
  while (feed->enter < l->enters.n && l->enters.items[feed->enter] != enter) feed->enter++;
  return feed->enter < l->enters.n && back == 1;
}

/* The body runs a Merge that is not plain: feeds for the NextIterations that it reads. */
static tn_status add_back_edges(const tn__frame_finder *f, body *b, const tn_operation *merge)
{
  size_t n;
  tn_status st = TN_OK;
  const tn_output *in = tn__operation_inputs(merge, &n);
  for (size_t k = 0; st == TN_OK && k < n; k++) {
    bool known = !tn__op_has(in[k].op, TN_TRAIT_NEXT_ITERATION) || tn__is_fed(f->c, in[k]);
    for (size_t i = b->n_plain; !known && i < b->n; i++) known = b->cuts[i].op == in[k].op;
    if (!known)
      st = add_feed(f, b, (tn__frame_feed){ TN__FEED_BACK, 0, tn__pruned(f->c, in[k].op)->exit }, in[k].op, 0);
  }
  return st;
}

static tn_status list_feeds(const tn__frame_finder *f, const tn__frame_loop *l, body *b)
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
static tn_status compile(const tn__frame_finder *f, const tn__frame_loop *l, body *b, tn_plan **out)
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
static bool is_simple(const body *b, const tn__frame_loop *l, const tn_plan *plan)
{
  const uint32_t *contexts = plan->conditions.outputs;
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
static tn_status try_simple(const tn__frame_finder *f, const tn__frame_loop *l, body *b, tn__plan_frame *frame)
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
static tn_status turn(const tn__frame_finder *f, const tn__frame_loop *l, const body *b, tn__plan_frame *frame)
{
  const tn__loop_ops ops = { l->enters.items, l->merges.items, l->nexts.items, l->exits.items, l->enters.n, l->merges.n,
                             l->nexts.n, l->exits.n, l->targets.n };
  return tn__loop_rotate(f->c, &ops, &b->spec, frame);
}

/* *out may be set also after a failure; the caller frees it. */
static tn_status make_frame(const tn__frame_finder *f, const tn__frame_loop *l, body *b, tn__plan_frame **out)
{
  tn__plan_frame *frame = *out = tn__zalloc(sizeof *frame + b->n * sizeof *frame->feeds);
  if (frame == NULL) return tn__frames_no_memory(f);
  frame->n_feeds = (uint32_t)b->n;
  b->fetches = tn__alloc_array(l->nexts.n + l->exits.n + 1, sizeof *b->fetches);
  if (b->fetches == NULL) return tn__frames_no_memory(f);
  frame->n_nexts = (uint32_t)l->nexts.n;
  frame->n_exits = (uint32_t)l->exits.n;
  if (b->n > 0) memcpy(frame->feeds, b->feeds, b->n * sizeof *b->feeds);
  for (size_t i = 0; i < l->nexts.n; i++) b->fetches[i].op = l->nexts.items[i];
  for (size_t i = 0; i < l->exits.n; i++) b->fetches[l->nexts.n + i].op = l->exits.items[i];
  tn_status st = try_simple(f, l, b, frame);
  if (st != TN_OK) return st;
  if (frame->simple) return turn(f, l, b, frame);
  b->gated = tn__alloc_array(b->n + 1, sizeof *b->gated);
  if (b->gated == NULL) return tn__frames_no_memory(f);
  for (size_t i = 0; i < b->n; i++) b->gated[i] = b->feeds[i].kind != TN__FEED_CONSTANT;
  return compile(f, l, b, &frame->body);
}

static void body_fini(body *b, const tn__frame_loop *l)
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

static tn_status add_node(const tn__frame_finder *f, nodes *l, uint32_t id)
{
  if (!tn__grow((void **)&l->ids, &l->room, l->n + 1, sizeof *l->ids)) return tn__frames_no_memory(f);
  l->ids[l->n++] = id;
  return TN_OK;
}

/* The loop waits for what its Enters wait for. Makes these nodes before the loop's own node. */
static tn_status list_controls(const tn__frame_finder *f, const tn__frame_loop *l, nodes *out)
{
  tn__pruner *c = f->c;
  uint32_t begin;
  tn_status st = tn__scope_begin(c->ir, c->scope, &begin);
  if (st == TN_OK && begin != TN__NONE) st = add_node(f, out, begin);
  for (size_t i = 0; st == TN_OK && i < l->enters.n; i++) {
    size_t n_control, n = 0;
    tn_operation *const *control = tn__operation_control_inputs(l->enters.items[i], &n_control);
    st = tn__prune_controls(c, control, n_control, &n);
    for (size_t k = 0; st == TN_OK && k < n; k++) st = add_node(f, out, c->scratch.controls[k]);
  }
  return st;
}

/* The node reads the inputs of the Enters and outputs the Exits. It owns the frame from here on. */
static tn_status add_loop_node(tn__frame_finder *f, const tn__frame_loop *l, tn__plan_frame *frame, uint32_t *id)
{
  tn__ir *ir = f->c->ir;
  uint32_t *inputs = tn__alloc_array(l->enters.n + 1, sizeof *inputs);
  if (inputs == NULL) return tn__frames_no_memory(f);
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

tn_status tn__frames_add_loop(tn__frame_finder *f, tn__frame_loop *l)
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
