/* SPDX-License-Identifier: Apache-2.0 */
/* Assigns the needed operations to frames, and the operations of frames to loops. */
#include <core/compile/import/frames.h>

#include <string.h>

#define MAX_DEPTH 100 /* maximum nesting of frames: each is compiled, recursively, inside the one around it */

/* ---- frames ---- */

/* The frame that `enter` opens inside `parent`. Creates it if it is new. */
static tn_status frame_in(tn__frame_finder *f, uint32_t parent, const tn_operation *enter, uint32_t *out)
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
  if (key == NULL) return tn__frames_no_memory(f);
  memcpy(key, &parent, sizeof parent);
  if (length > 0) memcpy(key + sizeof parent, name, length);
  uintptr_t known = (uintptr_t)tn__map_get(&f->by_key, key, size);
  *out = (uint32_t)known;
  bool ok = known != 0 || tn__grow((void **)&f->frames, &f->frame_room, f->n_frames + 1, sizeof *f->frames);
  if (known == 0 && ok && tn__map_put(&f->by_key, key, size, (void *)(uintptr_t)f->n_frames, NULL)) {
    *out = (uint32_t)f->n_frames;
    f->frames[f->n_frames++] = (tn__frame_info){ parent, depth, key, size };
    return TN_OK;
  }
  tn__free(key, size);
  return known != 0 ? TN_OK : tn__frames_no_memory(f);
}

/* The frame in which the outputs of an operation are read. */
static uint32_t frame_of_outputs(const tn__frame_finder *f, const tn_operation *op)
{
  const tn__op_state *s = tn__pruned(f->c, op);
  return tn__op_has(op, TN_TRAIT_EXIT) && !s->own ? f->frames[s->frame].parent : s->frame;
}

tn_operation *tn__frames_source(const tn__frame_finder *f, const tn_operation *op, size_t k, size_t *n)
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

static tn_status two_frames(const tn__frame_finder *f, const tn_operation *op, const tn_operation *a,
                            const tn_operation *b)
{
  return tn__ir_refuse(f->c->ir, op,
                       tn_error_set(f->err, TN_INVALID_ARGUMENT,
                                    "node '%s': its inputs '%s' and '%s' come from "
                                    "different frames of loops",
                                    tn_operation_name(op), tn_operation_name(a), tn_operation_name(b))); /* S-EXE-18 */
}

/* Assigns the operation to the frame of its inputs. The inputs precede it in the order, except those of the previous
 * iteration, so their frames are known. */
static tn_status assign_frame(tn__frame_finder *f, tn_operation *op)
{
  tn__op_state *s = tn__pruned(f->c, op);
  const tn_operation *first = NULL;
  uint32_t in = 0;
  size_t n = 1;
  for (size_t k = 0; k < n; k++) {
    const tn_operation *from = tn__frames_source(f, op, k, &n);
    if (from == NULL || tn__is_back_edge(from, op)) continue;
    uint32_t here = frame_of_outputs(f, from);
    if (first != NULL && here != in) return two_frames(f, op, first, from);
    if (first == NULL) first = from;
    in = here;
  }
  size_t n_in;
  const tn_output *inputs = tn__operation_inputs(op, &n_in);
  for (size_t k = 0; k < n_in; k++)
    if (inputs[k].index == 1 && tn__op_has(inputs[k].op, TN_TRAIT_MERGE))
      tn__pruned(f->c, inputs[k].op)->index_read = true;
  if (s->own) in = 0;
  else if (tn__op_has(op, TN_TRAIT_ENTER)) return frame_in(f, in, op, &s->frame);
  else if (in == 0 && tn__op_has(op, TN_TRAIT_EXIT | TN_TRAIT_NEXT_ITERATION))
    return tn__ir_refuse(f->c->ir, op,
                         tn_error_set(f->err, TN_INVALID_ARGUMENT,
                                      "node '%s' (%s) is not in a loop: no Enter leads to it",
                                      tn_operation_name(op), tn_operation_type(op)));
  s->frame = in;
  return TN_OK;
}

/* ---- loops ---- */

