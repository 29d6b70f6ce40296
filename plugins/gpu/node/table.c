/* SPDX-License-Identifier: Apache-2.0 */
/* The ops of the device: all tables, found by op and types, and their entry into the library's op table. */
#include "node/table.h"

#include <stdlib.h>
#include <string.h>

/* "T=float|half": bit n of `types` is the type with number n. */
typedef struct constraint {
  const char *attr; /* not ended by a NUL in what it was read from: a copy in `names` */
  uint64_t types;
} constraint;

typedef struct entry {
  const gpu_op *op;
  const constraint *constraints;
  size_t n_constraints;
  size_t order; /* of the tables; among equal names the first that fits is taken */
} entry;

/* Made at registration, for the rest of the process. */
static struct {
  entry *entries; /* by name of op */
  size_t n;
  constraint *constraints;
  char *names;
  tn_kernel_def *kernels;
  tn_op_family family;
  bool registered;
} all;

/* ---- constraints ---- */

typedef struct reader {
  const char *at;
  constraint *next;
  char *names; /* where the next name is stored */
} reader;

static size_t word_length(const char *at)
{
  return strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
}

static tn_status read_type(reader *r, uint64_t *types, const gpu_op *op, tn_error *err)
{
  char name[32];
  size_t n = word_length(r->at);
  tn_dtype dtype = TN_DTYPE_INVALID;
  if (n < sizeof name) {
    memcpy(name, r->at, n);
    name[n] = 0;
    dtype = tn_dtype_from_name(name);
  }
  if (dtype <= TN_DTYPE_INVALID || dtype > 63)
    return tn_error_set(err, TN_INTERNAL, "gpu: op '%s': '%s' has no type at '%s'", op->op, op->types, r->at);
  *types |= UINT64_C(1) << dtype;
  r->at += n;
  return TN_OK;
}

static tn_status read_constraint(reader *r, const gpu_op *op, tn_error *err)
{
  size_t n = word_length(r->at);
  if (n == 0 || r->at[n] != '=')
    return tn_error_set(err, TN_INTERNAL, "gpu: op '%s': '%s' has no attribute and '=' at '%s'", op->op, op->types,
                        r->at);
  *r->next = (constraint){ .attr = r->names };
  memcpy(r->names, r->at, n);
  r->names[n] = 0;
  r->names += n + 1;
  r->at += n;
  tn_status st = TN_OK;
  do {
    r->at++;
    st = read_type(r, &r->next->types, op, err);
  } while (st == TN_OK && *r->at == '|');
  r->next++;
  return st;
}

static tn_status read_types(reader *r, entry *e, tn_error *err)
{
  e->constraints = r->next;
  r->at = e->op->types;
  if (r->at == NULL || *r->at == 0) return TN_OK;
  tn_status st = read_constraint(r, e->op, err);
  while (st == TN_OK && *r->at == ',') {
    r->at++;
    st = read_constraint(r, e->op, err);
  }
  if (st == TN_OK && *r->at != 0)
    st = tn_error_set(err, TN_INTERNAL, "gpu: op '%s': '%s' continues with '%s'", e->op->op, e->op->types, r->at);
  e->n_constraints = (size_t)(r->next - e->constraints);
  return st;
}

static bool fits(const tn_operation *op, const constraint *c)
{
  if (tn_operation_attr_kind(op, c->attr) == TN_ATTR_LIST + TN_ATTR_TYPE) {
    const tn_dtype *list;
    size_t n;
    if (tn_operation_attr_types(op, c->attr, &list, &n, NULL) != TN_OK) return false;
    for (size_t i = 0; i < n; i++)
      if (list[i] < 0 || list[i] > 63 || (c->types >> list[i] & 1) == 0) return false;
    return true;
  }
  tn_dtype type;
  if (tn_operation_attr_type(op, c->attr, &type, NULL) != TN_OK) return false;
  return type >= 0 && type <= 63 && (c->types >> type & 1) != 0;
}

/* ---- the table ---- */

static int by_name(const void *a, const void *b)
{
  const entry *x = a, *y = b;
  int c = strcmp(x->op->op, y->op->op);
  if (c != 0) return c;
  return (x->order > y->order) - (x->order < y->order);
}

