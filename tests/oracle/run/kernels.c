/* SPDX-License-Identifier: Apache-2.0 */
/* A sample of the cases: for each op, and each type that a kernel of a device claims for one of
 * its attributes, the first case in which a node with this type ran on the device. The claims
 * come from the output of `tenon ops --json`, so that the process that forks needs no plugin;
 * the findings are in memory shared with its children. */
#define _GNU_SOURCE
#include "tests/oracle/run/oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

typedef struct claim {
  char *op, *attr, *type; /* attr "": a kernel for all types */
} claim;

enum { NO_CASE, NOT_THERE, RAN };
typedef struct finding {
  int what;
  char why[120]; /* if it ran elsewhere: the runtime's reason */
} finding;

struct oracle_kernels {
  char *device;  /* "GPU" */
  claim *claims;
  size_t n, room;
  finding *found; /* indexed like claims; shared */
  const oracle_case *wanted; /* the last case that was wanted */
  int64_t until; /* seconds of the monotonic clock after which no case is wanted; 0: no limit */
};

static int64_t now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec;
}

static bool is_late(const oracle_kernels *k) { return k->until != 0 && now() >= k->until; }

static void free_claim(claim *c)
{
  free(c->op);
  free(c->attr);
  free(c->type);
}

/* ---- reading ---- */

static void add_claim(oracle_kernels *k, const char *op, const char *attr, const char *type)
{
  for (size_t i = 0; i < k->n; i++) /* two kernels of an op may have a type in common */
    if (!strcmp(k->claims[i].op, op) && !strcmp(k->claims[i].attr, attr) && !strcmp(k->claims[i].type, type)) return;
  k->claims = oracle_grow(k->claims, k->n, &k->room, sizeof(*k->claims));
  k->claims[k->n++] = (claim){ oracle_format("%s", op), oracle_format("%s", attr), oracle_format("%s", type) };
}

static void add_kernel(oracle_kernels *k, const char *op, json_t *kernel)
{
  json_t *constraints = json_object_get(kernel, "constraints"), *types, *type;
  const char *attr, *device = json_string_value(json_object_get(kernel, "device"));
  size_t i;
  if (device == NULL || strcmp(device, k->device) != 0) return;
  if (json_object_size(constraints) == 0) add_claim(k, op, "", "");
  json_object_foreach(constraints, attr, types)
    json_array_foreach(types, i, type) add_claim(k, op, attr, json_string_value(type));
}

/* Compiling for each type of each op takes long without a filled compiler cache. Keeps the first
 * type of an attribute, and another one that differs from the type kept for the op before. */
static void keep_few(oracle_kernels *k)
{
  size_t kept = 0, op = 0;
  for (size_t begin = 0, end; begin < k->n; begin = end, op++) {
    const claim *first = &k->claims[begin];
    for (end = begin; end < k->n && !strcmp(k->claims[end].op, first->op) && !strcmp(k->claims[end].attr, first->attr);)
      end++;
    size_t other = begin + op % (end - begin);
    for (size_t i = begin; i < end; i++) {
      if (i == begin || i == other) k->claims[kept++] = k->claims[i];
      else free_claim(&k->claims[i]);
    }
  }
  k->n = kept;
}

