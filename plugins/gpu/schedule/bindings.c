/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel arguments that a step sets again, since their memory differs from step to step. */
#include "device/base.h"
#include "node/built.h"
#include "schedule/schedule.h"

static tn_status add_binding(gpu_schedule *s, gpu_binding b, tn_error *err)
{
  if (s->io.n_bindings == s->io.bindings_room) {
    uint32_t room = s->io.bindings_room * 2 + 8;
    gpu_binding *more = gpu_new(room, sizeof *more);
    if (more == NULL) return gpu_no_memory(err, "a schedule");
    if (s->io.n_bindings > 0) memcpy(more, s->io.bindings, s->io.n_bindings * sizeof *more);
    tn_free(s->io.bindings);
    s->io.bindings = more;
    s->io.bindings_room = room;
  }
  s->io.bindings[s->io.n_bindings++] = b;
  return TN_OK;
}

/* Arguments that differ from step to step, for all instances. */
tn_status gpu_bindings(gpu_schedule *s, tn_error *err)
{
  tn_status st = TN_OK;
  for (uint32_t c = 0; c < s->n_calls; c++) {
    const gpu_launch *l = s->calls[c].launch;
    const gpu_item *item = &s->items[s->calls[c].item];
    cl_uint arg = 0;
    for (size_t a = 0; st == TN_OK && gpu_has_kernel(l) && a < l->n_args; a++) {
      const gpu_arg *g = &l->args[a];
      const uint32_t *values = NULL;
      if (g->kind == GPU_ARG_INPUT) values = item->in.inputs;
      if (g->kind == GPU_ARG_OUTPUT) values = item->in.outputs;
      uint32_t dynamic =
          values == NULL ? GPU_NONE : gpu_place_at(s, item->site, s->slots[values[g->index]].root)->dynamic;
      if (dynamic != GPU_NONE) st = add_binding(s, (gpu_binding){ c, arg, dynamic }, err);
      arg += g->kind == GPU_ARG_VALUE || g->kind == GPU_ARG_LOCAL ? 1 : 2;
    }
  }
  return st;
}
