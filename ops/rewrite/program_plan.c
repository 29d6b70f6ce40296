/* SPDX-License-Identifier: Apache-2.0 */
/* Plans programs of elementwise steps for concrete shapes: which steps form a stage, how each operand of a stage is
 * traversed, how long a block is, and which steps share a register. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/rewrite/program.h>
#include <string.h>

#define BLOCK_BYTES 8192 /* maximum size of a block of one operand */
#define LINE 64

/* dims holds the dimensions of all values, one after another, padded with leading ones to the highest rank of an
 * argument. */
typedef struct planner {
  const tn__program *p;
  tn_prepare_ctx *ctx;
  tn__program_plan *plan;
  int32_t rank;
  int32_t ranks[TN__PROGRAM_VALUES];
  int64_t *dims;
  size_t scratch;
  tn_error *err;
} planner;

static int64_t *dims_of(const planner *b, uint32_t value) { return b->dims + (size_t)value * (size_t)b->rank; }
static uint32_t result_of(const planner *b, uint32_t step) { return b->p->n_args + step; }
static size_t dims_count(const planner *b) { return (b->p->n_args + b->p->n_steps) * (size_t)b->rank + 1; }

static bool same_dims(const planner *b, uint32_t x, uint32_t y)
{
  return memcmp(dims_of(b, x), dims_of(b, y), (size_t)b->rank * sizeof *b->dims) == 0;
}

/* ---- shapes ---- */

static const tn_view *arg_of(const planner *b, uint32_t i) { return &b->ctx->inputs[b->p->first_input[i]]; }

/* Adds the name of the argument's original concatenation to the error. */
static void name_join(planner *b, uint32_t arg)
{
  const char *text;
  size_t size, n = 0;
  if (tn_operation_attr_string_at(b->ctx->op, "joins", arg, &text, &size, &n, NULL) != TN_OK || arg >= n || size == 0)
    return;
  char *name = tn__strndup(text, size);
  if (name == NULL) return;
  tn_error_prefix(b->err, "'%s'", name);
  tn_error_set_node(b->err, name);
  tn__strfree(name);
}

/* Checks that all parts of a joined argument have the same shape except for the last dimension. *sum is the sum of
 * their last dimensions. */
static tn_status find_join(planner *b, uint32_t arg, int64_t *sum)
{
  const tn_view *first = arg_of(b, arg);
  uint32_t n = b->p->first_input[arg + 1] - b->p->first_input[arg];
  if (first->rank < 1)
    return tn_error_set(b->err, TN_INVALID_ARGUMENT, "ConcatV2: input 0 is a scalar, wanted a rank of 1 or more");
  *sum = 0;
  for (uint32_t i = 0; i < n; i++) {
    const tn_view *in = &first[i];
    bool fits = in->rank == first->rank;
    for (int32_t d = 0; d + 1 < first->rank && fits; d++) fits = in->dims[d] == first->dims[d];
    if (!fits)
      return tn_error_set(b->err, TN_INVALID_ARGUMENT, "ConcatV2: input %u does not fit the inputs before it",
                          (unsigned)i);
    if (__builtin_add_overflow(*sum, in->dims[in->rank - 1], sum))
      return tn_error_set(b->err, TN_INVALID_ARGUMENT, "ConcatV2: the sizes along axis %d are too large together",
                          (int)first->rank - 1);
  }
  return TN_OK;
}

static tn_status find_joins(planner *b)
{
  for (uint32_t i = 0; i < b->p->n_args; i++) {
    if (!tn__program_joins(b->p, i)) continue;
    int64_t sum = 0;
    tn_status st = find_join(b, i, &sum);
    if (st == TN_OK) {
      dims_of(b, i)[b->rank - 1] = sum;
      continue;
    }
    name_join(b, i);
    return st;
  }
  return TN_OK;
}

static tn_status find_args(planner *b)
{
  for (uint32_t i = 0; i < b->p->n_args; i++)
    if (arg_of(b, i)->rank > b->rank) b->rank = arg_of(b, i)->rank;
  b->dims = tn__alloc_array(dims_count(b), sizeof *b->dims);
  if (b->dims == NULL) return tn__no_memory(b->err, "_TnElementwise", dims_count(b) * sizeof *b->dims);
  for (uint32_t i = 0; i < b->p->n_args; i++) {
    const tn_view *in = arg_of(b, i);
    int64_t *dims = dims_of(b, i);
    int32_t missing = b->rank - in->rank;
    b->ranks[i] = in->rank;
    for (int32_t d = 0; d < b->rank; d++) dims[d] = d < missing ? 1 : in->dims[d - missing];
  }
  return find_joins(b);
}

