/* SPDX-License-Identifier: Apache-2.0 */
/* A primitive for one tuple of shapes, and the memory objects with which a step executes it; they are kept from step to
 * step. Tensors that the primitive needs in another layout are reordered through the scratch, by moves before and after
 * it. */
#include "onednn.h"

#include <string.h>

struct dnn_call {
  dnnl_exec_arg_t args[DNN_ARGS];
  void *at[DNN_ARGS]; /* current addresses of the memory objects: most stay the same from step to step */
};

/* ---- the plan ---- */

static tn_status make_attr(const dnn_setup *setup, dnnl_primitive_attr_t *out, tn_error *err)
{
  dnnl_post_ops_t ops = NULL;
  tn_status st = dnn_status(dnnl_primitive_attr_create(out), "primitive", err);
  if (st != TN_OK) return st;
  st = dnn_status(dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user), "scratchpad", err);
  if (st == TN_OK && setup->epilogue != NULL && setup->epilogue->n > 0) {
    st = dnn_status(dnnl_post_ops_create(&ops), "primitive", err);
    if (st == TN_OK) st = dnn_epilogue_append(setup->epilogue, setup->added, ops, err);
    if (st == TN_OK) st = dnn_status(dnnl_primitive_attr_set_post_ops(*out, ops), "fused step", err);
    dnnl_post_ops_destroy(ops);
  }
  return st;
}

/* oneDNN's reference implementations are for completeness, not for speed. */
static bool is_slow(const_dnnl_primitive_desc_t desc)
{
  const char *name = NULL;
  return dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &name) == dnnl_success && name != NULL &&
         strstr(name, "ref") != NULL;
}

static tn_status make_primitive(dnn_plan *p, const_dnnl_op_desc_t op, const dnn_setup *setup, dnnl_engine_t engine,
                                tn_error *err)
{
  dnnl_primitive_attr_t attr = NULL;
  int before = dnn_one_thread();
  tn_status st = make_attr(setup, &attr, err);
  if (st == TN_OK)
    st = dnn_status(dnnl_primitive_desc_create(&p->desc, op, attr, engine, setup->forward), "primitive", err);
  if (st == TN_OK && is_slow(p->desc)) st = dnn_declined(err, "no fast implementation for these shapes");
  if (st == TN_OK) st = dnn_status(dnnl_primitive_create(&p->primitive, p->desc), "primitive", err);
  dnnl_primitive_attr_destroy(attr);
  dnn_restore_threads(before);
  return st;
}

size_t dnn_plan_room(dnn_plan *p, size_t bytes)
{
  size_t at = p->scratch_bytes;
  p->scratch_bytes += (bytes + 63) & ~(size_t)63;
  return at;
}

/* Sets an argument and its memory object, after which those of concurrent calls are made. */
static void set_arg(dnn_plan *p, uint32_t i, dnn_arg arg, const dnnl_memory_desc_t *desc)
{
  if (p->failed != dnnl_success) return;
  p->args[i] = arg;
  p->first->args[i].arg = arg.arg;
  p->first->at[i] = (void *)arg.fixed;
  p->failed = dnnl_memory_create(&p->first->args[i].memory, desc, dnn_engine(NULL), (void *)arg.fixed);
}

static void add_arg(dnn_plan *p, dnn_arg arg, const dnnl_memory_desc_t *desc)
{
  if (p->n_args + p->n_moved >= DNN_ARGS) p->failed = dnnl_unimplemented;
  set_arg(p, p->n_args, arg, desc);
  if (p->failed == dnnl_success) p->n_args++;
}

