/* SPDX-License-Identifier: Apache-2.0 */
/* Loops whose body is a function of the graph's library. The loop variables are the tensors that
 * the body returned: the next iteration receives them without a copy, and a tensor that the body
 * only passes through stays the same. */
#include <core/graph/graph_internal.h>
#include <ops/control/function_calls.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>

#include <core/base/alloc.h>
#include <core/tensor/tensor_internal.h>

/* A running loop. It is allocated separately, because a kernel's scratch memory is released while
 * it waits. */
typedef struct loop {
  uint32_t n;           /* loop variables */
  bool in_body;         /* the condition of this iteration holds */
  tn_view counter;      /* For: first argument of the body */
  int32_t number;
  int64_t left;         /* iterations left */
  tn_tensor **values;   /* n; NULL in the first iteration: use the inputs */
  tn_tensor **next;     /* n */
  tn_view *views;       /* of values */
  tn_view **arguments;  /* of functions: 1 + n */
  size_t bytes;
} loop;

static void loop_free(loop *l)
{
  for (uint32_t i = 0; i < l->n; i++) tn_tensor_unref(l->values[i]);
  tn__free(l, l->bytes);
}

/* Starts a loop whose variables are the inputs from `first` on. */
static tn_status loop_begin(tn_kernel_ctx *ctx, uint32_t first, loop **out)
{
  uint32_t n = ctx->n_inputs - first;
  size_t bytes = sizeof(loop) + n * (2 * sizeof(tn_tensor *) + sizeof(tn_view) + sizeof(tn_view *)) + sizeof(tn_view *);
  loop *l = *out = tn__zalloc(bytes);
  if (l == NULL) return tn__no_memory(ctx->err, "loop", bytes);
  l->n = n;
  l->bytes = bytes;
  l->views = (tn_view *)(l + 1);
  l->values = (tn_tensor **)(l->views + n);
  l->next = l->values + n;
  l->arguments = (tn_view **)(l->next + n);
  l->counter = (tn_view){ .data = &l->number, .count = 1, .dtype = TN_INT32 };
  l->arguments[0] = &l->counter;
  for (uint32_t i = 0; i < n; i++) l->arguments[1 + i] = ctx->inputs[first + i];
  return TN_OK;
}

/* The body's results become the variables of the next iteration. */
static void go_on(loop *l)
{
  for (uint32_t i = 0; i < l->n; i++) {
    tn_tensor *t = l->next[i];
    tn_tensor_unref(l->values[i]);
    if (t == l->values[i]) continue; /* passed through by the body */
    l->values[i] = t;
    l->views[i] = (tn_view){ .data = t->data, .dims = t->dims, .count = t->count, .dtype = t->dtype, .rank = t->rank,
                             .buffer = t->buffer };
    l->arguments[1 + i] = &l->views[i];
  }
}

/* The loop variables become the outputs. If there was no iteration, these are the inputs. Frees the
 * loop. */
static tn_status loop_end(tn_kernel_ctx *ctx, loop *l, uint32_t first, tn_status st)
{
  for (uint32_t i = 0; st == TN_OK && i < l->n; i++) {
    tn_tensor *t = l->values[i];
    l->values[i] = NULL;
    if (t == NULL) st = tn_kernel_keep_input(ctx, first + i, &t);
    if (st == TN_OK) st = tn__give_result(ctx, i, t);
  }
  loop_free(l);
  return st;
}

/* ---- While ---- */

enum { COND, BODY };

static tn_status decide(tn_kernel_ctx *ctx, loop *l)
{
  tn_tensor *t;
  tn_status st = tn_kernel_call(ctx, COND, l->arguments + 1, l->n, &t, 1);
  if (st != TN_OK) return st;
  const tn_view v = { .data = t->data, .dims = t->dims, .count = t->count, .dtype = t->dtype, .rank = t->rank };
  st = tn__is_true(&v, &l->in_body, ctx->err);
  tn_tensor_unref(t);
  return st;
}

