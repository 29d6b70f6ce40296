/* SPDX-License-Identifier: Apache-2.0 */
/* Values that may be missing: OptionalNone OptionalFromValue OptionalHasValue OptionalGetValue.
 * They are elements of dtype variant; gradients of branches pass them. An optional is immutable and
 * holds references to its tensors. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <core/tensor/tensor_internal.h>
#include <ops/kernel/family.h>
#include <ops/kernel/move/pieces.h>
#include <stdatomic.h>

typedef struct optional {
  tn_handle handle; /* must be first: tensor elements point to it */
  _Atomic uint32_t refs;
  struct optional *next_dead;
  uint32_t n;         /* 0 means no value */
  tn_tensor *items[]; /* references */
} optional;

static void ref_optional(tn_handle *h)
{
  atomic_fetch_add_explicit(&((optional *)h)->refs, 1, memory_order_relaxed);
}

/* Optionals may be nested to any depth by loops, so optionals released in turn are queued rather
 * than released recursively. */
static void unref_optional(tn_handle *h)
{
  static _Thread_local struct {
    bool busy;
    optional *dead;
  } ends;
  optional *o = (optional *)h;
  if (atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) != 1) return;
  o->next_dead = ends.dead;
  ends.dead = o;
  if (ends.busy) return;
  ends.busy = true;
  while (ends.dead != NULL) {
    o = ends.dead;
    ends.dead = o->next_dead;
    tn__drop_tensors(o->items, o->n);
    tn__free(o, sizeof *o + o->n * sizeof *o->items);
  }
  ends.busy = false;
}

static const tn_handle_class optional_class = { .struct_size = sizeof optional_class, .type_name = "Optional",
                                                .ref = ref_optional, .unref = unref_optional };

/* ---- making ---- */

/* Makes an optional of all inputs; OptionalNone has none. */
static tn_status make_compute(tn_kernel_ctx *ctx)
{
  size_t bytes = sizeof(optional) + ctx->n_inputs * sizeof(tn_tensor *);
  optional *o = tn__zalloc(bytes);
  tn_status st = TN_OK;
  if (o == NULL) return tn__no_memory(ctx->err, "optional", bytes);
  o->handle.cls = &optional_class;
  atomic_init(&o->refs, 1);
  o->n = ctx->n_inputs;
  for (uint32_t i = 0; st == TN_OK && i < ctx->n_inputs; i++) st = tn_kernel_keep_input(ctx, i, &o->items[i]);
  if (st != TN_OK) {
    unref_optional(&o->handle);
    return st;
  }
  tn_handle **place = ctx->outputs[0]->data, *old = *place;
  *place = &o->handle;
  if (old != NULL) old->cls->unref(old);
  return TN_OK;
}

/* ---- reading ---- */

static tn_status optional_input(const tn_kernel_ctx *ctx, const optional **out)
{
  tn_handle *h = *(tn_handle *const *)ctx->inputs[0]->data;
  *out = h != NULL && h->cls == &optional_class ? (const optional *)h : NULL;
  if (*out != NULL) return TN_OK;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "input 0 is not an optional, it is %s",
                      h == NULL ? "nothing" : h->cls->type_name);
}

static tn_status has_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 0, 0, err);
  return st == TN_OK ? tn_prepare_output(ctx, 0, NULL, 0, err) : st;
}

static tn_status has_compute(tn_kernel_ctx *ctx)
{
  const optional *o;
  tn_status st = optional_input(ctx, &o);
  if (st == TN_OK) *(uint8_t *)ctx->outputs[0]->data = o->n > 0;
  return st;
}

/* State of OptionalGetValue: the shapes that the values must have. */
typedef struct get_state {
  size_t n;
  struct {
    const int64_t *dims;
    int32_t rank;
  } shapes[];
} get_state;

static void get_destroy(void *state)
{
  get_state *s = state;
  tn__free(s, sizeof *s + s->n * sizeof *s->shapes);
}

