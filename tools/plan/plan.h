/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of `tenon plan`. */
#ifndef TENON_TOOLS_PLAN_PLAN_H
#define TENON_TOOLS_PLAN_PLAN_H

#include <tools/tool.h>

/* A plan to be shown. */
typedef struct plan_view {
  const char *model;            /* name for the headline */
  const tn_plan_report *before; /* the plan at level 0; NULL if it could not be made */
  const tn_plan_report *after;
  const char *const *fetches, *const *targets;
  size_t n_fetches, n_targets;
  bool all; /* show every instruction */
} plan_view;

void plan_print_text(const plan_view *view);
int plan_print_json(const plan_view *view); /* returns an exit status */
void plan_print_passes(void);

/* Appends DOT text (picture.c): both graphs side by side, each folded to about `boxes` boxes; 0: unfolded. */
void plan_picture(const plan_view *view, uint32_t boxes, tool_text *out);

/* Returns the op of an instruction; "(loop)" for one that runs a whole loop and is named after one of its Enters. */
const char *plan_op(const tn_operation *op);

#endif
