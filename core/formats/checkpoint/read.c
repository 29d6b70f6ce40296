/* SPDX-License-Identifier: Apache-2.0 */
/* Reads tensors of a checkpoint.
 *
 * A call first makes a plan. For each stored part that the wanted regions need, a task says where its elements are
 * stored. The ranges of all parts are checked against the files before a tensor is allocated, so that the numbers of a
 * damaged index allocate no more than its files hold. Then the tasks are cut into pieces, which threads take in order.
 *
 * A part whose elements are contiguous in the tensor is read into place, and a large one is several pieces; others are
 * read through a small buffer, or as a whole if their version cannot read plain bytes. Each piece keeps the CRC of its
 * bytes. When all are read, the calling thread joins those of each part and has them verified; only then the tensors
 * are returned. */
#define _GNU_SOURCE
#include <core/formats/checkpoint/checkpoint.h>

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include <core/formats/checkpoint/block.h>
#include <core/formats/table/crc32c.h>

#define PIECE ((size_t)8 << 20)    /* bytes of a piece of a part */
#define BUFFER ((size_t)256 << 10) /* bytes read at once if they are not stored in place */
#define MOST_THREADS 16u

typedef struct task {
  const tn__stored *entry;
  const tn__stored_part *part;
  const tn__region *wanted; /* the region of the entry's tensor that `tensor` has */
  tn_tensor *tensor;
  char *to;        /* of the part's first element, if they are contiguous in the tensor; else NULL */
  size_t first, n; /* pieces */
} task;

typedef struct piece {
  size_t task;
  uint64_t from; /* byte of the part */
  size_t n;
  uint32_t crc;
} piece;

typedef struct plan {
  tn__store *store;
  tn__arena arena; /* regions */
  task *tasks;
  piece *pieces;
  size_t n_tasks, room_tasks, n_pieces, room_pieces;
  uint64_t bytes;      /* of all pieces */
  _Atomic size_t next; /* piece to take */
  atomic_bool stop;    /* a piece has failed */
} plan;

static tn_status no_plan(tn_error *err) { return tn__no_memory(err, "the plan of a read", sizeof(plan)); }

static bool reads_bytes(const tn__store *store, const tn__stored *e)
{
  return store->kind->read_some != NULL && !tn__dtype_is_managed(e->dtype);
}

/* ---- checks before memory is allocated ---- */

static tn_status check_dtype(const tn__store *store, const tn__stored *e, tn_error *err)
{
  if (!tn__dtype_is_managed(e->dtype) || e->dtype == TN_STRING) return TN_OK;
  return tn_error_set(err, TN_UNIMPLEMENTED, "%s '%s': tensor '%.200s' is of dtype %s, which cannot be read",
                      store->kind->name, store->prefix, e->key, tn_dtype_name(e->dtype));
}

/* Checks that the slices cover the wanted region. Without slices the one part is the tensor. */
static tn_status check_cover(plan *p, const tn__stored *e, const tn__region *wanted, tn_error *err)
{
  char text[200];
  bool covers = false;
  if (!e->sliced) return TN_OK;
  tn__region *regions = tn__arena_array(&p->arena, e->n_parts, sizeof(*regions));
  if (regions == NULL) return no_plan(err);
  for (size_t i = 0; i < e->n_parts; i++) regions[i] = e->parts[i].region;
  tn_status s = tn__regions_cover(regions, e->n_parts, wanted, &covers, err);
  if (s != TN_OK || covers) return s;
  return tn_error_set(
      err, TN_DATA_LOSS, "%s '%s': the %zu slices of tensor '%.200s' do not cover its region %s exactly",
      p->store->kind->name, p->store->prefix, e->n_parts, e->key, tn__region_format(text, sizeof(text), wanted));
}

static bool overlap(const tn__region *a, const tn__region *b)
{
  for (int32_t d = 0; d < a->rank; d++)
    if (a->starts[d] + a->lengths[d] <= b->starts[d] || b->starts[d] + b->lengths[d] <= a->starts[d]) return false;
  return true;
}

static tn_status check_entry(plan *p, const tn__stored *e, const tn__region *wanted, tn_error *err)
{
  const tn__store_kind *kind = p->store->kind;
  tn_status s = check_dtype(p->store, e, err);
  if (s == TN_OK) s = check_cover(p, e, wanted, err);
  for (size_t i = 0; i < e->n_parts && s == TN_OK && kind->check_part != NULL; i++)
    if (overlap(&e->parts[i].region, wanted)) s = kind->check_part(p->store, e, &e->parts[i], err);
  return s;
}

