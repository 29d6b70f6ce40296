/* SPDX-License-Identifier: Apache-2.0 */
/* The names of a call: checked, parsed into operations and outputs, put in the canonical order of a signature. */
#include <core/session/entry_point.h>
#include <stdlib.h>

/* Positions and counts are kept in 32 bits, so longer lists are refused. */
static tn_status check_list(const char *const *names, size_t n, const char *what, tn_error *err)
{
  if (n > 0 && names == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "the list of %s is NULL", what);
  if (n >= UINT32_MAX) return tn_error_set(err, TN_INVALID_ARGUMENT, "%zu %s are too many", n, what);
  for (size_t i = 0; i < n; i++)
    if (names[i] == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "name %zu of the %s is NULL", i, what);
  return TN_OK;
}

tn_status tn__names_check(const tn__names *names, tn_error *err)
{
  tn_status st = check_list(names->feeds, names->n_feeds, "feeds", err);
  if (st == TN_OK) st = check_list(names->fetches, names->n_fetches, "fetches", err);
  if (st == TN_OK) st = check_list(names->targets, names->n_targets, "targets", err);
  return st;
}

/* The three counts, then the names with their NULs: no two lists of names have the same key. */
size_t tn__names_key(const tn__names *names, char *to, size_t room)
{
  const char *const *lists[] = { names->feeds, names->fetches, names->targets };
  const size_t counts[] = { names->n_feeds, names->n_fetches, names->n_targets };
  size_t at = sizeof counts;
  if (room >= at) memcpy(to, counts, at);
  for (int l = 0; l < 3; l++)
    for (size_t i = 0; i < counts[l]; i++) {
      size_t n = strlen(lists[l][i]) + 1;
      if (at + n <= room) memcpy(to + at, lists[l][i], n);
      at += n;
    }
  return at;
}

/* A target is a node; "k:0" is taken as node k (S-NAM-07). */
static tn_status parse_target(tn_graph *graph, const char *name, tn_operation **out, tn_error *err)
{
  if (name[0] == 0) return tn_error_set(err, TN_INVALID_ARGUMENT, "a target's name is empty");
  *out = tn_graph_find(graph, name);
  const char *colon = strrchr(name, ':');
  if (*out == NULL && colon != NULL && colon[1] != 0 && colon[1 + strspn(colon + 1, "0123456789")] == 0) {
    char *node = tn__strndup(name, (size_t)(colon - name));
    if (node == NULL) return tn__no_memory(err, "name", strlen(name));
    *out = tn_graph_find(graph, node);
    tn__strfree(node);
  }
  return *out != NULL ? TN_OK : tn_error_set(err, TN_NOT_FOUND, "target '%s': the graph has no such node", name);
}

/* The canonical order: by operation, then by output; equal ones by position, so that the first
 * position is found. */
static int by_endpoint(const void *a, const void *b)
{
  const tn__named_output *x = a, *y = b;
  if (x->id != y->id) return x->id < y->id ? -1 : 1;
  if (x->output.index != y->output.index) return x->output.index < y->output.index ? -1 : 1;
  return x->position < y->position ? -1 : x->position > y->position;
}

static int by_operation(const void *a, const void *b)
{
  uint32_t x = tn__operation_id(*(tn_operation *const *)a), y = tn__operation_id(*(tn_operation *const *)b);
  return x < y ? -1 : x > y;
}

static bool same_endpoint(const tn__named_output *a, const tn__named_output *b)
{
  return a->id == b->id && a->output.index == b->output.index;
}

/* Parses names of outputs. what: "feed" or "fetch", for errors. */
static tn_status parse_list(tn_graph *graph, const char *const *names, size_t n, const char *what, tn__named_output *to,
                            tn_error *err)
{
  for (size_t i = 0; i < n; i++) {
    tn_status st = tn__graph_parse_output(graph, names[i], &to[i].output, err);
    if (st != TN_OK) {
      tn_error_prefix(err, "%s '%s'", what, names[i]);
      return st;
    }
    to[i].id = tn__operation_id(to[i].output.op);
    to[i].position = (uint32_t)i;
  }
  return TN_OK;
}

tn_status tn__names_parse(tn_graph *graph, const tn__names *names, tn__parsed_names *p, tn_error *err)
{
  p->room_feeds = names->n_feeds + 1;
  p->room_fetches = names->n_fetches + 1;
  p->room_targets = names->n_targets + 1;
  p->feeds = tn__alloc_array(p->room_feeds, sizeof *p->feeds);
  p->fetches = tn__alloc_array(p->room_fetches, sizeof *p->fetches);
  p->spec_feeds = tn__alloc_array(p->room_feeds, sizeof *p->spec_feeds);
  p->spec_fetches = tn__alloc_array(p->room_fetches, sizeof *p->spec_fetches);
  p->targets = tn__alloc_array(p->room_targets, sizeof *p->targets);
  if (p->feeds == NULL || p->fetches == NULL || p->spec_feeds == NULL || p->spec_fetches == NULL || p->targets == NULL)
    return tn__no_memory(err, "signature", 0);
  tn__graph_read_lock(graph);
  tn_status st = parse_list(graph, names->feeds, names->n_feeds, "feed", p->feeds, err);
  if (st == TN_OK) st = parse_list(graph, names->fetches, names->n_fetches, "fetch", p->fetches, err);
  for (size_t i = 0; st == TN_OK && i < names->n_targets; i++)
    st = parse_target(graph, names->targets[i], &p->targets[i], err);
  tn__graph_unlock(graph);
  p->n_feeds = names->n_feeds;
  return st;
}

