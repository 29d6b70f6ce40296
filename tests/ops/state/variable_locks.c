/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that change several variables at once, listed in any order, from several threads. */
#include <ops/state/variable/variable.h>
#include <pthread.h>

#include "conformance/support/session_kit.h"

enum { TURNS = 200 };

typedef struct pair {
  tn_resource *resources[3];
  uint32_t order[3];
} pair;

static tn_resource *new_variable(const char *name, float value)
{
  void *object;
  tn_resource *r = NULL;
  tn__variable_wish wish = { name, TN_FLOAT, 0, NULL, true };
  REQUIRE_OK(tn__variable_create(&wish, &object, NULL), NULL);
  if (value >= 0) tn__variable_put(object, ts_scalar(value));
  REQUIRE_OK(tn_resource_create(&tn__variable_class, name, object, &r, NULL), NULL);
  return r;
}

/* Inputs 0, 1, 2 are handles of these resources. */
static tn_status add_to_all(tn_resource *const *resources, tn_error *err)
{
  static const uint32_t inputs[] = { 0, 1, 2 };
  tn_handle *handles[3];
  tn_view views[3];
  tn_view *list[3];
  tn__variable *vars[3];
  tn_tensor *tensors[3];
  for (int k = 0; k < 3; k++) {
    handles[k] = tn_resource_handle(resources[k]);
    views[k] = (tn_view){ .data = &handles[k], .count = 1, .dtype = TN_RESOURCE };
    list[k] = &views[k];
  }
  tn_kernel_ctx ctx = { .struct_size = sizeof ctx, .inputs = list, .n_inputs = 3, .err = err };
  tn_status st = tn__variables_open(&ctx, inputs, 3, vars, tensors);
  if (st != TN_OK) return st;
  for (int k = 0; k < 3; k++) *(float *)tn_tensor_data(tensors[k]) += 1;
  tn__variables_close(vars, tensors, 3);
  return TN_OK;
}

static void *all_adder(void *arg)
{
  tn_error err = TN_ERROR_INIT;
  for (int i = 0; i < TURNS; i++) CHECK_INT(add_to_all(arg, &err), TN_OK);
  tn_error_clear(&err);
  return NULL;
}

static void variable_locks__several_variables_in_any_order(void)
{
  tn_resource *a = new_variable("a", 0), *b = new_variable("b", 0), *empty = new_variable("empty", -1);
  tn_resource *ab[] = { a, b, a }, *ba[] = { b, a, a }, *bad[] = { a, empty, b };
  pthread_t threads[2];
  tn_error err = TN_ERROR_INIT;
  pthread_create(&threads[0], NULL, all_adder, ab);
  pthread_create(&threads[1], NULL, all_adder, ba);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  tn_tensor *held;
  REQUIRE_OK(tn__variable_read(tn_resource_object(a), &held, &err), &err);
  CHECK_DOUBLE(ts_float(held), 4 * TURNS, 0);
  CHECK_INT(add_to_all(bad, &err), TN_FAILED_PRECONDITION);
  CHECK_CONTAINS(tn_error_message(&err), "variable 'empty'");
  CHECK_OK(add_to_all(ab, &err), &err); /* no lock is left; values held by readers are copied */
  CHECK_DOUBLE(ts_float(held), 4 * TURNS, 0);
  tn_tensor_unref(held);
  REQUIRE_OK(tn__variable_read(tn_resource_object(a), &held, &err), &err);
  CHECK_DOUBLE(ts_float(held), 4 * TURNS + 2, 0);
  tn_tensor_unref(held);
  tn_error_clear(&err);
  tn_resource_unref(a);
  tn_resource_unref(b);
  tn_resource_unref(empty);
}

TAP_MAIN(TAP_TEST(variable_locks__several_variables_in_any_order))
