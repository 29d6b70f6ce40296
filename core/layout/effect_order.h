/* SPDX-License-Identifier: Apache-2.0 */
/* In which order the effects of a segment happen: those on one resource in the order of the tape, those on different
 * ones in any.
 *
 * Which resource it is is known where the handle comes from an op of the library that has a container and a name. An
 * effect on a handle from elsewhere, an op of a plugin, a call of a function and what does something to the world come
 * after all effects before them and before all behind them. A random op has a state of its own and waits for nobody. */
#ifndef TN_CORE_LAYOUT_EFFECT_ORDER_H
#define TN_CORE_LAYOUT_EFFECT_ORDER_H

#include <core/base/arena.h>
#include <core/base/map.h>
#include <core/plan/plan.h>

typedef struct tn__effect_order {
  const tn_plan *plan;
  tn__map by_key; /* of resources, to 1 + their place in `last` */
  tn__arena keys;
  uint32_t *last;    /* by resource: the last instruction that touched it since the barrier, or TN__NONE */
  uint32_t *touched; /* resources that were, since then */
  uint32_t *waits;   /* of the instruction that was added last */
  size_t last_room, touched_room, wait_room;
  uint32_t n_last, n_touched, n_waits;
  uint32_t barrier; /* the last instruction that came after all before it, or TN__NONE */
} tn__effect_order;

void tn__effect_order_init(tn__effect_order *o, const tn_plan *plan);
void tn__effect_order_fini(tn__effect_order *o);
/* The next instruction of the tape; then o->waits are those that it comes after, n_waits of them. False without
 * memory. */
bool tn__effect_order_add(tn__effect_order *o, uint32_t instr);

#endif
