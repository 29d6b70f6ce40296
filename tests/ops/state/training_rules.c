/* SPDX-License-Identifier: Apache-2.0 */
/* Training rules give the same bits with vectors of any width. */
#include <ops/state/variable/optimiser.h>

#include "conformance/support/tap.h"

#define MOST 75
#define WIDEST 16

static void fill(tn_dtype dtype, void *data, size_t n)
{
  static uint32_t seed = 7;
  size_t parts = dtype == TN_COMPLEX64 || dtype == TN_COMPLEX128 ? 2 * n : n;
  for (size_t i = 0; i < parts; i++) {
    seed = seed * 1664525u + 1013904223u;
    double x = (double)(seed >> 12) / (1 << 20) - 0.25;
    if (seed >> 28 == 0) x = 0;
    if (dtype == TN_DOUBLE || dtype == TN_COMPLEX128) ((double *)data)[i] = x;
    else ((float *)data)[i] = (float)x;
  }
}

/* Values of half and bfloat16 are passed as floats. */
static void check_rule(const char *name, const tn__training_rule *rule, uint32_t n_slots)
{
  static _Alignas(64) char first[TN__TRAINING_SLOTS][MOST * WIDEST], second[TN__TRAINING_SLOTS][MOST * WIDEST];
  _Alignas(16) char grad[MOST * WIDEST], constants[TN__TRAINING_CONSTANTS * WIDEST];
  void *a[] = { first[0], first[1], first[2], first[3] }, *b[] = { second[0], second[1], second[2], second[3] };
  bool is_short = rule->dtype == TN_HALF || rule->dtype == TN_BFLOAT16;
  size_t size = is_short ? 4 : tn_dtype_size(rule->dtype);
  for (int kind = 1; kind < TN__VECTORS; kind++)
    for (int64_t n = 0; n <= MOST; n += is_short ? TN__TRAINING_SHORTS : 1) {
      fill(rule->dtype, grad, MOST);
      fill(rule->dtype, constants, TN__TRAINING_CONSTANTS);
      for (uint32_t k = 0; k < n_slots; k++) {
        fill(rule->dtype, first[k], MOST);
        memcpy(second[k], first[k], sizeof first[k]);
      }
      rule->fn[TN__BASELINE](a, grad, constants, n);
      rule->fn[kind](b, grad, constants, n);
      for (uint32_t k = 0; k < n_slots; k++)
        CHECK_MSG(memcmp(first[k], second[k], MOST * size) == 0, "%s: vectors of kind %d, %d elements, slot %u: %s",
                  name, kind, (int)n, k, tn_dtype_name(rule->dtype));
    }
}

static void training_rules__of_all_vectors_give_the_same_bits(void)
{
  int most = tn__vectors_limit(TN__VECTORS);
  if (most == TN__BASELINE) TAP_SKIP("the processor has no wide vectors");
  for (size_t r = 0; r < tn__n_training_rows; r++)
    for (int rows = 0; rows < 2; rows++)
      for (int flag = 0; flag < 2; flag++) {
        const tn__training_row *row = &tn__training_rows[r];
        const tn__training_rules *rules = rows ? &row->of_rows[flag] : &row->rules[flag];
        for (size_t k = 0; k < rules->n; k++)
          if (most == TN__AVX512 || rules->of[k].fn[TN__AVX512] == rules->of[k].fn[TN__AVX2])
            check_rule(row->name, &rules->of[k], row->n_slots);
      }
}

TAP_MAIN(TAP_TEST(training_rules__of_all_vectors_give_the_same_bits))
