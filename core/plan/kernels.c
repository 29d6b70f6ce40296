/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of a plan's instructions. They are made with the plan. If a plan that seemed cheap has used as much time
 * as it takes to load faster kernels, these are loaded and the lists are made again. A program that runs a graph twice
 * thus never loads a library that it hardly uses, and one that runs it for an hour loads it once.
 *
 * A list of kernels is immutable; a new list replaces it. Layouts keep pointers into old lists, which stay in the
 * plan's arena and share their states with the new ones. */
#include <core/plan/plan.h>
#include <core/plan/states.h>

#define MAX_KERNELS 8 /* maximum kernels of a node; with more, nearly all of them would decline most shapes */
/* Estimated time of steps after which faster kernels are loaded, in ns. A plugin may save a third of it, which is about
 * the time that loading the plugin and creating its first kernels takes. */
#define LOADING_COST_NS 40000000

static tn_status create_state(const tn_operation *op, tn__plan_kernel *kernel, tn_error *err)
{
  if (kernel->def->create == NULL) return TN_OK;
  tn__plugin_call calling = tn__kernel_call(kernel, op, "create of a kernel");
  tn__plugin_call_enter(&calling);
  tn_status st = kernel->def->create(op, &kernel->state, err);
  tn__plugin_call_leave(&calling);
  if (st == TN_OK) {
    tn__error_reset(err); /* the kernel may have set an error and succeeded nevertheless */
    return TN_OK;
  }
  kernel->state = NULL;
  return tn__kernel_status(op, kernel->def, "create", st, err);
}

/* Creates the kernel's state. The state of a stateful node belongs to the session and is created once (S-EXE-20). */
static tn_status need_state(const tn_plan *plan, const tn_operation *op, tn__plan_kernel *kernel, tn_error *err)
{
  kernel->kept = tn__kernel_states_want(plan->settings.states, op, kernel->def);
  if (!kernel->kept) return create_state(op, kernel, err);
  if (tn__kernel_states_find(plan->settings.states, op, kernel->def, &kernel->state)) return TN_OK;
  tn_status st = create_state(op, kernel, err);
  if (st == TN_OK && !tn__kernel_states_keep(plan->settings.states, op, kernel->def, &kernel->state))
    st = tn__no_memory(err, "state of a kernel", 0);
  return st;
}

static const tn__plan_kernel *find(const tn__plan_kernels *list, const tn_kernel_def *def)
{
  for (uint32_t i = 0; list != NULL && i < list->n; i++)
    if (list->items[i].def == def) return &list->items[i];
  return NULL;
}

/* Destroys the states of a list that neither the session nor the old list owns. */
static void destroy_new(const tn__plan_kernels *list, const tn__plan_kernels *old)
{
  for (uint32_t i = 0; i < list->n; i++) {
    const tn__plan_kernel *k = &list->items[i];
    if (k->kept || k->state == NULL || k->def->destroy == NULL) continue;
    if (find(old, k->def) == NULL) k->def->destroy(k->state);
  }
}

/* Leaves the library's own kernels. */
static tn_status leave_own(const tn_operation *op, const tn_kernel_def **defs, size_t *n, tn_error *err)
{
  size_t own = 0;
  for (size_t i = 0; i < *n; i++)
    if (tn__kernel_guest(defs[i]) == NULL) defs[own++] = defs[i];
  if (own == 0 && *n > 0)
    return tn_error_set(err, TN_UNIMPLEMENTED,
                        "node '%s' (%s): its only kernels are those of plugins ('%s'), which the option reproducible "
                        "excludes",
                        tn_operation_name(op), tn_operation_type(op), defs[0]->name);
  *n = own;
  return TN_OK;
}

/* Lists all kernels that fit, best first. Those in `old` keep their states. A kernel that declines the node is left
 * out, unless it is the last. */
