/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the readers of a function library: errors, names, copies of texts. */
#include <core/formats/graphdef/functions.h>

#include <string.h>

typedef tn__library_reader reader;

tn_status tn__library_no_memory(reader *r) { return tn__no_memory(r->err, r->file, 0); }

tn_status tn__library_malformed(reader *r, const uint8_t *at, const char *what)
{
  return tn_error_set(r->err, r->origin->damage, "%s: byte %zu: %s", r->file,
                      (size_t)(at - (const uint8_t *)r->origin->begin), what);
}

tn_status tn__library_after(reader *r, const tn__wire *w)
{
  return w->error == NULL ? TN_OK : tn__library_malformed(r, w->at, w->error);
}

bool tn__text_is_plain(tn__slice text)
{
  for (size_t i = 0; i < text.size; i++)
    if ((unsigned char)text.data[i] < 0x20 || text.data[i] == 0x7f) return false;
  return true;
}

tn_status tn__library_copy(reader *r, tn__slice text, const char **out)
{
  *out = text.size == 0 ? "" : tn__arena_string(r->arena, text.data, text.size);
  return *out == NULL ? tn__library_no_memory(r) : TN_OK;
}

tn_status tn__in_function(reader *r, const tn_function *f, const char *what, tn__slice name, const char *wrong)
{
  return tn_error_set(r->err, TN_INVALID_ARGUMENT, "%s: function '%s': %s '%.*s' %s", r->file, f->name, what,
                      tn__library_shown(name), name.data, wrong);
}

tn_status tn__library_put(reader *r, tn__map *map, tn__slice key, const void *value)
{
  bool ok = tn__arena_charge(r->arena, 3 * sizeof(tn__map_entry)) &&
            tn__map_put(map, key.data, key.size, (void *)value, NULL);
  return ok ? TN_OK : tn__library_no_memory(r);
}

const tn__function_node tn__library_argument = { .name = "" };

/* Arguments and nodes share one name space. */
tn_status tn__function_add_name(reader *r, const tn_function *f, tn__slice name, const tn__function_node *node)
{
  const char *what = node == NULL ? "argument" : "node";
  if (node == NULL) node = &tn__library_argument;
  if (!tn__name_is_valid(name.data, name.size)) return tn__in_function(r, f, what, name, "has an invalid name");
  if (tn__map_get(&r->names, name.data, name.size) != NULL)
    return tn__in_function(r, f, what, name, "occurs twice");
  return tn__library_put(r, &r->names, name, node);
}