/* ---- the plan ---- */

static bool add_piece(plan *p, uint64_t from, size_t n)
{
  if (!tn__grow((void **)&p->pieces, &p->room_pieces, p->n_pieces + 1, sizeof(piece))) return false;
  p->pieces[p->n_pieces++] = (piece){ .task = p->n_tasks - 1, .from = from, .n = n };
  p->bytes += n;
  return true;
}

/* Adds the task of a part and its pieces. */
static bool add_part(plan *p, const tn__stored *e, const tn__stored_part *part, const tn__region *wanted, tn_tensor *t)
{
  tn__runs runs;
  tn__runs_init(&runs, &part->region, wanted);
  if (runs.run == 0) return true;
  if (!tn__grow((void **)&p->tasks, &p->room_tasks, p->n_tasks + 1, sizeof(task))) return false;
  task *k = &p->tasks[p->n_tasks++];
  *k = (task){ .entry = e, .part = part, .wanted = wanted, .tensor = t, .first = p->n_pieces };
  if (runs.rank == 0 && runs.run == tn__region_elements(&part->region))
    k->to = (char *)tn_tensor_data(t) + (size_t)runs.to * tn_dtype_size(e->dtype);
  if (!reads_bytes(p->store, e) || k->to == NULL)
    k->n = add_piece(p, 0, (size_t)part->size);
  else
    for (uint64_t from = 0; from < part->size; from += PIECE) {
      uint64_t left = part->size - from;
      if (!add_piece(p, from, left < PIECE ? (size_t)left : PIECE)) return false;
      k->n++;
    }
  return k->n > 0;
}

static size_t bytes_of(const tn__stored *e, const tn__region *region)
{
  return (size_t)tn__region_elements(region) * tn_dtype_size(e->dtype);
}

/* The size of a block for all tensors that suit one. */
static size_t block_size(const tn__stored *const *entries, const tn__region *regions, size_t n)
{
  size_t size = 0, bytes;
  for (size_t i = 0; i < n; i++) {
    bytes = bytes_of(entries[i], &regions[i]);
    if (tn__block_suits(entries[i]->dtype, bytes) && !tn__size_add(size, tn__block_bytes(bytes), &size)) return 0;
  }
  return size;
}

/* Allocates the tensor of a region, in the block if there is one, and adds the tasks that read it. */
static tn_status add_entry(plan *p, const tn__stored *e, const tn__region *wanted, tn__block *block, tn_tensor **out,
                           tn_error *err)
{
  size_t bytes = bytes_of(e, wanted);
  tn_status s = block != NULL && tn__block_suits(e->dtype, bytes)
                    ? tn__block_tensor(block, e->dtype, wanted->lengths, wanted->rank, bytes, out, err)
                    : tn_tensor_create(e->dtype, wanted->lengths, wanted->rank, out, err);
  for (size_t i = 0; i < e->n_parts && s == TN_OK; i++)
    if (!add_part(p, e, &e->parts[i], wanted, *out)) s = no_plan(err);
  return s;
}

static void plan_init(plan *p, tn__store *store)
{
  memset(p, 0, sizeof(*p));
  p->store = store;
  tn__arena_init(&p->arena, 1024);
}

static void plan_fini(plan *p)
{
  tn__free(p->tasks, p->room_tasks * sizeof(task));
  tn__free(p->pieces, p->room_pieces * sizeof(piece));
  tn__arena_fini(&p->arena);
}

/* ---- one piece ---- */

/* Stores those of n elements, from element `at` of the part on, that are wanted. *more: the runs have not ended. */
static void scatter(tn__runs *runs, bool *more, int64_t at, int64_t n, const char *from, char *to, size_t size)
{
  while (*more && runs->from < at + n) {
    int64_t begin = runs->from > at ? runs->from : at, end = runs->from + runs->run;
    bool ends = end <= at + n;
    if (!ends) end = at + n;
    if (end > begin)
      memcpy(to + (size_t)(runs->to + begin - runs->from) * size, from + (size_t)(begin - at) * size,
             (size_t)(end - begin) * size);
    if (!ends) return;
    *more = tn__runs_next(runs);
  }
}

