/* SPDX-License-Identifier: Apache-2.0 */
/* The order of effects, by the last instruction that touched each resource. */
#include <core/layout/effect_order.h>

#include <core/graph/graph_internal.h>
#include <string.h>

void tn__effect_order_init(tn__effect_order *o, const tn_plan *plan)
{
  *o = (tn__effect_order){ .plan = plan, .barrier = TN__NONE };
  tn__map_init(&o->by_key);
  tn__arena_init(&o->keys, 512);
}

void tn__effect_order_fini(tn__effect_order *o)
{
  tn__map_fini(&o->by_key);
  tn__arena_fini(&o->keys);
  tn__free(o->last, o->last_room * sizeof *o->last);
  tn__free(o->touched, o->touched_room * sizeof *o->touched);
  tn__free(o->waits, o->wait_room * sizeof *o->waits);
}

/* ---- identifying resources ---- */

static bool is_resource(const tn_plan *plan, uint32_t value) { return plan->values[value].dtype == TN_RESOURCE; }

/* The number of inputs that are resources; *first is the value of the first one. */
static uint32_t n_resources(const tn_plan *plan, const tn__plan_instr *instr, uint32_t *first)
{
  uint32_t n = 0;
  for (uint32_t k = instr->n_inputs; k-- > 0;) {
    if (!is_resource(plan, tn__instr_inputs(plan, instr)[k])) continue;
    *first = tn__instr_inputs(plan, instr)[k];
    n++;
  }
  return n;
}

/* The operation that names the resource of a handle; NULL if it is unknown. Looks through identities, and through ops
 * that take a reference and return one: it is the same reference. */
static const tn_operation *maker_of(const tn_plan *plan, uint32_t value)
{
  for (;;) {
    const tn__plan_value *v = &plan->values[value];
    if (v->kind != TN_VALUE_COMPUTED) return NULL;
    const tn__plan_instr *instr = &plan->instrs[v->producer];
    if (!tn__operation_is_own(instr->op)) return NULL;
    if (instr->n_inputs == 0) return instr->op;
    bool forwards = (instr->traits & TN_TRAIT_IDENTITY) != 0 && instr->n_inputs == 1;
    bool by_reference = instr->n_inputs == tn_operation_n_inputs(instr->op) && v->output.op == instr->op &&
                        tn__dtype_is_ref(tn_operation_output_dtype(instr->op, (size_t)v->output.index));
    if ((!forwards && !by_reference) || n_resources(plan, instr, &value) != 1) return NULL;
  }
}

/* A string attribute; false if the operation has no such attribute. */
static bool text_of(const tn_operation *op, const char *name, const char **text, size_t *n)
{
  *text = "";
  *n = 0;
  return tn_operation_attr_kind(op, name) == TN_ATTR_STRING &&
         tn_operation_attr_string(op, name, text, n, NULL) == TN_OK;
}

/* The key of the resource that an operation names: container and shared name, in o->keys. NULL with *size 0 if it has
 * no such attributes; NULL with a size if memory is exhausted. Without a shared name, most ops use the name of the
 * node; all VarHandleOps of a container share one resource. */
static char *key_of(tn__effect_order *o, const tn_operation *op, size_t *size)
{
  const char *container, *name;
  size_t n_container, n_name;
  *size = 0;
  if (!text_of(op, "container", &container, &n_container) || !text_of(op, "shared_name", &name, &n_name)) return NULL;
  if (n_name == 0 && strcmp(tn_operation_type(op), "VarHandleOp") != 0) {
    name = tn__operation_own_name(op);
    n_name = strlen(name);
  }
  char *key = tn__arena_alloc(&o->keys, n_container + n_name + 1);
  *size = n_container + n_name + 1;
  if (key == NULL) return NULL;
  if (n_container > 0) memcpy(key, container, n_container);
  key[n_container] = 0;
  if (n_name > 0) memcpy(key + n_container + 1, name, n_name);
  return key;
}