tn_status dnn_plan_create(tn_prepare_ctx *ctx, const_dnnl_op_desc_t op, const dnn_setup *setup, dnn_plan **out,
                          tn_error *err)
{
  dnnl_engine_t engine = dnn_engine(err);
  *out = NULL;
  if (engine == NULL) return TN_UNIMPLEMENTED;
  dnn_plan *p = tn_alloc(sizeof *p);
  dnn_call *first = tn_alloc(sizeof *first);
  if (p == NULL || first == NULL) {
    tn_free(p);
    tn_free(first);
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "out of memory for a primitive");
  }
  memset(p, 0, sizeof *p);
  memset(first, 0, sizeof *first);
  p->first = first;
  atomic_init(&p->free_call, first);
  p->n_blocks = 1;
  if (setup->epilogue != NULL) p->epilogue = *setup->epilogue;
  p->watches = dnn_epilogue_safe(&p->epilogue) < p->epilogue.n;
  atomic_init(&p->careful, NULL);
  tn_status st = make_primitive(p, op, setup, engine, err);
  if (st != TN_OK) {
    dnn_plan_destroy(p);
    return st;
  }
  const dnnl_memory_desc_t *scratch = dnnl_primitive_desc_query_md(p->desc, dnnl_query_scratchpad_md, 0);
  size_t bytes = scratch == NULL ? 0 : dnnl_memory_desc_get_size(scratch);
  if (bytes > 0) dnn_plan_inner(p, DNNL_ARG_SCRATCHPAD, dnn_plan_room(p, bytes), scratch);
  if (!dnn_parts_add(ctx, p)) ctx->shape_state = p;
  *out = p;
  return TN_OK;
}

tn_status dnn_plan_end(dnn_plan *p, tn_prepare_ctx *ctx, tn_error *err)
{
  dnn_plan *all = ctx->shape_state;
  if (p == all->whole) {
    if (all->scratch_bytes < p->scratch_bytes) all->scratch_bytes = p->scratch_bytes;
  } else if (all != p) {
    p->scratch_at = all->scratch_bytes;
    all->scratch_bytes += p->scratch_bytes;
  }
  ctx->scratch_bytes = all->scratch_bytes;
  return dnn_status(p->failed, "memory object", err);
}

static void free_call(dnn_call *c)
{
  if (c == NULL) return;
  for (uint32_t i = 0; i < DNN_ARGS; i++)
    if (c->args[i].memory != NULL) dnnl_memory_destroy(c->args[i].memory);
  tn_free(c);
}

void dnn_plan_destroy(void *plan)
{
  dnn_plan *p = plan;
  if (p == NULL) return;
  dnn_call *kept = atomic_load(&p->free_call);
  if (kept != p->first) free_call(kept);
  free_call(p->first);
  for (uint32_t i = 0; i < p->n_moves; i++)
    dnnl_primitive_destroy(p->moves[i].primitive);
  if (p->primitive != NULL) dnnl_primitive_destroy(p->primitive);
  dnnl_primitive_t careful = atomic_load(&p->careful);
  if (careful != NULL) dnnl_primitive_destroy(careful);
  if (p->desc != NULL) dnnl_primitive_desc_destroy(p->desc);
  for (uint32_t i = 0; i < p->n_parts; i++) dnn_plan_destroy(p->parts[i]);
  dnn_plan_destroy(p->whole);
  tn_free(p->parts);
  tn_free(p->own);
  tn_free(p);
}

/* ---- moves ---- */

tn_status dnn_reorder_create(const dnnl_memory_desc_t *from, const dnnl_memory_desc_t *to, dnnl_primitive_t *out,
                             tn_error *err)
{
  dnnl_engine_t engine = dnn_engine(err);
  dnnl_primitive_desc_t desc = NULL;
  *out = NULL;
  if (engine == NULL) return TN_INTERNAL;
  int before = dnn_one_thread();
  dnnl_status_t st = dnnl_reorder_primitive_desc_create(&desc, from, engine, to, engine, NULL);
  if (st == dnnl_success) st = dnnl_primitive_create(out, desc);
  dnn_restore_threads(before);
  if (desc != NULL) dnnl_primitive_desc_destroy(desc);
  return dnn_status(st, "reorder", err);
}

/* Adds a move of n arguments, which owns the primitive; NULL if there is no room. */
static dnn_move *add_move(dnn_plan *p, dnnl_primitive_t primitive, uint32_t n, bool after)
{
  bool room = p->failed == dnnl_success && p->n_moves < DNN_MOVES && p->n_args + p->n_moved + n < DNN_ARGS;
  if (!room || primitive == NULL) {
    if (p->failed == dnnl_success) p->failed = dnnl_unimplemented;
    if (primitive != NULL) dnnl_primitive_destroy(primitive);
    return NULL;
  }
  p->n_moved += n;
  p->moves[p->n_moves] = (dnn_move){ primitive, DNN_ARGS - p->n_moved, n, after };
  return &p->moves[p->n_moves++];
}

