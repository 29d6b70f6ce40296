/* SPDX-License-Identifier: Apache-2.0 */
/* Where an op takes a variable's value and is given a reference to it, the plan reads the variable when the op could
 * run. */
#ifndef TN_CORE_COMPILE_IMPORT_DEREFERENCE_H
#define TN_CORE_COMPILE_IMPORT_DEREFERENCE_H

#include <core/compile/ir/ir.h>

/* A node at the end that reads what inputs[0] is a reference to, when the other inputs are there. */
tn_status tn__ir_add_dereference(tn__ir *ir, const uint32_t *inputs, uint32_t n, uint32_t *node);

#endif
