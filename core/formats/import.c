/* SPDX-License-Identifier: Apache-2.0 */
/* Importing a graph from bytes or from a file, in any of the formats of the table. */
#include <core/formats/file.h>
#include <core/formats/format.h>
#include <core/formats/sniff.h>

/* If the bytes are in a known format that cannot be read, wraps the error in one that names it. */
static tn_status name_format(tn_status st, const tn__source *s, const tn__format *format, tn_error *err)
{
  char endings[64];
  if (st != TN_INVALID_ARGUMENT) return st;
  const tn__kind *kind = tn__sniff(s->bytes, s->name, format->is_text);
  if (kind == NULL) return st;
  return tn_error_wrap(err, st, "%s: this is %s, wanted a GraphDef (%s)%s%s", s->name, kind->name,
                       tn__format_endings(endings, sizeof endings), kind->advice != NULL ? "; " : "",
                       kind->advice != NULL ? kind->advice : "");
}

/* Likewise for a directory, which may be one that other libraries load a model from. */
static tn_status name_folder(tn_status st, const char *path, tn_error *err)
{
  char endings[64];
  const tn__kind *kind = st == TN_INVALID_ARGUMENT && path != NULL ? tn__sniff_folder(path) : NULL;
  if (kind == NULL) return st;
  return tn_error_wrap(err, st, "'%s' is %s, wanted a file with a GraphDef (%s); %s", path, kind->name,
                       tn__format_endings(endings, sizeof endings), kind->advice);
}

/* The bytes stay the caller's, so the format copies those that it keeps. */
static tn_status import_bytes(tn_graph *graph, const void *bytes, size_t size, const tn_import_options *options,
                              const tn__import_check *check, tn_error *err)
{
  tn_import_options o;
  tn_status st = tn__import_options_read(options, graph, &o, err);
  if (st != TN_OK) return st;
  const char *name = o.file != NULL ? o.file : "GraphDef";
  if (graph == NULL || (bytes == NULL && size > 0))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: no %s given", name, graph == NULL ? "graph" : "bytes");
  const tn__source source = { .bytes = { bytes, size }, .name = name };
  const tn__format *format = tn__format_to_read(source.bytes, NULL, o.flags);
  st = format->read(graph, &source, &o, check, err);
  return name_format(st, &source, format, err);
}

tn_status tn_graph_import(tn_graph *graph, const void *bytes, size_t size, const tn_import_options *options,
                          tn_error *err)
{
  tn__error_reset(err);
  return import_bytes(graph, bytes, size, options, NULL, err);
}

tn_status tn__graph_import_checked(tn_graph *graph, const void *bytes, size_t size, const tn__import_check *check,
                                   tn_error *err)
{
  return import_bytes(graph, bytes, size, NULL, check, err);
}

/* The graph may keep a reference to `file`, so no byte is copied. */
static tn_status import_loaded(tn_graph *graph, const char *path, tn_buffer *file, const tn_import_options *o,
                               tn_error *err)
{
  const tn_buffer_desc *desc = tn_buffer_describe(file);
  const tn__source source = { .bytes = { desc->data, desc->bytes },
                              .file = file,
                              .name = o->file != NULL ? o->file : path };
  const tn__format *format = tn__format_to_read(source.bytes, path, o->flags);
  tn_status st = TN_OK;
  if ((o->flags & TN_IMPORT_KEEP_BYTES) != 0) st = tn__bytes_keep(file, desc->data, desc->bytes, err);
  if (st == TN_OK) st = format->read(graph, &source, o, NULL, err);
  return name_format(st, &source, format, err);
}

tn_status tn_graph_import_file(tn_graph *graph, const char *path, const tn_import_options *options, tn_error *err)
{
  tn__error_reset(err);
  tn_import_options o;
  tn_status st = tn__import_options_read(options, graph, &o, err);
  if (st != TN_OK) return st;
  if (graph == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: no graph given", path == NULL ? "" : path);
  tn_buffer *file;
  st = tn__bytes_load(path, TN__FORMAT_LIMIT, &file, err);
  if (st != TN_OK) return name_folder(st, path, err);
  st = import_loaded(graph, path, file, &o, err);
  tn_buffer_unref(file);
  return st;
}

/* The format for bytes is the one that needs no probe. */
tn_status tn__graph_import_slice(tn_graph *graph, tn__slice bytes, tn_buffer *file, const char *name,
                                 const tn_import_options *options, tn_error *err)
{
  tn_import_options o;
  tn_status st = tn__import_options_read(options, graph, &o, err);
  if (st != TN_OK) return st;
  const tn__source source = { .bytes = bytes, .file = file, .name = o.file != NULL ? o.file : name, .is_part = true };
  if ((o.flags & TN_IMPORT_TEXT) != 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: a part of a file is never text", source.name);
  if ((o.flags & TN_IMPORT_KEEP_BYTES) != 0) st = tn__bytes_keep(file, bytes.data, bytes.size, err);
  const tn__format *const *format = tn__formats;
  while ((*format)->probe != NULL) format++;
  return st == TN_OK ? (*format)->read(graph, &source, &o, NULL, err) : st;
}
