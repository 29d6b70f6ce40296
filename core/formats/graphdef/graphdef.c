/* SPDX-License-Identifier: Apache-2.0 */
/* The format "GraphDef in protobuf's wire format". It is used if no other format fits; if reading fails, sniff.c names
 * the format of the file. */
#include <core/formats/file.h>
#include <core/formats/format.h>
#include <core/formats/graphdef/graphdef.h>

static tn_status read_graph(tn_graph *graph, const tn__source *source, const tn_import_options *options,
                            const tn__import_check *check, tn_error *err)
{
  tn_buffer *copy = NULL;
  tn_status st = TN_OK;
  if (source->file == NULL) st = tn__bytes_copy(source->bytes.data, source->bytes.size, &copy, err);
  if (st == TN_OK)
    st = tn__graphdef_import(graph, copy != NULL ? copy : source->file, 0, source->name, options, check, err);
  tn_buffer_unref(copy);
  return st;
}

const tn__format tn__format_graphdef = {
  .endings = { ".pb" },
  .read = read_graph,
  .write = tn__graphdef_write,
};
