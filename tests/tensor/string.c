/* SPDX-License-Identifier: Apache-2.0 */
/* String and handle elements. */
#include "conformance/support/tap.h"

#include <stdlib.h>
#include <string.h>

#include <core/tensor/tensor_internal.h>

#include "conformance/support/oom.h"

static tn_error err;
static const char *const forty = "a text of forty bytes, more than small..";

static bool is(const tn_string *s, const char *wanted, size_t length)
{
  size_t n;
  const char *text = tn_string_data(s, &n);
  return n == length && memcmp(text, wanted, n) == 0;
}

/* The layout is that of TF_TString: other code reads and writes the elements in place. */
static void string__has_tensorflows_layout(void)
{
  tn_string s;
  memset(&s, 0, sizeof(s));
  CHECK(is(&s, "", 0));
  CHECK_OK(tn_string_set(&s, "abc", 3, &err), &err);
  CHECK_BYTES(&s,
              "\x0c"
              "abc\0",
              5);
  CHECK_OK(tn_string_set(&s, "0123456789012345678901", 22, &err), &err);
  CHECK_BYTES(&s,
              "\x58"
              "0123456789012345678901\0",
              24);
  CHECK_INT(tn_test_live_blocks(), 0);

  CHECK_OK(tn_string_set(&s, forty, 40, &err), &err);
  uint64_t words[3];
  memcpy(words, &s, sizeof(words));
  CHECK_INT(words[0], 40 * 4 + 1);
  CHECK(words[1] >= 40);
  CHECK_BYTES((const char *)(uintptr_t)words[2], forty, 41); /* with a NUL after it */
  tn_string_clear(&s);
  CHECK_INT(tn_test_live_blocks(), 0);
  CHECK_BYTES(&s, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24);
}

static void string__borrowed_forms_are_read(void)
{
  struct {
    tn_string s;
    char text[8];
  } near;
  memset(&near, 0, sizeof(near));
  near.s.u.offset.size = 5 * 4 + 2;
  near.s.u.offset.offset = sizeof(tn_string);
  near.s.u.offset.count = 1;
  memcpy(near.text, "hello", 6);
  CHECK(is(&near.s, "hello", 5));
  tn_string view;
  memset(&view, 0, sizeof(view));
  view.u.view.size = 40 * 4 + 3;
  view.u.view.data = forty;
  CHECK(is(&view, forty, 40));
  CHECK_OK(tn_string_set(&view, "own", 3, &err), &err); /* does not free borrowed memory */
  CHECK(is(&view, "own", 3));
  tn_string_clear(&near.s);
  CHECK(is(&near.s, "", 0));
  CHECK_INT(tn_test_live_blocks(), 0);
}

