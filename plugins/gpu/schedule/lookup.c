/* SPDX-License-Identifier: Apache-2.0 */
/* The schedules of a plan, looked up by what determines them: the segment, the shapes and devices of its
 * inputs, and the elements that give shapes. One step makes a schedule while others wait for it. */
#include "schedule/lookup.h"

#include "device/base.h"

#include <time.h>

#define LOOK_NS 10000000 /* interval at which a waiting step checks for cancellation */

static size_t write_key(const tn_executable *e, uint32_t segment, tn_tensor *const *values, int64_t *key)
{
  const gpu_segment *g = &e->segments[segment];
  size_t size = 1;
  if (key != NULL) key[0] = segment;
  for (uint32_t i = 0; i < g->n_entries; i++) {
    const tn_tensor *t = values[g->entries[i]];
    int64_t rank = tn_tensor_rank(t);
    size_t bytes = tn_tensor_bytes(t);
    if (key != NULL) key[size] = rank * UINT32_MAX + gpu_feed_site(e->session, t);
    for (int64_t k = 0; key != NULL && k < rank; k++) key[size + 1 + (size_t)k] = tn_tensor_dims(t)[k];
    size += 1 + (size_t)rank;
    if (!e->gives_shapes[g->entries[i]] || !gpu_is_plain(tn_tensor_dtype(t))) continue;
    if (key != NULL && bytes > 0) memcpy(key + size, tn_tensor_data(t), bytes); /* the rest of the last one is 0 */
    size += (bytes + sizeof *key - 1) / sizeof *key;
  }
  return size;
}

static void destroy(gpu_schedule *s)
{
  gpu_schedule_clear(s);
  tn_free(s);
}

void gpu_schedules_destroy(tn_executable *e)
{
  for (gpu_schedule *s = e->schedules, *next; s != NULL; s = next) {
    next = s->entry.next;
    destroy(s);
  }
}

void gpu_schedule_leave(gpu_schedule *s)
{
  tn_executable *e = s->executable;
  pthread_mutex_lock(&e->mu);
  bool last = --s->entry.n_users == 0;
  pthread_mutex_unlock(&e->mu);
  if (last) destroy(s);
}

static void unlink_schedule(tn_executable *e, const gpu_schedule *s)
{
  gpu_schedule **at = &e->schedules;
  while (*at != NULL && *at != s) at = &(*at)->entry.next;
  if (*at == NULL) return;
  *at = s->entry.next;
  e->n_schedules--;
}

/* The one of this key, which becomes the first; e->mu is held. */
static gpu_schedule *find(tn_executable *e, const int64_t *key, size_t n)
{
  for (gpu_schedule **at = &e->schedules; *at != NULL; at = &(*at)->entry.next) {
    gpu_schedule *s = *at;
    if (s->entry.n_key != n || memcmp(s->entry.key, key, n * sizeof *key) != 0) continue;
    *at = s->entry.next;
    s->entry.next = e->schedules;
    e->schedules = s;
    return s;
  }
  return NULL;
}

/* Removes the least recently used schedule, unless it is being made; e->mu is held. */
static gpu_schedule *take_oldest(tn_executable *e)
{
  size_t most = (e->session->max_layouts > 0 ? (size_t)e->session->max_layouts : 16) * e->n_segments;
  gpu_schedule *oldest = NULL;
  if (e->n_schedules <= most) return NULL;
  for (gpu_schedule *s = e->schedules->entry.next; s != NULL; s = s->entry.next)
    if (s->entry.state == 1) oldest = s;
  if (oldest != NULL) unlink_schedule(e, oldest);
  return oldest;
}

static tn_status wait_for(gpu_schedule *s, tn_step *step, tn_error *err)
{
  tn_executable *e = s->executable;
  while (s->entry.state == 0) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOK_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&e->made, &e->mu, &until);
    if (s->entry.state != 0) break;
    pthread_mutex_unlock(&e->mu);
    tn_status st = tn_step_check(step, NULL, err);
    pthread_mutex_lock(&e->mu);
    if (st != TN_OK) return st;
  }
  return TN_OK;
}

/* Makes a schedule outside the lock, and wakes the steps that wait for it. */
static tn_status make(gpu_schedule *s, const gpu_values *values, tn_error *err)
{
  tn_executable *e = s->executable;
  tn_status st = gpu_schedule_complete(s, values, err);
  pthread_mutex_lock(&e->mu);
  s->entry.state = st == TN_OK ? 1 : -1;
  if (st != TN_OK) {
    unlink_schedule(e, s);
    s->entry.n_users--; /* the list */
  }
  gpu_schedule *old = st == TN_OK ? take_oldest(e) : NULL;
  bool gone = old != NULL && --old->entry.n_users == 0;
  pthread_cond_broadcast(&e->made);
  pthread_mutex_unlock(&e->mu);
  if (gone) destroy(old);
  return st;
}

/* e->mu is held. */
static gpu_schedule *new_schedule(tn_executable *e, uint32_t segment, const int64_t *key, size_t n)
{
  gpu_schedule *s = gpu_new(1, sizeof *s);
  int64_t *copy = gpu_new(n, sizeof *copy);
  if (s == NULL || copy == NULL) {
    tn_free(s);
    tn_free(copy);
    return NULL;
  }
  memcpy(copy, key, n * sizeof *copy);
  s->executable = e;
  s->segment = segment;
  s->entry.key = copy;
  s->entry.n_key = n;
  s->entry.n_users = 2; /* the list and the step that makes it */
  s->entry.next = e->schedules;
  e->schedules = s;
  e->n_schedules++;
  return s;
}

static tn_status take(tn_executable *e, uint32_t segment, tn_step *step, const gpu_values *values, size_t n,
                      gpu_schedule **out, tn_error *err)
{
  tn_status st = TN_OK;
  for (;;) {
    pthread_mutex_lock(&e->mu);
    gpu_schedule *s = find(e, values->key, n);
    bool mine = s == NULL;
    if (mine) s = new_schedule(e, segment, values->key, n);
    else s->entry.n_users++;
    if (s == NULL) st = gpu_no_memory(err, "a schedule");
    if (s != NULL && !mine) st = wait_for(s, step, err);
    bool there = s != NULL && s->entry.state == 1;
    pthread_mutex_unlock(&e->mu);
    if (s == NULL) return st;
    if (mine) {
      st = make(s, values, err);
      there = st == TN_OK;
    }
    if (there && st == TN_OK) *out = s;
    else gpu_schedule_leave(s);
    if (mine || there || st != TN_OK) return st; /* a step that waited for one that failed makes it itself */
  }
}

tn_status gpu_schedule_take(tn_executable *e, uint32_t segment, tn_step *step, gpu_values *values, gpu_schedule **out,
                            tn_error *err)
{
  size_t n = write_key(e, segment, values->tensors, NULL);
  *out = NULL;
  if (n > values->key_room) {
    tn_free(values->key);
    values->key = gpu_new(n, sizeof *values->key);
    values->key_room = values->key == NULL ? 0 : n;
    if (values->key == NULL) return gpu_no_memory(err, "a step");
  }
  memset(values->key, 0, n * sizeof *values->key);
  write_key(e, segment, values->tensors, values->key);
  return take(e, segment, step, values, n, out, err);
}