/* Places the primitive's argument in the scratch, in layout `wanted`, and adds a move from or to the tensor. */
static void move(dnn_plan *p, dnn_arg outside, const dnnl_memory_desc_t *layout, const dnnl_memory_desc_t *wanted)
{
  bool after = outside.source == DNN_OUTPUT;
  dnn_arg inside = { .arg = outside.arg, .source = DNN_SCRATCH };
  dnnl_primitive_t primitive;
  (void)dnn_reorder_create(after ? wanted : layout, after ? layout : wanted, &primitive, NULL);
  dnn_move *m = add_move(p, primitive, 2, after);
  if (m == NULL) return;
  inside.offset = dnn_plan_room(p, dnnl_memory_desc_get_size(wanted));
  add_arg(p, inside, wanted);
  inside.arg = after ? DNNL_ARG_FROM : DNNL_ARG_TO;
  outside.arg = after ? DNNL_ARG_TO : DNNL_ARG_FROM;
  set_arg(p, m->first, inside, wanted);
  set_arg(p, m->first + 1, outside, layout);
}

void dnn_plan_before(dnn_plan *p, dnnl_primitive_t primitive, const dnnl_memory_desc_t *src,
                     const dnnl_memory_desc_t *dst, const dnnl_memory_desc_t *workspace, size_t workspace_at)
{
  dnn_move *m = add_move(p, primitive, 3, false);
  if (m == NULL) return;
  dnn_arg to = { .arg = DNNL_ARG_DST, .source = DNN_SCRATCH };
  to.offset = dnn_plan_room(p, dnnl_memory_desc_get_size(dst));
  set_arg(p, m->first, (dnn_arg){ .arg = DNNL_ARG_SRC, .source = DNN_INPUT }, src);
  set_arg(p, m->first + 1, to, dst);
  to = (dnn_arg){ .arg = DNNL_ARG_WORKSPACE, .source = DNN_SCRATCH, .offset = workspace_at };
  set_arg(p, m->first + 2, to, workspace);
}

static void add_tensor(dnn_plan *p, dnn_arg arg, const dnnl_memory_desc_t *layout, const dnnl_memory_desc_t *wanted)
{
  if (wanted == NULL || dnnl_memory_desc_equal(wanted, layout)) add_arg(p, arg, layout);
  else move(p, arg, layout, wanted);
}

void dnn_plan_input(dnn_plan *p, int32_t arg, uint32_t index, const dnnl_memory_desc_t *layout,
                    const dnnl_memory_desc_t *wanted)
{
  add_tensor(p, (dnn_arg){ .arg = arg, .source = DNN_INPUT, .index = index }, layout, wanted);
}

void dnn_plan_output(dnn_plan *p, int32_t arg, const dnnl_memory_desc_t *layout, const dnnl_memory_desc_t *wanted)
{
  add_tensor(p, (dnn_arg){ .arg = arg, .source = DNN_OUTPUT }, layout, wanted);
}

void dnn_plan_input_piece(dnn_plan *p, int32_t arg, uint32_t index, size_t offset, const dnnl_memory_desc_t *layout)
{
  add_arg(p, (dnn_arg){ .arg = arg, .source = DNN_INPUT, .index = index, .offset = offset }, layout);
}

void dnn_plan_output_piece(dnn_plan *p, int32_t arg, size_t offset, const dnnl_memory_desc_t *layout)
{
  add_arg(p, (dnn_arg){ .arg = arg, .source = DNN_OUTPUT, .offset = offset }, layout);
}

void dnn_plan_inner(dnn_plan *p, int32_t arg, size_t offset, const dnnl_memory_desc_t *desc)
{
  add_arg(p, (dnn_arg){ .arg = arg, .source = DNN_SCRATCH, .offset = offset }, desc);
}

void dnn_plan_fixed(dnn_plan *p, int32_t arg, const void *data, const dnnl_memory_desc_t *desc)
{
  add_arg(p, (dnn_arg){ .arg = arg, .source = DNN_FIXED, .fixed = data }, desc);
}