void tn__parsed_fini(tn__parsed_names *p)
{
  tn__free(p->feeds, p->room_feeds * sizeof *p->feeds);
  tn__free(p->fetches, p->room_fetches * sizeof *p->fetches);
  tn__free(p->spec_feeds, p->room_feeds * sizeof *p->spec_feeds);
  tn__free(p->spec_fetches, p->room_fetches * sizeof *p->spec_fetches);
  tn__free(p->targets, p->room_targets * sizeof *p->targets);
  tn__free(p->key, p->key_size);
}

/* Feeds must be distinct. Fetches and targets may repeat: the signature has each once. */
tn_status tn__parsed_order(tn__parsed_names *p, const tn__names *names, tn__entry_point *e, tn_error *err)
{
  for (size_t i = 0; i < p->n_feeds; i++) e->feeds[i] = p->feeds[i].output;
  qsort(p->feeds, p->n_feeds, sizeof *p->feeds, by_endpoint);
  for (size_t i = 0; i < p->n_feeds; i++) {
    if (i > 0 && same_endpoint(&p->feeds[i - 1], &p->feeds[i])) /* S-RUN-09, S-NAM-03 */
      return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s' is fed more than once", names->feeds[p->feeds[i].position]);
    e->feed_map[p->feeds[i].position] = (uint32_t)i;
    p->spec_feeds[i] = p->feeds[i].output;
  }
  qsort(p->fetches, names->n_fetches, sizeof *p->fetches, by_endpoint);
  for (size_t i = 0; i < names->n_fetches; i++) {
    bool again = i > 0 && same_endpoint(&p->fetches[i - 1], &p->fetches[i]); /* S-RUN-03 */
    if (!again) {
      e->first[p->n_fetches] = p->fetches[i].position;
      p->spec_fetches[p->n_fetches++] = p->fetches[i].output;
    }
    e->fetch_map[p->fetches[i].position] = (uint32_t)p->n_fetches - 1;
  }
  qsort(p->targets, names->n_targets, sizeof *p->targets, by_operation);
  for (size_t i = 0; i < names->n_targets; i++)
    if (i == 0 || p->targets[i] != p->targets[p->n_targets - 1])
      p->targets[p->n_targets++] = p->targets[i]; /* S-RUN-04 */
  return TN_OK;
}

/* Counts, then operations and outputs by number. Operation ids are unique in the session's graph. */
tn_status tn__parsed_make_key(tn__parsed_names *p, tn_error *err)
{
  size_t n = 3 + 2 * (p->n_feeds + p->n_fetches) + p->n_targets + p->partial, at = 0;
  p->key_size = n * sizeof *p->key;
  p->key = tn__alloc(p->key_size);
  if (p->key == NULL) return tn__no_memory(err, "signature", p->key_size);
  p->key[at++] = (uint32_t)p->n_feeds;
  p->key[at++] = (uint32_t)p->n_fetches;
  p->key[at++] = (uint32_t)p->n_targets;
  for (size_t i = 0; i < p->n_feeds; i++) {
    p->key[at++] = tn__operation_id(p->spec_feeds[i].op);
    p->key[at++] = (uint32_t)p->spec_feeds[i].index;
  }
  for (size_t i = 0; i < p->n_fetches; i++) {
    p->key[at++] = tn__operation_id(p->spec_fetches[i].op);
    p->key[at++] = (uint32_t)p->spec_fetches[i].index;
  }
  for (size_t i = 0; i < p->n_targets; i++) p->key[at++] = tn__operation_id(p->targets[i]);
  if (p->partial) p->key[at] = 1; /* this key has another length than that of a whole run */
  return TN_OK;
}

/* Walks both sorted lists at once. */
tn_status tn__parsed_check_distinct(const tn__parsed_names *p, tn_error *err)
{
  for (size_t i = 0, k = 0; i < p->n_feeds && k < p->n_fetches;) {
    const tn_output a = p->spec_feeds[i], b = p->spec_fetches[k];
    if (a.op == b.op && a.index == b.index)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s:%d' is both fed and fetched", tn_operation_name(a.op),
                          (int)a.index);
    uint32_t x = tn__operation_id(a.op), y = tn__operation_id(b.op);
    if (x < y || (x == y && a.index < b.index)) i++;
    else k++;
  }
  return TN_OK;
}
