/* SPDX-License-Identifier: Apache-2.0 */
/* Reports how many functions import has inlined (import/inline.c). */
#include <core/compile/ir/passes.h>

tn_status tn__pass_inline(tn__ir *ir, size_t *changes)
{
  *changes += ir->made.n_inlined;
  return TN_OK;
}
