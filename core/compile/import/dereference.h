/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that read a variable: for ops that take a value but are given a reference. The variable is read at the time at
 * which the op could run. */
#ifndef TN_CORE_COMPILE_IMPORT_DEREFERENCE_H
#define TN_CORE_COMPILE_IMPORT_DEREFERENCE_H

#include <core/compile/ir/ir.h>

/* Adds a node at the end of the order that reads the variable to which inputs[0] refers, once all inputs are available.
 * The kernel ignores the other inputs. */
tn_status tn__ir_add_dereference(tn__ir *ir, const uint32_t *inputs, uint32_t n, uint32_t *node);

#endif
