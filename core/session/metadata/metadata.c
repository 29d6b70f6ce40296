/* SPDX-License-Identifier: Apache-2.0 */
/* The metadata objects of programs: life, reading, serializing. */
#include <core/session/metadata/metadata.h>
#include <core/exec/step/env.h>

#define FIRST_BLOCK 4096 /* bytes of the arena, which owns all texts, shapes and records */

/* ---- life ---- */

tn_status tn_run_metadata_create(tn_run_metadata **out, tn_error *err)
{
  tn__error_reset(err);
  if (out == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_run_metadata_create: out is NULL");
  *out = tn__zalloc(sizeof **out);
  if (*out == NULL) return tn__no_memory(err, "metadata", sizeof **out);
  (*out)->summary.struct_size = sizeof (*out)->summary;
  tn__arena_init(&(*out)->arena, FIRST_BLOCK);
  return TN_OK;
}

/* Partition graphs are the only memory outside of the arena. */
void tn__metadata_clear(tn_run_metadata *m)
{
  if (m == NULL) return;
  for (size_t i = 0; i < m->summary.partition_graphs; i++) tn_free((void *)m->graphs[i].data);
  tn__arena_fini(&m->arena);
  *m = (tn_run_metadata){ .summary = { .struct_size = sizeof m->summary } };
  tn__arena_init(&m->arena, FIRST_BLOCK);
}

void tn_run_metadata_destroy(tn_run_metadata *metadata)
{
  if (metadata == NULL) return;
  tn__metadata_clear(metadata);
  tn__arena_fini(&metadata->arena);
  tn__free(metadata, sizeof *metadata);
}

/* ---- around a step ---- */

static bool wants_trace(const tn_run_options *o) { return o != NULL && o->trace_level > 0; } /* S-RO-11, S-MD-01 */

void tn__metadata_begin(tn_run_metadata *metadata, const tn_run_options *options, tn__step_env *env)
{
  tn__metadata_clear(metadata);
  if (!wants_trace(options)) return;
  metadata->summary.traced = 1;
  env->trace = tn__trace_begin();
  metadata->summary.cut = env->trace == NULL;
}

/* The trace is freed in any case. `whole` becomes false if memory runs out. */
void tn__metadata_end(tn_run_metadata *m, tn_session *session, const tn_plan *plan, const tn_step *step,
                      const tn_run_options *options, tn__trace *trace)
{
  bool graphs = options != NULL && options->output_partition_graphs, whole = true;
  if (!wants_trace(options) && !graphs) return;
  m->summary.step_id = tn__step_id(step);
  m->session_name =
      *session->on.name == 0 ? "" : tn__arena_string(&m->arena, session->on.name, strlen(session->on.name));
  m->session_version = session->on.version;
  m->one_device =
      tn_session_device(session, 1, &(tn_device_info){ .struct_size = sizeof(tn_device_info) }, NULL) != TN_OK;
  if (m->session_name == NULL) whole = false;
  if (trace != NULL) {
    tn__trace_end(trace);
    whole &= tn__metadata_take_trace(m, session, trace);
  }
  tn__trace_destroy(trace);
  if (graphs) whole &= tn__metadata_take_graphs(m, session, plan);
  if (!whole) m->summary.cut = 1;
}

/* ---- reading ---- */

/* The checks of all functions that fill in a struct of the caller. */
static tn_status check(const char *what, const tn_run_metadata *metadata, const size_t *struct_size, tn_error *err)
{
  tn__error_reset(err);
  if (metadata == NULL || struct_size == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %s is NULL", what, metadata == NULL ? "metadata" : "out");
  if (*struct_size < sizeof(size_t)) return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: struct_size is not set", what);
  return TN_OK;
}

tn_status tn_run_metadata_summary(const tn_run_metadata *metadata, tn_metadata_summary *out, tn_error *err)
{
  tn_status st = check("tn_run_metadata_summary", metadata, out == NULL ? NULL : &out->struct_size, err);
  if (st == TN_OK) tn__copy_sized(out, &metadata->summary, sizeof metadata->summary, out->struct_size);
  return st;
}

static tn_status find_record(const tn_run_metadata *metadata, size_t i, const tn__metadata_record **out, tn_error *err)
{
  if (i >= metadata->summary.records)
    return tn_error_set(err, TN_OUT_OF_RANGE, "record %zu requested, but the metadata has %llu", i,
                        (unsigned long long)metadata->summary.records);
  *out = &metadata->records[i];
  return TN_OK;
}

tn_status tn_run_metadata_record(const tn_run_metadata *metadata, size_t i, tn_node_record *out, tn_error *err)
{
  const tn__metadata_record *r = NULL;
  tn_status st = check("tn_run_metadata_record", metadata, out == NULL ? NULL : &out->struct_size, err);
  if (st == TN_OK) st = find_record(metadata, i, &r, err);
  if (st != TN_OK) return st;
  tn_node_record full = { .struct_size = sizeof full, .node = r->node->name, .op = r->node->op, .kernel = r->kernel,
                          .label = r->node->label, .device = metadata->devices[r->node->device], .kind = r->kind,
                          .thread = r->thread, .start_ns = r->start_ns, .duration_ns = r->duration_ns,
                          .scratch_bytes = r->scratch_bytes, .n_outputs = r->n_outputs, .status = r->status,
                          .waited = r->waited, .flops = r->flops, .moved_bytes = r->moved_bytes };
  for (uint32_t k = 0; k < r->n_outputs; k++) full.output_bytes += r->outputs[k].bytes;
  tn__copy_sized(out, &full, sizeof full, out->struct_size);
  return TN_OK;
}

tn_status tn_run_metadata_output(const tn_run_metadata *metadata, size_t i, uint32_t k, tn_output_record *out,
                                 tn_error *err)
{
  const tn__metadata_record *r = NULL;
  tn_status st = check("tn_run_metadata_output", metadata, out == NULL ? NULL : &out->struct_size, err);
  if (st == TN_OK) st = find_record(metadata, i, &r, err);
  if (st != TN_OK) return st;
  if (k >= r->n_outputs)
    return tn_error_set(err, TN_OUT_OF_RANGE, "record %zu, node '%s': output %u requested, but it has %u", i,
                        r->node->name, k, r->n_outputs);
  tn__copy_sized(out, &r->outputs[k], sizeof *out, out->struct_size);
  return TN_OK;
}

const char *tn_run_metadata_device(const tn_run_metadata *metadata, size_t i)
{
  return metadata == NULL || i >= metadata->summary.devices ? NULL : metadata->devices[i];
}

tn_status tn_run_metadata_partition_graph(const tn_run_metadata *metadata, size_t i, const void **bytes, size_t *size,
                                          tn_error *err)
{
  tn__error_reset(err);
  if (bytes != NULL) *bytes = NULL;
  if (size != NULL) *size = 0;
  if (metadata == NULL || bytes == NULL || size == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_run_metadata_partition_graph: a pointer is NULL");
  if (i >= metadata->summary.partition_graphs)
    return tn_error_set(err, TN_OUT_OF_RANGE, "partition graph %zu requested, but the metadata has %llu", i,
                        (unsigned long long)metadata->summary.partition_graphs);
  *bytes = metadata->graphs[i].data;
  *size = metadata->graphs[i].size;
  return TN_OK;
}

/* ---- writing ---- */

tn_status tn_run_metadata_serialize(const tn_run_metadata *metadata, void **bytes, size_t *size, tn_error *err)
{
  tn__error_reset(err);
  if (bytes != NULL) *bytes = NULL;
  if (size != NULL) *size = 0;
  if (metadata == NULL || bytes == NULL || size == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_run_metadata_serialize: a pointer is NULL");
  tn__sink s = tn__sink_memory(err);
  tn__sink_reserve(&s, 1); /* an address even for no bytes */
  tn__run_metadata_write(&s, metadata);
  if (s.status != TN_OK) {
    tn_status st = s.status;
    tn__sink_fini(&s);
    return st;
  }
  *bytes = s.data;
  *size = s.used;
  return TN_OK;
}

tn_status tn_run_metadata_save(const tn_run_metadata *metadata, const char *path, tn_error *err)
{
  void *bytes;
  size_t size;
  tn__writer w;
  tn__error_reset(err);
  if (path == NULL || *path == 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_run_metadata_save: the path is %s",
                        path == NULL ? "NULL" : "empty");
  tn_status st = tn_run_metadata_serialize(metadata, &bytes, &size, err);
  if (st != TN_OK) return st;
  st = tn__writer_open(&w, path, err);
  if (st == TN_OK) {
    st = tn__writer_write(&w, bytes, size, err);
    if (st == TN_OK) st = tn__writer_commit(&w, err);
    else tn__writer_abandon(&w);
  }
  tn_free(bytes);
  return st;
}
