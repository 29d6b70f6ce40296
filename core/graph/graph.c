/* SPDX-License-Identifier: Apache-2.0 */
/* Storage of a graph.
 *
 * A writer (builder, import) holds the lock. It makes operations in the segments and the arena, adds their names to
 * the index, and finally publishes them all by storing `count` with release order. A reader loads `count` with
 * acquire order and ignores everything beyond it, so it needs no lock: operations below count never change.
 *
 * The index is read without a lock, too. A slot is one atomic word, and readers skip a slot whose id is not below
 * count. A writer that fails removes its names in reverse order, which restores the probe chains.
 *
 * Operations are in segments that double in size and never move, so their addresses are stable. */
#include <core/graph/graph_structs.h>

#include <string.h>

#define MIN_INDEX 16 /* slots, a power of two */

tn_status tn_graph_create(tn_graph **out, tn_error *err)
{
  tn__error_reset(err);
  if (out == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_graph_create: out is NULL");
  *out = NULL;
  tn_graph *graph = tn__zalloc(sizeof *graph);
  if (graph == NULL) return tn__no_memory(err, "graph", sizeof *graph);
  atomic_init(&graph->refs, 1);
  tn__rwlock_init(&graph->lock, "graph", TN_RANK_GRAPH);
  tn__arena_init(&graph->arena, 1024);
  *out = graph;
  return TN_OK;
}

tn_graph *tn_graph_ref(tn_graph *graph)
{
  if (graph != NULL) atomic_fetch_add_explicit(&graph->refs, 1, memory_order_relaxed);
  return graph;
}

/* Operations in segment k: 8, 8, 16, 32, ... */
static size_t segment_size(size_t k)
{
  return k == 0 ? TN__FIRST_SEGMENT : (size_t)TN__FIRST_SEGMENT << (k - 1);
}

static size_t index_bytes(size_t mask) { return sizeof(tn__index) + (mask + 1) * sizeof(uint64_t); }

/* Frees the graph and returns the graph of its call, whose reference the caller must release. This is a loop and not a
 * recursion, because calls may be nested deeper than the stack allows. */
static tn_graph *destroy(tn_graph *graph)
{
  tn_graph *caller = graph->caller;
  for (tn__owned *o = atomic_load(&graph->owned), *next; o != NULL; o = next) {
    next = o->next;
    o->free(o);
  }
  for (tn__import_record *r = graph->imports; r != NULL; r = r->next) tn_buffer_unref(r->file);
  for (tn__index *x = atomic_load(&graph->index), *older; x != NULL; x = older) {
    older = x->older;
    tn__free(x, index_bytes(x->mask));
  }
  for (size_t k = 0; k < TN__N_SEGMENTS; k++) tn__free(graph->segments[k], segment_size(k) * sizeof(tn_operation));
  tn_graph_unref(graph->bodies);
  tn__arena_fini(&graph->arena);
  tn__rwlock_fini(&graph->lock);
  tn__free(graph, sizeof *graph);
  return caller;
}

void tn_graph_unref(tn_graph *graph)
{
  /* acq_rel: all accesses by other holders happen before the graph is freed. */
  while (graph != NULL && atomic_fetch_sub_explicit(&graph->refs, 1, memory_order_acq_rel) == 1) graph = destroy(graph);
}

/* ---- objects of other rooms ---- */

typedef struct tn__plan_data {
  tn__owned owned;
  void *data;
  void (*free_data)(void *data);
} plan_data;

static void free_plan_data(tn__owned *owned)
{
  plan_data *p = (plan_data *)owned;
  p->free_data(p->data);
  tn__free(p, sizeof *p);
}

void *tn__graph_plan_data(tn_graph *graph, void *(*make)(void), void (*free_data)(void *data))
{
  plan_data *there = atomic_load_explicit(&graph->plan_data, memory_order_acquire);
  if (there != NULL) return there->data;
  void *data = make();
  plan_data *mine = data == NULL ? NULL : tn__zalloc(sizeof *mine);
  if (mine == NULL) {
    if (data != NULL) free_data(data);
    return NULL;
  }
  *mine = (plan_data){ .owned.free = free_plan_data, .data = data, .free_data = free_data };
  if (atomic_compare_exchange_strong(&graph->plan_data, &there, mine)) {
    tn__graph_own(graph, &mine->owned);
    return data;
  }
  free_plan_data(&mine->owned);
  return there->data;
}

bool tn__graph_names_devices(const tn_graph *graph)
{
  return atomic_load_explicit(&graph->names_devices, memory_order_relaxed);
}

void tn__graph_read_lock(tn_graph *graph) { tn__rwlock_read(&graph->lock); }
void tn__graph_unlock(tn_graph *graph) { tn__rwlock_unlock(&graph->lock); }

/* ---- operations by number ---- */

tn_operation *tn__graph_at(const tn_graph *graph, size_t i)
{
  if (i < TN__FIRST_SEGMENT) return &graph->segments[0][i];
  unsigned k = 64 - (unsigned)__builtin_clzll((unsigned long long)(i / TN__FIRST_SEGMENT));
  return &graph->segments[k][i - ((size_t)TN__FIRST_SEGMENT << (k - 1))];
}

size_t tn_graph_n_operations(const tn_graph *graph)
{
  return graph == NULL ? 0 : atomic_load_explicit(&graph->count, memory_order_acquire);
}

tn_operation *tn_graph_operation(const tn_graph *graph, size_t i)
{
  return i < tn_graph_n_operations(graph) ? tn__graph_at(graph, i) : NULL;
}

/* ---- operations by name ---- */

static uint64_t slot_word(uint64_t hash, uint32_t id) { return (hash & ~(uint64_t)UINT32_MAX) | (id + UINT32_C(1)); }

/* Finds an operation with an id below `limit`. A probe chain ends at a free slot; the index always has one. */
static tn_operation *find_below(const tn_graph *graph, size_t limit, const char *name, size_t size, uint64_t hash)
{
  const tn__index *index = atomic_load_explicit(&graph->index, memory_order_acquire);
  if (index == NULL) return NULL;
  for (size_t at = hash & index->mask;; at = (at + 1) & index->mask) {
    uint64_t word = atomic_load_explicit(&index->slots[at], memory_order_acquire);
    if (word == 0) return NULL;
    size_t id = (uint32_t)word - UINT32_C(1);
    if (((word ^ hash) >> 32) != 0 || id >= limit) continue;
    tn_operation *op = tn__graph_at(graph, id);
    if (op->hash == hash && op->name_size == size && memcmp(op->name, name, size) == 0) return op;
  }
}

tn_operation *tn__graph_find_text(const tn_graph *graph, tn__slice name)
{
  return find_below(graph, tn_graph_n_operations(graph), name.data, name.size, tn__hash(name.data, name.size));
}

tn_operation *tn_graph_find(const tn_graph *graph, const char *name)
{
  return graph == NULL || name == NULL ? NULL : tn__graph_find_text(graph, tn__slice_of(name));
}

tn_operation *tn__graph_find_staged(const tn_graph *graph, const char *name, size_t size)
{
  return find_below(graph, graph->staged, name, size, tn__hash(name, size));
}

static void put(tn__index *index, const tn_operation *op)
{
  size_t at = op->hash & index->mask;
  while (atomic_load_explicit(&index->slots[at], memory_order_relaxed) != 0) at = (at + 1) & index->mask;
  /* Release, so that a reader of the word sees the operation's name and hash; `count` publishes the rest. */
  atomic_store_explicit(&index->slots[at], slot_word(op->hash, op->id), memory_order_release);
}

bool tn__graph_index_add(tn_graph *graph, tn_operation *op)
{
  if (find_below(graph, op->id, op->name, op->name_size, op->hash) != NULL) return false;
  put(atomic_load_explicit(&graph->index, memory_order_relaxed), op);
  return true;
}

static void index_remove(tn_graph *graph, const tn_operation *op)
{
  tn__index *index = atomic_load_explicit(&graph->index, memory_order_relaxed);
  uint64_t word = slot_word(op->hash, op->id);
  size_t at = op->hash & index->mask;
  while (atomic_load_explicit(&index->slots[at], memory_order_relaxed) != word) at = (at + 1) & index->mask;
  atomic_store_explicit(&index->slots[at], 0, memory_order_release);
}

static tn_status reserve_index(tn_graph *graph, size_t n, tn_error *err)
{
  tn__index *old = atomic_load_explicit(&graph->index, memory_order_relaxed);
  size_t capacity = old == NULL ? MIN_INDEX : old->mask + 1;
  while (capacity / 4 * 3 < n) capacity *= 2; /* cannot overflow: n is below 2^31 */
  if (old != NULL && capacity == old->mask + 1) return TN_OK;
  tn__index *index = tn__zalloc(index_bytes(capacity - 1));
  if (index == NULL) return tn__no_memory(err, "index of node names", index_bytes(capacity - 1));
  index->mask = capacity - 1;
  index->older = old;
  for (size_t i = 0; i < graph->staged; i++) put(index, tn__graph_at(graph, i));
  atomic_store_explicit(&graph->index, index, memory_order_release);
  return TN_OK;
}

/* ---- for writers ---- */

tn_status tn__graph_reserve(tn_graph *graph, size_t n, tn_error *err)
{
  size_t wanted;
  if (!tn__size_add(graph->staged, n, &wanted) || wanted > INT32_MAX)
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "a graph holds at most %d nodes", INT32_MAX);
  size_t have = 0;
  for (size_t k = 0; k < TN__N_SEGMENTS && have < wanted; k++) {
    if (graph->segments[k] == NULL) {
      graph->segments[k] = tn__alloc_array(segment_size(k), sizeof(tn_operation));
      if (graph->segments[k] == NULL) return tn__no_memory(err, "nodes", segment_size(k) * sizeof(tn_operation));
    }
    have += segment_size(k);
  }
  return reserve_index(graph, wanted, err);
}

