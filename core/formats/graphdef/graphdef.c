/* SPDX-License-Identifier: Apache-2.0 */
/* The format "GraphDef in protobuf's wire format". It is used if no other format fits; if reading fails, sniff.c names
 * the format of the file. */
#include <core/formats/file.h>
#include <core/formats/format.h>
#include <core/formats/graphdef/graphdef.h>

/* The graph keeps a reference to the owner of the bytes; bytes of the caller are copied. */
static tn_status read_graph(tn_graph *graph, const tn__source *source, const tn_import_options *options,
                            const tn__import_check *check, tn_error *err)
{
  tn__source owned = *source;
  if (source->file != NULL) return tn__graphdef_import(graph, source, 0, options, check, err);
  tn_status st = tn__bytes_copy(source->bytes.data, source->bytes.size, &owned.file, err);
  if (st != TN_OK) return st;
  owned.bytes.data = tn_buffer_describe(owned.file)->data;
  st = tn__graphdef_import(graph, &owned, 0, options, check, err);
  tn_buffer_unref(owned.file);
  return st;
}

const tn__format tn__format_graphdef = {
  .endings = { ".pb" },
  .read = read_graph,
  .write = tn__graphdef_write,
};