void dnn_plan_epilogue(dnn_plan *p, const dnn_epilogue *e, uint32_t first, const dnn_follow *f)
{
  uint32_t input = first;
  for (uint32_t i = 0, post = 0; i < e->n; i++) {
    if (e->steps[i] == DNN_BIAS) {
      dnn_plan_input_piece(p, DNNL_ARG_BIAS, input++, f->bias_at, f->bias);
      continue;
    }
    if (e->steps[i] == DNN_ADD)
      dnn_plan_input_piece(p, DNNL_ARG_ATTR_MULTIPLE_POST_OP((int32_t)post) | DNNL_ARG_SRC_1, input++, f->added_at,
                           f->added);
    post++;
  }
}

tn_status dnn_plan_weights(dnn_plan *p, tn_prepare_ctx *ctx, int32_t arg, uint32_t index,
                           const dnnl_memory_desc_t *from, bool each_step, tn_error *err)
{
  const dnnl_memory_desc_t *to = dnnl_primitive_desc_query_md(p->desc, dnnl_query_weights_md, 0);
  const void *packed;
  tn_status st = TN_FAILED_PRECONDITION;
  if (to == NULL || dnnl_memory_desc_equal(to, from)) {
    dnn_plan_input(p, arg, index, from, NULL);
    return TN_OK;
  }
  if (to->format_kind != dnnl_blocked || to->extra.flags != 0)
    return dnn_declined(err, "weights in a form of its own");
  if (tn_prepare_is_constant(ctx, index)) st = dnn_pack(ctx, index, from, to, &packed, err);
  if (st == TN_OK) {
    dnn_plan_fixed(p, arg, packed, to);
  } else if (st == TN_FAILED_PRECONDITION && each_step) {
    dnn_plan_input(p, arg, index, from, to);
    st = TN_OK;
  }
  return st == TN_FAILED_PRECONDITION ? dnn_declined(err, "weights that would be packed in every step") : st;
}

/* ---- calls ---- */

/* Makes a call with memory objects like those of the first call. */
static dnnl_status_t new_call(const dnn_plan *p, dnn_call **out)
{
  dnnl_engine_t engine = dnn_engine(NULL);
  dnn_call *c = tn_alloc(sizeof *c);
  *out = NULL;
  if (c == NULL) return dnnl_out_of_memory;
  memset(c, 0, sizeof *c);
  dnnl_status_t st = dnnl_success;
  for (uint32_t i = 0; st == dnnl_success && i < DNN_ARGS; i++) {
    const dnnl_memory_desc_t *desc;
    if (p->first->args[i].memory == NULL) continue;
    c->args[i].arg = p->args[i].arg;
    c->at[i] = (void *)p->args[i].fixed;
    st = dnnl_memory_get_memory_desc(p->first->args[i].memory, &desc);
    if (st == dnnl_success) st = dnnl_memory_create(&c->args[i].memory, desc, engine, c->at[i]);
  }
  if (st == dnnl_success) *out = c;
  else free_call(c);
  return st;
}

static dnnl_status_t take_call(dnn_plan *p, dnn_call **out)
{
  *out = atomic_exchange_explicit(&p->free_call, NULL, memory_order_acq_rel);
  return *out != NULL ? dnnl_success : new_call(p, out);
}

/* Keeps one free call, and always the first one, after which new ones are made; frees the others. */
static void give_call(dnn_plan *p, dnn_call *c)
{
  while ((c = atomic_exchange_explicit(&p->free_call, c, memory_order_acq_rel)) != NULL) {
    if (c == p->first) continue;
    free_call(c);
    return;
  }
}

static char *scratch_of(const tn_kernel_ctx *ctx, const dnn_plan *p) { return (char *)ctx->scratch + p->scratch_at; }

static void *address(const tn_kernel_ctx *ctx, const dnn_plan *p, const dnn_arg *a)
{
  if (a->source == DNN_SCRATCH) return scratch_of(ctx, p) + a->offset;
  return (char *)(a->source == DNN_INPUT ? ctx->inputs[a->index]->data : ctx->outputs[0]->data) + a->offset;
}

static dnnl_status_t bind(const dnn_plan *p, dnn_call *c, uint32_t first, uint32_t end, const tn_kernel_ctx *ctx)
{
  dnnl_status_t st = dnnl_success;
  for (uint32_t i = first; i < end && st == dnnl_success; i++) {
    void *at = p->args[i].source == DNN_FIXED ? c->at[i] : address(ctx, p, &p->args[i]);
    if (at == c->at[i]) continue;
    st = dnnl_memory_set_data_handle_v2(c->args[i].memory, at, NULL);
    c->at[i] = st == dnnl_success ? at : NULL;
  }
  return st;
}

