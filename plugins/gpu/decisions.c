/* SPDX-License-Identifier: Apache-2.0 */
/* Where the nodes of a session run, for who asks: what the last schedule with a node decided, and what can be said before. */
#include "schedule.h"

typedef struct decision {
  char *node;
  const char *reason;
  const char *device; /* as the session lists it; NULL: the CPU */
} decision;

typedef struct text {
  struct text *next;
  char chars[];
} text;

struct gpu_decisions {
  pthread_mutex_t mu;
  decision *all; /* sorted by name */
  size_t n, room;
  text *texts;   /* reasons, each once: they stay as long as the session */
};

tn_status gpu_decisions_create(gpu_decisions **out, tn_error *err)
{
  *out = gpu_new(1, sizeof **out);
  if (*out == NULL) return gpu_no_memory(err, "a session");
  pthread_mutex_init(&(*out)->mu, NULL);
  return TN_OK;
}

void gpu_decisions_free(gpu_decisions *d)
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

/* "" without memory: a reason is told to people only. */
static const char *kept(gpu_decisions *d, const char *reason)
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
static size_t find(const gpu_decisions *d, const char *node, bool *there)
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

static decision *insert(gpu_decisions *d, size_t at, const char *node)
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

void gpu_decisions_note(const gpu_schedule *s)
{
  gpu_decisions *d = s->executable->session->decisions;
  pthread_mutex_lock(&d->mu);
  for (uint32_t i = 0; i < s->n_items; i++) {
    const gpu_item *item = &s->items[i];
    bool there;
    if (!item->computes) continue;
    size_t at = find(d, tn_operation_name(item->in.op), &there);
    decision *to = there ? &d->all[at] : insert(d, at, tn_operation_name(item->in.op));
    if (to == NULL) break; /* what is not noted is guessed */
    to->device = item->where == GPU_ON_DEVICE ? gpu_device_listed(s->executable->session, item->site) : NULL;
    to->reason = to->device != NULL ? "" : kept(d, item->reason != NULL ? item->reason : "it costs less on the CPU");
  }
  pthread_mutex_unlock(&d->mu);
}

/* Before there was a schedule with the node. */
static const char *guess(const tn_runtime_session *session, const tn_operation *op, const char **reason)
{
  if (session->settings.placement == GPU_PLACE_HOST) *reason = "the setting placement=host";
  else if (gpu_op_find(op) == NULL) *reason = "the device has no kernel for it";
  else {
    if (session->settings.placement == GPU_PLACE_COST) *reason = "its costs decide when shapes are known";
    return gpu_device_listed(session, 0);
  }
  return NULL;
}

const char *gpu_node_device(const tn_session_factory *self, tn_runtime_session *session, const tn_operation *op,
                            const char **reason)
{
  gpu_decisions *d = session->decisions;
  bool there = false;
  const char *device = NULL;
  (void)self;
  *reason = "";
  if (session->settings.n_devices == 0) return NULL;
  if (d != NULL) {
    pthread_mutex_lock(&d->mu);
    size_t at = find(d, tn_operation_name(op), &there);
    if (there) device = d->all[at].device;
    if (there) *reason = d->all[at].reason;
    pthread_mutex_unlock(&d->mu);
  }
  return there ? device : guess(session, op, reason);
}
