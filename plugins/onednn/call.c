/* SPDX-License-Identifier: Apache-2.0 */
/* A primitive for one tuple of shapes, and what a step needs to execute it: memory objects, kept from step to step. */
#include "onednn.h"

#include <string.h>

struct dnn_call {
  dnnl_exec_arg_t args[DNN_ARGS];
  void *at[DNN_ARGS]; /* addresses that the memory objects have: most stay from step to step */
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

/* Reference implementations are there for completeness, not for speed. */
static bool is_slow(const_dnnl_primitive_desc_t desc)
{
  const char *name = NULL;
  return dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &name) == dnnl_success && name != NULL &&
         strstr(name, "ref") != NULL;
}

tn_status dnn_plan_create(tn_prepare_ctx *ctx, const_dnnl_op_desc_t op, const dnn_setup *setup, dnn_plan **out,
                          tn_error *err)
{
  dnnl_engine_t engine = dnn_engine(err);
  *out = NULL;
  if (engine == NULL) return TN_UNIMPLEMENTED;
  dnn_plan *p = tn_alloc(sizeof *p);
  if (p == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "out of memory for a primitive");
  memset(p, 0, sizeof *p);
  dnnl_primitive_attr_t attr = NULL;
  int before = dnn_one_thread();
  tn_status st = make_attr(setup, &attr, err);
  if (st == TN_OK) st = dnn_status(dnnl_primitive_desc_create(&p->desc, op, attr, engine, NULL), "primitive", err);
  if (st == TN_OK && is_slow(p->desc)) st = dnn_declined(err, "no fast implementation for these shapes");
  if (st == TN_OK) st = dnn_status(dnnl_primitive_create(&p->primitive, p->desc), "primitive", err);
  dnnl_primitive_attr_destroy(attr);
  dnn_restore_threads(before);
  if (st != TN_OK) {
    dnn_plan_free(p);
    return st;
  }
  const dnnl_memory_desc_t *scratch = dnnl_primitive_desc_query_md(p->desc, dnnl_query_scratchpad_md, 0);
  if (scratch != NULL && dnnl_memory_desc_get_size(scratch) > 0) {
    ctx->scratch_bytes = dnnl_memory_desc_get_size(scratch);
    p->args[p->n_args++] = (dnn_arg){ .arg = DNNL_ARG_SCRATCHPAD, .source = DNN_SCRATCH, .desc = *scratch };
  }
  *out = p;
  return TN_OK;
}

static void free_call(dnn_call *c, uint32_t n)
{
  if (c == NULL) return;
  for (uint32_t i = 0; i < n; i++) dnnl_memory_destroy(c->args[i].memory);
  tn_free(c);
}

void dnn_plan_free(void *plan)
{
  dnn_plan *p = plan;
  if (p == NULL) return;
  free_call(atomic_load(&p->free_call), p->n_args);
  if (p->primitive != NULL) dnnl_primitive_destroy(p->primitive);
  if (p->desc != NULL) dnnl_primitive_desc_destroy(p->desc);
  tn_free(p);
}

void dnn_plan_input(dnn_plan *p, int32_t arg, uint32_t index, const dnnl_memory_desc_t *desc)
{
  p->args[p->n_args++] = (dnn_arg){ .arg = arg, .source = DNN_INPUT, .index = index, .desc = *desc };
}

void dnn_plan_output(dnn_plan *p, int32_t arg, uint32_t index, const dnnl_memory_desc_t *desc)
{
  p->args[p->n_args++] = (dnn_arg){ .arg = arg, .source = DNN_OUTPUT, .index = index, .desc = *desc };
}

void dnn_plan_epilogue(dnn_plan *p, const dnn_epilogue *e, uint32_t first, const dnnl_memory_desc_t *bias,
                       const dnnl_memory_desc_t *added)
{
  uint32_t input = first;
  for (uint32_t i = 0, post = 0; i < e->n; i++) {
    if (e->steps[i] == DNN_BIAS) {
      dnn_plan_input(p, DNNL_ARG_BIAS, input++, bias);
      continue;
    }
    if (e->steps[i] == DNN_ADD)
      dnn_plan_input(p, DNNL_ARG_ATTR_MULTIPLE_POST_OP((int32_t)post) | DNNL_ARG_SRC_1, input++, added);
    post++;
  }
}

/* ---- weights ---- */

typedef struct packing {
  const dnnl_memory_desc_t *from, *to;
} packing;

static tn_status reorder(void *user, const tn_view *from, void *to, tn_error *err)
{
  const packing *k = user;
  dnnl_engine_t engine = dnn_engine(err);
  dnnl_stream_t stream = dnn_stream(err);
  if (engine == NULL || stream == NULL) return TN_INTERNAL;
  dnnl_primitive_desc_t desc = NULL;
  dnnl_primitive_t primitive = NULL;
  dnnl_memory_t a = NULL, b = NULL;
  int before = dnn_one_thread();
  dnnl_status_t st = dnnl_reorder_primitive_desc_create(&desc, k->from, engine, k->to, engine, NULL);
  if (st == dnnl_success) st = dnnl_primitive_create(&primitive, desc);
  if (st == dnnl_success) st = dnnl_memory_create(&a, k->from, engine, from->data);
  if (st == dnnl_success) st = dnnl_memory_create(&b, k->to, engine, to);
  const dnnl_exec_arg_t args[] = { { DNNL_ARG_FROM, a }, { DNNL_ARG_TO, b } };
  if (st == dnnl_success) st = dnnl_primitive_execute(primitive, stream, 2, args);
  if (st == dnnl_success) st = dnnl_stream_wait(stream);
  dnn_restore_threads(before);
  dnnl_memory_destroy(a);
  dnnl_memory_destroy(b);
  dnnl_primitive_destroy(primitive);
  dnnl_primitive_desc_destroy(desc);
  return dnn_status(st, "reorder", err);
}

