/* SPDX-License-Identifier: Apache-2.0 */
/* Which passes there are, and their order. */
#include <core/plan/passes.h>

static const struct pass {
  const char *name;
  tn__pass_fn run;
} passes[] = {
  { "identity", tn__pass_identity },
};

tn_status tn__passes_run(tn__ir *ir)
{
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < sizeof passes / sizeof *passes; i++) {
    size_t changes = 0;
    st = passes[i].run(ir, &changes);
    if (st == TN_OK && changes > 0) tn__ir_sweep(ir);
  }
  return st;
}
