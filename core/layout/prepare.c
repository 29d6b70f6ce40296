/* SPDX-License-Identifier: Apache-2.0 */
/* Calls prepare of kernels, and implements the functions that prepare may call (<tenon/op.h>): they set shapes, views
 * and in-place pairs of the instruction. */
#include <core/graph/prepare.h>
#include <core/layout/layout.h>

static tn__prepared *prepared_of(tn_prepare_ctx *ctx) { return ctx->host; }

static tn_status bad_index(const tn__prepared *p, const char *what, uint32_t i, uint32_t n, tn_error *err)
{
  return tn_error_set(err, TN_INTERNAL, "kernel '%s' of node '%s' refers to %s %u, there are %u", p->kernel->def->name,
                      tn_operation_name(p->instr->op), what, i, n);
}

tn_status tn_prepare_output(tn_prepare_ctx *ctx, uint32_t i, const int64_t *dims, int32_t rank, tn_error *err)
{
  tn__prepared *p = prepared_of(ctx);
  if (i >= ctx->n_outputs) return bad_index(p, "output", i, ctx->n_outputs, err);
  struct tn__prepared_output *o = &p->outputs[i];
  tn_status st = tn_shape_elements(dims, rank, &o->count, err);
  if (st != TN_OK) return st;
  o->dims = tn__arena_array(p->arena, (size_t)rank, sizeof *o->dims);
  if (o->dims == NULL) return tn__no_memory(err, "shape", (size_t)rank * sizeof *o->dims);
  if (rank > 0) __builtin_memcpy(o->dims, dims, (size_t)rank * sizeof *dims);
  o->rank = rank;
  o->known = true;
  return TN_OK;
}

tn_status tn_prepare_output_like(tn_prepare_ctx *ctx, uint32_t i, uint32_t j, tn_error *err)
{
  tn__prepared *p = prepared_of(ctx);
  if (i >= ctx->n_outputs) return bad_index(p, "output", i, ctx->n_outputs, err);
  if (j >= ctx->n_inputs) return bad_index(p, "input", j, ctx->n_inputs, err);
  struct tn__prepared_output *o = &p->outputs[i];
  o->dims = (int64_t *)ctx->inputs[j].dims; /* valid as long as the layout, see build.c */
  o->rank = ctx->inputs[j].rank;
  o->count = ctx->inputs[j].count;
  o->known = true;
  return TN_OK;
}

tn_status tn_prepare_view(tn_prepare_ctx *ctx, uint32_t i, uint32_t j, tn_error *err)
{
  tn__prepared *p = prepared_of(ctx);
  if (i >= ctx->n_outputs) return bad_index(p, "output", i, ctx->n_outputs, err);
  if (j >= ctx->n_inputs) return bad_index(p, "input", j, ctx->n_inputs, err);
  p->outputs[i].view = j;
  return TN_OK;
}

tn_status tn_prepare_in_place(tn_prepare_ctx *ctx, uint32_t i, uint32_t j, tn_error *err)
{
  tn__prepared *p = prepared_of(ctx);
  if (i >= ctx->n_outputs) return bad_index(p, "output", i, ctx->n_outputs, err);
  if (j >= ctx->n_inputs) return bad_index(p, "input", j, ctx->n_inputs, err);
  if (!tn__grow((void **)&p->pairs, &p->pair_room, p->n_pairs + 1, sizeof *p->pairs))
    return tn__no_memory(err, "layout", 0);
  p->pairs[p->n_pairs++] = (struct tn__pair){ i, j };
  return TN_OK;
}

tn_status tn_prepare_dynamic(tn_prepare_ctx *ctx, uint32_t i, tn_error *err)
{
  tn__prepared *p = prepared_of(ctx);
  if (i >= ctx->n_outputs) return bad_index(p, "output", i, ctx->n_outputs, err);
  if (!(p->instr->traits & TN_TRAIT_DYNAMIC))
    return tn_error_set(err, TN_INTERNAL,
                        "kernel '%s' of node '%s': a dynamic output needs TN_TRAIT_DYNAMIC on op '%s'",
                        p->kernel->def->name, tn_operation_name(p->instr->op), tn_operation_type(p->instr->op));
  p->outputs[i].dynamic = true;
  p->outputs[i].known = true;
  p->outputs[i].rank = 0;
  p->outputs[i].count = 0;
  return TN_OK;
}

tn_status tn_prepare_given(tn_prepare_ctx *ctx, uint32_t i, tn_error *err)
{
  tn__prepared *p = prepared_of(ctx);
  if (i >= ctx->n_outputs) return bad_index(p, "output", i, ctx->n_outputs, err);
  p->outputs[i].given = true;
  return TN_OK;
}

bool tn__prepare_any_value(tn_prepare_ctx *ctx, uint32_t i)
{
  tn__prepared *p = prepared_of(ctx);
  if (i >= ctx->n_inputs || i >= 32 || !tn__layout_reads_operand(p->plan, p->layout->segment, p->instr, i))
    return false;
  p->any_values |= UINT32_C(1) << i;
  return true;
}

