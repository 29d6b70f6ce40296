/* SPDX-License-Identifier: Apache-2.0 */
/* Loops whose condition and body are functions, as loops of the plan: for inline.c only. */
#ifndef TN_CORE_COMPILE_IMPORT_LOOP_CALL_H
#define TN_CORE_COMPILE_IMPORT_LOOP_CALL_H

#include <core/compile/import/inline.h>

/* Adds the loop as one node; *done false: it stays a call. */
tn_status tn__prune_loop_call(tn__pruner *c, struct tn__scope *scope, const uint32_t *args, size_t n, bool *done);

/* Adds the body of function k of scope->op: the values of its outputs are put into outputs; *done false: it cannot be,
 * and nothing has changed (inline.c). `around`: what else the plan is compiled with. */
tn_status tn__inline_body(tn__ir *ir, struct tn__scope *scope, const tn__signature_spec *around, uint32_t k,
                          const uint32_t *args, size_t n_args, uint32_t *outputs, size_t n_outputs, bool *done);

#endif