/* Reads the bytes of a part through a buffer. BUFFER is a multiple of each element size. */
static tn_status read_scattered(tn__store *store, const task *k, uint32_t *crc, tn_error *err)
{
  tn__runs runs;
  bool more = true;
  size_t size = tn_dtype_size(k->entry->dtype);
  char *buffer = tn__alloc(BUFFER);
  if (buffer == NULL) return tn__no_memory(err, "a buffer for slices of tensors", BUFFER);
  tn__runs_init(&runs, &k->part->region, k->wanted);
  tn_status s = TN_OK;
  for (uint64_t from = 0; from < k->part->size && s == TN_OK; from += BUFFER) {
    uint64_t left = k->part->size - from;
    size_t n = left < BUFFER ? (size_t)left : BUFFER;
    s = store->kind->read_some(store, k->entry, k->part, from, n, buffer, crc, err);
    if (s == TN_OK)
      scatter(&runs, &more, (int64_t)(from / size), (int64_t)(n / size), buffer, tn_tensor_data(k->tensor), size);
  }
  tn__free(buffer, BUFFER);
  return s;
}

/* Moves strings whose place is empty; none of them refers to its own address. */
static void move_strings(void *to, void *from, size_t n)
{
  memcpy(to, from, n * sizeof(tn_string));
  memset(from, 0, n * sizeof(tn_string));
}

/* Reads a whole part into memory of its own, then copies what is wanted. */
static tn_status read_aside(tn__store *store, const task *k, tn_error *err)
{
  int64_t n = tn__region_elements(&k->part->region);
  size_t size = tn_dtype_size(k->entry->dtype), bytes;
  bool strings = k->entry->dtype == TN_STRING;
  char *aside = tn__size_mul((size_t)n, size, &bytes) ? tn__alloc_aligned(bytes, TN_ALIGN) : NULL;
  if (aside == NULL) return tn__no_memory(err, "a slice of a tensor", (size_t)n * size);
  if (strings) memset(aside, 0, bytes);
  tn_status s = store->kind->read_part(store, k->entry, k->part, aside, err);
  if (s == TN_OK)
    tn__region_copy(&k->part->region, aside, k->wanted, tn_tensor_data(k->tensor), size, strings ? move_strings : NULL);
  if (strings) tn__elements_clear(TN_STRING, aside, n);
  tn__free_aligned(aside, bytes, TN_ALIGN);
  return s;
}

static tn_status read_piece(plan *p, piece *c, tn_error *err)
{
  const task *k = &p->tasks[c->task];
  const tn__store_kind *kind = p->store->kind;
  if (!reads_bytes(p->store, k->entry))
    return k->to == NULL ? read_aside(p->store, k, err) : kind->read_part(p->store, k->entry, k->part, k->to, err);
  if (k->to == NULL) return read_scattered(p->store, k, &c->crc, err);
  return kind->read_some(p->store, k->entry, k->part, c->from, c->n, k->to + c->from, &c->crc, err);
}

/* ---- threads ---- */

/* A thread that takes pieces. It stops at its first failure, and the others at their next piece. */
typedef struct reader {
  plan *plan;
  pthread_t thread;
  size_t failed; /* piece; SIZE_MAX: none */
  tn_error err;
} reader;

static void *read_pieces(void *arg)
{
  reader *r = arg;
  plan *p = r->plan;
  while (!atomic_load_explicit(&p->stop, memory_order_relaxed)) {
    size_t i = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
    if (i >= p->n_pieces) break;
    if (read_piece(p, &p->pieces[i], &r->err) == TN_OK) continue;
    r->failed = i;
    atomic_store_explicit(&p->stop, true, memory_order_relaxed);
  }
  return NULL;
}

/* The program's signals are delivered to its own threads, except those that concern the thread itself. */
static void block_signals(sigset_t *before)
{
  sigset_t set;
  static const int let[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF };
  sigfillset(&set);
  for (size_t i = 0; i < sizeof(let) / sizeof(let[0]); i++) sigdelset(&set, let[i]);
  pthread_sigmask(SIG_SETMASK, &set, before);
}

/* The processors that this thread may use; at most 0 if that is unknown. */
static long usable_processors(void)
{
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
#endif
  return sysconf(_SC_NPROCESSORS_ONLN);
}

/* One thread for each piece that is as large as pieces can be, as far as there are processors. */
static unsigned useful_threads(const plan *p, unsigned most)
{
  long cpus = usable_processors();
  uint64_t n = p->bytes / PIECE;
  if (most == 0 || most > MOST_THREADS) most = MOST_THREADS;
  if (cpus > 0 && (unsigned long)cpus < most) most = (unsigned)cpus;
  if (n > p->n_pieces) n = p->n_pieces;
  if (n < most) most = (unsigned)n;
  return most == 0 ? 1 : most;
}

/* Reads all pieces, on this thread and as many others as the system has. The error is that of the first piece that
 * failed: pieces are taken in order, so all before it were taken, too. */
