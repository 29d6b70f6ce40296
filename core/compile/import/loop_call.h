/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces calls whose condition and body are functions (While) by loops of the plan. For inline.c only. */
#ifndef TN_CORE_COMPILE_IMPORT_LOOP_CALL_H
#define TN_CORE_COMPILE_IMPORT_LOOP_CALL_H

#include <core/compile/import/inline.h>

/* Adds the loop as one node. If *done is false, it remains a call. The caller initialises *done to false. */
tn_status tn__prune_loop_call(tn__pruner *c, struct tn__scope *scope, const uint32_t *args, size_t n, bool *done);

/* Adds the body of function k of scope->op and stores the values of its outputs in `outputs` (inline.c). If *done is
 * false, the function cannot be inlined and the ir has no new live nodes. `around` supplies the settings of the
 * compilation. */
tn_status tn__inline_body(tn__ir *ir, struct tn__scope *scope, const tn__signature_spec *around, uint32_t k,
                          const uint32_t *args, size_t n_args, uint32_t *outputs, size_t n_outputs, bool *done);

#endif
