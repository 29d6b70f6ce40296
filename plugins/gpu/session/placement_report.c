/* SPDX-License-Identifier: Apache-2.0 */
/* Where the nodes of a session run: the decision of the last schedule that has a node. */
#include "session/placement_report.h"

#include "device/base.h"

#include <pthread.h>

typedef struct decision {
  char *node;
  const char *reason;
  const char *device; /* as the session lists it; NULL: the CPU */
} decision;

typedef struct text {
  struct text *next;
  char chars[];
} text;

struct gpu_placement_report {
  pthread_mutex_t mu;
  decision *all; /* sorted by name */
  size_t n, room;
  text *texts;   /* reasons, each once: they stay as long as the session */
};

tn_status gpu_report_create(gpu_placement_report **out, tn_error *err)
{
  *out = gpu_new(1, sizeof **out);
  if (*out == NULL) return gpu_no_memory(err, "a session");
  pthread_mutex_init(&(*out)->mu, NULL);
  return TN_OK;
}

void gpu_report_destroy(gpu_placement_report *d)
{
  if (d == NULL) return;
  for (size_t i = 0; i < d->n; i++) tn_free(d->all[i].node);
  for (text *t = d->texts, *next; t != NULL; t = next) {
    next = t->next;
    tn_free(t);
  }
  tn_free(d->all);
  pthread_mutex_destroy(&d->mu);
  tn_free(d);
}

/* "" without memory: reasons are only displayed. */
static const char *kept(gpu_placement_report *d, const char *reason)
{
  for (const text *t = d->texts; t != NULL; t = t->next)
    if (strcmp(t->chars, reason) == 0) return t->chars;
  size_t n = strlen(reason) + 1;
  text *t = tn_alloc(sizeof *t + n);
  if (t == NULL) return "";
  memcpy(t->chars, reason, n);
  t->next = d->texts;
  d->texts = t;
  return t->chars;
}

/* The place of a name, or where it belongs. */
static size_t find(const gpu_placement_report *d, const char *node, bool *there)
{
  size_t begin = 0, end = d->n;
  while (begin < end) {
    size_t middle = begin + (end - begin) / 2;
    if (strcmp(d->all[middle].node, node) < 0) begin = middle + 1;
    else end = middle;
  }
  *there = begin < d->n && strcmp(d->all[begin].node, node) == 0;
  return begin;
}

static decision *insert(gpu_placement_report *d, size_t at, const char *node)
{
  size_t n = strlen(node) + 1;
  char *name = tn_alloc(n);
  if (name == NULL) return NULL;
  if (d->n == d->room) {
    decision *more = gpu_new(d->room * 2 + 64, sizeof *more);
    if (more == NULL) {
      tn_free(name);
      return NULL;
    }
    if (d->n > 0) memcpy(more, d->all, d->n * sizeof *more);
    tn_free(d->all);
    d->all = more;
    d->room = d->room * 2 + 64;
  }
  memcpy(name, node, n);
  memmove(d->all + at + 1, d->all + at, (d->n - at) * sizeof *d->all);
  d->all[at] = (decision){ .node = name };
  d->n++;
  return &d->all[at];
}

bool gpu_report_note(gpu_placement_report *d, const char *node, const char *device, const char *reason)
{
  bool there;
  pthread_mutex_lock(&d->mu);
  size_t at = find(d, node, &there);
  decision *to = there ? &d->all[at] : insert(d, at, node);
  if (to != NULL) {
    to->device = device;
    to->reason = device != NULL ? "" : kept(d, reason);
  }
  pthread_mutex_unlock(&d->mu);
  return to != NULL;
}

bool gpu_report_find(gpu_placement_report *d, const char *node, const char **device, const char **reason)
{
  bool there;
  pthread_mutex_lock(&d->mu);
  size_t at = find(d, node, &there);
  if (there) *device = d->all[at].device;
  if (there) *reason = d->all[at].reason;
  pthread_mutex_unlock(&d->mu);
  return there;
}
