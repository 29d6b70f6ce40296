/* SPDX-License-Identifier: Apache-2.0 */
/* CTCGreedyDecoder CTCBeamSearchDecoder: label sequences from the logits of connectionist temporal classification. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <ops/nn/ctc/beam.h>
#include <string.h>

typedef struct decode_state {
  int64_t width, paths, blank; /* width 0: greedy */
  bool merge;
} decode_state;

static tn_status decode_create(const tn_operation *op, void **state, tn_error *err)
{
  decode_state s = { .width = tn__attr_int(op, "beam_width", 0), .paths = tn__attr_int(op, "top_paths", 1),
                     .blank = tn__attr_int(op, "blank_index", -1),
                     .merge = tn__attr_bool(op, "merge_repeated", false) };
  return tn__keep_state(&s, sizeof s, "options", state, err);
}

static void decode_destroy(void *state) { tn__free(state, sizeof(decode_state)); }

static tn_status decode_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const decode_state *s = ctx->state;
  const tn_view *in = &ctx->inputs[0];
  const char *op = tn_operation_type(ctx->op);
  tn_status st = tn__want_rank(ctx, 0, 3, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 1, err);
  if (st != TN_OK) return st;
  if (in->count == 0) return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 0 is empty", op);
  if (ctx->inputs[1].dims[0] != in->dims[1])
    return tn_error_set(err, TN_FAILED_PRECONDITION, "%s: %lld sequence lengths are given for a batch of %lld", op,
                        (long long)ctx->inputs[1].dims[0], (long long)in->dims[1]);
  if (s->width > 0 && s->paths > s->width)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: top_paths is %lld, above beam_width %lld", op,
                        (long long)s->paths, (long long)s->width);
  int64_t classes = in->dims[2], blank = s->blank < 0 ? classes + s->blank : s->blank;
  if (blank < 0 || blank >= classes)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: blank_index is %lld, wanted [%lld, %lld)", op,
                        (long long)s->blank, -(long long)classes, (long long)classes);
  for (uint32_t i = 0; st == TN_OK && i + 1 < ctx->n_outputs; i++) st = tn_prepare_dynamic(ctx, i, err);
  const int64_t dims[] = { in->dims[1], s->paths };
  ctx->cost_ns = 100 + (double)in->count * (s->width > 0 ? 20.0 + 20.0 * (double)s->width : 1.0);
  return st != TN_OK ? st : tn_prepare_output(ctx, (uint32_t)(3 * s->paths), dims, 2, err);
}

/* The sequences found, of all paths and items in this order: item b of path p ends at ends[b * paths + p]. */
typedef struct decoded {
  tn__labels labels;
  int64_t *ends;
} decoded;

static double logit_at(const tn_view *in, int64_t i)
{
  return in->dtype == TN_DOUBLE ? ((const double *)in->data)[i] : (double)((const float *)in->data)[i];
}

static void put(const tn_view *out, int64_t i, double value)
{
  if (out->dtype == TN_DOUBLE) ((double *)out->data)[i] = value;
  else ((float *)out->data)[i] = (float)value;
}

static bool decode_greedily(const tn_kernel_ctx *ctx, const decode_state *s, int64_t b, decoded *d)
{
  const tn_view *in = ctx->inputs[0];
  int64_t classes = in->dims[2], blank = s->blank < 0 ? classes + s->blank : s->blank, last = -1;
  double sum = 0;
  for (int64_t t = 0; t < ((const int32_t *)ctx->inputs[1]->data)[b]; t++) {
    int64_t row = (t * in->dims[1] + b) * classes, best = 0;
    double most = logit_at(in, row);
    for (int64_t k = 1; k < classes; k++) {
      double v = logit_at(in, row + k);
      if (v > most) {
        most = v;
        best = k;
      }
    }
    sum -= most;
    if (best != blank && !(s->merge && best == last) && !tn__labels_add(&d->labels, best)) return false;
    last = best;
  }
  put(ctx->outputs[3], b, sum);
  d->ends[b] = d->labels.n;
  return true;
}

static tn_status decode_beam(const tn_kernel_ctx *ctx, const decode_state *s, int64_t b, tn__beam *beam, decoded *d)
{
  const tn_view *in = ctx->inputs[0], *out = ctx->outputs[3 * s->paths];
  int64_t classes = in->dims[2];
  bool fits = tn__beam_start(beam);
  for (int64_t t = 0; fits && t < ((const int32_t *)ctx->inputs[1]->data)[b]; t++) {
    if (tn_kernel_cancelled(ctx)) return TN_CANCELLED;
    for (int64_t k = 0; k < classes; k++) beam->y[k] = logit_at(in, (t * in->dims[1] + b) * classes + k);
    fits = tn__beam_step(beam);
  }
  if (fits && beam->n_leaves < s->paths)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "CTCBeamSearchDecoder: top_paths is %lld, item %lld has %lld",
                        (long long)s->paths, (long long)b, (long long)beam->n_leaves);
  if (fits) tn__beam_sort(beam);
  for (int64_t p = 0; fits && p < s->paths; p++) {
    put(out, b * s->paths + p, tn__beam_score(beam, p));
    fits = tn__beam_labels(beam, p, s->merge, &d->labels);
    d->ends[b * s->paths + p] = d->labels.n;
  }
  return fits ? TN_OK : tn__no_memory(ctx->err, "paths of a beam search", 0);
}