static tn_status find_bias(planner *b, const tn__step *s)
{
  if (b->ranks[s->x] < 2 || b->ranks[s->y] != 1)
    return tn_error_set(b->err, TN_INVALID_ARGUMENT, "BiasAdd: inputs have ranks %d and %d, wanted at least 2, and 1",
                        (int)b->ranks[s->x], (int)b->ranks[s->y]);
  int64_t channels = dims_of(b, s->x)[b->rank - 1], n = dims_of(b, s->y)[b->rank - 1];
  if (n != channels)
    return tn_error_set(b->err, TN_INVALID_ARGUMENT, "BiasAdd: input 1 has shape [%lld], wanted [%lld]", (long long)n,
                        (long long)channels);
  return TN_OK;
}

/* A dimension of the lower rank that is missing does not count as 1. */
static tn_status find_same(planner *b, const tn__step *s)
{
  char x[160], y[160];
  if (b->ranks[s->x] == b->ranks[s->y] && same_dims(b, s->x, s->y)) return TN_OK;
  return tn_error_set(b->err, TN_INVALID_ARGUMENT, "%s: inputs have shapes %s and %s, wanted the same", s->op->name,
                      tn__format_shape(x, sizeof x, dims_of(b, s->x) + b->rank - b->ranks[s->x], b->ranks[s->x]),
                      tn__format_shape(y, sizeof y, dims_of(b, s->y) + b->rank - b->ranks[s->y], b->ranks[s->y]));
}

static tn_status find_step(planner *b, uint32_t step)
{
  const tn__step *s = &b->p->steps[step];
  uint32_t to = result_of(b, step);
  int64_t *out = dims_of(b, to);
  const int64_t *x = dims_of(b, s->x), *y = dims_of(b, s->y);
  size_t bytes = (size_t)b->rank * sizeof *out;
  b->ranks[to] = b->ranks[s->x];
  memcpy(out, x, bytes);
  if (!tn__step_reads_two(s->op->kind)) return TN_OK;
  if (s->op->kind == TN__STEP_BIAS) return find_bias(b, s);
  if (s->op->kind == TN__STEP_SAME) return find_same(b, s);
  if (b->ranks[s->y] > b->ranks[to]) b->ranks[to] = b->ranks[s->y];
  for (int32_t d = 0; d < b->rank; d++) {
    if (x[d] != y[d] && x[d] != 1 && y[d] != 1)
      return tn__broadcast_error(b->err, s->op->name, x + b->rank - b->ranks[s->x], b->ranks[s->x],
                                 y + b->rank - b->ranks[s->y], b->ranks[s->y]);
    out[d] = x[d] == 1 ? y[d] : x[d];
  }
  return TN_OK;
}

/* Adds the name of the step's original node to the error. */
static void name_step(planner *b, uint32_t step)
{
  const char *text;
  size_t size, n = 0;
  if (tn_operation_attr_string_at(b->ctx->op, "nodes", step, &text, &size, &n, NULL) != TN_OK || step >= n) return;
  char *name = tn__strndup(text, size);
  if (name == NULL) return;
  tn_error_prefix(b->err, "'%s'", name);
  tn_error_set_node(b->err, name);
  tn__strfree(name);
}

/* ---- a stage ---- */

static size_t take_scratch(planner *b, int64_t elements)
{
  size_t at = b->scratch;
  b->scratch += ((size_t)elements * (size_t)b->p->size + LINE - 1) / LINE *
                LINE; /* cannot overflow: smaller than existing operands */
  return at;
}

static bool is_operand(const planner *b, const tn__stage *g, uint32_t value)
{
  for (uint32_t i = 0; i < g->n_operands; i++)
    if (b->plan->operands[g->first_operand + i].value == value) return true;
  return false;
}