static void string__holds_any_bytes(void)
{
  tn_string s;
  memset(&s, 0, sizeof(s));
  CHECK_OK(tn_string_set(&s, "a\0b\0", 4, &err), &err);
  CHECK(is(&s, "a\0b\0", 4));
  CHECK_OK(tn_string_set(&s, NULL, 0, &err), &err);
  CHECK(is(&s, "", 0));
  CHECK_STATUS(tn_string_set(&s, NULL, 3, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_string_set(NULL, "x", 1, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_string_set(&s, "x", (size_t)PTRDIFF_MAX, &err), TN_RESOURCE_EXHAUSTED, NULL);
  CHECK_STR(tn_string_data(NULL, NULL), "");
}

static void string__may_be_set_to_a_part_of_itself(void)
{
  tn_string s;
  size_t n;
  memset(&s, 0, sizeof(s));
  CHECK_OK(tn_string_set(&s, forty, 40, &err), &err);
  CHECK_OK(tn_string_set(&s, tn_string_data(&s, &n) + 2, 30, &err), &err); /* in place */
  CHECK(is(&s, forty + 2, 30));
  CHECK_OK(tn_string_set(&s, tn_string_data(&s, &n) + 5, 10, &err), &err); /* from large to small */
  CHECK(is(&s, forty + 7, 10));
  CHECK_OK(tn_string_set(&s, tn_string_data(&s, &n) + 5, 5, &err), &err);
  CHECK(is(&s, forty + 12, 5));
  CHECK_INT(tn_test_live_blocks(), 0);
}

static void string__is_unchanged_without_memory(void)
{
  static char long_text[100000];
  tn_string s;
  memset(&s, 0, sizeof(s));
  CHECK_OK(tn_string_set(&s, forty, 40, &err), &err);
  tn_test_fail_allocation(1, 1);
  CHECK_STATUS(tn_string_set(&s, long_text, sizeof(long_text), &err), TN_RESOURCE_EXHAUSTED, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "100000 bytes");
  CHECK_NULL(tn__string_reserve(&s, sizeof(long_text)));
  CHECK(is(&s, forty, 40));
  CHECK_OK(tn_string_set(&s, forty, 39, &err), &err); /* the memory is reused */
  tn_test_fail_allocation(0, 0);
  CHECK_OK(tn_string_set(&s, long_text, sizeof(long_text), &err), &err);
  uint64_t before = tn_test_live_bytes();
  CHECK_OK(tn_string_set(&s, forty, 40, &err), &err);
  CHECK(tn_test_live_bytes() < before / 2); /* a short text does not keep a large allocation */
  tn_string_clear(&s);
  CHECK_INT(tn_test_live_blocks(), 0);
}

static void string__reserve_makes_room_to_write(void)
{
  tn_string s;
  memset(&s, 0, sizeof(s));
  for (size_t n = 0; n < 100; n += 11) {
    char *to = tn__string_reserve(&s, n);
    REQUIRE_PTR(to);
    for (size_t i = 0; i < n; i++) to[i] = (char)('a' + i % 26);
    size_t length;
    const char *text = tn_string_data(&s, &length);
    CHECK(text == to);
    CHECK_INT(length, n);
  }
  tn_string_clear(&s);
  CHECK_INT(tn_test_live_blocks(), 0);
}

/* ---- string tensors ---- */

static void strings__tensor_owns_copies(void)
{
  char first[] = "first";
  const char *texts[] = { first, forty, "" };
  const int64_t dims[] = { 3 };
  tn_tensor *t = NULL, *copy = NULL;
  const char *text;
  size_t length;
  REQUIRE_OK(tn_tensor_from_strings(dims, 1, texts, NULL, &t, &err), &err);
  first[0] = 'x';
  REQUIRE_OK(tn_tensor_get_string(t, 0, &text, &length, &err), &err);
  CHECK_INT(length, 5);
  CHECK_BYTES(text, "first", 5);
  REQUIRE_OK(tn_tensor_copy(t, &copy, &err), &err);
  CHECK_OK(tn_tensor_set_string(t, 1, "new", 3, &err), &err);
  REQUIRE_OK(tn_tensor_get_string(copy, 1, &text, &length, &err), &err);
  CHECK_INT(length, 40);
  CHECK_BYTES(text, forty, 40);
  CHECK_STATUS(tn_tensor_get_string(t, 3, &text, &length, &err), TN_OUT_OF_RANGE, NULL);
  CHECK_STR(tn_error_message(&err), "element 3 was asked for, but the tensor has 3");
  CHECK_NULL(text);
  CHECK_STATUS(tn_tensor_get_string(t, -1, &text, &length, &err), TN_OUT_OF_RANGE, NULL);
  CHECK_STATUS(tn_tensor_set_string(t, 3, "x", 1, &err), TN_OUT_OF_RANGE, NULL);
  char bytes[72];
  CHECK_STATUS(tn_tensor_read(t, bytes, sizeof(bytes), &err), TN_INVALID_ARGUMENT, NULL);
  tn_tensor_unref(t);
  tn_tensor_unref(copy);
  CHECK_INT(tn_test_live_blocks(), 0);
}

static void strings__errors_name_bad_texts(void)
{
  const char *texts[] = { "a", NULL };
  const size_t lengths[] = { 1, 0 }, bad[] = { 1, 2 };
  const int64_t dims[] = { 2 };
  tn_tensor *t = NULL;
  CHECK_STATUS(tn_tensor_from_strings(dims, 1, texts, NULL, &t, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STR(tn_error_message(&err), "text 1 of 2 is NULL");
  CHECK_STATUS(tn_tensor_from_strings(dims, 1, texts, bad, &t, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_tensor_from_strings(dims, 1, NULL, NULL, &t, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_tensor_from_strings(dims, 1, texts, lengths, NULL, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_NULL(t);
  CHECK_OK(tn_tensor_from_strings(dims, 1, texts, lengths, &t, &err), &err);
  tn_tensor_unref(t);
  REQUIRE_OK(tn_tensor_create(TN_INT32, NULL, 0, &t, &err), &err);
  CHECK_STATUS(tn_tensor_get_string(t, 0, NULL, NULL, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STR(tn_error_message(&err), "the tensor's dtype is int32, wanted string");
  CHECK_STATUS(tn_tensor_get_string(NULL, 0, NULL, NULL, &err), TN_INVALID_ARGUMENT, NULL);
  tn_tensor_unref(t);
  CHECK_INT(tn_test_live_blocks(), 0);
}

static void strings__shared_tensors_are_not_written(void)
{
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(TN_STRING, NULL, 0, &t, &err), &err);
  tn_tensor_ref(t);
  CHECK_STATUS(tn_tensor_set_string(t, 0, "x", 1, &err), TN_FAILED_PRECONDITION, NULL);
  tn_tensor_unref(t);
  CHECK_OK(tn_tensor_set_string(t, 0, forty, 40, &err), &err);
  tn_tensor_unref(t);
  CHECK_INT(tn_test_live_blocks(), 0);
}

/* Elements lent by the program remain the program's; a copy owns its own. */
static void strings__lent_elements_remain_the_programs(void)
{
  tn_string elements[2];
  const int64_t dims[] = { 2 };
  tn_tensor *t = NULL, *copy = NULL;
  size_t length;
  memset(elements, 0, sizeof(elements));
  CHECK_OK(tn_string_set(&elements[0], forty, 40, &err), &err);
  elements[1].u.view.size = 4 * 4 + 3;
  elements[1].u.view.data = "view";
  REQUIRE_OK(tn_tensor_wrap(TN_STRING, dims, 1, elements, sizeof(elements), NULL, NULL, &t, &err), &err);
  CHECK_STATUS(tn_tensor_set_string(t, 0, "x", 1, &err), TN_FAILED_PRECONDITION, NULL);
  REQUIRE_OK(tn_tensor_copy(t, &copy, &err), &err);
  tn_tensor_unref(t);
  CHECK(is(&elements[0], forty, 40));
  tn_string_clear(&elements[0]);
  const tn_string *own = tn_tensor_data(copy);
  CHECK(is(&own[0], forty, 40));
  CHECK(is(&own[1], "view", 4));
  CHECK(tn_string_data(&own[1], &length) != (const char *)elements[1].u.view.data);
  tn_tensor_unref(copy);
  CHECK_INT(tn_test_live_blocks(), 0);
}

/* ---- handles ---- */

typedef struct object {
  tn_handle handle;
  int holders;
} object;

static void object_ref(tn_handle *self) { ((object *)self)->holders++; }
static void object_unref(tn_handle *self) { ((object *)self)->holders--; }
static const tn_handle_class object_class = { sizeof(object_class), "object", object_ref, object_unref };

static void handles__are_counted_by_tensors_that_hold_them(void)
{
  object o = { { &object_class }, 1 };
  const int64_t dims[] = { 3 };
  tn_tensor *t = NULL, *copy = NULL, *view = NULL;
  REQUIRE_OK(tn_tensor_create(TN_VARIANT, dims, 1, &t, &err), &err);
  tn_handle **slots = tn_tensor_data(t);
  for (int i = 0; i < 3; i++) CHECK_NULL(slots[i]);
  slots[0] = &o.handle; /* passes on the test's reference */
  object_ref(&o.handle);
  slots[2] = &o.handle;
  REQUIRE_OK(tn_tensor_copy(t, &copy, &err), &err);
  CHECK_INT(o.holders, 4);
  REQUIRE_OK(tn_tensor_reshape(t, dims, 1, &view, &err), &err);
  tn_tensor_unref(t);
  CHECK_INT(o.holders, 4);
  tn_tensor_unref(view);
  CHECK_INT(o.holders, 2);
  tn_tensor_unref(copy);
  CHECK_INT(o.holders, 0);
  CHECK_INT(tn_test_live_blocks(), 0);
}

TAP_MAIN(
  TAP_TEST(string__has_tensorflows_layout),
  TAP_TEST(string__borrowed_forms_are_read),
  TAP_TEST(string__holds_any_bytes),
  TAP_TEST(string__may_be_set_to_a_part_of_itself),
  TAP_TEST(string__is_unchanged_without_memory),
  TAP_TEST(string__reserve_makes_room_to_write),
  TAP_TEST(strings__tensor_owns_copies),
  TAP_TEST(strings__errors_name_bad_texts),
  TAP_TEST(strings__shared_tensors_are_not_written),
  TAP_TEST(strings__lent_elements_remain_the_programs),
  TAP_TEST(handles__are_counted_by_tensors_that_hold_them))
