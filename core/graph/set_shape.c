/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes set by the program, which may know more than the shape functions.
 *
 * A set shape is stored in a block beside the operation (op->given) and merged with every result of the shape function.
 * Setting one begins a new epoch of the graph, so all shapes are inferred again on demand. No lock is needed: of two
 * threads that set shapes of the same operation at once, one fails its compare-and-swap and retries with the other's
 * block. */
#include <core/base/text.h>
#include <core/graph/graph_structs.h>

#include <string.h>

static bool equal(const tn__shape *a, const tn__shape *b)
{
  return a->rank == b->rank && (a->rank <= 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0);
}

static tn_status check(tn_output o, const int64_t *dims, int32_t rank, tn_error *err)
{
  if (o.op == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "no operation given");
  if (o.op->schema == NULL)
    return tn_error_set(err, TN_FAILED_PRECONDITION, "node '%s': op '%s' is not registered, its outputs are not known",
                        o.op->name, o.op->type);
  if (o.index < 0 || (uint32_t)o.index >= o.op->n_outputs)
    return tn_error_set(err, TN_OUT_OF_RANGE, "'%s:%d': node '%s' (%s) has %u outputs", o.op->name, (int)o.index,
                        o.op->name, o.op->type, o.op->n_outputs);
  if (rank < -1 || rank > TN_MAX_RANK)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s:%d': rank %d, wanted -1 to %d", o.op->name, (int)o.index,
                        (int)rank, TN_MAX_RANK);
  if (rank > 0 && dims == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s:%d': rank %d, but no dimensions given", o.op->name, (int)o.index,
                        (int)rank);
  for (int32_t k = 0; k < rank; k++)
    if (dims[k] < -1)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s:%d': dimension %d is %lld", o.op->name, (int)o.index, (int)k,
                          (long long)dims[k]);
  return TN_OK;
}

static tn_status contradiction(tn_output o, const tn__shape *have, const tn__shape *wanted, tn_error *err)
{
  char a[160], b[160];
  return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s:%d' has shape %s, which cannot be set to %s", o.op->name,
                      (int)o.index, tn__format_shape(a, sizeof a, have->dims, (int32_t)have->rank),
                      tn__format_shape(b, sizeof b, wanted->dims, (int32_t)wanted->rank));
}

/* Copies a block, with another shape of output `index`. old NULL: all other shapes are unknown. */
static tn__op_shapes *replaced(const tn_operation *op, const tn__op_shapes *old, size_t index, const tn__shape *with)
{
  size_t n = op->n_outputs;
  tn__shape *shapes = tn__alloc_array(n, sizeof *shapes);
  if (shapes == NULL) return NULL;
  for (size_t i = 0; i < n; i++) shapes[i] = old == NULL ? (tn__shape){ NULL, -1 } : old->outputs[i];
  shapes[index] = *with;
  tn__op_shapes *out = tn__shapes_pack(shapes, NULL, n);
  tn__free(shapes, n * sizeof *shapes);
  return out;
}

/* Replaces the operation's block `old` by one with the shape `both` for the output. *again: another thread has replaced
 * it first. */
static tn_status give(tn_output output, tn__op_shapes *old, const tn__shape *both, bool *again, tn_error *err)
{
  tn__op_shapes *mine = replaced(output.op, old, (size_t)output.index, both);
  if (mine == NULL) return tn__no_memory(err, "shape", output.op->n_outputs * sizeof(tn__shape));
  *again = !atomic_compare_exchange_strong_explicit(&output.op->given, &old, mine, memory_order_acq_rel,
                                                    memory_order_acquire);
  if (*again)
    mine->owned.free(&mine->owned);
  else
    tn__graph_own(output.op->graph, &mine->owned);
  return TN_OK;
}

tn_status tn_graph_set_shape(tn_output output, const int64_t *dims, int32_t rank, tn_error *err)
{
  tn__error_reset(err);
  tn_status st = check(output, dims, rank, err);
  const tn__shape unknown = { NULL, -1 }, wanted = { dims, rank };
  for (bool again = true; st == TN_OK && again;) {
    tn__op_shapes *old = atomic_load_explicit(&output.op->given, memory_order_acquire);
    const tn__op_shapes *shapes;
    st = tn__op_shapes_get(output.op, &shapes, err);
    if (st != TN_OK) return st;
    const tn__shape *have = shapes == NULL ? &unknown : &shapes->outputs[output.index];
    /* Another thread may have stored a shape without having begun the new epoch yet. Then `have` lacks it, so it is
     * merged here; otherwise this call would overwrite it. */
    int64_t room[TN_MAX_RANK], merged[TN_MAX_RANK];
    tn__shape so_far = *have, both;
    if (old != NULL && !tn__shapes_merge(have, &old->outputs[output.index], room, &so_far)) so_far = *have;
    if (!tn__shapes_merge(&so_far, &wanted, merged, &both)) return contradiction(output, &so_far, &wanted, err);
    if (equal(have, &both)) return TN_OK;
    again = false;
    if (!equal(&so_far, &both)) st = give(output, old, &both, &again, err);
  }
  /* Release: a reader of the new epoch also sees the block. */
  if (st == TN_OK) atomic_fetch_add_explicit(&output.op->graph->shape_epoch, 1, memory_order_acq_rel);
  return st;
}
