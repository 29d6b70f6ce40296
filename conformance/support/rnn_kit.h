/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent networks of plain ops, as in frozen graphs, for tests of the planner. */
#ifndef TENON_CONFORMANCE_SUPPORT_RNN_KIT_H
#define TENON_CONFORMANCE_SUPPORT_RNN_KIT_H

#include "conformance/support/session_kit.h"

typedef enum rnn_kind {
  RNN_LSTM,         /* [x, h'] w + b */
  RNN_LSTM_APART,   /* x w + h' u + b, with forget gate second */
  RNN_GRU,          /* [x, h'] w + b, candidate from r h' */
  RNN_GRU_BEFORE,   /* x w + b and h' u in slices, candidate from (r h') v */
  RNN_GRU_AFTER,    /* candidate from r (h' u + d) */
  RNN_KINDS
} rnn_kind;

typedef struct rnn_net {
  rnn_kind kind;
  int steps, layers;
  int64_t batch, in, cells;
  bool batch_known; /* when the graph is created */
  bool slices;      /* inputs are slices of x, one node each, instead of outputs of one node */
  bool back;        /* each step's input but the first one's comes from the first layer's state; in = cells */
  bool early;       /* the last two steps' input is the first layer's state of step 1; in = cells */
  bool variables;   /* the matrices of one layer are also fed: "w0", "u0", "v0" */
} rnn_net;

/* Placeholders x [steps, batch, in], h [batch, cells] and, for LSTMs, c; layer k's states of step t are "h<k>_<t>" and
 * "c<k>_<t>". All layers start with h and c. Ends the test on failure. */
void rnn_graph(tn_graph *graph, const rnn_net *net);

/* Feeds x and the states with numbers in [-1, 1] (zeros: the states are 0) and returns the fetches. rows: rows of h and
 * c, 0 = the batch. */
typedef struct rnn_feeds {
  int64_t h_rows, c_rows;
  bool zeros;
} rnn_feeds;
tn_status rnn_run(ts *t, const rnn_net *net, const rnn_feeds *feeds, const char *const *fetches, size_t n,
                  tn_tensor **out);

/* ts_init, rnn_graph, ts_start; disabled: disabled passes. */
void rnn_open(ts *t, const rnn_net *net, int level, const char *disabled);

#endif