/* Plans a joined argument: its parts are read in place, or joined in scratch memory if it is broadcast. */
static tn_status plan_join(planner *b, uint32_t arg, tn__stage_operand *o)
{
  tn__program_plan *plan = b->plan;
  const tn_view *in = arg_of(b, arg);
  uint32_t n = b->p->first_input[arg + 1] - b->p->first_input[arg];
  if (plan->joins[arg] == NULL) {
    tn__join *join = tn__join_create(in->dtype, dims_of(b, arg), b->rank - 1, b->rank, n);
    if (join == NULL) return tn__join_no_memory(b->ctx, b->err);
    for (uint32_t i = 0; i < n; i++) tn__join_add(join, b->p->first_input[arg] + i, in[i].dims[in[i].rank - 1]);
    plan->joins[arg] = join;
  }
  o->join = plan->joins[arg];
  if (o->at == TN__AT_FLAT) {
    o->at = TN__AT_JOINED;
  } else if (plan->wholes[arg] == SIZE_MAX) {
    plan->wholes[arg] = take_scratch(b, (int64_t)(o->join->row / (size_t)b->p->size) * o->join->rows);
    b->ctx->cost_ns += tn__join_cost(o->join);
  }
  return TN_OK;
}

/* Adds a value that the stage reads but does not compute, and determines how it is traversed. */
static tn_status add_operand(planner *b, tn__stage *g, uint32_t value)
{
  if (is_operand(b, g, value)) return TN_OK;
  tn__stage_operand *o = &b->plan->operands[g->first_operand + g->n_operands++];
  *o = (tn__stage_operand){ .value = (uint8_t)value };
  uint32_t result = result_of(b, b->plan->steps[g->first_step + g->n_steps - 1].step);
  tn_view view = { .dims = dims_of(b, value), .rank = b->rank, .count = 1 };
  for (int32_t d = 0; d < b->rank; d++) view.count *= view.dims[d];
  tn__broadcast merged;
  tn__broadcast_merge(&merged, dims_of(b, result), b->rank, &(const tn_view *){ &view }, 1);
  g->count = merged.count;
  if (view.count == 1) o->at = TN__AT_ONE;
  else if (tn__broadcast_is_flat(&merged)) o->at = TN__AT_FLAT;
  else if (merged.rank == 2 && merged.strides[0][0] == 0 && merged.strides[0][1] == 1) o->at = TN__AT_PERIODIC;
  else o->at = TN__AT_SPREAD;
  if (o->at == TN__AT_PERIODIC) o->period = merged.dims[1];
  if (tn__program_joins(b->p, value)) {
    tn_status st = plan_join(b, value, o);
    if (o->at == TN__AT_JOINED) o->reg = g->n_registers++;
    if (st != TN_OK || o->at == TN__AT_JOINED) return st;
  }
  if (o->at != TN__AT_SPREAD) return TN_OK;
  o->reg = g->n_registers++;
  return tn__broadcast_plan_create(&merged, &o->plan, b->err);
}

static bool computes(const planner *b, const tn__stage *g, uint32_t value)
{
  for (uint32_t i = 0; i < g->n_steps; i++)
    if (result_of(b, b->plan->steps[g->first_step + i].step) == value) return true;
  return false;
}

static tn_status add_operands(planner *b, tn__stage *g)
{
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < g->n_steps; i++) {
    const tn__step *s = &b->p->steps[b->plan->steps[g->first_step + i].step];
    if (!computes(b, g, s->x)) st = add_operand(b, g, s->x);
    if (st == TN_OK && tn__step_reads_two(s->op->kind) && !computes(b, g, s->y)) st = add_operand(b, g, s->y);
  }
  return st;
}

/* The stride, 0 or 1, with which a step reads a value. */
static uint8_t moves(const planner *b, const tn__stage *g, uint32_t value)
{
  for (uint32_t i = 0; i < g->n_operands && g->count > 1; i++) {
    const tn__stage_operand *o = &b->plan->operands[g->first_operand + i];
    if (o->value == value) return o->at != TN__AT_ONE;
  }
  return 1;
}

/* Assigns each step but the last a register whose value is not needed later; it may be one that the step itself
 * reads. */
static void give_registers(planner *b, tn__stage *g)
{
  tn__stage_step *steps = b->plan->steps + g->first_step;
  uint8_t last_use[TN__PROGRAM_VALUES] = { 0 };
  uint64_t taken = (UINT64_C(1) << g->n_registers) - 1; /* registers of operands, reserved for a whole block */
  for (uint32_t i = 0; i < g->n_steps; i++) {
    const tn__step *s = &b->p->steps[steps[i].step];
    last_use[s->x] = (uint8_t)i;
    steps[i].sx = steps[i].sy = moves(b, g, s->x);
    if (!tn__step_reads_two(s->op->kind)) continue;
    last_use[s->y] = (uint8_t)i;
    steps[i].sy = moves(b, g, s->y);
  }
  for (uint32_t i = 0; i < g->n_steps; i++) {
    for (uint32_t k = 0; k < i; k++)
      if (last_use[result_of(b, steps[k].step)] == i) taken &= ~(UINT64_C(1) << steps[k].reg);
    uint32_t reg = 0;
    while (taken >> reg & 1u) reg++;
    steps[i].reg = i + 1 < g->n_steps ? (uint8_t)reg : TN__TO_MEMORY;
    if (i + 1 == g->n_steps) break;
    taken |= UINT64_C(1) << reg;
    if (reg >= g->n_registers) g->n_registers = reg + 1;
  }
}