oracle_kernels *oracle_kernels_read(const char *path, const char *device, bool few, int within)
{
  json_error_t why;
  json_t *root = json_load_file(path, 0, &why), *op, *kernel;
  oracle_kernels *k = oracle_alloc(sizeof(*k));
  size_t i, j;
  if (root == NULL) oracle_usage_error("%s: %s", path, why.text);
  k->device = oracle_format("%s", device);
  if (within > 0) k->until = now() + within;
  json_array_foreach(json_object_get(root, "ops"), i, op)
    json_array_foreach(json_object_get(op, "kernels"), j, kernel)
      add_kernel(k, json_string_value(json_object_get(op, "name")), kernel);
  json_decref(root);
  if (k->n == 0) oracle_usage_error("%s: no kernel is for a device of type '%s'", path, device);
  if (few) keep_few(k);
  k->found = mmap(NULL, k->n * sizeof(*k->found), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (k->found == MAP_FAILED) oracle_usage_error("no memory for %zu types of ops", k->n);
  return k;
}

void oracle_kernels_free(oracle_kernels *k)
{
  if (k == NULL) return;
  munmap(k->found, k->n * sizeof(*k->found));
  for (size_t i = 0; i < k->n; i++) free_claim(&k->claims[i]);
  free(k->claims);
  free(k->device);
  free(k);
}

/* ---- cases ---- */

static bool has_type(const tn_operation *op, const claim *c)
{
  tn_dtype type;
  const tn_dtype *list = &type;
  size_t n = 1;
  if (*c->attr == 0) return true;
  bool ok = tn_operation_attr_kind(op, c->attr) == TN_ATTR_LIST + TN_ATTR_TYPE
                ? tn_operation_attr_types(op, c->attr, &list, &n, NULL) == TN_OK
                : tn_operation_attr_type(op, c->attr, &type, NULL) == TN_OK;
  for (size_t i = 0; ok && i < n; i++)
    if (strcmp(tn_dtype_name(list[i]), c->type) == 0) return true;
  return false;
}

bool oracle_kernels_want(oracle_kernels *k, const oracle_case *c, const tn_graph *graph)
{
  bool wanted = k->wanted == c; /* run again to detect memory leaked by the first run */
  for (size_t n = 0; !is_late(k) && n < tn_graph_n_operations(graph); n++) {
    const tn_operation *op = tn_graph_operation(graph, n);
    for (size_t i = 0; !wanted && i < k->n; i++)
      wanted =
          k->found[i].what != RAN && strcmp(k->claims[i].op, tn_operation_type(op)) == 0 && has_type(op, &k->claims[i]);
  }
  if (wanted) k->wanted = c;
  return wanted;
}

static bool is_there(const oracle_kernels *k, const char *device)
{
  char part[80];
  snprintf(part, sizeof(part), "/device:%s:", k->device);
  return device != NULL && strstr(device, part) != NULL;
}

/* Judged by the node's record, if it has one. A node without elements, or whose output is its
 * input, has nothing to run, and is where the runtime says. */
static bool ran_there(const oracle_kernels *k, tn_session *session, const tn_run_metadata *metadata, const char *node,
                      tn_placement *placement)
{
  tn_node_record record = { .struct_size = sizeof(record) };
  if (tn_session_device_of(session, node, placement, NULL) != TN_OK) return false;
  for (size_t r = 0; tn_run_metadata_record(metadata, r, &record, NULL) == TN_OK; r++)
    if (record.kind == TN_RECORD_NODE && strcmp(record.node, node) == 0) return is_there(k, record.device);
  return is_there(k, placement->device);
}

void oracle_kernels_note(oracle_kernels *k, tn_session *session, const tn_run_metadata *metadata)
{
  const tn_graph *graph = tn_session_graph(session);
  for (size_t n = 0; n < tn_graph_n_operations(graph); n++) {
    const tn_operation *op = tn_graph_operation(graph, n);
    for (size_t i = 0; i < k->n; i++) {
      tn_placement placement = { .struct_size = sizeof(placement) };
      finding *f = &k->found[i];
      if (f->what == RAN || strcmp(k->claims[i].op, tn_operation_type(op)) != 0 || !has_type(op, &k->claims[i]))
        continue;
      f->what = ran_there(k, session, metadata, tn_operation_name(op), &placement) ? RAN : NOT_THERE;
      if (f->what == NOT_THERE)
        snprintf(f->why, sizeof(f->why), "%s", placement.reason == NULL ? "" : placement.reason);
    }
  }
}

/* ---- reporting ---- */

void oracle_kernels_report(const oracle_kernels *k)
{
  size_t count[3] = { 0 };
  bool late = is_late(k);
  for (size_t i = 0; i < k->n; i++) {
    const claim *c = &k->claims[i];
    const finding *f = &k->found[i];
    char what[200];
    snprintf(what, sizeof(what), "%s%s%s%s%s", c->op, *c->attr ? " " : "", c->attr, *c->attr ? "=" : "", c->type);
    count[f->what]++;
    if (f->what == NO_CASE && !late) printf("UNTRIED %s: no case has it run\n", what);
    if (f->what == NOT_THERE && !late) printf("ELSEWHERE %s: %s\n", what, *f->why ? f->why : "no reason is given");
  }
  printf("%zu types of ops ran on %s, %zu ran elsewhere, %zu have no case%s\n", count[RAN], k->device, count[NOT_THERE],
         count[NO_CASE], late ? " so far: the time was up" : "");
}
