/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on queues: QueueEnqueue QueueEnqueueMany QueueDequeue QueueDequeueMany
 * QueueDequeueUpTo QueueClose QueueIsClosed QueueSize and their V2, which differ only in how they
 * get the handle. */
#include <ops/kernel/family.h>
#include <ops/state/queue/queue_step.h>

/* ---- prepare ---- */

static tn_status take_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  if (ctx->n_inputs > 1 && ctx->inputs[1].count != 1)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 1, how many elements, has %lld elements, wanted a scalar",
                        tn_operation_type(ctx->op), (long long)ctx->inputs[1].count);
  return tn__prepare_all_dynamic(ctx, err);
}

/* ---- compute ---- */

static tn_status get_queue(const tn_kernel_ctx *ctx, tn__queue **q, tn_resource **r)
{
  void *object;
  tn_status st = tn__resource_input(ctx, 0, &tn__queue_class, &object, r);
  *q = object;
  return st;
}

static tn_status put(tn_kernel_ctx *ctx, bool rows)
{
  tn__queue *q;
  tn_resource *r;
  tn__queue_attempt a;
  tn__queue_list list = { NULL, NULL, 0 };
  if (ctx->resume) return tn__queue_resume(ctx);
  tn_status st = get_queue(ctx, &q, &r);
  if (st == TN_OK) st = tn__queue_read_inputs(ctx, q->spec, 1, rows, &list);
  if (st != TN_OK || list.n == 0) return st;
  tn__queue_attempt_init(&a, q, r, TN__QUEUE_PUT);
  a.list = list;
  return tn__queue_submit(ctx, &a);
}

static tn_status enqueue(tn_kernel_ctx *ctx) { return put(ctx, false); }
static tn_status enqueue_many(tn_kernel_ctx *ctx) { return put(ctx, true); }

static tn_status get_queue_to_take(const tn_kernel_ctx *ctx, tn__queue **q, tn_resource **r)
{
  tn_status st = get_queue(ctx, q, r);
  return st == TN_OK ? tn__queue_check_outputs(ctx, *q, ctx->state) : st;
}

static tn_status start_take(tn_kernel_ctx *ctx, tn__queue *q, tn_resource *r, int64_t n, bool many, bool up_to)
{
  tn__queue_attempt a;
  tn__queue_attempt_init(&a, q, r, TN__QUEUE_TAKE);
  a.asked = n;
  a.many = many;
  a.up_to = up_to;
  return tn__queue_submit(ctx, &a);
}

static tn_status dequeue(tn_kernel_ctx *ctx)
{
  tn__queue *q;
  tn_resource *r;
  if (ctx->resume) return tn__queue_resume(ctx);
  tn_status st = get_queue_to_take(ctx, &q, &r);
  return st == TN_OK ? start_take(ctx, q, r, 1, false, false) : st;
}

static tn_status take_many(tn_kernel_ctx *ctx, bool up_to)
{
  static const tn__queue_list none = { NULL, NULL, 0 };
  tn__queue *q;
  tn_resource *r;
  if (ctx->resume) return tn__queue_resume(ctx);
  tn_status st = get_queue_to_take(ctx, &q, &r);
  if (st != TN_OK) return st;
  int64_t n = *(const int32_t *)ctx->inputs[1]->data;
  if (!q->spec->has_shapes)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                        "queue '%s' has no shapes, which are required to take several elements at once", q->name);
  if (n < 0)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "%lld elements are asked for, wanted 0 or more", (long long)n);
  if (n == 0) return tn__queue_write_outputs(ctx, q->spec, &none, true);
  return start_take(ctx, q, r, n, true, up_to);
}

static tn_status dequeue_many(tn_kernel_ctx *ctx) { return take_many(ctx, false); }
static tn_status dequeue_up_to(tn_kernel_ctx *ctx) { return take_many(ctx, true); }

static tn_status close_queue(tn_kernel_ctx *ctx)
{
  tn__queue *q;
  tn_resource *r;
  tn__queue_attempt a;
  if (ctx->resume) return tn__queue_resume(ctx);
  tn_status st = get_queue(ctx, &q, &r);
  if (st != TN_OK) return st;
  if (ctx->state != NULL) {
    tn__queue_shut(q);
    return TN_OK;
  }
  tn__queue_attempt_init(&a, q, r, TN__QUEUE_CLOSE);
  return tn__queue_submit(ctx, &a);
}

static tn_status is_closed(tn_kernel_ctx *ctx)
{
  tn__queue *q;
  tn_resource *r;
  tn_status st = get_queue(ctx, &q, &r);
  if (st == TN_OK) *(tn_bool *)ctx->outputs[0]->data = tn__queue_is_closed(q);
  return st;
}

