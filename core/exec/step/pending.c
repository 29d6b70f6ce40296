/* SPDX-License-Identifier: Apache-2.0 */
/* The state that a workspace keeps for a segment that may wait: its call, its loop, the functions
 * that it called. core/exec/loop.c and call.c set the functions that free theirs, so that this
 * file, and with it workspace.c, depends on neither. */
#include <core/exec/step/pending.h>
#include <core/exec/step/workspace.h>

tn__pending *tn__pending_get(tn__run *run, uint32_t number)
{
  tn__pending **place = &run->workspace->pending[number];
  if (*place == NULL) *place = tn__zalloc(sizeof **place);
  if (*place == NULL) tn__no_memory(run->err, "call that may wait", sizeof **place);
  return *place;
}

void tn__pending_destroy(tn__pending *p)
{
  if (p == NULL) return;
  if (p->loop != NULL) p->free_loop(p->loop);
  if (p->calling != NULL) p->free_calling(p->calling);
  tn__free(p, sizeof *p);
}