const gpu_op *gpu_op_find(const tn_operation *op)
{
  const char *name = tn_operation_type(op);
  size_t low = 0, high = all.n;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (strcmp(all.entries[middle].op->op, name) < 0) low = middle + 1;
    else high = middle;
  }
  for (; low < all.n && strcmp(all.entries[low].op->op, name) == 0; low++) {
    const entry *e = &all.entries[low];
    size_t k = 0;
    while (k < e->n_constraints && fits(op, &e->constraints[k])) k++;
    if (k == e->n_constraints) return e->op;
  }
  return NULL;
}

/* Ops that the library does not know are left out: it may drop an internal op without a change of this plugin. */
static bool known(const gpu_op *op)
{
  if (tn_op_schema_find(op->op) != NULL) return true;
  tn_log(TN_LOG_DEBUG, "gpu: the library has no op '%s'", op->op);
  return false;
}

static void forget(void)
{
  tn_free(all.entries);
  tn_free(all.constraints);
  tn_free(all.names);
  tn_free(all.kernels);
  memset(&all, 0, sizeof all);
}

/* Room for all tables, by what their texts can hold at most. */
static tn_status reserve(tn_error *err)
{
  size_t n = 0, n_constraints = 0, n_names = 0;
  for (const gpu_op *const *t = gpu_op_tables; *t != NULL; t++)
    for (const gpu_op *op = *t; op->op != NULL; op++, n++) {
      for (const char *at = op->types; at != NULL && *at != 0; at++) n_constraints += *at == '=';
      n_names += (op->types == NULL ? 0 : strlen(op->types)) + strlen(op->op) + sizeof "gpu_";
    }
  all.entries = tn_alloc((n + 1) * sizeof *all.entries);
  all.constraints = tn_alloc((n_constraints + 1) * sizeof *all.constraints);
  all.names = tn_alloc(n_names + 1);
  all.kernels = tn_alloc((n + 1) * sizeof *all.kernels);
  if (all.entries != NULL && all.constraints != NULL && all.names != NULL && all.kernels != NULL) return TN_OK;
  return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "gpu: no memory for a table of %zu ops", n);
}

static tn_status fill(reader *r, tn_error *err)
{
  tn_status st = TN_OK;
  size_t order = 0;
  for (const gpu_op *const *t = gpu_op_tables; *t != NULL; t++)
    for (const gpu_op *op = *t; st == TN_OK && op->op != NULL; op++) {
      if (!known(op)) continue;
      all.entries[all.n] = (entry){ .op = op, .order = order++ };
      st = read_types(r, &all.entries[all.n++], err);
    }
  return st;
}

/* ---- the library's op table ---- */

/* These kernels exist to be found by placement. A plan calls the CPU's kernels; this plugin plans what runs
 * on the device. */
static tn_status never_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  return tn_error_set(err, TN_UNIMPLEMENTED,
                      "node '%s': its kernel for the device runs in sessions of the runtime 'gpu' only",
                      tn_operation_name(ctx->op));
}

static tn_status never_compute(tn_kernel_ctx *ctx)
{
  return tn_error_set(ctx->err, TN_UNIMPLEMENTED, "a kernel for the device runs in sessions of the runtime 'gpu' only");
}

static void name_kernels(char *names)
{
  for (size_t i = 0; i < all.n; i++) {
    const gpu_op *op = all.entries[i].op;
    size_t n = strlen(op->op) + 1;
    memcpy(names, "gpu_", 4);
    memcpy(names + 4, op->op, n);
    all.kernels[i] = (tn_kernel_def){ .struct_size = TN_KERNEL_DEF_SIZE,
                                      .op = op->op,
                                      .device = "GPU",
                                      .types = op->types,
                                      .name = names,
                                      .rank = TN_RANK_C,
                                      .prepare = never_prepare,
                                      .compute = never_compute };
    names += 4 + n;
  }
}

tn_status gpu_ops_register(tn_error *err)
{
  if (all.registered) return TN_OK; /* they stay with the process */
  tn_status st = reserve(err);
  reader r = { .next = all.constraints, .names = all.names };
  if (st == TN_OK) st = fill(&r, err);
  if (st == TN_OK) {
    qsort(all.entries, all.n, sizeof *all.entries, by_name);
    name_kernels(r.names);
    all.family =
        (tn_op_family){ .struct_size = TN_OP_FAMILY_SIZE, .name = "gpu", .kernels = all.kernels, .n_kernels = all.n };
    st = tn_register_ops(&all.family, err);
  }
  all.registered = st == TN_OK;
  if (st != TN_OK) forget();
  return st;
}
