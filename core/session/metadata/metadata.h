/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata of a Run: the object that programs pass, and how a step fills it in. */
#ifndef TN_CORE_SESSION_METADATA_METADATA_H
#define TN_CORE_SESSION_METADATA_METADATA_H

#include <core/exec/step/trace.h>
#include <core/formats/run_metadata.h>
#include <core/graph/graph_structs.h>
#include <core/session/session_internal.h>

struct tn__step_env;

/* Empties the object (S-MD-06). NULL allowed. */
void tn__metadata_clear(tn_run_metadata *metadata);

/* Called before and after a step with metadata (not NULL). Begin clears the object and gives the step's environment a
 * trace if the options ask for one; end copies the records of the trace. Neither fails: if memory runs out, `cut` is
 * set. */
void tn__metadata_begin(tn_run_metadata *metadata, const tn_run_options *options, struct tn__step_env *env);
/* Frees the trace. */
void tn__metadata_end(tn_run_metadata *metadata, tn_session *session, const tn_plan *plan, const tn_step *step,
                      const tn_run_options *options, tn__trace *trace);

/* fill.c: copies the trace's records, sorted by time. False if memory ran out; the records made so
 * far can be read. */
bool tn__metadata_take_trace(tn_run_metadata *metadata, tn_session *session, const tn__trace *trace);
/* cost.c: sets flops and moved_bytes of a record. False if memory ran out. */
bool tn__metadata_cost(const tn__trace_record *from, tn__metadata_record *to);
/* graph.c: adds the graph of a plan for each device. False if memory ran out. */
bool tn__metadata_take_graphs(tn_run_metadata *metadata, tn_session *session, const tn_plan *plan);

/* device.c: the number of the device of a node, which is one of the session's graph or was made from one.
 * TN__NONE if memory ran out. */
uint32_t tn__metadata_device(tn_run_metadata *metadata, tn_session *session, const tn_operation *op);
/* The number of the device with this name, which is added to the table if necessary. */
uint32_t tn__metadata_device_named(tn_run_metadata *metadata, const char *name);

#endif