/* Stores the number of the resource that op names, or TN__NONE if it names none. False if memory is exhausted. */
static bool find_resource(tn__effect_order *o, const tn_operation *op, uint32_t *resource)
{
  size_t size;
  *resource = TN__NONE;
  const char *key = op == NULL ? NULL : key_of(o, op, &size);
  if (key == NULL) return op == NULL || size == 0;
  uintptr_t at = (uintptr_t)tn__map_get(&o->by_key, key, size);
  if (at == 0) {
    if (!tn__grow((void **)&o->last, &o->last_room, o->n_last + (size_t)1, sizeof *o->last)) return false;
    o->last[o->n_last] = TN__NONE;
    at = ++o->n_last;
    if (!tn__map_put(&o->by_key, key, size, (void *)at, NULL)) return false;
  }
  *resource = (uint32_t)(at - 1);
  return true;
}

/* ---- the order ---- */

/* Adds an instruction to the waits. */
static bool wait_for(tn__effect_order *o, uint32_t instr)
{
  if (instr == TN__NONE) return true;
  if (!tn__grow((void **)&o->waits, &o->wait_room, o->n_waits + (size_t)1, sizeof *o->waits)) return false;
  o->waits[o->n_waits++] = instr;
  return true;
}

/* An effect on one resource waits for the previous effect on it, or else for the barrier. */
static bool touch(tn__effect_order *o, uint32_t resource, uint32_t instr)
{
  uint32_t before = o->last[resource];
  if (before == instr) return true;
  if (before == TN__NONE) {
    if (!tn__grow((void **)&o->touched, &o->touched_room, o->n_touched + (size_t)1, sizeof *o->touched)) return false;
    o->touched[o->n_touched++] = resource;
    before = o->barrier;
  }
  o->last[resource] = instr;
  return wait_for(o, before);
}

/* Makes the instruction a barrier. It waits for the last effects on all resources touched since the previous one. */
static bool make_barrier(tn__effect_order *o, uint32_t instr)
{
  bool ok = o->n_touched > 0 || wait_for(o, o->barrier);
  for (uint32_t i = 0; ok && i < o->n_touched; i++) {
    ok = wait_for(o, o->last[o->touched[i]]);
    o->last[o->touched[i]] = TN__NONE;
  }
  o->n_touched = 0;
  o->barrier = instr;
  return ok;
}

/* Traits of ops whose effects are not limited to the resources that they name. */
#define OF_MANY (TN_TRAIT_FUNCTION_CALL | TN_TRAIT_MAY_WAIT)

bool tn__effect_order_add(tn__effect_order *o, uint32_t i)
{
  const tn_plan *plan = o->plan;
  const tn__plan_instr *instr = &plan->instrs[i];
  uint32_t first, n = n_resources(plan, instr, &first), resource;
  bool known = tn__operation_is_own(instr->op) && (instr->traits & OF_MANY) == 0;
  o->n_waits = 0;
  if (n == 0 && (instr->traits & (TN_TRAIT_STATEFUL | TN_TRAIT_RANDOM)) == 0) return true;
  if (n == 0 && known && (instr->traits & TN_TRAIT_RANDOM) != 0) return true;
  if (n == 0 && known && instr->n_inputs == 0) {
    if (!find_resource(o, instr->op, &resource)) return false;
    return resource == TN__NONE ? make_barrier(o, i) : touch(o, resource, i);
  }
  bool ok = true;
  for (uint32_t k = 0; k < instr->n_inputs && known && ok; k++) {
    uint32_t value = tn__instr_inputs(plan, instr)[k];
    if (!is_resource(plan, value)) continue;
    ok = find_resource(o, maker_of(plan, value), &resource);
    known = resource != TN__NONE;
  }
  if (!ok) return false;
  if (!known || n == 0) return make_barrier(o, i);
  for (uint32_t k = 0; k < instr->n_inputs && ok; k++) {
    uint32_t value = tn__instr_inputs(plan, instr)[k];
    if (is_resource(plan, value)) ok = find_resource(o, maker_of(plan, value), &resource) && touch(o, resource, i);
  }
  return ok;
}
