/* SPDX-License-Identifier: Apache-2.0 */
/* The order of effects in a segment: effects on one resource happen in the order of the tape; effects on different
 * resources may happen concurrently.
 *
 * Two resources are known to be different only if their handles come from ops of the library with a container and a
 * name. These are barriers, which come after all earlier effects and before all later ones: effects on any other
 * handle, ops of plugins, calls of functions, and effects on the world. A random op has a state of its own and waits
 * for nothing. */
#ifndef TN_CORE_LAYOUT_EFFECT_ORDER_H
#define TN_CORE_LAYOUT_EFFECT_ORDER_H

#include <core/base/arena.h>
#include <core/base/map.h>
#include <core/plan/plan.h>

typedef struct tn__effect_order {
  const tn_plan *plan; /* borrowed */
  tn__map by_key;      /* from the key of a resource to 1 + its number */
  tn__arena keys;
  uint32_t *last;    /* by resource: the last instruction since the barrier that touched it; TN__NONE = none */
  uint32_t *touched; /* the resources touched since the barrier */
  uint32_t *waits;   /* the instructions that the one added last must wait for */
  size_t last_room, touched_room, wait_room;
  uint32_t n_last, n_touched, n_waits;
  uint32_t barrier; /* the last barrier; TN__NONE = none */
} tn__effect_order;

void tn__effect_order_init(tn__effect_order *o, const tn_plan *plan);
void tn__effect_order_fini(tn__effect_order *o);
/* Adds the next instruction of the tape, and stores the n_waits instructions that it must wait for in o->waits. False
 * if memory is exhausted. */
bool tn__effect_order_add(tn__effect_order *o, uint32_t instr);

#endif
