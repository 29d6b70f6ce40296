/* SPDX-License-Identifier: Apache-2.0 */
/* A beam search over label sequences, for CTCBeamSearchDecoder. The blank is the last class.
 *
 * A node of the tree is a sequence; nodes are made when they first enter the beam and stay until the search starts
 * anew, since a node outside the beam may have others below it that are inside. */
#ifndef TN_OPS_NN_CTC_BEAM_H
#define TN_OPS_NN_CTC_BEAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing list of labels. */
typedef struct tn__labels {
  int64_t *items, n;
  size_t capacity;
} tn__labels;

bool tn__labels_add(tn__labels *l, int64_t label); /* false: out of memory */
void tn__labels_fini(tn__labels *l);

/* Logarithms of the probabilities of all alignments of a sequence: those that end with a blank, with a label. */
typedef struct tn__beam_odds {
  double total, blank, label;
} tn__beam_odds;

typedef struct tn__beam_node {
  tn__beam_odds old, now; /* at the last and the current time */
  int64_t parent, label;  /* -1 at the root */
  int64_t children;       /* place of its children in `children`; -1: none was made */
} tn__beam_node;

/* Set width and classes, the rest zero. */
typedef struct tn__beam {
  int64_t width, classes;
  double *y; /* the logits of a time, written by the caller before a step */
  tn__beam_node *nodes;
  int64_t n_nodes;
  size_t node_capacity;
  int64_t *children; /* for each node that has some: classes - 1 nodes, -1 where there is none */
  int64_t n_children;
  size_t child_capacity;
  int64_t *leaves, *branches; /* the beam, a heap with the least probable node first; a copy, the most probable first */
  int64_t n_leaves;
  size_t leaf_capacity, branch_capacity, y_capacity;
} tn__beam;

/* All but fini return false when memory is exhausted. */
bool tn__beam_start(tn__beam *b);
bool tn__beam_step(tn__beam *b);
void tn__beam_fini(tn__beam *b);
/* Sorts the leaves, the most probable first; then these read the leaf at a place. */
void tn__beam_sort(tn__beam *b);
double tn__beam_score(const tn__beam *b, int64_t place);
bool tn__beam_labels(const tn__beam *b, int64_t place, bool merge, tn__labels *to);

#endif