/* The sparse tensor of path p. */
static tn_status give_path(tn_kernel_ctx *ctx, const decode_state *s, int64_t p, const decoded *d)
{
  int64_t batch = ctx->inputs[0]->dims[1], n = 0, most = 0, at = 0;
  uint32_t first = (uint32_t)p, paths = (uint32_t)s->paths;
  for (int64_t b = 0; b < batch; b++) {
    int64_t k = b * s->paths + p, length = d->ends[k] - (k > 0 ? d->ends[k - 1] : 0);
    n += length;
    if (length > most) most = length;
  }
  const int64_t pairs[] = { n, 2 }, two = 2;
  tn_status st = tn_kernel_allocate(ctx, first, pairs, 2);
  if (st == TN_OK) st = tn_kernel_allocate(ctx, paths + first, &n, 1);
  if (st == TN_OK) st = tn_kernel_allocate(ctx, 2 * paths + first, &two, 1);
  if (st != TN_OK) return st;
  int64_t *indices = ctx->outputs[first]->data, *values = ctx->outputs[paths + first]->data;
  int64_t *shape = ctx->outputs[2 * paths + first]->data;
  for (int64_t b = 0; b < batch; b++) {
    int64_t k = b * s->paths + p, from = k > 0 ? d->ends[k - 1] : 0;
    for (int64_t i = from; i < d->ends[k]; i++, at++) {
      indices[2 * at] = b;
      indices[2 * at + 1] = i - from;
      values[at] = d->labels.items[i];
    }
  }
  shape[0] = batch;
  shape[1] = most;
  return TN_OK;
}

static tn_status check_lengths(const tn_kernel_ctx *ctx, const char *op)
{
  const int32_t *lengths = ctx->inputs[1]->data;
  int64_t times = ctx->inputs[0]->dims[0];
  for (int64_t b = 0; b < ctx->inputs[1]->count; b++)
    if (lengths[b] > times)
      return tn_error_set(ctx->err, TN_FAILED_PRECONDITION, "%s: sequence %lld has length %d, wanted %lld at most", op,
                          (long long)b, (int)lengths[b], (long long)times);
  return TN_OK;
}

static tn_status decode_compute(tn_kernel_ctx *ctx)
{
  const decode_state *s = ctx->state;
  const tn_view *in = ctx->inputs[0];
  size_t n = (size_t)(in->dims[1] * s->paths);
  tn__beam beam = { .width = s->width, .classes = in->dims[2] };
  decoded d = { { 0 }, NULL };
  tn_status st = check_lengths(ctx, s->width > 0 ? "CTCBeamSearchDecoder" : "CTCGreedyDecoder");
  if (st != TN_OK) return st;
  d.ends = tn__alloc_array(n, sizeof *d.ends);
  if (d.ends == NULL) return tn__no_memory(ctx->err, "decoded sequences", n * sizeof *d.ends);
  for (int64_t b = 0; st == TN_OK && b < in->dims[1]; b++) {
    if (s->width > 0) st = decode_beam(ctx, s, b, &beam, &d);
    else if (!decode_greedily(ctx, s, b, &d)) st = tn__no_memory(ctx->err, "decoded sequences", 0);
  }
  for (int64_t p = 0; st == TN_OK && p < s->paths; p++) st = give_path(ctx, s, p, &d);
  tn__beam_fini(&beam);
  tn__labels_fini(&d.labels);
  tn__free(d.ends, n * sizeof *d.ends);
  return st;
}

/* ---- tables ---- */

static tn_status infer_decoded(tn_infer_ctx *ctx, tn_error *err)
{
  int64_t paths = tn__attr_int(tn_infer_operation(ctx), "top_paths", 1), unknown[] = { -1, 2 }, two = 2;
  tn__shape in;
  tn_status st = tn__infer_rank(ctx, 0, 3, &in, err);
  for (int64_t p = 0; st == TN_OK && p < paths; p++) {
    st = tn_infer_output(ctx, (size_t)p, unknown, 2, err);
    if (st == TN_OK) st = tn_infer_output(ctx, (size_t)(paths + p), unknown, 1, err);
    if (st == TN_OK) st = tn_infer_output(ctx, (size_t)(2 * paths + p), &two, 1, err);
  }
  const int64_t scores[] = { in.dims[1], paths };
  return st != TN_OK ? st : tn_infer_output(ctx, (size_t)(3 * paths), scores, 2, err);
}

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE,
    .name = "CTCBeamSearchDecoder",
    .inputs = "inputs: T, sequence_length: int32",
    .outputs = "decoded_indices: top_paths * int64, decoded_values: top_paths * int64, "
               "decoded_shape: top_paths * int64, log_probability: T",
    .attrs = "beam_width: int >= 1; top_paths: int >= 1; merge_repeated: bool = true; T: {float, double} = float",
    .traits = TN_TRAIT_DYNAMIC,
    .infer = infer_decoded,
    .summary = "the most probable label sequences that a beam search finds" },
  { .struct_size = TN_OP_DEF_SIZE,
    .name = "CTCGreedyDecoder",
    .inputs = "inputs: T, sequence_length: int32",
    .outputs = "decoded_indices: int64, decoded_values: int64, decoded_shape: int64, log_probability: T",
    .attrs = "merge_repeated: bool = false; blank_index: int = -1; T: {float, double} = float",
    .traits = TN_TRAIT_DYNAMIC,
    .infer = infer_decoded,
    .summary = "the sequence of each time's most probable label" },
};

static const tn_kernel_def kernels[] = {
  TN__KERNEL("CTCBeamSearchDecoder", "ctc_beam_search_cpu", decode_create, decode_destroy, decode_prepare,
             decode_compute),
  TN__KERNEL("CTCGreedyDecoder", "ctc_greedy_cpu", decode_create, decode_destroy, decode_prepare, decode_compute),
};

TN_OP_FAMILY(ctc_decode)
