/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `tenon plan` share. */
#ifndef TENON_TOOLS_PLAN_PLAN_H
#define TENON_TOOLS_PLAN_PLAN_H

#include <tools/tool.h>

/* What is shown of a plan. */
typedef struct plan_view {
  const char *model;            /* for the headline */
  const tn_plan_report *before; /* the same at level 0; NULL when it could not be had */
  const tn_plan_report *after;
  const char *const *fetches, *const *targets;
  size_t n_fetches, n_targets;
  bool all; /* every instruction */
} plan_view;

void plan_print_text(const plan_view *view);
int plan_print_json(const plan_view *view); /* an exit status */
void plan_print_passes(void);

/* DOT text (plan_picture.c): both graphs, side by side, each folded to about `boxes` boxes; 0: nothing is folded. */
void plan_picture(const plan_view *view, uint32_t boxes, tool_text *out);

/* The op of an instruction; "(loop)" of one that stands for a whole loop and has the name of an Enter of it. */
const char *plan_op(const tn_operation *op);

/* "image", "%3", "%3:1": a feed or a constant by its name, what is computed by its instruction. */
void plan_operand_name(const tn_plan_report *report, uint32_t value, tool_text *out);

#endif