tn_bool tn_prepare_is_constant(const tn_prepare_ctx *ctx, uint32_t i)
{
  const tn__prepared *p = ctx->host;
  return i < ctx->n_inputs && p->plan->values[tn__instr_inputs(p->plan, p->instr)[i]].constant != NULL;
}

/* An identity needs no kernel: output i is input i. */
static void prepare_identity(tn__prepared *p)
{
  for (uint32_t i = 0; i < p->ctx.n_outputs; i++) {
    struct tn__prepared_output *o = &p->outputs[i];
    const tn_view *in = &p->ctx.inputs[i];
    *o = (struct tn__prepared_output){ .dims = (int64_t *)in->dims, .count = in->count, .rank = in->rank, .known = true,
                                       .view = i };
  }
}

/* Whether output i can use the memory of its input: both have the same size, and, if their elements own memory
 * (strings, handles), the same dtype. */
static bool may_view(const tn__prepared *p, uint32_t i)
{
  const struct tn__prepared_output *o = &p->outputs[i];
  const tn_view *in = &p->ctx.inputs[o->view];
  tn_dtype dtype = p->plan->values[tn__instr_outputs(p->plan, p->instr)[i]].dtype;
  size_t bytes;
  if (o->dynamic || (dtype != in->dtype && (tn__dtype_is_managed(dtype) || tn__dtype_is_managed(in->dtype))))
    return false;
  return tn__size_mul((size_t)o->count, tn_dtype_size(dtype), &bytes) &&
         bytes == (size_t)in->count * tn_dtype_size(in->dtype);
}

/* Whether the kernel has set all shapes, and its views are possible. */
static tn_status check_outputs(const tn__prepared *p, tn_error *err)
{
  const char *node = tn_operation_name(p->instr->op);
  for (uint32_t i = 0; i < p->ctx.n_outputs; i++) {
    const struct tn__prepared_output *o = &p->outputs[i];
    if (!o->known)
      return tn_error_set(err, TN_INTERNAL, "kernel '%s' of node '%s' gave output %u no shape", p->kernel->def->name,
                          node, i);
    if (o->view != TN__NONE && !may_view(p, i))
      return tn_error_set(
          err, TN_INTERNAL,
          "kernel '%s' of node '%s': output %u cannot be a view of input %u, their sizes or types differ",
          p->kernel->def->name, node, i, o->view);
  }
  return TN_OK;
}

/* Resets the results before a kernel is called. */
static void forget_outputs(tn__prepared *p)
{
  for (uint32_t i = 0; p->packed != NULL && i < p->ctx.n_inputs; i++) p->packed[i] = false;
  for (uint32_t i = 0; i < p->ctx.n_outputs; i++)
    p->outputs[i] = (struct tn__prepared_output){ .view = TN__NONE };
  p->n_pairs = 0;
  p->any_values = 0;
}

static tn_status run_kernel(tn__prepared *p, tn_error *err)
{
  forget_outputs(p);
  p->ctx.struct_size = sizeof p->ctx;
  p->ctx.host = p;
  p->ctx.op = p->instr->op;
  p->ctx.state = p->kernel->state;
  p->ctx.scratch_bytes = 0;
  p->ctx.cost_ns = 0;
  tn__plugin_call calling = tn__kernel_call(p->kernel, p->instr->op, "prepare of a kernel");
  tn__plugin_call_enter(&calling);
  tn_status st = p->kernel->def->prepare(&p->ctx, err);
  tn__plugin_call_leave(&calling);
  return st;
}

static void drop_shape_state(tn__prepared *p)
{
  if (p->ctx.shape_state != NULL && p->kernel->def->destroy_shape_state != NULL)
    p->kernel->def->destroy_shape_state(p->ctx.shape_state);
  p->ctx.shape_state = NULL;
}

tn_status tn__prepare_run(tn__prepared *p, tn_error *err)
{
  const tn__plan_kernels *kernels = tn__instr_kernels(p->instr);
  p->kernel = NULL;
  if (kernels == NULL) {
    forget_outputs(p);
    if (p->ctx.n_outputs > p->ctx.n_inputs)
      return tn_error_set(err, TN_INTERNAL, "node '%s': an identity has %u outputs and %u inputs",
                          tn_operation_name(p->instr->op), p->ctx.n_outputs, p->ctx.n_inputs);
    prepare_identity(p);
    return TN_OK;
  }
  tn_status st = TN_OK;
  for (uint32_t k = 0; k < kernels->n; k++) {
    p->kernel = &kernels->items[k];
    st = run_kernel(p, err);
    if (st != TN_UNIMPLEMENTED || k + 1 == kernels->n) break;
    drop_shape_state(p);
    tn__error_reset(err);
  }
  if (st != TN_OK) return tn__kernel_status(p->instr->op, p->kernel->def, "prepare", st, err);
  tn__error_reset(err); /* the kernel may have set an error and succeeded nevertheless */
  st = check_outputs(p, err);
  if (st != TN_OK) tn_error_set_node(err, tn_operation_name(p->instr->op));
  return st;
}
