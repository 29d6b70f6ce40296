/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of fed tensors. */
#ifndef TN_CORE_SESSION_FEEDS_H
#define TN_CORE_SESSION_FEEDS_H

#include <core/session/entry_point.h>

/* Compares feeds with the types that the graph declares, before anything is compiled (S-ERR-03). feeds NULL: nothing to
 * do. */
tn_status tn__feeds_check_declared(const tn__entry_point *entry, const tn__names *names, tn_tensor *const *feeds,
                                   tn_error *err);
/* Compares feeds with the signature. names NULL: errors name the operations. */
tn_status tn__feeds_check(const tn__entry_point *entry, const char *const *names, tn_tensor *const *feeds,
                          tn_error *err);
/* One feed, by its number in the signature. */
tn_status tn__feed_check(const tn__signature *signature, uint32_t feed, tn_output output, const char *name,
                         const tn_tensor *tensor, tn_error *err);
/* Refuses a feed whose shape contradicts the shape that the graph declares. */
tn_status tn__feed_check_shape(tn_output output, const tn_tensor *tensor, tn_error *err);
/* If the feed contradicts the graph, adds that to the error of a step as a possible cause. */
void tn__feed_explain(tn_output output, const tn_tensor *tensor, tn_error *err);
/* Whether a feed, in the order of the signature, contradicts the shapes that its plan assumes. */
bool tn__feeds_contradict(const tn__signature *signature, tn_tensor *const *feeds);

#endif
