/* SPDX-License-Identifier: Apache-2.0 */
/* The format "GraphDef in protobuf's text form", translated to and from bytes. */
#include <core/formats/pbtxt/pbtxt.h>

#include <core/formats/format.h>
#include <core/formats/graphdef/graphdef.h>

#include <string.h>

/* Whether the text begins with the name of a field. A GraphDef in wire format begins with the tag of a field, and no
 * tag is equal to the first letter of such a name. */
static bool probe(tn__slice bytes)
{
  for (size_t i = 0; i < tn__pb_graphdef.n; i++) {
    size_t n = strlen(tn__pb_graphdef.fields[i].name);
    if (bytes.size > n && memcmp(bytes.data, tn__pb_graphdef.fields[i].name, n) == 0 &&
        memchr(" \t\r\n:{<", bytes.data[n], 7) != NULL)
      return true;
  }
  return false;
}

static void free_translation(void *user, void *data, size_t bytes)
{
  (void)user;
  (void)bytes;
  tn_free(data);
}

/* Translates text to a buffer of bytes. */
static tn_status translate(tn__slice text, const char *name, tn_buffer **out, tn_error *err)
{
  tn__sink bytes = tn__sink_memory(err);
  tn_status st = tn__pbtxt_parse(text, name, &tn__pb_graphdef, &bytes, err);
  if (st == TN_OK && bytes.used > TN__FORMAT_LIMIT)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the graph has %zu bytes, at most %zu are read", name, bytes.used,
                      (size_t)TN__FORMAT_LIMIT);
  if (st == TN_OK && tn__sink_reserve(&bytes, 1) == NULL)
    st = bytes.status; /* an empty message needs an address, too */
  tn_buffer_desc desc = { .struct_size = sizeof desc,
                          .memory = TN_MEMORY_HOST,
                          .ownership = TN_BUFFER_IMMUTABLE,
                          .data = bytes.data,
                          .bytes = bytes.used,
                          .release = free_translation };
  if (st == TN_OK) st = tn_buffer_create(&desc, out, err);
  if (st != TN_OK) tn__sink_fini(&bytes);
  return st;
}

/* The graph keeps the translated bytes, not the text. Budget and errors refer to the size of the text. */
static tn_status read_graph(tn_graph *graph, const tn__source *source, const tn_import_options *options,
                            const tn__import_check *check, tn_error *err)
{
  tn__source bytes = { .name = source->name };
  tn_status st = translate(source->bytes, source->name, &bytes.file, err);
  if (st != TN_OK) return st;
  const tn_buffer_desc *desc = tn_buffer_describe(bytes.file);
  bytes.bytes = (tn__slice){ desc->data, desc->bytes };
  st = tn__graphdef_import(graph, &bytes, source->bytes.size, options, check, err);
  tn_buffer_unref(bytes.file);
  return st;
}

/* The text needs the whole graph in memory as bytes first. */
static tn_status write_graph(tn_graph *graph, tn__sink *out, tn_error *err)
{
  tn__sink binary = tn__sink_memory(err);
  tn_status st = tn__graphdef_write(graph, &binary, err);
  if (st == TN_OK) st = tn__pbtxt_print((tn__slice){ binary.data, binary.used }, &tn__pb_graphdef, out, err);
  tn__sink_fini(&binary);
  return st;
}

const tn__format tn__format_pbtxt = {
  .endings = { ".pbtxt" },
  .import_flag = TN_IMPORT_TEXT,
  .export_flag = TN_EXPORT_TEXT,
  .is_text = true,
  .probe = probe,
  .read = read_graph,
  .write = write_graph,
};