static tn_status get_create(const tn_operation *op, void **state, tn_error *err)
{
  size_t n = tn_operation_n_outputs(op);
  get_state *s = tn__zalloc(sizeof *s + n * sizeof *s->shapes);
  *state = NULL;
  if (s == NULL) return tn__no_memory(err, "kernel", sizeof *s + n * sizeof *s->shapes);
  s->n = n;
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < n; i++) {
    tn_attr_value v = { .struct_size = sizeof v };
    st = tn_operation_attr_value(op, "output_shapes", i, &v, err);
    if (st == TN_OK && v.n != n)
      st = tn_error_set(err, TN_INVALID_ARGUMENT, "attribute 'output_shapes' has %zu shapes for %zu values", v.n, n);
    s->shapes[i].dims = v.dims;
    s->shapes[i].rank = v.rank;
  }
  if (st == TN_OK) *state = s;
  else get_destroy(s);
  return st;
}

static tn_status get_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 0, 0, err);
  return st == TN_OK ? tn__prepare_all_dynamic(ctx, err) : st;
}

static tn_status check_value(const tn_kernel_ctx *ctx, const tn_tensor *t, uint32_t i)
{
  const get_state *s = ctx->state;
  char found[160], wanted[160];
  if (t->dtype == ctx->outputs[i]->dtype && tn__shape_fits(s->shapes[i].dims, s->shapes[i].rank, t->dims, t->rank))
    return TN_OK;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "value %u of the optional is %s %s, wanted %s %s", i,
                      tn_dtype_name(t->dtype), tn__format_shape(found, sizeof found, t->dims, t->rank),
                      tn_dtype_name(ctx->outputs[i]->dtype),
                      tn__format_shape(wanted, sizeof wanted, s->shapes[i].dims, s->shapes[i].rank));
}

static tn_status get_compute(tn_kernel_ctx *ctx)
{
  const optional *o;
  tn_status st = optional_input(ctx, &o);
  if (st == TN_OK && o->n == 0) st = tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the optional has no value");
  if (st == TN_OK && o->n != ctx->n_outputs)
    st = tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the optional has %u values, wanted %u", o->n, ctx->n_outputs);
  for (uint32_t i = 0; st == TN_OK && i < ctx->n_outputs; i++) {
    st = check_value(ctx, o->items[i], i);
    if (st == TN_OK) st = tn_kernel_set_output(ctx, i, o->items[i]);
  }
  return st;
}

static tn_status infer_get(tn_infer_ctx *ctx, tn_error *err)
{
  const tn_operation *op = tn_infer_operation(ctx);
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < tn_operation_n_outputs(op); i++) {
    tn_attr_value v = { .struct_size = sizeof v };
    st = tn_operation_attr_value(op, "output_shapes", i, &v, err);
    if (st == TN_OK && i < v.n) st = tn_infer_output(ctx, i, v.dims, v.rank, err);
  }
  return st;
}

/* ---- tables ---- */

#define OP(op, in, out, attributes, bits, shapes, text)                                           \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .traits = bits, .infer = shapes, .summary = text }

static const tn_op_def ops[] = {
  OP("OptionalFromValue", "components: Toutput_types", "optional: variant", "Toutput_types: list(type) >= 1", 0,
     tn__infer_scalar, "creates an optional with values"),
  OP("OptionalGetValue", "optional: variant", "components: output_types",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", TN_TRAIT_DYNAMIC, infer_get,
     "values of an optional"),
  OP("OptionalHasValue", "optional: variant", "has_value: bool", "", 0, tn__infer_scalar,
     "whether an optional has values"),
  OP("OptionalNone", "", "optional: variant", "", 0, tn__infer_scalar, "creates an optional without a value"),
};

static const tn_kernel_def kernels[] = {
  TN__KERNEL("OptionalFromValue", "optional_from_value_cpu", NULL, NULL, tn__prepare_scalar, make_compute),
  TN__KERNEL("OptionalGetValue", "optional_get_value_cpu", get_create, get_destroy, get_prepare, get_compute),
  TN__KERNEL("OptionalHasValue", "optional_has_value_cpu", NULL, NULL, has_prepare, has_compute),
  TN__KERNEL("OptionalNone", "optional_none_cpu", NULL, NULL, tn__prepare_scalar, make_compute),
};

TN_OP_FAMILY(optional)
