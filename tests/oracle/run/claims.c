/* SPDX-License-Identifier: Apache-2.0 */
/* The claimed ops (tests/oracle/ops.txt): their cases must not be skipped. */
#include "tests/oracle/run/oracle.h"

#include <stdlib.h>
#include <string.h>

#include <tenon/op.h>

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Names are separated by blanks; '#' begins a comment that ends with its line. */
void oracle_claims_read(oracle_claims *claims, const char *path)
{
  oracle_bytes text;
  char why[500];
  if (!oracle_read_file(path, &text, why, sizeof(why))) oracle_usage_error("%s", why);
  size_t at = 0;
  while (at < text.size) {
    if (text.data[at] == '#') {
      while (at < text.size && text.data[at] != '\n') at++;
    } else if (strchr(" \t\r\n", text.data[at])) {
      at++;
    } else {
      size_t begin = at;
      while (at < text.size && !strchr(" \t\r\n#", text.data[at])) at++;
      claims->ops = oracle_grow(claims->ops, claims->n, &claims->room, sizeof(*claims->ops));
      claims->ops[claims->n++] = oracle_format("%.*s", (int)(at - begin), (char *)text.data + begin);
    }
  }
  free(text.data);
  if (claims->n) qsort(claims->ops, claims->n, sizeof(*claims->ops), by_name);
}

void oracle_claims_free(oracle_claims *claims)
{
  for (size_t i = 0; i < claims->n; i++) free(claims->ops[i]);
  free(claims->ops);
  memset(claims, 0, sizeof(*claims));
}

bool oracle_claimed(const oracle_claims *claims, const char *op)
{
  return claims->n && bsearch(&op, claims->ops, claims->n, sizeof(*claims->ops), by_name);
}

/* Ops that the executor implements by their traits need no kernel. */
#define WITHOUT_KERNEL                                                                                                \
  (TN_TRAIT_PLACEHOLDER | TN_TRAIT_CONSTANT | TN_TRAIT_IDENTITY | TN_TRAIT_RESHAPE | TN_TRAIT_NO_EFFECT |             \
   TN_TRAIT_SWITCH | TN_TRAIT_MERGE | TN_TRAIT_ENTER | TN_TRAIT_EXIT | TN_TRAIT_NEXT_ITERATION | TN_TRAIT_LOOP_COND | \
   TN_TRAIT_CONTROL_TRIGGER | TN_TRAIT_FUNCTION_CALL)

const char *oracle_op_missing(const char *op)
{
  const tn_op_schema *schema = tn_op_schema_find(op);
  if (!schema) return "is not registered";
  if (!tn_op_schema_kernel(schema, 0) && !(tn_op_schema_traits(schema) & WITHOUT_KERNEL)) return "has no kernel";
  return NULL;
}
