/* SPDX-License-Identifier: Apache-2.0 */
/* A plan with concrete shapes, as a runtime sees it: the functions for other files of the kit. */
#ifndef TN_CORE_KIT_LAYOUT_H
#define TN_CORE_KIT_LAYOUT_H

#include <core/layout/layout.h>

/* Borrowed. */
const tn_plan *tn__kit_layout_plan(const tn_plan_layout *layout);

/* A plan layout with a single segment's layout, without the others. Plan and layout are borrowed.
 * NULL without memory. */
tn_plan_layout *tn__kit_layout_alone(tn_plan *plan, tn__layout *layout);
void tn__kit_layout_alone_destroy(tn_plan_layout *layout); /* NULL allowed */
/* An array for n numbers, freed with the layout; NULL without memory. */
uint32_t *tn__kit_layout_ids(tn_plan_layout *layout, size_t n);

#endif
