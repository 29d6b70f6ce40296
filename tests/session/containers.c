/* SPDX-License-Identifier: Apache-2.0 */
/* Containers: which sessions see which resources, before and after a reset, and when resources
 * end. */
#include <core/resource/container.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/support/oom.h"
#include "conformance/support/tap.h"

static atomic_int alive;

static void destroy_number(void *object)
{
  atomic_fetch_sub(&alive, 1);
  tn_free(object);
}

static const tn_resource_class number = { sizeof number, "Number", destroy_number };
static const tn_resource_class other = { sizeof other, "Other", destroy_number };

static tn_status make_number(void *user, void **object, tn_error *err)
{
  int *n = tn_alloc(sizeof *n);
  *object = n;
  if (n == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a number");
  *n = *(const int *)user;
  atomic_fetch_add(&alive, 1);
  return TN_OK;
}

/* The number of this name as seen by the view, created as `value` if there is none; -1 on
 * failure. */
static int number_in(tn__container_view *view, const char *container, const char *name, int value)
{
  tn__container *c;
  tn_resource *r;
  tn_error err = TN_ERROR_INIT;
  if (tn__container_view_get(view, container, &c, &err) != TN_OK) return -1;
  if (tn__container_obtain(c, &number, name, make_number, &value, &r, &err) != TN_OK) return -1;
  int n = *(int *)tn_resource_object(r);
  tn_resource_unref(r);
  return n;
}

static tn__container_view *new_view(tn__containers *set)
{
  tn__container_view *view;
  REQUIRE_OK(tn__container_view_create(set, &view, NULL), NULL);
  return view;
}

static void detach(tn__containers *set, const char *name)
{
  tn__container *old;
  CHECK_INT(tn__containers_detach(set, &name, name != NULL, &old, NULL), TN_OK);
  tn__containers_leave_all(old);
}

static void detach_all(tn__containers *set)
{
  tn__container *old;
  tn__containers_detach_all(set, &old);
  tn__containers_leave_all(old);
}

/* All containers at once: existing ones, ones that an old session looks up only afterwards, and
 * again. */
static void containers__are_all_detached(void) /* P-42 */
{
  enum { N = 100 };
  tn__containers *set = tn__containers_create();
  tn__container_view *old = new_view(set);
  char name[16];
  for (int i = 0; i < N; i++) {
    snprintf(name, sizeof name, "box%d", i);
    CHECK_INT(number_in(old, name, "v", i), i);
    CHECK(tn__containers_has(set, name));
  }
  detach_all(set);
  CHECK(!tn__containers_has(set, name));
  CHECK(tn__containers_has(set, NULL));
  tn__container_view *young = new_view(set);
  for (int i = 0; i < N; i++) {
    snprintf(name, sizeof name, "box%d", i);
    CHECK_INT(number_in(young, name, "v", -i), -i);
    CHECK_INT(number_in(old, name, "v", 7), i);
  }
  CHECK_INT(number_in(young, "late", "v", 1), 1);
  CHECK_INT(number_in(old, "late", "v", 2), 2); /* the first look-up by a session from before */
  CHECK_INT(number_in(young, "late", "v", 3), 1);
  detach(set, "late");
  detach_all(set);
  tn__container_view *last = new_view(set);
  CHECK_INT(number_in(last, "late", "v", 4), 4);
  CHECK_INT(number_in(last, NULL, "v", 5), 5);
  tn__container_view_destroy(old);
  tn__container_view_destroy(young);
  CHECK_INT(atomic_load(&alive), 2);
  tn__container_view_destroy(last);
  detach_all(set);
  CHECK_INT(atomic_load(&alive), 0);
  tn__containers_unref(set);
}

static void containers__are_shared_by_sessions_of_a_factory(void)
{
  /* S-RST-17, S-RST-18 */
  tn__containers *set = tn__containers_create(), *others = tn__containers_create();
  tn__container_view *first = new_view(set), *second = new_view(set), *foreign = new_view(others);
  CHECK_INT(number_in(first, NULL, "v", 1), 1);
  CHECK_INT(number_in(second, "", "v", 2), 1);
  CHECK_INT(number_in(second, TN_DEFAULT_CONTAINER, "v", 2), 1);
  CHECK_INT(number_in(second, "mine", "v", 3), 3);
  CHECK_INT(number_in(foreign, NULL, "v", 4), 4);
  tn__container_view_destroy(first);
  tn__container_view_destroy(second);
  second = new_view(set);
  CHECK_INT(number_in(second, NULL, "v", 5), 1); /* it outlives sessions */
  tn__container_view_destroy(second);
  tn__container_view_destroy(foreign);
  tn__containers_unref(set);
  tn__containers_unref(others);
  CHECK_INT(atomic_load(&alive), 0);
}

static void containers__of_an_isolated_session_end_with_it(void)
{
  /* S-RST-19 */
  tn__containers *set = tn__containers_create();
  tn__container_view *view = new_view(set);
  tn__containers_unref(set);
  CHECK_INT(number_in(view, NULL, "v", 1), 1);
  CHECK_INT(atomic_load(&alive), 1);
  tn__container_view_destroy(view);
  CHECK_INT(atomic_load(&alive), 0);
}

static void containers__of_later_sessions_are_new(void)
{
  /* S-RST-06, S-RST-20 */
  tn__containers *set = tn__containers_create();
  tn__container_view *old = new_view(set);
  CHECK_INT(number_in(old, NULL, "v", 1), 1);
  detach(set, NULL);
  tn__container_view *young = new_view(set);
  CHECK_INT(number_in(young, NULL, "v", 2), 2);
  CHECK_INT(number_in(old, NULL, "v", 3), 1); /* a running step sees its own generation */
  CHECK_INT(number_in(old, NULL, "w", 4), 4);
  CHECK_INT(number_in(young, NULL, "w", 5), 5);
  CHECK_INT(atomic_load(&alive), 4);
  tn__container_view_destroy(old); /* the last view of the old generation */
  CHECK_INT(atomic_load(&alive), 2);
  tn__container_view_destroy(young);
  tn__containers_unref(set);
  CHECK_INT(atomic_load(&alive), 0);
}

/* A container that an old session looks up only after the reset does not belong to the new
 * generation, either. */
static void containers__looked_up_late_by_an_old_session_are_its_own(void)
{
  tn__containers *set = tn__containers_create();
  tn__container_view *old = new_view(set);
  detach(set, "c");
  tn__container_view *young = new_view(set);
  CHECK_INT(number_in(young, "c", "v", 1), 1);
  CHECK_INT(number_in(old, "c", "v", 2), 2);
  CHECK_INT(number_in(young, "c", "v", 3), 1);
  tn__container_view_destroy(old);
  tn__container_view_destroy(young);
  tn__containers_unref(set);
  CHECK_INT(atomic_load(&alive), 0);
}

/* Sessions that are created and destroyed, each followed by a reset of another container. */
static void containers__that_are_reset_leave_no_names(void) /* S-RST-20 */
{
  tn__containers *set = tn__containers_create();
  uint64_t before = tn_test_live_blocks();
  for (int i = 0; i < 3; i++) {
    char name[] = { 'c', (char)('0' + i), 0 };
    tn__container_view *view = new_view(set);
    CHECK_INT(number_in(view, name, "v", i), i);
    tn__container_view_destroy(view);
    detach(set, name);
    if (i == 0) before = tn_test_live_blocks(); /* the table of names keeps its size */
    CHECK_INT(tn_test_live_blocks(), before);
  }
  tn__containers_unref(set);
  CHECK_INT(atomic_load(&alive), 0);
}

static void containers__that_are_not_listed_survive(void)
{
  /* S-RST-07, S-RST-08, S-RST-09, S-RST-11 */
  tn__containers *set = tn__containers_create();
  tn__container_view *old = new_view(set);
  number_in(old, NULL, "v", 1);
  number_in(old, "c", "v", 2);
  detach(set, "c");
  detach(set, "no such container");
  tn__container_view *young = new_view(set);
  CHECK_INT(number_in(young, NULL, "v", 3), 1);
  CHECK_INT(number_in(young, "c", "v", 4), 4);
  detach(set, NULL);
  tn__container_view *youngest = new_view(set);
  CHECK_INT(number_in(youngest, NULL, "v", 5), 5);
  CHECK_INT(number_in(youngest, "c", "v", 6), 4);
  tn__container_view_destroy(old);
  tn__container_view_destroy(young);
  tn__container_view_destroy(youngest);
  tn__containers_unref(set);
  CHECK_INT(atomic_load(&alive), 0);
}

static void containers__errors_name_types_and_missing_resources(void)
{
  /* S-RST-21 */
  tn__container *c;
  tn_resource *r;
  tn_error err = TN_ERROR_INIT;
  int one = 1;
  REQUIRE_OK(tn__container_create("c", &c, &err), &err);
  CHECK_STATUS(tn__container_lookup(c, &number, "v", &r, &err), TN_NOT_FOUND, &err);
  CHECK_STR(tn_error_message(&err), "container 'c' has no Number 'v'");
  CHECK_NULL(r);
  tn_error_clear(&err);
  REQUIRE_OK(tn__container_obtain(c, &number, "v", make_number, &one, &r, &err), &err);
  CHECK_STR(tn_resource_name(r), "v");
  CHECK(tn_resource_class_of(r) == &number);
  tn_resource_unref(r);
  CHECK_STATUS(tn__container_obtain(c, &other, "v", make_number, &one, &r, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STR(tn_error_message(&err), "'v' in container 'c' is of type Number, wanted Other");
  tn_error_clear(&err);
  REQUIRE_OK(tn__container_lookup(c, &number, "v", &r, &err), &err);
  CHECK(tn_resource_is_alive(r));
  CHECK(tn_handle_resource(tn_resource_handle(r)) == r);
  REQUIRE_OK(tn__container_remove(r, &err), &err);
  CHECK(!tn_resource_is_alive(r));
  CHECK_STATUS(tn__container_remove(r, &err), TN_NOT_FOUND, &err);
  CHECK_STR(tn_error_message(&err), "Number 'v' is not in a container");
  tn_error_clear(&err);
  CHECK_INT(atomic_load(&alive), 1); /* it stays valid for its holder */
  tn_resource_unref(r);
  CHECK_INT(atomic_load(&alive), 0);
  tn__container_leave(c);
}

/* A handle in a tensor that was kept. */
static void containers__handles_of_destroyed_ones_are_errors(void)
{
  tn__container *c;
  tn_resource *r;
  tn_error err = TN_ERROR_INIT;
  int one = 1;
  REQUIRE_OK(tn__container_create("c", &c, &err), &err);
  REQUIRE_OK(tn__container_obtain(c, &number, "v", make_number, &one, &r, &err), &err);
  tn_resource_unref(r);
  tn__container_ref(c);
  tn__container_leave(c);
  CHECK_INT(atomic_load(&alive), 0);
  CHECK_STATUS(tn__container_lookup(c, &number, "v", &r, &err), TN_FAILED_PRECONDITION, &err);
  tn_error_clear(&err);
  CHECK_STATUS(tn__container_obtain(c, &number, "v", make_number, &one, &r, &err), TN_FAILED_PRECONDITION, &err);
  tn_error_clear(&err);
  CHECK_INT(atomic_load(&alive), 0);
  tn__container_unref(c);
}

static void note_name(void *user, const char *name, size_t n)
{
  char *text = user;
  snprintf(text + strlen(text), 100 - strlen(text), "%s:%zu ", name, n);
}

static void containers__can_be_listed(void)
{
  /* S-RST-16 */
  tn__containers *set = tn__containers_create();
  tn__container_view *view = new_view(set);
  char text[100] = "";
  number_in(view, NULL, "v", 1);
  number_in(view, NULL, "w", 1);
  detach(set, "c");
  tn__containers_list(set, note_name, text);
  CHECK_STR(text, "localhost:2 ");
  tn__container_view_destroy(view);
  tn__containers_unref(set);
}

/* ---- from many threads ---- */

enum { ROUNDS = 300 };

static void *work(void *arg)
{
  tn__containers *set = arg;
  for (int i = 0; i < ROUNDS; i++) {
    tn__container_view *view;
    if (tn__container_view_create(set, &view, NULL) != TN_OK) return NULL;
    int v = number_in(view, NULL, "v", i);
    if (i % 7 == 0) detach(set, NULL);
    if (number_in(view, NULL, "v", -5) != v) atomic_fetch_add(&alive, 1000);
    tn__container_view_destroy(view);
  }
  return NULL;
}

static void containers__may_be_reset_by_threads(void)
{
  tn__containers *set = tn__containers_create();
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) REQUIRE_INT(pthread_create(&threads[i], NULL, work, set), 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  tn__containers_unref(set);
  CHECK_INT(atomic_load(&alive), 0);
}

static tn_status all_of_it(void *arg)
{
  (void)arg;
  tn__containers *set = tn__containers_create();
  if (set == NULL) return TN_RESOURCE_EXHAUSTED;
  tn__container_view *old = NULL, *young = NULL;
  tn__container *c;
  tn_resource *r;
  const char *names[] = { "c", "" };
  int one = 1;
  tn_status st = tn__container_view_create(set, &old, NULL);
  if (st == TN_OK) st = tn__container_view_get(old, "c", &c, NULL);
  if (st == TN_OK) st = tn__container_obtain(c, &number, "v", make_number, &one, &r, NULL);
  if (st == TN_OK) tn_resource_unref(r);
  tn__container *gone = NULL;
  if (st == TN_OK) st = tn__containers_detach(set, names, 2, &gone, NULL);
  tn__containers_leave_all(gone);
  if (st == TN_OK) st = tn__container_view_create(set, &young, NULL);
  if (st == TN_OK) st = tn__container_view_get(young, "c", &c, NULL);
  if (st == TN_OK) st = tn__container_view_get(old, NULL, &c, NULL);
  tn__container_view_destroy(old);
  tn__container_view_destroy(young);
  tn__containers_unref(set);
  CHECK_INT(atomic_load(&alive), 0);
  return st;
}

static void containers__survive_lack_of_memory(void) { tn_test_oom_sweep(all_of_it, NULL); }

/* A weak reference keeps nothing alive, and detects that the resource was destroyed. */
static void containers__may_be_referenced_weakly(void)
{
  tn__container *c;
  tn_resource *r;
  int value = 4;
  REQUIRE_OK(tn__container_create("c", &c, NULL), NULL);
  REQUIRE_OK(tn__container_obtain(c, &number, "n", make_number, &value, &r, NULL), NULL);
  tn_resource *remembered = tn__resource_remember(r), *again = tn__resource_remember(r);
  tn_resource_unref(r);
  CHECK(tn__resource_hold_again(remembered));
  CHECK_INT(tn__container_remove(remembered, NULL), TN_OK);
  CHECK_INT(atomic_load(&alive), 1);
  CHECK(!tn_resource_is_alive(remembered));
  tn_resource_unref(remembered);
  CHECK_INT(atomic_load(&alive), 0);
  CHECK(!tn__resource_hold_again(remembered));
  CHECK(!tn_resource_is_alive(again) && strcmp(tn_resource_name(again), "n") == 0);
  tn__resource_forget(remembered);
  tn__resource_forget(again);
  tn__resource_forget(NULL);
  tn__container_leave(c);
}

TAP_MAIN(
  TAP_TEST(containers__may_be_referenced_weakly),
  TAP_TEST(containers__are_all_detached),
  TAP_TEST(containers__are_shared_by_sessions_of_a_factory),
  TAP_TEST(containers__of_an_isolated_session_end_with_it),
  TAP_TEST(containers__of_later_sessions_are_new),
  TAP_TEST(containers__looked_up_late_by_an_old_session_are_its_own),
  TAP_TEST(containers__that_are_reset_leave_no_names),
  TAP_TEST(containers__that_are_not_listed_survive),
  TAP_TEST(containers__errors_name_types_and_missing_resources),
  TAP_TEST(containers__handles_of_destroyed_ones_are_errors),
  TAP_TEST(containers__can_be_listed),
  TAP_TEST(containers__may_be_reset_by_threads),
  TAP_TEST(containers__survive_lack_of_memory))
