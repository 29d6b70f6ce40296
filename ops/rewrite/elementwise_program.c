/* SPDX-License-Identifier: Apache-2.0 */
/* _TnElementwise: elementwise steps as one op, created by the planner's "elementwise" pass
 * (ops/rewrite/fuse_elementwise.c). Each argument is read once and the result is written once; intermediate values
 * stay in registers, which are buffers of a few KB.
 *
 * Attributes and stages: ops/rewrite/program.h. */
#include <ops/kernel/family.h>
#include <ops/rewrite/program.h>
#include <string.h>

#define PARALLEL_NS 8000.0 /* work above which other threads are used */
#define GRAIN_NS 3000.0

/* The shape of inputs [first, end) concatenated along their last dimension. */
static tn_status infer_arg(tn_infer_ctx *ctx, uint32_t first, uint32_t end, tn__shape *arg, tn_error *err)
{
  tn__infer_get(ctx, first, arg);
  for (uint32_t i = first + 1; i < end; i++) {
    tn__shape part;
    tn__infer_get(ctx, i, &part);
    int64_t x = arg->rank < 1 ? -1 : arg->dims[arg->rank - 1], y = part.rank < 1 ? -1 : part.dims[part.rank - 1], sum;
    if (arg->rank == 0 || part.rank == 0 || __builtin_add_overflow(x, y, &sum))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "_TnElementwise: input %u cannot be joined", (unsigned)i);
    if (arg->rank > 0) arg->dims[arg->rank - 1] = -1;
    if (part.rank > 0) part.dims[part.rank - 1] = -1;
    if (!tn__shape_merge(arg, part.dims, part.rank))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "_TnElementwise: input %u does not fit the inputs before it",
                          (unsigned)i);
    if (arg->rank > 0) arg->dims[arg->rank - 1] = x < 0 || y < 0 ? -1 : sum;
  }
  return TN_OK;
}

static tn_status program_infer(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape all, arg, sum;
  uint32_t first[TN__PROGRAM_VALUES + 1], n;
  tn_status st = tn__program_args(tn_infer_operation(ctx), first, &n, err);
  if (st == TN_OK) st = infer_arg(ctx, first[0], first[1], &all, err);
  if (st != TN_OK) return st;
  for (uint32_t i = 1; i < n; i++) {
    st = infer_arg(ctx, first[i], first[i + 1], &arg, err);
    if (st != TN_OK) return st;
    if (!tn__broadcast_shapes(all.dims, all.rank, arg.dims, arg.rank, &sum))
      return tn__broadcast_error(err, "_TnElementwise", all.dims, all.rank, arg.dims, arg.rank);
    tn__shape_set(&all, sum.dims, sum.rank);
  }
  return tn__infer_set(ctx, 0, &all, err);
}

static tn_status program_create(const tn_operation *op, void **state, tn_error *err)
{
  tn__program *p;
  tn_status st = tn__program_read(op, &p, err);
  *state = p;
  return st;
}

static void program_destroy(void *state) { tn__program_destroy(state); }
static void program_destroy_plan(void *plan) { tn__program_plan_destroy(plan); }

static tn_status program_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn__program_plan *plan;
  tn_status st = tn__program_prepare(ctx->state, ctx, &plan, err);
  ctx->shape_state = plan;
  return st;
}

/* ---- computing ---- */

typedef struct run {
  const tn__program *p;
  const tn__program_plan *plan;
  const tn__stage *stage;
  tn_view *const *inputs;
  char *scratch;
  char *to; /* result of the stage */
  bool reproducible;
} run;

/* The address of a value in memory: an argument, or the result of an earlier stage. */
static const char *memory_of(const run *r, uint32_t value)
{
  if (value >= r->p->n_args) return r->scratch + r->plan->results[value - r->p->n_args];
  if (r->plan->wholes[value] != SIZE_MAX) return r->scratch + r->plan->wholes[value];
  return r->inputs[r->p->first_input[value]]->data;
}

