/* SPDX-License-Identifier: Apache-2.0 */
/* A plan with concrete shapes, as a runtime sees it: for the rest of the kit. */
#ifndef TN_CORE_KIT_LAYOUT_H
#define TN_CORE_KIT_LAYOUT_H

#include <core/layout/layout.h>

const tn_plan *tn__kit_layout_plan(const tn_plan_layout *layout);

/* One layout of its plan, without the others; both are borrowed. NULL without memory. */
tn_plan_layout *tn__kit_layout_alone(tn_plan *plan, tn__layout *layout);
void tn__kit_layout_alone_free(tn_plan_layout *layout); /* NULL allowed */
uint32_t *tn__kit_layout_ids(tn_plan_layout *layout, size_t n); /* freed with it; NULL without memory */

#endif
