/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of an import, and memory within its budget. */
#include <core/formats/graphdef/import.h>

tn_status tn__import_no_memory(tn__importer *im) { return tn__no_memory(im->err, im->name, 0); }

tn_status tn__import_malformed(tn__importer *im, const tn__fault *fault)
{
  size_t at = (size_t)(fault->at - (const uint8_t *)im->origin.begin);
  return tn_error_set(im->err, im->origin.damage, "%s: byte %zu: %s", im->name, at, fault->what);
}

tn_status tn__import_malformed_field(tn__importer *im, const tn__wire *w)
{
  tn__fault fault = { w->at, w->error };
  return tn__import_malformed(im, &fault);
}

/* Charges the wanted growth first, so that a hostile file is stopped before the allocation; then the rest that
 * tn__grow adds. */
bool tn__import_grow(tn__importer *im, void **array, size_t *room, size_t wanted, size_t size)
{
  if (wanted <= *room) return true;
  size_t old = *room;
  if (!tn__arena_charge(&im->graph->arena, (wanted - old) * size) || !tn__grow(array, room, wanted, size)) return false;
  return tn__arena_charge(&im->graph->arena, (*room - wanted) * size);
}

bool tn__import_add_slice(tn__importer *im, tn__slices *list, tn__slice slice)
{
  if (!tn__import_grow(im, (void **)&list->at, &list->room, list->n + 1, sizeof *list->at)) return false;
  list->at[list->n++] = slice;
  return true;
}
