/* SPDX-License-Identifier: Apache-2.0 */
/* Data types, shapes, tensors and buffers. */
#include "conformance/support/tap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <core/tensor/tensor_internal.h>

#include "conformance/support/oom.h"

static tn_error err;
static const int64_t d23[] = { 2, 3 };

/* ---- data types ---- */

static void dtype__numbers_names_and_sizes_equal_tensorflows(void)
{
  CHECK_INT(TN_FLOAT, 1);
  CHECK_INT(TN_STRING, 7);
  CHECK_INT(TN_HALF, 19);
  CHECK_INT(TN_UINT64, 23);
  CHECK_STR(tn_dtype_name(TN_FLOAT), "float32");
  CHECK_STR(tn_dtype_name(TN_COMPLEX128), "complex128");
  CHECK_STR(tn_dtype_name(TN_FLOAT + TN_DTYPE_REF), "float32_ref");
  CHECK_STR(tn_dtype_name(0), "invalid");
  CHECK_STR(tn_dtype_name(100), "invalid");
  CHECK_STR(tn_dtype_name(-5), "invalid");
  CHECK_STR(tn_dtype_name(1000), "invalid");
  CHECK_INT(tn_dtype_size(TN_COMPLEX128), 16);
  CHECK_INT(tn_dtype_size(TN_STRING), 24);
  CHECK_INT(tn_dtype_size(TN_INT4), 1);
  CHECK_INT(tn_dtype_size(0), 0);
  CHECK_INT(tn_dtype_size(INT32_MAX), 0);
}

static void dtype__names_are_found_in_all_their_forms(void)
{
  int n = 0;
  for (tn_dtype d = 1; d < 100; d++) {
    if (tn_dtype_size(d) == 0) continue;
    n++;
    CHECK_INT(tn_dtype_from_name(tn_dtype_name(d)), d);
    CHECK_INT(tn_dtype_from_name(tn_dtype_name(d + TN_DTYPE_REF)), d + TN_DTYPE_REF);
  }
  CHECK_INT(n, 32);
  CHECK_INT(tn_dtype_from_name("float"), TN_FLOAT);
  CHECK_INT(tn_dtype_from_name("double"), TN_DOUBLE);
  CHECK_INT(tn_dtype_from_name("float16"), TN_HALF);
  CHECK_INT(tn_dtype_from_name("DT_FLOAT"), TN_FLOAT);
  CHECK_INT(tn_dtype_from_name("DT_FLOAT8_E5M2"), TN_FLOAT8_E5M2);
  CHECK_INT(tn_dtype_from_name("DT_INT64_REF"), TN_INT64 + TN_DTYPE_REF);
  CHECK_INT(tn_dtype_from_name("DT_float32"), 0);
  CHECK_INT(tn_dtype_from_name("FLOAT"), 0);
  CHECK_INT(tn_dtype_from_name("_ref"), 0);
  CHECK_INT(tn_dtype_from_name(""), 0);
  CHECK_INT(tn_dtype_from_name(NULL), 0);
}

/* ---- shapes ---- */

