/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of elementwise steps: reads and checks them, and finds their loops. */
#include <core/base/alloc.h>
#include <ops/rewrite/program.h>
#include <string.h>

#define STEP_OP(name, kind) { #name, TN__STEP_##kind },
static const tn__step_op step_ops[] = { TN__STEP_OPS(STEP_OP) };

const tn__step_op *tn__step_op_find(const char *name, size_t size)
{
  for (size_t i = 0; i < sizeof step_ops / sizeof *step_ops; i++)
    if (strncmp(step_ops[i].name, name, size) == 0 && step_ops[i].name[size] == 0) return &step_ops[i];
  return NULL;
}

/* ---- loops ---- */

/* The loop of a step with two operands. A bias is added like any other tensor; only its shape rules differ. */
static const tn__binary_loop *loop_of_two(const tn__step_op *op, const tn_operation *node)
{
  const bool is_sum = op->kind == TN__STEP_BIAS || strcmp(op->name, "AddN") == 0;
  if (op->kind == TN__STEP_SAME && !is_sum) return tn__gradient_loop_of(op->name, node);
  return tn__binary_loop_of(is_sum ? "AddV2" : op->name, node);
}

static tn_status find_loop(tn__step *s, const tn_operation *node, tn_error *err)
{
  const tn__unary_loop *one = NULL;
  const tn__binary_loop *two = NULL;
  tn_dtype dtype = tn_operation_input_dtype(node, 0);
  if (s->op->kind == TN__STEP_LEAKY)
    for (int k = 0; k < 2; k++) s->leaky[k] = tn__curve_find(s->op->name, dtype, k == 1);
  else if (s->op->kind == TN__STEP_UNARY) one = tn__unary_loop_of(s->op->name, node);
  else two = loop_of_two(s->op, node);
  if (one == NULL && two == NULL && s->leaky[0] == NULL)
    return tn_error_set(err, TN_UNIMPLEMENTED, "_TnElementwise: step %s has no loop for dtype %s", s->op->name,
                        tn_dtype_name(dtype));
  s->cost_ns = tn__curve_ns(s->op->name);
  if (two != NULL) {
    s->two = two->fn[tn__vectors()];
    s->cost_ns = two->info->cost_ns;
  }
  if (one != NULL) {
    for (int k = 0; k < 2; k++) s->one[k] = one->fn[tn__vectors_for(k == 1)];
    s->cost_ns = one->info->cost_ns;
  }
  return TN_OK;
}

/* ---- reading ---- */

typedef struct lists {
  const int64_t *operands;
  const float *alphas;
  size_t n_operands, n_alphas;
} lists;

static tn_status read_operand(const lists *l, size_t i, uint32_t limit, uint8_t *out, tn_error *err)
{
  if (l->operands[i] < 0 || l->operands[i] >= (int64_t)limit)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "_TnElementwise: operand %zu is value %lld, wanted one of [0, %u)", i,
                        (long long)l->operands[i], (unsigned)limit);
  *out = (uint8_t)l->operands[i];
  return TN_OK;
}

static tn_status read_step(tn__program *p, uint32_t i, const tn_operation *node, lists *l, tn_error *err)
{
  tn__step *s = &p->steps[i];
  const char *name;
  size_t size;
  tn_status st = tn_operation_attr_string_at(node, "steps", i, &name, &size, NULL, err);
  if (st != TN_OK) return st;
  s->op = tn__step_op_find(name, size);
  if (s->op == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "_TnElementwise: step %u is '%.*s', which is not an elementwise step",
                        (unsigned)i, (int)(size > 99 ? 99 : size), name);
  st = read_operand(l, 2 * (size_t)i, p->n_args + i, &s->x, err);
  if (st == TN_OK && tn__step_reads_two(s->op->kind))
    st = read_operand(l, 2 * (size_t)i + 1, p->n_args + i, &s->y, err);
  if (st != TN_OK) return st;
  if (s->op->kind == TN__STEP_LEAKY) {
    if (l->n_alphas == 0) return tn_error_set(err, TN_INVALID_ARGUMENT, "_TnElementwise: too few alphas");
    s->alpha = *l->alphas++;
    l->n_alphas--;
  }
  return find_loop(s, node, err);
}