static int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

/* Periods are products of last dimensions, so each divides all longer ones. Operands whose period fits a block are
 * tiled; the shortest of the other periods is the row. Returns the longest period that is tiled, 0 if there is
 * none. */
static int64_t find_row(tn__stage *g, tn__stage_operand *operands, int64_t most)
{
  int64_t longest = 0;
  g->row = g->count;
  for (uint32_t i = 0; i < g->n_operands; i++) {
    int64_t period = operands[i].period;
    if (operands[i].at != TN__AT_PERIODIC) continue;
    if (period > most) {
      if (period < g->row) g->row = period;
    } else {
      operands[i].at = TN__AT_TILED;
      if (period > longest) longest = period;
    }
  }
  return longest;
}

static void cut_blocks(planner *b, tn__stage *g)
{
  tn__stage_operand *operands = b->plan->operands + g->first_operand;
  int64_t bytes = TN__REGISTER_BYTES / (g->n_registers > 0 ? g->n_registers : 1) / LINE * LINE;
  int64_t most = (bytes < BLOCK_BYTES ? bytes : BLOCK_BYTES) / b->p->size, unit = LINE / b->p->size;
  int64_t period = find_row(g, operands, most);
  if (period > 0 && unit % period != 0) unit = period; /* blocks hold whole periods */
  int64_t longest = most / unit * unit;
  g->blocks_in_row = (g->row + longest - 1) / longest;
  g->block = round_up((g->row + g->blocks_in_row - 1) / g->blocks_in_row, unit);
  g->n_blocks = g->count / g->row * g->blocks_in_row;
  g->register_bytes = (size_t)round_up(g->block * b->p->size, LINE);
  for (uint32_t i = 0; i < g->n_operands; i++) {
    if (operands[i].at != TN__AT_TILED) continue;
    if (operands[i].period == g->block) operands[i].at = TN__AT_PERIODIC;
    else operands[i].tile = take_scratch(b, g->block);
  }
}

static tn_status finish_stage(planner *b, tn__stage *g)
{
  g->first_operand = b->plan->n_operands;
  tn_status st = add_operands(b, g);
  b->plan->n_operands += g->n_operands;
  if (st != TN_OK) return st;
  if (tn__program_find_affine(b->p, b->plan, g, &b->plan->affine)) {
    g->n_blocks = b->plan->affine.rows;
    g->block_ns = b->plan->affine.row_ns;
    return TN_OK;
  }
  give_registers(b, g);
  cut_blocks(b, g);
  for (uint32_t i = 0; i < g->n_steps; i++)
    g->block_ns += b->p->steps[b->plan->steps[g->first_step + i].step].cost_ns * (double)g->block;
  for (uint32_t i = 0; i < g->n_operands; i++) {
    const tn__stage_operand *o = &b->plan->operands[g->first_operand + i];
    if (o->at == TN__AT_JOINED) g->block_ns += tn__join_cost(o->join) / (double)g->n_blocks;
  }
  return TN_OK;
}

/* ---- all stages ---- */

static tn__program_plan *new_plan(const tn__program *p, uint32_t n_small)
{
  size_t n_stages = n_small + 1, n_operands = p->n_args + 3 * (size_t)n_small;
  size_t bytes = sizeof(tn__program_plan) + n_stages * sizeof(tn__stage) + n_operands * sizeof(tn__stage_operand) +
                 p->n_args * (sizeof(tn__join *) + sizeof(size_t)) +
                 p->n_steps * (sizeof(size_t) + sizeof(tn__stage_step));
  tn__program_plan *plan = tn__zalloc(bytes);
  if (plan == NULL) return NULL;
  plan->bytes = bytes;
  plan->stages = (tn__stage *)(plan + 1);
  plan->operands = (tn__stage_operand *)(plan->stages + n_stages);
  plan->n_args = p->n_args;
  plan->joins = (tn__join **)(plan->operands + n_operands);
  plan->wholes = (size_t *)(plan->joins + p->n_args);
  memset(plan->wholes, 0xff, p->n_args * sizeof *plan->wholes);
  plan->results = plan->wholes + p->n_args;
  plan->steps = (tn__stage_step *)(plan->results + p->n_steps);
  return plan;
}