static tn_status run_plan(plan *p, unsigned most, tn_error *err)
{
  reader readers[MOST_THREADS];
  sigset_t before;
  unsigned wanted = useful_threads(p, most), n = 1;
  size_t first = 0;
  for (unsigned i = 0; i < wanted; i++) {
    readers[i] = (reader){ .plan = p, .failed = SIZE_MAX };
    tn_error_init(&readers[i].err);
  }
  if (wanted > 1) block_signals(&before);
  while (n < wanted && pthread_create(&readers[n].thread, NULL, read_pieces, &readers[n]) == 0) n++;
  if (wanted > 1) pthread_sigmask(SIG_SETMASK, &before, NULL);
  read_pieces(&readers[0]);
  for (unsigned i = 1; i < n; i++) {
    tn__thread_join(readers[i].thread);
    if (readers[i].failed < readers[first].failed) first = i;
  }
  tn_status s = tn_error_code(&readers[first].err);
  if (s != TN_OK && err != NULL) tn_error_copy(err, &readers[first].err);
  for (unsigned i = 0; i < n; i++) tn_error_clear(&readers[i].err);
  return s;
}

/* Compares the CRC of each part. */
static tn_status verify(const plan *p, tn_error *err)
{
  tn_status s = TN_OK;
  for (size_t i = 0; i < p->n_tasks && s == TN_OK; i++) {
    const task *k = &p->tasks[i];
    if (!reads_bytes(p->store, k->entry)) continue;
    uint32_t crc = p->pieces[k->first].crc;
    for (size_t n = 1; n < k->n; n++) {
      const piece *next = &p->pieces[k->first + n];
      crc = tn__crc32c_join(crc, next->crc, next->n);
    }
    s = p->store->kind->verify(p->store, k->entry, k->part, crc, err);
  }
  return s;
}

/* ---- calls ---- */

/* Reads the regions of n tensors; all or none. out[i] is NULL for all i. */
static tn_status read_regions(plan *p, const tn__stored *const *entries, const tn__region *regions, size_t n,
                              unsigned threads, tn_tensor **out, tn_error *err)
{
  tn_status s = TN_OK;
  for (size_t i = 0; i < n && s == TN_OK; i++) s = check_entry(p, entries[i], &regions[i], err);
  tn__block *block = s == TN_OK ? tn__block_create(block_size(entries, regions, n)) : NULL;
  for (size_t i = 0; i < n && s == TN_OK; i++) s = add_entry(p, entries[i], &regions[i], block, &out[i], err);
  tn__block_unref(block);
  if (s == TN_OK) s = run_plan(p, threads, err);
  if (s == TN_OK) s = verify(p, err);
  for (size_t i = 0; i < n && s != TN_OK; i++) {
    tn_tensor_unref(out[i]);
    out[i] = NULL;
  }
  return s;
}

tn_status tn__store_read_many(tn__store *store, const tn__stored *const *entries, size_t n, unsigned threads,
                              tn_tensor **out, tn_error *err)
{
  plan p;
  plan_init(&p, store);
  tn__region *regions = tn__arena_array(&p.arena, n, sizeof(*regions));
  tn_status s = regions == NULL ? no_plan(err) : TN_OK;
  for (size_t i = 0; i < n; i++) out[i] = NULL;
  for (size_t i = 0; i < n && s == TN_OK; i++) {
    if (entries[i]->sliced)
      s = tn__region_all(entries[i]->rank, entries[i]->dims, &p.arena, &regions[i], err);
    else
      regions[i] = entries[i]->parts[0].region;
  }
  if (s == TN_OK) s = read_regions(&p, entries, regions, n, threads, out, err);
  plan_fini(&p);
  return s;
}

tn_status tn__store_read(tn__store *store, const tn__stored *entry, tn_tensor **out, tn_error *err)
{
  return tn__store_read_many(store, &entry, 1, 0, out, err);
}

tn_status tn__store_read_region(tn__store *store, const tn__stored *entry, const tn__region *region, tn_tensor **out,
                                tn_error *err)
{
  plan p;
  tn__region wanted;
  *out = NULL;
  plan_init(&p, store);
  tn_status s = tn__region_copy_of(region, &p.arena, &wanted, err);
  if (s == TN_OK) {
    s = tn__region_resolve(&wanted, entry->rank, entry->dims, err);
    if (s != TN_OK) tn_error_prefix(err, "tensor '%.200s'", entry->key);
  }
  if (s == TN_OK) s = read_regions(&p, &entry, &wanted, 1, 0, out, err);
  plan_fini(&p);
  return s;
}