/* S-CAN: each function call checks first whether the step was cancelled. */
static tn_status while_run(tn_kernel_ctx *ctx, loop *l)
{
  for (;;) {
    tn_status st = l->in_body ? TN_OK : decide(ctx, l);
    if (st != TN_OK || !l->in_body) return st;
    st = tn_kernel_call(ctx, BODY, l->arguments + 1, l->n, l->next, l->n);
    if (st != TN_OK) return st;
    go_on(l);
    l->in_body = false;
  }
}

static tn_status while_compute(tn_kernel_ctx *ctx)
{
  loop *l = ctx->waiting;
  tn_status st = l == NULL ? loop_begin(ctx, 0, &l) : TN_OK;
  if (l == NULL) return st;
  st = while_run(ctx, l);
  ctx->waiting = st == TN_PENDING ? l : NULL;
  return st == TN_PENDING ? st : loop_end(ctx, l, 0, st);
}

static tn_status infer_while(tn_infer_ctx *ctx, tn_error *err)
{
  return tn__infer_loop(ctx, "cond", "body", "output_shapes", err);
}

/* ---- For ---- */

enum { START, LIMIT, DELTA, FIRST };

static tn_status for_begin(tn_kernel_ctx *ctx, loop **out)
{
  int64_t n[3];
  static const char *const names[] = { "start", "limit", "delta" };
  for (uint32_t i = START; i <= DELTA; i++) {
    if (ctx->inputs[i]->rank != 0)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "%s has rank %d, wanted a scalar", names[i],
                          ctx->inputs[i]->rank);
    n[i] = *(const int32_t *)ctx->inputs[i]->data;
  }
  int64_t way = n[LIMIT] - n[START], step = n[DELTA];
  if (way != 0 && (step == 0 || (way > 0) != (step > 0)))
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "a loop from %lld to %lld by steps of %lld does not end",
                        (long long)n[START], (long long)n[LIMIT], (long long)step);
  tn_status st = loop_begin(ctx, FIRST, out);
  if (st != TN_OK) return st;
  (*out)->number = (int32_t)n[START];
  if (way != 0) (*out)->left = way / step + (way % step != 0);
  return TN_OK;
}

static tn_status for_run(tn_kernel_ctx *ctx, loop *l)
{
  for (; l->left > 0; l->left--) {
    tn_status st = tn_kernel_call(ctx, 0, l->arguments, l->n + 1, l->next, l->n);
    if (st != TN_OK) return st;
    go_on(l);
    if (l->left > 1) l->number += *(const int32_t *)ctx->inputs[DELTA]->data;
  }
  return TN_OK;
}

static tn_status for_compute(tn_kernel_ctx *ctx)
{
  loop *l = ctx->waiting;
  tn_status st = l == NULL ? for_begin(ctx, &l) : TN_OK;
  if (l == NULL) return st;
  st = for_run(ctx, l);
  ctx->waiting = st == TN_PENDING ? l : NULL;
  return st == TN_PENDING ? st : loop_end(ctx, l, FIRST, st);
}

/* ---- tables ---- */

#define WHILE_ATTRS \
  "T: list(type) >= 0; cond: func; body: func; output_shapes: list(shape) = []; parallel_iterations: int = 10"

static const tn_op_def ops[] = {
  TN__FUNCTION_OP("For", "start: int32, limit: int32, delta: int32, input: T", "output: T",
                  "T: list(type) >= 0; body: func", 0, NULL, "a function for each number of a range"),
  TN__FUNCTION_OP("StatelessWhile", "input: T", "output: T", WHILE_ATTRS, TN_TRAIT_LOOP_CALL, infer_while,
                  "a function again and again, without effects"),
  TN__FUNCTION_OP("While", "input: T", "output: T", WHILE_ATTRS,
                  TN_TRAIT_STATEFUL | TN_TRAIT_READS | TN_TRAIT_LOOP_CALL, infer_while, "a function again and again"),
};

static const tn_kernel_def kernels[] = {
  TN__FUNCTION_KERNEL("For", NULL, for_compute),
  TN__FUNCTION_KERNEL("StatelessWhile", NULL, while_compute),
  TN__FUNCTION_KERNEL("While", NULL, while_compute),
};

TN_OP_FAMILY(function_loops)