static void shape__products_are_checked(void)
{
  int64_t n = 5, many[255];
  size_t bytes = 5;
  const int64_t negative[] = { 4, -1 }, huge[] = { INT64_C(1) << 32, INT64_C(1) << 31 },
                hidden[] = { INT64_C(1) << 62, 4, 0 }, empty[] = { 3, 0, 4 }, limit[] = { PTRDIFF_MAX };
  for (int i = 0; i < 255; i++) many[i] = 1;
  CHECK_OK(tn_shape_elements(d23, 2, &n, &err), &err);
  CHECK_INT(n, 6);
  CHECK_OK(tn_shape_elements(NULL, 0, &n, &err), &err);
  CHECK_INT(n, 1);
  CHECK_OK(tn_shape_elements(empty, 3, &n, &err), &err);
  CHECK_INT(n, 0);
  CHECK_OK(tn_shape_elements(many, 254, &n, &err), &err);
  CHECK_STATUS(tn_shape_elements(many, 255, &n, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STR(tn_error_message(&err), "rank 255 is outside 0 to 254");
  CHECK_STATUS(tn_shape_elements(d23, -1, &n, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_shape_elements(NULL, 1, &n, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_shape_elements(negative, 2, &n, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STR(tn_error_message(&err), "dimension 1 of shape [4,?] is -1, wanted 0 or more");
  CHECK_STATUS(tn_shape_elements(huge, 2, &n, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "[4294967296,2147483648] is too large: with dimension 1");
  CHECK_STATUS(tn_shape_elements(hidden, 3, &n, &err), TN_INVALID_ARGUMENT, NULL);

  CHECK_OK(tn_shape_bytes(TN_DOUBLE, d23, 2, &bytes, &err), &err);
  CHECK_INT(bytes, 48);
  CHECK_OK(tn_shape_bytes(TN_INT8, limit, 1, &bytes, &err), &err);
  CHECK_INT(bytes, PTRDIFF_MAX);
  CHECK_STATUS(tn_shape_bytes(TN_INT16, limit, 1, &bytes, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_INT(bytes, 0);
  CHECK_STATUS(tn_shape_bytes(77, d23, 2, &bytes, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "number 77");
  CHECK_STATUS(tn_shape_bytes(TN_FLOAT + TN_DTYPE_REF, d23, 2, &bytes, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "float32_ref");
}

/* ---- creating tensors ---- */

static void tensor__has_the_shape_it_was_made_with(void)
{
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(TN_INT16, d23, 2, &t, &err), &err);
  CHECK_INT(tn_tensor_dtype(t), TN_INT16);
  CHECK_INT(tn_tensor_rank(t), 2);
  CHECK_INT(tn_tensor_dims(t)[0], 2);
  CHECK_INT(tn_tensor_dims(t)[1], 3);
  CHECK_INT(tn_tensor_elements(t), 6);
  CHECK_INT(tn_tensor_bytes(t), 12);
  CHECK_INT((uintptr_t)tn_tensor_data(t) % 64, 0);
  memset(tn_tensor_data(t), 0x55, tn_tensor_bytes(t));
  CHECK(tn_tensor_is_exclusive(t));
  CHECK_INT(tn_test_live_blocks(), 1); /* everything is one allocation */
  tn_tensor_unref(t);
  CHECK_INT(tn_test_live_blocks(), 0);
}

static void tensor__every_rank_works(void)
{
  int64_t dims[TN_MAX_RANK];
  for (int i = 0; i < TN_MAX_RANK; i++) dims[i] = i < 2 ? i + 2 : 1;
  for (int32_t rank = 0; rank <= TN_MAX_RANK; rank++) {
    tn_tensor *t = NULL;
    REQUIRE_OK(tn_tensor_create(TN_COMPLEX128, dims, rank, &t, &err), &err);
    CHECK_INT(tn_tensor_rank(t), rank);
    CHECK_BYTES(tn_tensor_dims(t), dims, (size_t)rank * 8);
    CHECK_INT((uintptr_t)tn_tensor_data(t) % 64, 0);
    memset(tn_tensor_data(t), 1, tn_tensor_bytes(t));
    tn_tensor_unref(t);
  }
}

static void tensor__empty_ones_have_an_address(void)
{
  tn_tensor *t = NULL, *copy = NULL;
  const int64_t dims[] = { 0, 7 };
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, dims, 2, &t, &err), &err);
  CHECK_INT(tn_tensor_elements(t), 0);
  CHECK_INT(tn_tensor_bytes(t), 0);
  REQUIRE_PTR(tn_tensor_data(t));
  CHECK_OK(tn_tensor_copy(t, &copy, &err), &err);
  CHECK_OK(tn_tensor_read(t, NULL, 0, &err), &err);
  tn_tensor_unref(t);
  tn_tensor_unref(copy);
  REQUIRE_OK(tn_tensor_from_data(TN_FLOAT, dims, 2, NULL, 0, &t, &err), &err);
  tn_tensor_unref(t);
}

static void tensor__bad_requests_leak_nothing(void)
{
  float data[6] = { 0 };
  const int64_t negative[] = { -2 }, huge[] = { INT64_C(1) << 61 };
  tn_tensor *t = (tn_tensor *)data;
  CHECK_STATUS(tn_tensor_create(0, d23, 2, &t, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_NULL(t);
  t = (tn_tensor *)data;
  CHECK_STATUS(tn_tensor_create(TN_FLOAT, negative, 1, &t, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_NULL(t);
  CHECK_STATUS(tn_tensor_create(TN_FLOAT, huge, 1, &t, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_tensor_create(TN_FLOAT, d23, 2, NULL, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_tensor_from_data(TN_FLOAT, d23, 2, data, 20, &t, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STR(tn_error_message(&err), "20 bytes are given for a tensor float32 [2,3], wanted 24");
  CHECK_STATUS(tn_tensor_from_data(TN_FLOAT, d23, 2, NULL, 24, &t, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_tensor_from_data(TN_STRING, d23, 2, data, 144, &t, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "string are not plain bytes");
  CHECK_STATUS(tn_tensor_copy(NULL, &t, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_tensor_reshape(NULL, d23, 2, &t, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_tensor_read(NULL, data, 0, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_NULL(t);
  CHECK_INT(tn_tensor_rank(NULL), 0);
  CHECK_NULL(tn_tensor_data(NULL));
  CHECK(!tn_tensor_is_exclusive(NULL));
  tn_tensor_unref(NULL);
  CHECK_NULL(tn_tensor_ref(NULL));
  CHECK_STATUS(tn_tensor_create(TN_FLOAT, d23, 2, &t, NULL), TN_OK, NULL);
  tn_tensor_unref(t);
  CHECK_INT(tn_test_live_blocks(), 0);
}

static void tensor__an_earlier_error_is_cleared(void)
{
  tn_tensor *t = NULL;
  CHECK_STATUS(tn_tensor_create(0, d23, 2, &t, &err), TN_INVALID_ARGUMENT, NULL);
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, d23, 2, &t, &err), &err);
  CHECK_INT(tn_error_code(&err), TN_OK);
  tn_tensor_unref(t);
}

/* ---- views and owners ---- */

static void tensor__reshape_shares_the_elements(void)
{
  const int32_t values[] = { 1, 2, 3, 4, 5, 6 };
  const int64_t d32[] = { 3, 2 }, bad[] = { 4 };
  tn_tensor *t = NULL, *view = NULL, *again = NULL;
  REQUIRE_OK(tn_tensor_from_data(TN_INT32, d23, 2, values, sizeof(values), &t, &err), &err);
  REQUIRE_OK(tn_tensor_reshape(t, d32, 2, &view, &err), &err);
  CHECK(tn_tensor_data(view) == tn_tensor_data(t));
  CHECK(tn_tensor_buffer(view) == tn_tensor_buffer(t));
  CHECK(!tn_tensor_is_exclusive(t));
  CHECK(!tn_tensor_is_exclusive(view));
  CHECK_STATUS(tn_tensor_reshape(t, bad, 1, &again, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STR(tn_error_message(&err), "shape [2,3] with 6 elements cannot become shape [4] with 4 elements");
  tn_tensor_unref(t); /* the view keeps the memory alive */
  CHECK(tn_tensor_is_exclusive(view));
  CHECK_BYTES(tn_tensor_data(view), values, sizeof(values));
  CHECK_INT(tn_tensor_dims(view)[0], 3);
  tn_tensor_unref(view);
  CHECK_INT(tn_test_live_blocks(), 0);
}

static void tensor__is_exclusive_with_a_single_owner(void)
{
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, NULL, 0, &t, &err), &err);
  CHECK(tn_tensor_ref(t) == t);
  CHECK(!tn_tensor_is_exclusive(t));
  tn_tensor_unref(t);
  CHECK(tn_tensor_is_exclusive(t));
  tn_buffer *b = tn_buffer_ref(tn_tensor_buffer(t));
  CHECK(!tn_tensor_is_exclusive(t));
  tn_tensor_unref(t);
  CHECK_INT(tn_buffer_describe(b)->bytes, 4);
  memset(tn_buffer_describe(b)->data, 0, 4);
  tn_buffer_unref(b);
  CHECK_INT(tn_test_live_blocks(), 0);
}

static void *hold_and_let_go(void *arg)
{
  tn_tensor *t = arg, *view = NULL;
  for (int i = 0; i < 3000; i++) {
    tn_tensor_ref(t);
    if (tn_tensor_reshape(t, d23, 2, &view, NULL) == TN_OK) tn_tensor_unref(view);
    tn_tensor_unref(t);
  }
  tn_tensor_unref(t);
  return NULL;
}

static void tensor__may_be_owned_by_many_threads(void)
{
  tn_tensor *t = NULL;
  pthread_t threads[4];
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, d23, 2, &t, &err), &err);
  for (int i = 0; i < 4; i++) REQUIRE_INT(pthread_create(&threads[i], NULL, hold_and_let_go, tn_tensor_ref(t)), 0);
  tn_tensor_unref(t); /* one of the threads is the last owner */
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  CHECK_INT(tn_test_live_blocks(), 0);
}

/* ---- memory of the program ---- */

static int n_released;
static void *released_data;
static size_t released_bytes;

static void release(void *user, void *data, size_t bytes)
{
  n_released += *(int *)user;
  released_data = data;
  released_bytes = bytes;
}

static void tensor__wraps_memory_until_it_is_unused(void)
{
  _Alignas(16) float data[7] = { 1, 2, 3, 4, 5, 6, 7 };
  int one = 1;
  tn_tensor *t = NULL, *view = NULL;
  n_released = 0;
  REQUIRE_OK(tn_tensor_wrap(TN_FLOAT, d23, 2, data, 24, release, &one, &t, &err), &err);
  CHECK(tn_tensor_data(t) == data);
  CHECK(!tn_tensor_is_exclusive(t));
  CHECK_INT(tn_buffer_describe(tn_tensor_buffer(t))->ownership, TN_BUFFER_FOREIGN);
  REQUIRE_OK(tn_tensor_reshape(t, (int64_t[]){ 6 }, 1, &view, &err), &err);
  tn_tensor_unref(t);
  CHECK_INT(n_released, 0);
  tn_tensor_unref(view);
  CHECK_INT(n_released, 1);
  CHECK(released_data == data);
  CHECK_INT(released_bytes, 24);

  CHECK_STATUS(tn_tensor_wrap(TN_FLOAT, d23, 2, (char *)data + 2, 24, release, &one, &t, &err), TN_INVALID_ARGUMENT,
               NULL);
  CHECK_CONTAINS(tn_error_message(&err), "is not aligned to the 4 bytes that dtype float32 needs");
  CHECK_STATUS(tn_tensor_wrap(TN_FLOAT, d23, 2, data, 25, release, &one, &t, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_tensor_wrap(TN_FLOAT, d23, 2, NULL, 24, release, &one, &t, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_tensor_wrap(TN_VARIANT, NULL, 0, data, 8, release, &one, &t, &err), TN_INVALID_ARGUMENT, NULL);
  tn_test_fail_allocation(1, 1);
  CHECK_STATUS(tn_tensor_wrap(TN_FLOAT, d23, 2, data, 24, release, &one, &t, &err), TN_RESOURCE_EXHAUSTED, NULL);
  tn_test_fail_allocation(0, 0);
  CHECK_NULL(t);
  CHECK_INT(n_released, 1); /* the caller keeps the memory if a call fails */
  REQUIRE_OK(tn_tensor_wrap(TN_FLOAT, d23, 2, data, 24, NULL, NULL, &t, &err), &err);
  tn_tensor_unref(t);
  CHECK_INT(tn_test_live_blocks(), 0);
}

/* ---- buffers ---- */

static void buffer__tensors_over_parts_are_checked(void)
{
  _Alignas(64) char memory[64];
  tn_buffer_desc desc = { .struct_size = sizeof(desc), .data = memory, .bytes = sizeof(memory) };
  tn_buffer *b = NULL;
  tn_tensor *t = NULL;
  for (int i = 0; i < 64; i++) memory[i] = (char)i;
  REQUIRE_OK(tn_buffer_create(&desc, &b, &err), &err);
  REQUIRE_OK(tn_tensor_from_buffer(TN_FLOAT, d23, 2, b, 40, &t, &err), &err);
  CHECK(tn_tensor_data(t) == memory + 40);
  tn_tensor_unref(t);
  CHECK_STATUS(tn_tensor_from_buffer(TN_FLOAT, d23, 2, b, 44, &t, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STR(tn_error_message(&err), "24 bytes from offset 44 are not within a buffer of 64 bytes");
  CHECK_STATUS(tn_tensor_from_buffer(TN_FLOAT, d23, 2, b, SIZE_MAX - 3, &t, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_tensor_from_buffer(TN_FLOAT, d23, 2, b, 2, &t, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "not aligned");
  CHECK_STATUS(tn_tensor_from_buffer(TN_RESOURCE, NULL, 0, b, 0, &t, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_tensor_from_buffer(TN_FLOAT, d23, 2, NULL, 0, &t, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_NULL(t);
  tn_buffer_unref(b);

  /* Elements of a string tensor are not numbers, and vice versa. */
  REQUIRE_OK(tn_tensor_create(TN_STRING, NULL, 0, &t, &err), &err);
  tn_tensor *other = NULL;
  CHECK_STATUS(tn_tensor_from_buffer(TN_INT64, NULL, 0, tn_tensor_buffer(t), 0, &other, &err), TN_INVALID_ARGUMENT,
               NULL);
  CHECK_OK(tn_tensor_from_buffer(TN_STRING, NULL, 0, tn_tensor_buffer(t), 0, &other, &err), &err);
  tn_tensor_unref(other);
  tn_tensor_unref(t);
  CHECK_INT(tn_test_live_blocks(), 0);
}

static void buffer__errors_explain_bad_descriptions(void)
{
  char memory[8];
  tn_buffer_desc good = { .struct_size = sizeof(good), .data = memory, .bytes = sizeof(memory) }, d;
  tn_buffer *b = (tn_buffer *)memory;
  d = good;
  d.memory = 4;
  CHECK_STATUS(tn_buffer_create(&d, &b, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_NULL(b);
  d = good;
  d.ownership = -1;
  CHECK_STATUS(tn_buffer_create(&d, &b, &err), TN_INVALID_ARGUMENT, NULL);
  d = good;
  d.data = NULL;
  CHECK_STATUS(tn_buffer_create(&d, &b, &err), TN_INVALID_ARGUMENT, NULL);
  d = good;
  d.memory = TN_MEMORY_DEVICE;
  CHECK_STATUS(tn_buffer_create(&d, &b, &err), TN_INVALID_ARGUMENT, NULL);
  d = good;
  d.bytes = SIZE_MAX;
  CHECK_STATUS(tn_buffer_create(&d, &b, &err), TN_INVALID_ARGUMENT, NULL);
  d = good;
  d.struct_size = 8;
  CHECK_STATUS(tn_buffer_create(&d, &b, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "struct_size is 8");
  CHECK_STATUS(tn_buffer_create(NULL, &b, &err), TN_INVALID_ARGUMENT, NULL);
  d = good;
  d.struct_size = TN_SIZE_TO(tn_buffer_desc, bytes); /* an older header: fields that it lacks are zero */
  d.release = release;
  REQUIRE_OK(tn_buffer_create(&d, &b, &err), &err);
  CHECK(tn_buffer_describe(b)->release == NULL);
  tn_buffer_unref(b);
}

/* A device whose memory is host memory, accessible only while it is mapped. */
typedef struct device {
  char memory[64];
  atomic_int mapped, most, maps, fail, lost;
} device;

static tn_status device_map(void *user, tn_buffer *buffer, void **address, tn_error *e)
{
  device *dev = user;
  (void)buffer;
  if (dev->lost) return dev->lost;
  if (dev->fail) return tn_error_set(e, TN_UNAVAILABLE, "the device is gone");
  int now = ++dev->mapped;
  if (now > dev->most) dev->most = now;
  dev->maps++;
  *address = dev->memory;
  return TN_OK;
}

static void device_unmap(void *user, tn_buffer *buffer, void *address)
{
  device *dev = user;
  (void)buffer;
  CHECK(address == dev->memory);
  dev->mapped--;
}

static device the_device;

static tn_tensor *device_tensor(void)
{
  tn_buffer_desc desc = { .struct_size = sizeof(desc),
                          .memory = TN_MEMORY_DEVICE,
                          .device = "/job:localhost/replica:0/task:0/device:TEST:0",
                          .handle = &the_device,
                          .bytes = sizeof(the_device.memory),
                          .map = device_map,
                          .unmap = device_unmap,
                          .user = &the_device };
  tn_buffer *b = NULL;
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_buffer_create(&desc, &b, &err), &err);
  CHECK(tn_buffer_describe(b)->device != desc.device); /* copied */
  CHECK_STR(tn_buffer_describe(b)->device, desc.device);
  REQUIRE_OK(tn_tensor_from_buffer(TN_FLOAT, d23, 2, b, 8, &t, &err), &err);
  tn_buffer_unref(b);
  return t;
}

static void buffer__device_memory_is_read_through_map(void)
{
  float out[6], wanted[6];
  memset(&the_device, 0, sizeof(the_device));
  for (int i = 0; i < 64; i++) the_device.memory[i] = (char)i;
  memcpy(wanted, the_device.memory + 8, sizeof(wanted));
  tn_tensor *t = device_tensor(), *copy = NULL;
  CHECK_NULL(tn_tensor_data(t));
  REQUIRE_OK(tn_tensor_read(t, out, sizeof(out), &err), &err);
  CHECK_BYTES(out, wanted, sizeof(out));
  REQUIRE_OK(tn_tensor_copy(t, &copy, &err), &err);
  CHECK_BYTES(tn_tensor_data(copy), wanted, sizeof(out));
  tn_tensor_unref(copy);
  CHECK_STATUS(tn_tensor_read(t, out, 20, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STR(tn_error_message(&err), "there is room for 20 bytes, but the tensor float32 [2,3] has 24");
  the_device.fail = 1;
  CHECK_STATUS(tn_tensor_read(t, out, sizeof(out), &err), TN_UNAVAILABLE, NULL);
  CHECK_STR(tn_error_message(&err), "the device is gone");
  CHECK_STATUS(tn_tensor_copy(t, &copy, &err), TN_UNAVAILABLE, NULL);
  CHECK_NULL(copy);
  the_device.lost = TN_DATA_LOSS; /* a code without a text */
  CHECK_STATUS(tn_tensor_read(t, out, sizeof(out), &err), TN_DATA_LOSS, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "device:TEST:0 failed without a message");
  CHECK_INT(the_device.mapped, 0);
  tn_tensor_unref(t);

  tn_buffer_desc closed = { .struct_size = sizeof(closed), .memory = TN_MEMORY_DEVICE, .device = "X", .bytes = 8 };
  tn_buffer *b = NULL;
  REQUIRE_OK(tn_buffer_create(&closed, &b, &err), &err);
  REQUIRE_OK(tn_tensor_from_buffer(TN_DOUBLE, NULL, 0, b, 0, &t, &err), &err);
  tn_buffer_unref(b);
  CHECK_STATUS(tn_tensor_read(t, out, 8, &err), TN_UNIMPLEMENTED, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "memory of X cannot be read");
  tn_tensor_unref(t);
  CHECK_INT(tn_test_live_blocks(), 0);
}

static void *read_often(void *arg)
{
  float out[6];
  for (int i = 0; i < 500; i++) CHECK_STATUS(tn_tensor_read(arg, out, sizeof(out), NULL), TN_OK, NULL);
  return NULL;
}

static void buffer__maps_of_one_buffer_do_not_overlap(void)
{
  pthread_t threads[4];
  memset(&the_device, 0, sizeof(the_device));
  tn_tensor *t = device_tensor();
  for (int i = 0; i < 4; i++) REQUIRE_INT(pthread_create(&threads[i], NULL, read_often, t), 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  CHECK_INT(the_device.maps, 2000);
  CHECK_INT(the_device.most, 1);
  tn_tensor_unref(t);
}

static char order[10];
static void note(const char *what) { strncat(order, what, sizeof(order) - strlen(order) - 1); }
static void hold_plugin(void *self) { note(self == order ? "h" : "?"); }
static void drop_plugin(void *self) { note(self == order ? "d" : "?"); }
static void release_noted(void *user, void *data, size_t bytes)
{
  (void)user, (void)data, (void)bytes;
  note("r");
}

/* The release function is code of the plugin, which is released after the call. */
static void buffer__keeps_its_plugin_until_it_is_released(void)
{
  char memory[8];
  tn_buffer_desc desc = {
    .struct_size = sizeof(desc), .data = memory, .bytes = sizeof(memory), .release = release_noted, .holder = order
  };
  tn_buffer *b = NULL;
  order[0] = 0;
  tn__plugin_hold = hold_plugin;
  tn__plugin_drop = drop_plugin;
  REQUIRE_OK(tn_buffer_create(&desc, &b, &err), &err);
  CHECK_STR(order, "h");
  tn_buffer_unref(b);
  CHECK_STR(order, "hrd");
  order[0] = 0;
  tn_test_fail_allocation(1, 1);
  CHECK_STATUS(tn_buffer_create(&desc, &b, &err), TN_RESOURCE_EXHAUSTED, NULL);
  tn_test_fail_allocation(0, 0);
  CHECK_STR(order, "");
  tn__plugin_hold = tn__plugin_drop = NULL;
}

/* ---- constants ---- */

static void tensor__constants_share_aligned_bytes_and_copy_others(void)
{
  _Alignas(64) char memory[64] = { 0 };
  tn_buffer_desc desc = {
    .struct_size = sizeof(desc), .ownership = TN_BUFFER_IMMUTABLE, .data = memory, .bytes = sizeof(memory)
  };
  tn_buffer *b = NULL;
  tn_tensor *shared = NULL, *copied = NULL;
  for (int i = 0; i < 64; i++) memory[i] = (char)i;
  REQUIRE_OK(tn_buffer_create(&desc, &b, &err), &err);
  REQUIRE_OK(tn__tensor_constant(TN_FLOAT, d23, 2, memory + 4, 24, b, &shared, &err), &err);
  CHECK(tn_tensor_data(shared) == memory + 4);
  CHECK(!tn_tensor_is_exclusive(shared));
  REQUIRE_OK(tn__tensor_constant(TN_FLOAT, d23, 2, memory + 5, 24, b, &copied, &err), &err);
  CHECK_INT((uintptr_t)tn_tensor_data(copied) % 64, 0);
  CHECK_BYTES(tn_tensor_data(copied), memory + 5, 24);
  CHECK_INT(tn_buffer_describe(tn_tensor_buffer(copied))->ownership, TN_BUFFER_IMMUTABLE);
  CHECK(!tn_tensor_is_exclusive(copied));
  tn_tensor_unref(copied);
  tn_error_clear(&err);
  CHECK_STATUS(tn__tensor_constant(TN_FLOAT, d23, 2, memory, 25, b, &copied, &err), TN_INVALID_ARGUMENT, NULL);
  tn_error_clear(&err);
  tn_buffer_unref(b);
  CHECK_INT(memory[4], ((char *)tn_tensor_data(shared))[0]);
  tn_tensor_unref(shared);
  CHECK_INT(tn_test_live_blocks(), 0);
}

/* ---- lack of memory ---- */

static tn_status make_all(void *arg)
{
  static const char *texts[] = { "short", "a text that does not fit into twenty-two bytes", "", "x",
                                 "y",     "another text that does not fit in an element" };
  int64_t rank8[8] = { 1, 1, 1, 1, 1, 1, 2, 3 };
  float data[6] = { 0 };
  tn_tensor *a = NULL, *b = NULL, *c = NULL, *d = NULL, *e = NULL, *f = NULL;
  (void)arg;
  tn_error local = TN_ERROR_INIT;
  tn_status s = tn_tensor_create(TN_FLOAT, rank8, 8, &a, &local);
  if (s == TN_OK) s = tn_tensor_from_data(TN_FLOAT, d23, 2, data, sizeof(data), &b, &local);
  if (s == TN_OK) s = tn_tensor_from_strings(d23, 2, texts, NULL, &c, &local);
  if (s == TN_OK) s = tn_tensor_copy(c, &d, &local);
  if (s == TN_OK) s = tn_tensor_reshape(d, rank8, 8, &e, &local);
  if (s == TN_OK) s = tn_tensor_from_buffer(TN_FLOAT, rank8, 8, tn_tensor_buffer(a), 0, &f, &local);
  if (s == TN_OK) s = tn_tensor_set_string(c, 0, texts[1], 46, &local);
  if (s != TN_OK) CHECK_CONTAINS(tn_error_message(&local), "out of memory: ");
  tn_tensor *all[] = { a, b, c, d, e, f };
  for (int i = 0; i < 6; i++) tn_tensor_unref(all[i]);
  tn_error_clear(&local);
  return s;
}

static void tensor__nothing_leaks_without_memory(void) { tn_test_oom_sweep(make_all, NULL); }

static tn_status make_device_buffer(void *arg)
{
  (void)arg;
  tn_buffer_desc desc = { .struct_size = sizeof(desc),
                          .memory = TN_MEMORY_DEVICE,
                          .device = "D",
                          .bytes = 64,
                          .map = device_map,
                          .unmap = device_unmap,
                          .user = &the_device };
  tn_buffer *b = NULL;
  tn_tensor *t = NULL, *copy = NULL;
  memset(&the_device, 0, sizeof(the_device));
  tn_status s = tn_buffer_create(&desc, &b, NULL);
  if (s == TN_OK) s = tn_tensor_from_buffer(TN_FLOAT, d23, 2, b, 0, &t, NULL);
  if (s == TN_OK) s = tn_tensor_copy(t, &copy, NULL);
  tn_buffer_unref(b);
  tn_tensor_unref(t);
  tn_tensor_unref(copy);
  return s;
}

static void buffer__nothing_leaks_without_memory(void) { tn_test_oom_sweep(make_device_buffer, NULL); }

TAP_MAIN(
  TAP_TEST(dtype__numbers_names_and_sizes_equal_tensorflows),
  TAP_TEST(dtype__names_are_found_in_all_their_forms),
  TAP_TEST(shape__products_are_checked),
  TAP_TEST(tensor__has_the_shape_it_was_made_with),
  TAP_TEST(tensor__every_rank_works),
  TAP_TEST(tensor__empty_ones_have_an_address),
  TAP_TEST(tensor__bad_requests_leak_nothing),
  TAP_TEST(tensor__an_earlier_error_is_cleared),
  TAP_TEST(tensor__reshape_shares_the_elements),
  TAP_TEST(tensor__is_exclusive_with_a_single_owner),
  TAP_TEST(tensor__may_be_owned_by_many_threads),
  TAP_TEST(tensor__wraps_memory_until_it_is_unused),
  TAP_TEST(buffer__tensors_over_parts_are_checked),
  TAP_TEST(buffer__errors_explain_bad_descriptions),
  TAP_TEST(buffer__device_memory_is_read_through_map),
  TAP_TEST(buffer__maps_of_one_buffer_do_not_overlap),
  TAP_TEST(buffer__keeps_its_plugin_until_it_is_released),
  TAP_TEST(tensor__constants_share_aligned_bytes_and_copy_others),
  TAP_TEST(tensor__nothing_leaks_without_memory),
  TAP_TEST(buffer__nothing_leaks_without_memory))