static tn_status make_stages(planner *b)
{
  uint32_t n = b->p->n_steps, last = result_of(b, n - 1), n_small = 0, n_order = 0;
  for (uint32_t i = 0; i < n; i++) n_small += !same_dims(b, result_of(b, i), last);
  b->plan = new_plan(b->p, n_small);
  if (b->plan == NULL) return tn__no_memory(b->err, "_TnElementwise", n * sizeof(tn__stage));
  for (uint32_t i = 0; i < n; i++) {
    if (same_dims(b, result_of(b, i), last)) continue;
    tn__stage *g = &b->plan->stages[b->plan->n_stages++];
    b->plan->steps[n_order].step = (uint8_t)i;
    *g = (tn__stage){ .first_step = n_order++, .n_steps = 1 };
    tn_status st = finish_stage(b, g);
    if (st != TN_OK) return st;
    b->plan->results[i] = g->result = take_scratch(b, g->count);
  }
  tn__stage *g = &b->plan->stages[b->plan->n_stages++];
  *g = (tn__stage){ .first_step = n_order, .n_steps = n - n_small };
  for (uint32_t i = 0; i < n; i++)
    if (same_dims(b, result_of(b, i), last)) b->plan->steps[n_order++].step = (uint8_t)i;
  return finish_stage(b, g);
}

/* Lets the output reuse the memory of the first argument that is read one to one. Constants come last, because
 * their memory is never available. Not allowed if arguments are joined: that argument may also be a part of a join,
 * which is read at other elements than those being written. */
static tn_status allow_in_place(planner *b)
{
  for (uint32_t i = 0; i < b->p->n_args; i++)
    if (tn__program_joins(b->p, i)) return TN_OK;
  const tn__stage *g = &b->plan->stages[b->plan->n_stages - 1];
  for (int constants = 0; constants <= 1; constants++)
    for (uint32_t i = 0; i < g->n_operands; i++) {
      const tn__stage_operand *o = &b->plan->operands[g->first_operand + i];
      if (o->at != TN__AT_FLAT || o->value >= b->p->n_args) continue;
      uint32_t input = b->p->first_input[o->value];
      if ((b->ctx->inputs[input].data != NULL) == constants) return tn_prepare_in_place(b->ctx, 0, input, b->err);
    }
  return TN_OK;
}

static tn_status prepare(planner *b, tn__program_plan **out)
{
  const tn__program *p = b->p;
  uint32_t last = result_of(b, p->n_steps - 1);
  tn_status st = find_args(b);
  for (uint32_t i = 0; st == TN_OK && i < p->n_steps; i++) {
    st = find_step(b, i);
    if (st != TN_OK) name_step(b, i);
  }
  if (st == TN_OK)
    st = tn_prepare_output(b->ctx, 0, dims_of(b, last) + b->rank - b->ranks[last], b->ranks[last], b->err);
  if (st != TN_OK) return st;
  for (int32_t d = 0; d < b->rank; d++)
    if (dims_of(b, last)[d] == 0) return TN_OK;
  st = make_stages(b);
  *out = b->plan;
  if (st == TN_OK) st = allow_in_place(b);
  return st;
}

tn_status tn__program_prepare(const tn__program *p, tn_prepare_ctx *ctx, tn__program_plan **out, tn_error *err)
{
  planner b = { .p = p, .ctx = ctx, .err = err };
  *out = NULL;
  tn_status st = prepare(&b, out);
  tn__free(b.dims, dims_count(&b) * sizeof *b.dims);
  ctx->scratch_bytes = b.scratch;
  for (uint32_t i = 0; *out != NULL && i < (*out)->n_stages; i++)
    ctx->cost_ns += (*out)->stages[i].block_ns * (double)(*out)->stages[i].n_blocks;
  return st;
}

void tn__program_plan_destroy(tn__program_plan *plan)
{
  if (plan == NULL) return;
  for (uint32_t i = 0; i < plan->n_operands; i++) tn__broadcast_plan_destroy(plan->operands[i].plan);
  for (uint32_t i = 0; i < plan->n_args; i++) tn__join_destroy(plan->joins[i]);
  tn__free(plan, plan->bytes);
}