tn_status tn__plan_kernels_create(tn_plan *plan, const tn_operation *op, const tn__plan_kernels *old,
                                const tn__plan_kernels **out, tn_error *err)
{
  const tn_kernel_def *defs[MAX_KERNELS];
  size_t n;
  *out = NULL;
  tn_status st = tn__kernels_find(op, TN__HOST_DEVICE, defs, MAX_KERNELS, &n, err);
  if (st == TN_OK && plan->settings.reproducible) st = leave_own(op, defs, &n, err);
  if (st != TN_OK) return st;
  tn__plan_kernels *list = tn__arena_zalloc(&plan->arena, sizeof *list + n * sizeof *list->items);
  if (list == NULL) return tn__no_memory(err, "plan", 0);
  for (size_t i = 0; i < n; i++) {
    const tn__plan_kernel *there = find(old, defs[i]);
    tn__plan_kernel *kernel = &list->items[list->n];
    *kernel = there != NULL ? *there : (tn__plan_kernel){ .def = defs[i], .guest = tn__kernel_guest(defs[i]) };
    st = there != NULL ? TN_OK : need_state(plan, op, kernel, err);
    if (st == TN_UNIMPLEMENTED && i + 1 < n) {
      tn__error_reset(err);
      continue;
    }
    if (st != TN_OK) {
      destroy_new(list, old);
      return st;
    }
    list->n++;
  }
  *out = list;
  return TN_OK;
}

tn_status tn__plan_kernels_one(tn_plan *plan, const tn_kernel_def *def, const tn__plan_kernels **out, tn_error *err)
{
  *out = NULL;
  if (def == NULL) return tn_error_set(err, TN_INTERNAL, "the library has no kernel that reads references");
  tn__plan_kernels *list = tn__arena_zalloc(&plan->arena, sizeof *list + sizeof *list->items);
  *out = list;
  if (list == NULL) return tn__no_memory(err, "plan", 0);
  list->n = 1;
  list->items[0].def = def;
  return TN_OK;
}

void tn__plan_kernels_destroy(const tn__plan_kernels *list)
{
  if (list != NULL) destroy_new(list, NULL);
}

/* ---- faster kernels ---- */

/* Requests plugins with kernels for the plan's ops. False if memory is exhausted. */
static bool want(tn_plan *plan)
{
  const char **ops = tn__alloc_array((size_t)plan->n_instrs + 1, sizeof *ops);
  if (ops == NULL) return false;
  for (uint32_t i = 0; i < plan->n_instrs; i++) ops[i] = tn_operation_type(plan->instrs[i].op);
  plan->upgrade.want_kernels(ops, plan->n_instrs, TN__HOST_DEVICE);
  tn__free(ops, ((size_t)plan->n_instrs + 1) * sizeof *ops);
  return true;
}

/* Whether a new list can replace the old one. When the plan is freed, states are destroyed by its last list, so that
 * must have all kernels of the old one. */
static bool holds_all(const tn__plan_kernels *list, const tn__plan_kernels *old)
{
  for (uint32_t i = 0; i < old->n; i++)
    if (find(list, old->items[i].def) == NULL) return false;
  return list->n > old->n;
}

/* Makes the lists again. A node whose list cannot be made keeps its old one. */
static void upgrade(tn_plan *plan)
{
  bool changed = false;
  if (!want(plan)) return;
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    tn__plan_instr *instr = &plan->instrs[i];
    const tn__plan_kernels *old = tn__instr_kernels(instr), *list;
    tn_error why = TN_ERROR_INIT;
    if (old != NULL && tn__plan_kernels_create(plan, instr->op, old, &list, &why) == TN_OK) {
      bool better = holds_all(list, old);
      if (better) atomic_store_explicit(&instr->kernels, list, memory_order_release);
      else destroy_new(list, old);
      changed |= better;
    }
    tn_error_clear(&why);
  }
  if (changed) plan->caches.layouts->drop(plan);
  tn_log(TN_LOG_DEBUG, "a plan of %u instructions %s", plan->n_instrs,
         changed ? "takes faster kernels from now on" : "has no faster kernels");
}

void tn__plan_note_cost(tn_plan *plan, double ns)
{
  if (ns < 1) return;
  int64_t spent = atomic_fetch_add_explicit(&plan->upgrade.spent_ns, (int64_t)ns, memory_order_relaxed);
  if (spent + ns < LOADING_COST_NS) return;
  if (atomic_exchange_explicit(&plan->upgrade.may, false, memory_order_acq_rel)) upgrade(plan);
}
