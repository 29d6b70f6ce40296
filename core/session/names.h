/* SPDX-License-Identifier: Apache-2.0 */
/* The names of a call, and what they parse to. */
#ifndef TN_CORE_SESSION_NAMES_H
#define TN_CORE_SESSION_NAMES_H

#include <core/graph/graph_internal.h>

/* Borrowed from the program for the time of a call. */
typedef struct tn__names {
  const char *const *feeds, *const *fetches, *const *targets;
  size_t n_feeds, n_fetches, n_targets;
} tn__names;

/* An output that a call names, and its position there. */
typedef struct tn__named_output {
  tn_output output;
  uint32_t id; /* of the operation, by which outputs are sorted */
  uint32_t position;
} tn__named_output;

/* Parsed names. tn__parsed_order brings them into canonical order: n_feeds feeds, n_fetches
 * distinct fetches, n_targets distinct targets. */
typedef struct tn__parsed_names {
  tn__named_output *feeds, *fetches;
  tn_output *spec_feeds, *spec_fetches; /* in canonical order, without positions, for the compiler */
  tn_operation **targets;
  size_t n_feeds, n_fetches, n_targets;
  bool partial;    /* the names of a partial run, which has signatures of its own */
  uint32_t *key;   /* canonical key; tn__signature_get may take it over */
  size_t key_size; /* in bytes */
  size_t room_feeds, room_fetches, room_targets;
} tn__parsed_names;

struct tn__entry_point;

/* Refuses NULLs and lists that are too long. */
tn_status tn__names_check(const tn__names *names, tn_error *err);
/* The names as bytes: the key of an entry point. Writes them if they fit and returns the size they need. */
size_t tn__names_key(const tn__names *names, char *to, size_t room);
/* Looks the names up in the graph. Call tn__parsed_fini also after a failure. */
tn_status tn__names_parse(tn_graph *graph, const tn__names *names, tn__parsed_names *parsed, tn_error *err);
void tn__parsed_fini(tn__parsed_names *parsed);
/* Sorts the lists, which are in the caller's order, into canonical order; fills in the maps of the entry point. */
tn_status tn__parsed_order(tn__parsed_names *parsed, const tn__names *names, struct tn__entry_point *entry,
                           tn_error *err);
/* Refuses an output that is both fed and fetched (S-PR-09). In canonical order. */
tn_status tn__parsed_check_distinct(const tn__parsed_names *parsed, tn_error *err);
/* Makes the canonical key of the signature. */
tn_status tn__parsed_make_key(tn__parsed_names *parsed, tn_error *err);

#endif
