/* SPDX-License-Identifier: Apache-2.0 */
/* While a schedule is made: which actions have ended when another one begins.
 *
 * The calling thread enqueues actions in their order in the schedule. A lane of a device runs its actions one
 * after the other, concurrently with other lanes unless they wait for each other. The clock of an action
 * contains, for each lane, the last action that is certain to have ended when it begins. One comparison then
 * decides whether memory may be reused, and whether an action has to wait for an event. */
#ifndef GPU_SCHEDULE_ORDER_H
#define GPU_SCHEDULE_ORDER_H

#include "schedule/schedule.h"

/* Makes the lanes for the sites in use. Free with gpu_order_destroy. */
tn_status gpu_order_create(gpu_schedule *s, tn_error *err);
void gpu_order_destroy(gpu_order *o); /* NULL allowed */

/* sequence.c: determines the order of the items, once sites and lanes are known. */
tn_status gpu_sequence(gpu_schedule *s, tn_error *err);

/* Begins the next action, in this lane. The functions below refer to it. */
tn_status gpu_order_begin(gpu_order *o, uint8_t what, uint32_t id, uint32_t lane, tn_error *err);
tn_status gpu_order_after(gpu_order *o, uint32_t action, tn_error *err); /* it waits for this one; GPU_NONE: none */
void gpu_order_known(gpu_order *o, uint32_t action); /* the calling thread waited for this one */
void gpu_order_fence(gpu_order *o, uint32_t action); /* the next actions in other lanes of its site wait for it */
/* No action is added after this. Action number n_actions means the end of the step. */
tn_status gpu_order_end(gpu_order *o, tn_error *err);

/* Memories: host memory of a slot, and that of its place on a site. */
uint32_t gpu_order_host(const gpu_order *o, uint32_t slot);
uint32_t gpu_order_device(const gpu_order *o, uint32_t site, uint32_t slot);
void gpu_order_use(gpu_order *o, uint32_t memory); /* the action reads or writes it */
tn_status gpu_order_after_uses(gpu_order *o, uint32_t memory, tn_error *err); /* it will write there */
/* An action that uses the memory and may not have ended as far as the calling thread knows; GPU_NONE if there
 * is none. */
uint32_t gpu_order_unknown_use(const gpu_order *o, uint32_t memory);
void gpu_order_keep(gpu_order *o, uint32_t memory); /* in use until the end of the step */
bool gpu_order_over(const gpu_order *o, uint32_t memory, uint32_t action); /* whether all uses end before the action */

/* The lane in which item i, whose site is known, may begin first. */
uint32_t gpu_order_choose(const gpu_order *o, uint32_t i);
void gpu_order_takes(gpu_order *o, double ns); /* the action's estimated time, for gpu_order_choose */

#endif
