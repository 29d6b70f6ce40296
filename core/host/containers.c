/* SPDX-License-Identifier: Apache-2.0 */
/* The containers of a factory: its graph sessions and its eager sessions have the same. */
#include <core/host/host.h>
#include <core/resource/container.h>

static void free_containers(void *slot) { tn__containers_unref(slot); }

tn__containers *tn__factory_containers(tn__factory *factory)
{
  tn__containers *set = tn__factory_slot(factory);
  if (set != NULL) return set;
  set = tn__containers_create();
  if (set == NULL || tn__factory_set_slot(factory, set, free_containers)) return set;
  tn__containers_unref(set);
  return tn__factory_slot(factory);
}