/* The root of the operation's union-find set. Halves the path on the way. */
static uint32_t part_of(tn__frame_finder *f, uint32_t id)
{
  tn__op_state *ops = f->c->ops;
  while (ops[id].part != id) id = ops[id].part = ops[ops[id].part].part;
  return id;
}

/* Puts an operation in a frame and its inputs in frames into one set: they belong to one loop. */
static tn_status connect(tn__frame_finder *f, const tn_operation *op)
{
  uint32_t id = tn__operation_id(op);
  size_t n = 1;
  for (size_t k = 0; k < n; k++) {
    const tn_operation *from = tn__frames_source(f, op, k, &n);
    if (from == NULL || frame_of_outputs(f, from) == 0) continue;
    if (tn__is_back_edge(from, op) && frame_of_outputs(f, from) != f->c->ops[id].frame)
      return two_frames(f, op, op, from);
    f->c->ops[part_of(f, tn__operation_id(from))].part = part_of(f, id);
  }
  return TN_OK;
}

tn_status tn__frames_loop_of(tn__frame_finder *f, const tn_operation *op, uint32_t *out)
{
  tn__op_state *root = &f->c->ops[part_of(f, tn__operation_id(op))];
  if (root->loop == TN__NONE) {
    if (!tn__grow((void **)&f->loops, &f->loop_room, f->n_loops + 1, sizeof *f->loops)) return tn__frames_no_memory(f);
    f->loops[f->n_loops] = (tn__frame_loop){ .visit = 0 };
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
    if (tn__op_has(in[k].op, TN_TRAIT_NEXT_ITERATION)) return true;
  return false;
}

/* A feed has one value, but an edge in a loop has one for each iteration. Only the input of an outermost Enter can be
 * fed. */
static tn_status check_feeds(const tn__frame_finder *f, const tn_operation *op)
{
  size_t n;
  const tn_output *in = tn__operation_inputs(op, &n);
  for (size_t k = 0; k < n; k++)
    if (tn__is_fed(f->c, in[k]) &&
        !(tn__op_has(op, TN_TRAIT_ENTER) && f->frames[tn__pruned(f->c, op)->frame].depth == 1))
      return tn__ir_refuse(f->c->ir, op,
                           tn_error_set(f->err, TN_INVALID_ARGUMENT,
                                        "'%s:%d' is fed but node '%s' reads it inside a loop: "
                                        "only inputs of a loop can be fed",
                                        tn_operation_name(in[k].op), (int)in[k].index, tn_operation_name(op)));
  return TN_OK;
}

/* Adds an operation in a frame to the lists of its loop. */
static tn_status sort_in(tn__frame_finder *f, tn_operation *op)
{
  tn__op_state *s = tn__pruned(f->c, op);
  uint32_t k;
  tn_status st = check_feeds(f, op);
  if (st == TN_OK) st = tn__frames_loop_of(f, op, &k);
  if (st != TN_OK) return st;
  tn__frame_loop *l = &f->loops[k];
  s->in_loop = true;
  if (s->wanted) st = tn__op_list_add(f, &l->targets, op);
  if (st != TN_OK || f->frames[s->frame].depth != 1) return st;
  if (tn__op_has(op, TN_TRAIT_ENTER))
    return tn__op_list_add(f, tn__enters_constant(f->c, op) ? &l->own : &l->enters, op);
  if (tn__op_has(op, TN_TRAIT_MERGE)) return begins_iteration(op) ? tn__op_list_add(f, &l->merges, op) : TN_OK;
  tn__op_list *to;
  if (tn__op_has(op, TN_TRAIT_EXIT)) to = &l->exits;
  else if (tn__op_has(op, TN_TRAIT_NEXT_ITERATION)) to = &l->nexts;
  else return TN_OK;
  s->exit = (uint32_t)to->n;
  s->leaves = to == &l->exits;
  st = tn__op_list_add(f, to, op);
  return st == TN_OK ? tn__op_list_add(f, &l->own, op) : st;
}

tn_status tn__frames_find_loops(tn__frame_finder *f)
{
  tn__pruner *c = f->c;
  if (!tn__grow((void **)&f->frames, &f->frame_room, 1, sizeof *f->frames)) return tn__frames_no_memory(f);
  f->frames[f->n_frames++] = (tn__frame_info){ 0, 0, NULL, 0 };
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