static tn_status size(tn_kernel_ctx *ctx)
{
  tn__queue *q;
  tn_resource *r;
  tn_status st = get_queue(ctx, &q, &r);
  if (st != TN_OK) return st;
  int64_t n = tn__queue_size(q);
  *(int32_t *)ctx->outputs[0]->data = n > INT32_MAX ? INT32_MAX : (int32_t)n;
  return TN_OK;
}

/* ---- tables ---- */

#define WAITS (TN_TRAIT_STATEFUL | TN_TRAIT_MAY_WAIT)
#define PUTS "Tcomponents: list(type) >= 1; timeout_ms: int = -1"
#define TAKES "component_types: list(type) >= 1; timeout_ms: int = -1"

/* An op in both versions; `more` are the inputs after the handle. */
#define BOTH(op, more, out, attributes, flags, shapes, text)                                                           \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = "handle: Ref(string)" more, .outputs = out,                   \
    .attrs = attributes, .traits = flags, .infer = shapes, .summary = text },                                          \
  { .struct_size = TN_OP_DEF_SIZE, .name = op "V2", .inputs = "handle: resource" more, .outputs = out,                 \
    .attrs = attributes, .traits = flags, .infer = shapes, .summary = text }

static const tn_op_def ops[] = {
  BOTH("QueueEnqueue", ", components: Tcomponents", "", PUTS, WAITS, NULL, "enqueues one element"),
  BOTH("QueueEnqueueMany", ", components: Tcomponents", "", PUTS, WAITS, NULL, "enqueues rows, one by one"),
  BOTH("QueueDequeue", "", "components: component_types", TAKES, WAITS | TN_TRAIT_DYNAMIC, NULL,
       "dequeues one element"),
  BOTH("QueueDequeueMany", ", n: int32", "components: component_types", TAKES, WAITS | TN_TRAIT_DYNAMIC, NULL,
       "dequeues n elements as rows"),
  BOTH("QueueDequeueUpTo", ", n: int32", "components: component_types", TAKES, WAITS | TN_TRAIT_DYNAMIC, NULL,
       "dequeues n elements, or fewer if the queue is closed"),
  BOTH("QueueClose", "", "", "cancel_pending_enqueues: bool = false", WAITS, NULL, "closes a queue"),
  BOTH("QueueIsClosed", "", "is_closed: bool", "", TN_TRAIT_STATEFUL | TN_TRAIT_READS, tn__infer_scalar,
       "whether a queue is closed"),
  BOTH("QueueSize", "", "size: int32", "", TN_TRAIT_STATEFUL | TN_TRAIT_READS, tn__infer_scalar,
       "number of elements in a queue"),
};

#define KERNELS(kernel_op, kernel_name, kernel_create, kernel_destroy, kernel_prepare, kernel_compute)             \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = kernel_op, .device = "CPU", .name = kernel_name "_cpu",               \
    .rank = TN_RANK_C, .create = kernel_create, .destroy = kernel_destroy, .prepare = kernel_prepare,              \
    .compute = kernel_compute },                                                                                   \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = kernel_op "V2", .device = "CPU", .name = kernel_name "_v2_cpu",       \
    .rank = TN_RANK_C, .create = kernel_create, .destroy = kernel_destroy, .prepare = kernel_prepare,              \
    .compute = kernel_compute }

static const tn_kernel_def kernels[] = {
  KERNELS("QueueEnqueue", "queue_enqueue", tn__queue_check_timeout, NULL, tn__prepare_nothing, enqueue),
  KERNELS("QueueEnqueueMany", "queue_enqueue_many", tn__queue_check_timeout, NULL, tn__prepare_nothing, enqueue_many),
  KERNELS("QueueDequeue", "queue_dequeue", tn__queue_take_create, tn__queue_take_destroy, take_prepare, dequeue),
  KERNELS("QueueDequeueMany", "queue_dequeue_many", tn__queue_take_create, tn__queue_take_destroy, take_prepare,
          dequeue_many),
  KERNELS("QueueDequeueUpTo", "queue_dequeue_up_to", tn__queue_take_create, tn__queue_take_destroy, take_prepare,
          dequeue_up_to),
  KERNELS("QueueClose", "queue_close", tn__queue_close_create, NULL, tn__prepare_nothing, close_queue),
  KERNELS("QueueIsClosed", "queue_is_closed", NULL, NULL, tn__prepare_scalar, is_closed),
  KERNELS("QueueSize", "queue_size", NULL, NULL, tn__prepare_scalar, size),
};

TN_OP_FAMILY(queue_ops)