static tn_status check_all_read(const tn__program *p, tn_error *err)
{
  uint64_t read = UINT64_C(1) << (p->n_args + p->n_steps - 1);
  for (uint32_t i = 0; i < p->n_steps; i++) {
    read |= UINT64_C(1) << p->steps[i].x;
    if (tn__step_reads_two(p->steps[i].op->kind)) read |= UINT64_C(1) << p->steps[i].y;
  }
  for (uint32_t v = 0; v < p->n_args + p->n_steps; v++)
    if (!(read >> v & 1u))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "_TnElementwise: nothing reads value %u", (unsigned)v);
  return TN_OK;
}

tn_status tn__program_args(const tn_operation *op, uint32_t *first, uint32_t *n_args, tn_error *err)
{
  const int64_t *joined;
  size_t n = 0, n_inputs = tn_operation_n_inputs(op), at = 0;
  *n_args = 0;
  tn_status st = tn_operation_attr_ints(op, "joined", &joined, &n, err);
  if (st != TN_OK) return st;
  bool plain = n == 0;
  if (plain) n = n_inputs;
  if (n == 0 || n > TN__PROGRAM_VALUES)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "_TnElementwise: %zu arguments, wanted 1 to %d", n,
                        TN__PROGRAM_VALUES);
  for (size_t i = 0; i < n; i++) {
    first[i] = (uint32_t)at;
    if (!plain && (joined[i] < 1 || joined[i] > (int64_t)(n_inputs - at))) at = n_inputs + 1;
    else at += plain ? 1 : (size_t)joined[i];
    if (at > n_inputs) break;
  }
  first[n] = (uint32_t)n_inputs;
  *n_args = (uint32_t)n;
  if (at == n_inputs) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "_TnElementwise: 'joined' does not add up to %zu inputs", n_inputs);
}

static size_t program_bytes(uint32_t n_steps) { return sizeof(tn__program) + n_steps * sizeof(tn__step); }

static tn_status read_lists(const tn_operation *op, lists *l, size_t n_args, size_t *n_steps, tn_error *err)
{
  const char *text;
  size_t size;
  *l = (lists){ 0 };
  tn_status st = tn_operation_attr_string_at(op, "steps", 0, &text, &size, n_steps, err);
  if (st == TN_OK) st = tn_operation_attr_ints(op, "operands", &l->operands, &l->n_operands, err);
  if (st == TN_OK) st = tn_operation_attr_floats(op, "alphas", &l->alphas, &l->n_alphas, err);
  if (st != TN_OK) return st;
  if (*n_steps == 0 || *n_steps + n_args > TN__PROGRAM_VALUES)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "_TnElementwise: %zu arguments and %zu steps, wanted one or more of each and at most %d in all",
                        n_args, *n_steps, TN__PROGRAM_VALUES);
  if (l->n_operands != 2 * *n_steps)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "_TnElementwise: %zu operands, wanted 2 for each of %zu steps",
                        l->n_operands, *n_steps);
  return TN_OK;
}

tn_status tn__program_read(const tn_operation *op, tn__program **out, tn_error *err)
{
  lists l;
  size_t n_steps;
  uint32_t first[TN__PROGRAM_VALUES + 1], n_args;
  *out = NULL;
  tn_status st = tn__program_args(op, first, &n_args, err);
  if (st == TN_OK) st = read_lists(op, &l, n_args, &n_steps, err);
  if (st != TN_OK) return st;
  tn__program *p = tn__zalloc(program_bytes((uint32_t)n_steps));
  if (p == NULL) return tn__no_memory(err, "_TnElementwise", program_bytes((uint32_t)n_steps));
  p->n_args = n_args;
  memcpy(p->first_input, first, (n_args + 1) * sizeof *first);
  p->n_steps = (uint32_t)n_steps;
  p->size = (int64_t)tn_dtype_size(tn_operation_input_dtype(op, 0));
  for (uint32_t i = 0; st == TN_OK && i < p->n_steps; i++) st = read_step(p, i, op, &l, err);
  if (st == TN_OK) st = check_all_read(p, err);
  if (st == TN_OK) *out = p;
  else tn__program_destroy(p);
  return st;
}

void tn__program_destroy(tn__program *p)
{
  if (p != NULL) tn__free(p, program_bytes(p->n_steps));
}
