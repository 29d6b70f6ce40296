/* SPDX-License-Identifier: Apache-2.0 */
/* tenon bench --roofline: the time of kernels in traced steps against what memory and arithmetic of this machine allow.
 *   collect.c  times and costs of nodes, from the records of steps
 *   groups.c   nodes of the same op and kernel, and their roofs
 *   steps.c    runs the steps and measures the machine
 *   print.c, json.c, svg.c  the results */
#ifndef TENON_TOOLS_BENCH_ROOFLINE_ROOFLINE_H
#define TENON_TOOLS_BENCH_ROOFLINE_ROOFLINE_H

#include <tools/bench/bench.h>
#include <tools/common/machine.h>

/* A node, identified by name, op and kernel. */
typedef struct roof_node {
  char *key; /* the strings below, concatenated */
  const char *name, *op, *kernel;
  uint64_t calls, steps; /* in which it ran */
  double flops, bytes;   /* of all steps */
  double best_ns;        /* its shortest time in a step */
} roof_node;

typedef struct roof_nodes {
  roof_node *items;
  size_t n, room;
  uint32_t *places; /* hash table of numbers + 1, 0 = free */
  size_t n_places;
  uint64_t steps, records;
  uint64_t threads;      /* largest number with records in a step */
  double variable_bytes; /* of the last step */
} roof_nodes;

typedef enum roof_bound { ROOF_MEMORY, ROOF_COMPUTE } roof_bound;

/* All nodes with the same op and kernel; figures of a step. Times are the shortest ones of each node: other load on the
 * machine lengthens them, and the limits are the best that was measured too. */
typedef struct roof_group {
  const char *op, *kernel; /* borrowed from the nodes */
  uint64_t nodes;
  double calls, ns, flops, bytes;
  double roof_ns;    /* sum of the nodes' roofs */
  double counted_ns; /* the same, but of each node at most its time */
  double compute_ns; /* part of roof_ns of nodes whose roof is arithmetic */
} roof_group;

typedef struct roofline {
  roof_nodes nodes;
  roof_group *groups; /* the costliest first */
  size_t n_groups;
  machine_limits most;
  double cache_bandwidth;
  uint64_t block_bytes; /* that the bandwidth was measured with */
  int threads;
  double step_ns, traced_ns; /* the fastest steps without and with a trace, which took turns */
  double nodes_ns, roof_ns;  /* of all groups; roof_ns: of counted_ns */
} roofline;

/* Adds a step. UNIMPLEMENTED if a node ran on a device that is not measured. */
tn_status roof_collect(roof_nodes *nodes, const tn_run_metadata *metadata, tn_error *err);
void roof_nodes_free(roof_nodes *nodes);

/* Makes the groups. */
void roof_group_nodes(roofline *r);
static inline roof_bound roof_bound_of(const roof_group *g)
{
  return g->compute_ns * 2 > g->roof_ns ? ROOF_COMPUTE : ROOF_MEMORY;
}
/* The part of all kernels' time. */
static inline double roof_part(const roofline *r, const roof_group *g)
{
  return r->nodes_ns > 0 ? g->ns / r->nodes_ns : 0;
}
/* The part of its time that a group would take at its roof; above 1: its data were in a cache. */
static inline double roof_share(const roof_group *g) { return g->ns > 0 ? g->roof_ns / g->ns : 0; }

/* Sets c->roofline. CANCELLED if interrupted. */
tn_status roof_measure(bench *b, bench_case *c, tn_error *err);
void roof_free(roofline *r);

void roof_print(const bench_case *c);
json_t *roof_json(const bench_case *c);
/* A chart for each row that was measured. */
void roof_svg(const bench *b, tool_text *out);

#endif
