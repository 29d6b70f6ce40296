/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises programs that scale, shift and clamp a matrix; affine.h computes them. */
#include <math.h>
#include <ops/rewrite/program.h>
#include <string.h>

#define LEAST_COLUMNS 16 /* minimum average columns per part: shorter parts are better joined first */
#define ALONE_COLUMNS 64 /* minimum columns of a single input: for shorter rows, tiled blocks are better */
#define BLOCK_BYTES 32768 /* bytes of the result at a time: the data read for it stays in or near the L1 cache */
/* About half as much if all data is in the caches of one core. */
#define ELEMENT_NS 0.3
#define PIECE_NS 4.0

typedef struct finder {
  const tn__program *p;
  const tn__program_plan *plan;
  const tn__stage *stage;
  tn__affine *a;
  uint32_t at; /* how many of scale, shift, clamp are done */
} finder;

static const tn__stage_operand *operand_of(const finder *f, uint32_t value)
{
  for (uint32_t i = 0; i < f->stage->n_operands; i++) {
    const tn__stage_operand *o = &f->plan->operands[f->stage->first_operand + i];
    if (o->value == value) return o;
  }
  return NULL;
}

/* True if an argument has one value per column of the matrix. */
static bool by_column(const finder *f, uint32_t value)
{
  const tn__stage_operand *o = operand_of(f, value);
  return o != NULL && value < f->p->n_args && o->at == TN__AT_PERIODIC && !tn__program_joins(f->p, value) &&
         (f->a->columns == 0 || o->period == f->a->columns);
}

static bool is_matrix(const finder *f, uint32_t value)
{
  const tn__stage_operand *o = operand_of(f, value);
  return o != NULL && value < f->p->n_args && (o->at == TN__AT_FLAT || o->at == TN__AT_JOINED);
}

/* True if `value` is what step i continues with: the matrix for the first step, later the previous step's result. */
static bool goes_on(const finder *f, uint32_t i, uint32_t value)
{
  return i == 0 ? is_matrix(f, value) : value == f->p->n_args + i - 1;
}

static bool find_two(finder *f, uint32_t i, const tn__step *s, uint32_t place, int16_t *to)
{
  uint32_t main = s->x, other = s->y;
  if (!goes_on(f, i, main)) main = s->y, other = s->x;
  if (f->at > place || !goes_on(f, i, main) || !by_column(f, other)) return false;
  if (i == 0) f->a->x = (uint8_t)main;
  f->a->columns = operand_of(f, other)->period;
  f->at = place + 1;
  *to = (int16_t)other;
  return true;
}

static bool find_clamp(finder *f, uint32_t i, const tn__step *s, float high)
{
  if (f->at > 2 || !goes_on(f, i, s->x)) return false;
  if (i == 0) f->a->x = s->x;
  f->at = 3;
  f->a->low = 0;
  f->a->high = high;
  return true;
}

static bool find_step(finder *f, uint32_t i)
{
  const tn__step *s = &f->p->steps[i];
  const char *name = s->op->name;
  if (strcmp(name, "Mul") == 0) return find_two(f, i, s, 0, &f->a->scale);
  if (strcmp(name, "Add") == 0 || strcmp(name, "AddV2") == 0 || strcmp(name, "BiasAdd") == 0)
    return find_two(f, i, s, 1, &f->a->shift);
  if (strcmp(name, "Relu") == 0) return find_clamp(f, i, s, INFINITY);
  return strcmp(name, "Relu6") == 0 && find_clamp(f, i, s, 6);
}

/* Checks that rows are long enough, and sets the number of rows per block. */
static bool measure(const finder *f, tn__affine *a)
{
  const tn__stage_operand *o = operand_of(f, a->x);
  int64_t parts = 1, size = f->p->size;
  a->join = o->at == TN__AT_JOINED ? o->join : NULL;
  if (a->join != NULL) {
    parts = a->join->n_parts;
    if (a->columns == 0) a->columns = (int64_t)a->join->row / size;
    if (a->columns * size != (int64_t)a->join->row) return false;
  }
  if (a->columns < (a->join != NULL ? LEAST_COLUMNS * parts : ALONE_COLUMNS)) return false;
  if (a->columns * size > BLOCK_BYTES) return false; /* better: blocks, which let threads share a row */
  a->rows = f->stage->count / a->columns;
  a->block = BLOCK_BYTES / (a->columns * size);
  a->row_ns = (double)a->columns * ELEMENT_NS + (double)parts * PIECE_NS;
  return true;
}

bool tn__program_find_affine(const tn__program *p, const tn__program_plan *plan, const tn__stage *g, tn__affine *a)
{
  finder f = { p, plan, g, a, 0 };
  *a = (tn__affine){ .scale = -1, .shift = -1, .low = -INFINITY, .high = INFINITY };
  if (p->size != 4 || g->n_steps != p->n_steps || (p->n_steps == 1 && p->n_args == p->first_input[p->n_args]))
    return false;
  for (uint32_t i = 0; i < p->n_steps; i++)
    if (!find_step(&f, i)) return false;
  a->found = measure(&f, a);
  return a->found;
}