static void fill(char *to, const char *element, int64_t n, int64_t size)
{
  uint64_t wide;
  uint32_t middle;
  uint16_t narrow;
  switch (size) {
  case 8:
    memcpy(&wide, element, 8);
    for (int64_t i = 0; i < n; i++) ((uint64_t *)(void *)to)[i] = wide;
    break;
  case 4:
    memcpy(&middle, element, 4);
    for (int64_t i = 0; i < n; i++) ((uint32_t *)(void *)to)[i] = middle;
    break;
  default:
    memcpy(&narrow, element, 2);
    for (int64_t i = 0; i < n; i++) ((uint16_t *)(void *)to)[i] = narrow;
  }
}

/* Copies a broadcast operand's elements [begin, begin + n), in stage order, to adjacent elements. */
static void spread(const tn__broadcast_plan *plan, const char *from, char *to, int64_t begin, int64_t n, int64_t size)
{
  tn__broadcast_cursor c;
  tn__broadcast_start(&c, plan, begin, begin + n);
  while (tn__broadcast_next(&c)) {
    const char *piece = from + c.offsets[0] * size;
    char *at = to + (c.at - begin) * size;
    if (plan->row_strides[0] != 0) memcpy(at, piece, (size_t)(c.n * size));
    else fill(at, piece, c.n, size);
  }
}

static const char *find_operand(const run *r, const tn__stage_operand *o, char *registers, int64_t begin, int64_t n)
{
  int64_t size = r->p->size;
  if (o->at == TN__AT_JOINED) {
    char *reg = registers + o->reg * r->stage->register_bytes;
    tn__join_read(o->join, r->inputs, (size_t)(begin * size), (size_t)((begin + n) * size), reg);
    return reg;
  }
  const char *memory = memory_of(r, o->value);
  switch (o->at) {
  case TN__AT_FLAT: return memory + begin * size;
  case TN__AT_PERIODIC: return memory + begin % o->period * size;
  case TN__AT_TILED: return r->scratch + o->tile;
  case TN__AT_SPREAD: {
    char *reg = registers + o->reg * r->stage->register_bytes;
    spread(o->plan, memory, reg, begin, n, size);
    return reg;
  }
  default: return memory;
  }
}

static void run_step(const tn__step *s, const tn__stage_step *how, bool reproducible, const char *const *at, char *to,
                     int64_t n)
{
  if (s->two != NULL) s->two(at[s->x], how->sx, at[s->y], how->sy, to, n);
  else if (s->one[0] != NULL) s->one[reproducible](at[s->x], to, n);
  else s->leaky[reproducible](at[s->x], at[s->x], to, n, s->alpha);
}

static void run_block(const run *r, int64_t begin, int64_t n, char *registers, const char **at)
{
  const tn__stage *g = r->stage;
  for (uint32_t i = 0; i < g->n_operands; i++) {
    const tn__stage_operand *o = &r->plan->operands[g->first_operand + i];
    at[o->value] = find_operand(r, o, registers, begin, n);
  }
  for (uint32_t i = 0; i < g->n_steps; i++) {
    const tn__stage_step *s = &r->plan->steps[g->first_step + i];
    char *to = s->reg == TN__TO_MEMORY ? r->to + begin * r->p->size : registers + s->reg * g->register_bytes;
    run_step(&r->p->steps[s->step], s, r->reproducible, at, to, n);
    at[r->p->n_args + s->step] = to;
  }
}

static void run_part(void *user, int64_t first, int64_t end)
{
  const run *r = user;
  const tn__stage *g = r->stage;
  _Alignas(64) char registers[TN__REGISTER_BYTES];
  const char *at[TN__PROGRAM_VALUES];
  int64_t row = 0, column = 0;
  if (first > 0) {
    row = first / g->blocks_in_row;
    column = first % g->blocks_in_row * g->block;
  }
  for (int64_t i = first; i < end; i++) {
    int64_t n = g->row - column < g->block ? g->row - column : g->block;
    run_block(r, row * g->row + column, n, registers, at);
    column += n;
    if (column == g->row) {
      column = 0;
      row++;
    }
  }
}

