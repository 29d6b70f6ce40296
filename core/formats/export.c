/* SPDX-License-Identifier: Apache-2.0 */
/* Exporting a graph to bytes or to a file, in any of the formats of the table. */
#include <core/formats/format.h>

static tn_status check_flags(tn_graph *graph, uint32_t flags, tn_error *err)
{
  if (graph == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "no graph given");
  if ((flags & ~(uint32_t)TN_EXPORT_TEXT) == 0) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "unknown flags 0x%x", (unsigned)flags);
}

tn_status tn_graph_export(tn_graph *graph, uint32_t flags, void **bytes, size_t *size, tn_error *err)
{
  tn__error_reset(err);
  if (bytes != NULL) *bytes = NULL;
  if (size != NULL) *size = 0;
  if (bytes == NULL || size == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_graph_export: %s is NULL", bytes == NULL ? "bytes" : "size");
  tn_status st = check_flags(graph, flags, err);
  if (st != TN_OK) return st;
  const tn__format *format = tn__format_to_write(NULL, flags);
  tn__sink out = tn__sink_memory(err);
  st = format->write(graph, &out, err);
  if (st == TN_OK && format->is_text) { /* a NUL, not counted in the size, so that the text is a C string */
    tn__sink_put(&out, "", 1);
    st = out.status;
    if (st == TN_OK) out.used--;
  }
  if (st != TN_OK) {
    tn__sink_fini(&out);
    return st;
  }
  *bytes = out.data;
  *size = out.used;
  return TN_OK;
}

/* Writes to an open file; the caller commits or abandons it. */
static tn_status write_open(tn_graph *graph, const tn__format *format, tn__writer *w, tn_error *err)
{
  tn__sink out = tn__sink_file(w, err);
  tn_status st = format->write(graph, &out, err);
  if (st == TN_OK) st = tn__sink_flush(&out);
  tn__sink_fini(&out);
  return st;
}

tn_status tn_graph_export_file(tn_graph *graph, const char *path, uint32_t flags, tn_error *err)
{
  tn__error_reset(err);
  tn__writer w;
  tn_status st = check_flags(graph, flags, err);
  if (st == TN_OK && (path == NULL || *path == 0))
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "the file path is %s", path == NULL ? "NULL" : "empty");
  if (st == TN_OK) st = tn__writer_open(&w, path, err);
  if (st != TN_OK) return st;
  st = write_open(graph, tn__format_to_write(path, flags), &w, err);
  if (st == TN_OK)
    st = tn__writer_commit(&w, err);
  else
    tn__writer_abandon(&w);
  return st;
}