tn_operation *tn__graph_stage(tn_graph *graph)
{
  tn_operation *op = tn__graph_at(graph, graph->staged);
  memset(op, 0, sizeof *op); /* a writer that failed may have used it */
  op->graph = graph;
  op->id = (uint32_t)graph->staged++;
  op->name = op->type = op->device = "";
  return op;
}

void tn__graph_publish(tn_graph *graph)
{
  atomic_store_explicit(&graph->count, graph->staged, memory_order_release);
}

void tn__graph_unstage(tn_graph *graph, size_t n_staged, size_t n_indexed)
{
  while (n_indexed > 0) index_remove(graph, tn__graph_at(graph, n_staged + --n_indexed));
  graph->staged = n_staged;
  /* No reader looks beyond the count, so empty segments can be freed: a bad file may have claimed many nodes. */
  for (size_t k = TN__N_SEGMENTS; k-- > 1 && segment_size(k) >= n_staged;) {
    tn__free(graph->segments[k], segment_size(k) * sizeof(tn_operation));
    graph->segments[k] = NULL;
  }
}

void tn__graph_own(tn_graph *graph, tn__owned *owned)
{
  owned->next = atomic_load_explicit(&graph->owned, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(&graph->owned, &owned->next, owned, memory_order_release,
                                                memory_order_relaxed)) { }
}