static void make_tiles(const run *r)
{
  for (uint32_t i = 0; i < r->stage->n_operands; i++) {
    const tn__stage_operand *o = &r->plan->operands[r->stage->first_operand + i];
    if (o->at != TN__AT_TILED) continue;
    char *tile = r->scratch + o->tile;
    size_t all = (size_t)(r->stage->block * r->p->size), done = (size_t)(o->period * r->p->size);
    memcpy(tile, memory_of(r, o->value), done);
    for (size_t n; done < all; done += n) {
      n = all - done < done ? all - done : done;
      memcpy(tile + done, tile, n);
    }
  }
}

/* Processes rows of a matrix that is scaled, shifted and clamped. */
static void run_affine(void *user, int64_t first, int64_t end)
{
  const run *r = user;
  const tn__affine *a = &r->plan->affine;
  const tn__join_part whole = { .index = r->p->first_input[a->x], .width = (size_t)(a->columns * r->p->size) };
  const tn__join_part *parts = a->join != NULL ? a->join->parts : &whole;
  const float *scale = a->scale < 0 ? NULL : (const float *)memory_of(r, (uint32_t)a->scale);
  const float *shift = a->shift < 0 ? NULL : (const float *)memory_of(r, (uint32_t)a->shift);
  tn__affine_rows rows = { .out_row = a->columns, .low = a->low, .high = a->high };
  for (int64_t at = first; at < end; at += rows.rows) {
    rows.rows = end - at < a->block ? end - at : a->block;
    for (uint32_t k = 0; k < (a->join != NULL ? a->join->n_parts : 1); k++) {
      int64_t column = (int64_t)parts[k].offset / r->p->size;
      rows.x_row = rows.columns = (int64_t)parts[k].width / r->p->size;
      rows.x = (const float *)r->inputs[parts[k].index]->data + at * rows.x_row;
      rows.out = (float *)(void *)r->to + at * a->columns + column;
      rows.scale = scale != NULL ? scale + column : NULL;
      rows.shift = shift != NULL ? shift + column : NULL;
      tn__affine_run(&rows);
    }
  }
}

static tn_status program_compute(tn_kernel_ctx *ctx)
{
  const tn__program_plan *plan = ctx->shape_state;
  if (plan == NULL) return TN_OK; /* no elements */
  run r = { ctx->state, plan, plan->stages, ctx->inputs, ctx->scratch, NULL, ctx->reproducible };
  void (*part)(void *user, int64_t first, int64_t end) = plan->affine.found ? run_affine : run_part;
  double least = plan->affine.found ? 0 : PARALLEL_NS; /* keep rows on the thread that wrote and will read them */
  for (uint32_t i = 0; i < plan->n_args; i++) {
    if (plan->wholes[i] == SIZE_MAX) continue;
    const tn__join *join = plan->joins[i];
    tn__join_read(join, ctx->inputs, 0, (size_t)join->rows * join->row, r.scratch + plan->wholes[i]);
  }
  for (uint32_t i = 0; i < plan->n_stages; i++, r.stage++) {
    r.to = i + 1 < plan->n_stages ? r.scratch + r.stage->result : ctx->outputs[0]->data;
    make_tiles(&r);
    double cost = r.stage->block_ns, all = cost * (double)r.stage->n_blocks;
    if (r.stage->n_blocks == 1 || all < least) part(&r, 0, r.stage->n_blocks);
    else tn_parallel_for(ctx, r.stage->n_blocks, (int64_t)(GRAIN_NS / cost) + 1, cost, part, &r);
  }
  return TN_OK;
}

/* ---- the family ---- */

static const tn_op_def ops[] = {
  TN__ELEMENTWISE_OP("_TnElementwise", "args: N * T", "result: T", TN__PROGRAM_ATTRS, 0, program_infer,
                     "elementwise steps in one pass over the elements"),
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "_TnElementwise", .device = "CPU", .name = "elementwise_cpu",
    .rank = TN_RANK_C, .create = program_create, .destroy = program_destroy, .prepare = program_prepare,
    .destroy_shape_state = program_destroy_plan, .compute = program_compute },
};

TN_OP_FAMILY(elementwise_program)