static uint64_t mix(uint64_t h, uint64_t v)
{
  h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
  return h ^ h >> 29;
}

/* Of all that a layout is. */
static uint64_t key_of(const dnnl_memory_desc_t *md, uint64_t h)
{
  h = mix(h, (uint64_t)md->ndims * 64 + (uint64_t)md->data_type);
  for (int i = 0; i < md->ndims; i++) {
    h = mix(mix(h, (uint64_t)md->dims[i]), (uint64_t)md->padded_dims[i]);
    h = mix(h, (uint64_t)md->format_desc.blocking.strides[i]);
  }
  for (int i = 0; i < md->format_desc.blocking.inner_nblks; i++)
    h = mix(mix(h, (uint64_t)md->format_desc.blocking.inner_blks[i]), (uint64_t)md->format_desc.blocking.inner_idxs[i]);
  return mix(h, md->extra.flags);
}

tn_status dnn_plan_weights(dnn_plan *p, tn_prepare_ctx *ctx, int32_t arg, uint32_t index,
                           const dnnl_memory_desc_t *from, tn_error *err)
{
  const dnnl_memory_desc_t *to = dnnl_primitive_desc_query_md(p->desc, dnnl_query_weights_md, 0);
  if (to == NULL || dnnl_memory_desc_equal(to, from)) {
    dnn_plan_input(p, arg, index, from);
    return TN_OK;
  }
  const void *packed;
  packing k = { from, to };
  if (to->format_kind != dnnl_blocked || to->extra.flags != 0)
    return tn_error_set(err, TN_UNIMPLEMENTED, "oneDNN wants weights in a form of its own");
  tn_status st = tn_prepare_pack(ctx, index, key_of(to, key_of(from, 1)), dnnl_memory_desc_get_size(to), reorder, &k,
                                 &packed, err);
  if (st != TN_OK) return st == TN_FAILED_PRECONDITION ? TN_UNIMPLEMENTED : st;
  p->args[p->n_args++] = (dnn_arg){ .arg = arg, .source = DNN_FIXED, .fixed = packed, .desc = *to };
  return TN_OK;
}

/* ---- calls ---- */

static tn_status new_call(const dnn_plan *p, dnn_call **out, tn_error *err)
{
  dnnl_engine_t engine = dnn_engine(err);
  dnn_call *c = tn_alloc(sizeof *c);
  *out = NULL;
  if (c == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "out of memory for a call of oneDNN");
  memset(c, 0, sizeof *c);
  dnnl_status_t st = dnnl_success;
  for (uint32_t i = 0; st == dnnl_success && i < p->n_args; i++) {
    c->args[i].arg = p->args[i].arg;
    st = dnnl_memory_create(&c->args[i].memory, &p->args[i].desc, engine, (void *)p->args[i].fixed);
  }
  if (st == dnnl_success) {
    *out = c;
    return TN_OK;
  }
  free_call(c, p->n_args);
  return dnn_status(st, "memory object", err);
}

static void *address(const tn_kernel_ctx *ctx, const dnn_arg *a)
{
  if (a->source == DNN_SCRATCH) return ctx->scratch;
  return a->source == DNN_INPUT ? ctx->inputs[a->index]->data : ctx->outputs[a->index]->data;
}

tn_status dnn_compute(tn_kernel_ctx *ctx)
{
  dnn_plan *p = (dnn_plan *)ctx->shape_state; /* only its free call changes */
  if (ctx->outputs[0]->count == 0) return TN_OK;
  dnnl_stream_t stream = dnn_stream(ctx->err);
  if (stream == NULL) return TN_INTERNAL;
  dnn_call *c = atomic_exchange_explicit(&p->free_call, NULL, memory_order_acquire);
  if (c == NULL) {
    tn_status st = new_call(p, &c, ctx->err);
    if (st != TN_OK) return st;
  }
  dnnl_status_t st = dnnl_success;
  for (uint32_t i = 0; i < p->n_args && st == dnnl_success; i++) {
    void *at = p->args[i].source == DNN_FIXED ? c->at[i] : address(ctx, &p->args[i]);
    if (at == c->at[i]) continue;
    st = dnnl_memory_set_data_handle_v2(c->args[i].memory, at, NULL);
    c->at[i] = st == dnnl_success ? at : NULL;
  }
  /* Most primitives keep the number of threads that they were made with; those that ask again find one, too. */
  int before = dnn_one_thread();
  if (st == dnnl_success) st = dnnl_primitive_execute(p->primitive, stream, (int)p->n_args, c->args);
  dnn_restore_threads(before);
  c = atomic_exchange_explicit(&p->free_call, c, memory_order_acq_rel);
  free_call(c, p->n_args); /* two steps at once: one call is kept */
  return dnn_status(st, "step", ctx->err);
}
