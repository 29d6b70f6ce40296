/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that create queues: FIFOQueue PaddingFIFOQueue RandomShuffleQueue PriorityQueue and their V2,
 * and FakeQueue. Operations on queues are in queue_ops.c. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/state/queue/queue.h>

typedef struct queue_state {
  tn__resource_place place;
  tn__queue_spec *spec;
} queue_state;

static void queue_destroy(void *state)
{
  queue_state *s = state;
  tn__resource_place_fini(&s->place);
  tn__queue_spec_unref(s->spec);
  tn__free(s, sizeof *s);
}

static tn_status queue_create(const tn_operation *op, tn__queue_kind kind, void **state, tn_error *err)
{
  static const tn_dtype priority = TN_INT64;
  queue_state *s = tn__zalloc(sizeof *s);
  *state = NULL;
  if (s == NULL) return tn__no_memory(err, "kernel", sizeof *s);
  tn_status st = tn__resource_place_init(&s->place, op, err);
  if (st == TN_OK) st = tn__queue_spec_read(op, kind, &priority, kind == TN__QUEUE_PRIORITY, &s->spec, err);
  if (st == TN_OK) *state = s;
  else queue_destroy(s);
  return st;
}

#define CREATE(name, kind)                                                     \
  static tn_status name(const tn_operation *op, void **state, tn_error *err)   \
  {                                                                            \
    return queue_create(op, kind, state, err);                                 \
  }
CREATE(create_fifo, TN__QUEUE_FIFO)
CREATE(create_padding, TN__QUEUE_PADDING)
CREATE(create_random, TN__QUEUE_RANDOM)
CREATE(create_priority, TN__QUEUE_PRIORITY)

static tn_status make_queue(void *user, void **object, tn_error *err)
{
  const queue_state *s = user;
  tn__queue *q;
  tn_status st = tn__queue_create(s->spec, s->place.name, &q, err);
  *object = q;
  return st;
}

static tn_status queue_compute(tn_kernel_ctx *ctx)
{
  const queue_state *s = ctx->state;
  tn_resource *r;
  tn_status st = tn_kernel_obtain(ctx, s->place.container, s->place.name, &tn__queue_class, make_queue, (void *)s, &r);
  if (st != TN_OK) return st;
  const tn__queue *q = tn_resource_object(r);
  st = tn__queue_spec_match(q->spec, s->spec, "queue", q->name, ctx->err);
  if (st == TN_OK) return tn__give_handle(ctx, 0, r);
  tn_resource_unref(r);
  return st;
}

/* ---- FakeQueue: a V2 handle for ops that expect a reference ---- */

static tn_status fake_compute(tn_kernel_ctx *ctx)
{
  void *queue;
  tn_resource *r;
  tn_status st = tn__resource_input(ctx, 0, &tn__queue_class, &queue, &r);
  return st == TN_OK ? tn__give_handle(ctx, 0, tn_resource_ref(r)) : st;
}

/* ---- tables ---- */

#define PLACE "container: string = ''; shared_name: string = ''"
#define SHAPED "component_types: list(type) >= 1; shapes: list(shape) >= 0 = []; capacity: int = -1; "

#define MAKES(op, attributes, text)                                                                                 \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = "", .outputs = "handle: Ref(string)", .attrs = attributes, \
    .traits = TN_TRAIT_STATEFUL, .summary = text },                                                                 \
  { .struct_size = TN_OP_DEF_SIZE, .name = op "V2", .inputs = "", .outputs = "handle: resource",                    \
    .attrs = attributes, .traits = TN_TRAIT_STATEFUL, .infer = tn__infer_scalar, .summary = text }

static const tn_op_def ops[] = {
  MAKES("FIFOQueue", SHAPED PLACE, "first-in first-out queue"),
  MAKES("PaddingFIFOQueue", SHAPED PLACE, "queue of elements of different shapes; batches are padded with zeros"),
  MAKES("RandomShuffleQueue", SHAPED "min_after_dequeue: int = 0; seed: int = 0; seed2: int = 0; " PLACE,
        "queue that dequeues elements in random order"),
  MAKES("PriorityQueue", "component_types: list(type) >= 0 = []; shapes: list(shape) >= 0; capacity: int = -1; " PLACE,
        "queue that dequeues the lowest priority value first"),
  { .struct_size = TN_OP_DEF_SIZE,
    .name = "FakeQueue",
    .inputs = "resource: resource",
    .outputs = "handle: Ref(string)",
    .attrs = "",
    .traits = TN_TRAIT_STATEFUL,
    .summary = "reference handle of a queue" },
};

#define KERNEL(kernel_op, kernel_name, kernel_create)                                                               \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = kernel_op, .device = "CPU", .name = kernel_name, .rank = TN_RANK_C,    \
    .create = kernel_create, .destroy = queue_destroy, .prepare = tn__prepare_scalar, .compute = queue_compute }

static const tn_kernel_def kernels[] = {
  KERNEL("FIFOQueue", "fifo_queue_cpu", create_fifo),
  KERNEL("FIFOQueueV2", "fifo_queue_v2_cpu", create_fifo),
  KERNEL("PaddingFIFOQueue", "padding_fifo_queue_cpu", create_padding),
  KERNEL("PaddingFIFOQueueV2", "padding_fifo_queue_v2_cpu", create_padding),
  KERNEL("RandomShuffleQueue", "random_shuffle_queue_cpu", create_random),
  KERNEL("RandomShuffleQueueV2", "random_shuffle_queue_v2_cpu", create_random),
  KERNEL("PriorityQueue", "priority_queue_cpu", create_priority),
  KERNEL("PriorityQueueV2", "priority_queue_v2_cpu", create_priority),
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "FakeQueue", .device = "CPU", .name = "fake_queue_cpu", .rank = TN_RANK_C,
    .prepare = tn__prepare_scalar, .compute = fake_compute },
};

TN_OP_FAMILY(queues)