static dnnl_status_t run_moves(const dnn_plan *p, const dnn_call *c, bool after, dnnl_stream_t stream)
{
  dnnl_status_t st = dnnl_success;
  for (uint32_t i = 0; i < p->n_moves && st == dnnl_success; i++)
    if (p->moves[i].after == after)
      st = dnnl_primitive_execute(p->moves[i].primitive, stream, (int)p->moves[i].n, c->args + p->moves[i].first);
  return st;
}

/* Computes the result again after a NaN was met. */
static dnnl_status_t run_carefully(dnn_plan *p, const dnn_call *c, const tn_kernel_ctx *ctx, dnnl_stream_t stream)
{
  dnnl_primitive_t primitive;
  dnnl_status_t st = dnn_careful(p, c->args, &primitive);
  for (int64_t i = 0; i < p->n_blocks && st == dnnl_success; i++) {
    if (tn_kernel_cancelled(ctx)) break;
    if (p->enter != NULL) p->enter(ctx, scratch_of(ctx, p), p->own, i);
    st = dnnl_primitive_execute(primitive, stream, (int)p->n_args, c->args);
    if (st == dnnl_success) st = dnn_careful_finish(p, c->args);
    if (p->leave != NULL) p->leave(ctx, scratch_of(ctx, p), p->own, i);
  }
  return st == dnnl_unimplemented ? dnnl_success : st; /* there is no such primitive: the first result stays */
}

#define BLOCKS_BETWEEN_LOOKS 8 /* between two checks whether the step was stopped */

static dnnl_status_t run_blocks(const dnn_plan *p, const dnn_call *c, const tn_kernel_ctx *ctx, dnnl_stream_t stream)
{
  dnnl_status_t st = dnnl_success;
  for (int64_t i = 0; i < p->n_blocks && st == dnnl_success; i++) {
    if (i % BLOCKS_BETWEEN_LOOKS == BLOCKS_BETWEEN_LOOKS - 1 && tn_kernel_cancelled(ctx)) break;
    if (p->enter != NULL) p->enter(ctx, scratch_of(ctx, p), p->own, i);
    st = dnnl_primitive_execute(p->primitive, stream, (int)p->n_args, c->args);
    if (p->leave != NULL) p->leave(ctx, scratch_of(ctx, p), p->own, i);
  }
  return st;
}

dnnl_status_t dnn_plan_execute(const tn_kernel_ctx *ctx, dnn_plan *p)
{
  dnnl_stream_t stream = dnn_stream(NULL);
  dnn_call *c;
  if (stream == NULL) return dnnl_out_of_memory;
  dnnl_status_t st = take_call(p, &c);
  if (st != dnnl_success) return st;
  st = bind(p, c, 0, p->n_args, ctx);
  if (st == dnnl_success) st = bind(p, c, DNN_ARGS - p->n_moved, DNN_ARGS, ctx);
  /* Most primitives keep the number of threads for which they were made; those that ask again get one, too. */
  int before = dnn_one_thread();
  if (st == dnnl_success) st = run_moves(p, c, false, stream);
  bool flag = p->watches && dnn_nan_watch();
  if (st == dnnl_success) st = run_blocks(p, c, ctx, stream);
  if (__builtin_expect(p->watches && dnn_nan_met(flag), 0) && st == dnnl_success) st = run_carefully(p, c, ctx, stream);
  if (st == dnnl_success) st = run_moves(p, c, true, stream);
  dnn_restore_threads(before);
  give_call(p, c);
  return st;
}

tn_status dnn_compute(tn_kernel_ctx *ctx)
{
  dnn_plan *p = (dnn_plan *)ctx->shape_state; /* only its free call changes */
  if (ctx->outputs[0]->count == 0) return TN_OK;
  if (p->n_parts > 0) return dnn_parts_compute(ctx, p);
  dnnl_status_t st = dnn_plan_execute(ctx, p);
  return st == dnnl_success ? TN_OK : dnn_status(st, "step", ctx->err);
}
