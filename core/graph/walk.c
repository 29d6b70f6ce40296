/* SPDX-License-Identifier: Apache-2.0 */
/* Reverse edges: the consumers of an output, and the control consumers of an operation.
 *
 * The table is made at the first query of a graph and extended by a query after the graph has grown. All edges are in
 * one array and are chained by producer, data and control edges separately, in order of addition. It has its own lock,
 * so queries neither wait for imports nor delay them. */
#include <core/base/threads/lock.h>
#include <core/graph/graph_structs.h>

#include <string.h>

typedef struct edge {
  uint32_t to;    /* id of the consumer */
  int32_t input;  /* -1 = a control edge */
  int32_t output; /* of the producer */
  uint32_t next;  /* 1 + index of the next edge in the chain, 0 = end */
} edge;

typedef struct chain {
  uint32_t first, last; /* 1 + index of an edge, 0 = none */
} chain;

typedef struct tn__consumers {
  tn__owned owned;
  tn__mutex lock;
  /* Guarded by lock: */
  edge *edges;
  size_t n_edges, edge_room;
  chain *chains; /* two per operation: data, control */
  size_t n_chains, chain_room;
  size_t done; /* operations whose inputs are recorded */
} consumers;

static void free_consumers(tn__owned *owned)
{
  consumers *c = (consumers *)owned;
  tn__free(c->edges, c->edge_room * sizeof *c->edges);
  tn__free(c->chains, c->chain_room * sizeof *c->chains);
  tn__mutex_fini(&c->lock);
  tn__free(c, sizeof *c);
}

static consumers *consumers_of(tn_graph *graph)
{
  consumers *there = atomic_load_explicit(&graph->consumers, memory_order_acquire);
  if (there != NULL) return there;
  consumers *mine = tn__zalloc(sizeof *mine);
  if (mine == NULL) return NULL;
  mine->owned = (tn__owned){ NULL, free_consumers };
  tn__mutex_init(&mine->lock, "consumers", TN_RANK_CONSUMERS);
  if (atomic_compare_exchange_strong_explicit(&graph->consumers, &there, mine, memory_order_acq_rel,
                                              memory_order_acquire)) {
    tn__graph_own(graph, &mine->owned);
    return mine;
  }
  free_consumers(&mine->owned);
  return there;
}

static void note(consumers *c, size_t which, edge e)
{
  c->edges[c->n_edges++] = e;
  chain *of = &c->chains[which];
  if (of->last != 0)
    c->edges[of->last - 1].next = (uint32_t)c->n_edges;
  else
    of->first = (uint32_t)c->n_edges;
  of->last = (uint32_t)c->n_edges;
}

/* Records the operations that were added since the last call; each one completely or not at all. False: out of
 * memory. */
static bool extend(consumers *c, const tn_graph *graph)
{
  size_t count = tn_graph_n_operations(graph);
  if (!tn__grow((void **)&c->chains, &c->chain_room, 2 * count, sizeof *c->chains)) return false;
  if (2 * count > c->n_chains) {
    memset(&c->chains[c->n_chains], 0, (2 * count - c->n_chains) * sizeof *c->chains);
    c->n_chains = 2 * count;
  }
  for (; c->done < count; c->done++) {
    const tn_operation *op = tn__graph_at(graph, c->done);
    size_t wanted = c->n_edges + op->n_inputs + op->n_controls;
    if (wanted >= UINT32_MAX || !tn__grow((void **)&c->edges, &c->edge_room, wanted, sizeof *c->edges)) return false;
    for (uint32_t i = 0; i < op->n_inputs; i++)
      note(c, 2 * (size_t)op->inputs[i].op->id, (edge){ op->id, (int32_t)i, op->inputs[i].index, 0 });
    for (uint32_t i = 0; i < op->n_controls; i++)
      note(c, 2 * (size_t)op->controls[i]->id + 1, (edge){ op->id, -1, -1, 0 });
  }
  return true;
}

static tn_status list(const tn_operation *op, int32_t output, tn_consumer *out, size_t room, size_t *n, tn_error *err)
{
  tn__error_reset(err);
  size_t dummy, found = 0;
  if (n == NULL) n = &dummy;
  *n = 0;
  if (op == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "no operation given");
  consumers *c = consumers_of(op->graph);
  if (c == NULL) return tn__no_memory(err, "consumers", sizeof *c);
  tn__mutex_lock(&c->lock);
  bool fine = extend(c, op->graph);
  for (uint32_t at = fine ? c->chains[2 * (size_t)op->id + (output < 0)].first : 0; at != 0;) {
    const edge *e = &c->edges[at - 1];
    at = e->next;
    if (e->output != output) continue;
    if (found < room) out[found] = (tn_consumer){ tn__graph_at(op->graph, e->to), e->input };
    found++;
  }
  tn__mutex_unlock(&c->lock);
  if (!fine) return tn__no_memory(err, "consumers", tn_graph_n_operations(op->graph) * sizeof(edge));
  *n = found;
  return TN_OK;
}

tn_status tn_output_consumers(tn_output output, tn_consumer *out, size_t room, size_t *n, tn_error *err)
{
  if (output.op != NULL && output.index < 0) {
    if (n != NULL) *n = 0;
    return tn_error_set(err, TN_OUT_OF_RANGE, "'%s:%d' is not an output", output.op->name, (int)output.index);
  }
  return list(output.op, output.index, out, room, n, err);
}

tn_status tn_operation_control_consumers(const tn_operation *op, tn_consumer *out, size_t room, size_t *n,
                                         tn_error *err)
{
  return list(op, -1, out, room, n, err);
}
