/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory of the runtime gpu: its pool, limits of sessions, tensors in device memory; and
 * building nodes. */
#ifndef TEST_GPU
#include <conformance/support/tap.h>
static void gpu_memory__needs_opencl(void) { TAP_SKIP("built without OpenCL"); }
TAP_MAIN(TAP_TEST(gpu_memory__needs_opencl))
#else
#include <pthread.h>

#include "plugins/gpu/device/tensor.h"
#include "plugins/gpu/schedule/constants.h"
#include <tests/support/gpu_parts.h>
#include <conformance/support/oom.h>

#define MIB ((size_t)1 << 20)

static gpu_pool_stats stats_of(gpu_device *d)
{
  gpu_pool_stats s;
  gpu_pool_stats_get(d->pool, &s);
  return s;
}

/* ---- the pool ---- */

static void gpu_memory__freed_blocks_are_reused(void)
{
  GPU_PARTS_DEVICE(d);
  tn_error err = TN_ERROR_INIT;
  gpu_budget *budget;
  gpu_block a, b;
  REQUIRE_OK(gpu_budget_create(d, 0, &budget, &err), &err);
  REQUIRE_OK(gpu_alloc(budget, 100000, &a, &err), &err);
  CHECK(a.bytes >= 100000 && a.bytes <= 112500); /* at most an eighth is wasted */
  CHECK(d->host_visible == (a.host != NULL));
  CHECK_INT((uintptr_t)a.host % 4096, 0);
  cl_mem mem = a.mem;
  gpu_free(&a);
  CHECK_NULL(a.mem);
  gpu_free(&a); /* no effect */
  REQUIRE_OK(gpu_alloc(budget, 101000, &b, &err), &err);
  CHECK(b.mem == mem);
  REQUIRE_OK(gpu_alloc(budget, 101000, &a, &err), &err);
  CHECK(a.mem != mem);
  CHECK_INT(stats_of(d).n_created, 2);
  CHECK_INT(stats_of(d).used_bytes, a.bytes + b.bytes);
  gpu_free(&a);
  gpu_free(&b);
  CHECK_INT(stats_of(d).used_bytes, 0);
  gpu_budget_unref(budget);
  gpu_device_leave(d);
}

static void gpu_memory__blocks_have_every_size(void)
{
  GPU_PARTS_DEVICE(d);
  gpu_budget *budget;
  gpu_block all[200];
  size_t n = 0;
  REQUIRE_OK(gpu_budget_create(d, 0, &budget, NULL), NULL);
  for (size_t bytes = 0; bytes < 40 * MIB && n < 200; bytes = bytes < 5 ? bytes + 1 : bytes + bytes / 7, n++) {
    REQUIRE_OK(gpu_alloc(budget, bytes, &all[n], NULL), NULL);
    CHECK_MSG(all[n].bytes >= bytes && all[n].bytes <= bytes + bytes / 8 + 4096, "%zu bytes in %zu", bytes,
              all[n].bytes);
    if (all[n].host != NULL) memset(all[n].host, (int)n, all[n].bytes); /* all usable and not shared */
  }
  for (size_t i = 0; i < n; i++)
    if (all[i].host != NULL) CHECK_INT(((unsigned char *)all[i].host)[all[i].bytes - 1], i & 255);
  for (size_t i = 0; i < n; i++) gpu_free(&all[i]);
  gpu_budget_unref(budget);
  gpu_device_leave(d);
}

static void gpu_memory__free_blocks_are_released_when_shapes_change(void)
{
  GPU_PARTS_DEVICE(d);
  gpu_budget *budget;
  gpu_block b;
  REQUIRE_OK(gpu_budget_create(d, 0, &budget, NULL), NULL);
  for (size_t i = 1; i <= 40; i++) {
    REQUIRE_OK(gpu_alloc(budget, i * 5 * MIB, &b, NULL), NULL);
    gpu_free(&b);
    gpu_pool_stats s = stats_of(d);
    CHECK_MSG(s.free_bytes <= 64 * MIB || s.free_bytes <= s.most_bytes, "%zu bytes are kept, %zu were used",
              s.free_bytes, s.most_bytes);
  }
  gpu_pool_trim(d->pool);
  CHECK_INT(stats_of(d).free_bytes, 0);
  gpu_budget_unref(budget);
  gpu_device_leave(d);
}

static void gpu_memory__the_pool_is_freed_with_the_last_user(void) /* S-CFG-23 */
{
  GPU_PARTS_DEVICE(d);
  gpu_budget *budget;
  gpu_block b;
  REQUIRE_INT(d->n_users, 1);
  REQUIRE_OK(gpu_budget_create(d, 0, &budget, NULL), NULL);
  REQUIRE_OK(gpu_alloc(budget, 1000, &b, NULL), NULL);
  gpu_free(&b);
  gpu_budget_unref(budget);
  gpu_device_leave(d);
  CHECK_NULL(d->pool);
  CHECK_NULL(d->context);
}

static void gpu_memory__pinned_memory_is_in_the_host_and_kept(void)
{
  GPU_PARTS_DEVICE(d);
  gpu_budget *budget;
  gpu_block pinned, block;
  float back[6] = { 0 };
  static const float values[6] = { 1, 2, 3, 4, 5, 6 };
  REQUIRE_OK(gpu_budget_create(d, 0, &budget, NULL), NULL);
  REQUIRE_OK(gpu_pinned_alloc(d, 100000, &pinned, NULL), NULL);
  REQUIRE_PTR(pinned.host);
  CHECK_INT(stats_of(d).used_bytes, 0); /* not device memory */
  memcpy(pinned.host, values, sizeof values);
  REQUIRE_OK(gpu_alloc(budget, sizeof values, &block, NULL), NULL);
  cl_command_queue q = gpu_pool_queue(d->pool);
  CHECK_INT(cl.EnqueueWriteBuffer(q, block.mem, CL_TRUE, 0, sizeof values, pinned.host, 0, NULL, NULL), CL_SUCCESS);
  CHECK_INT(cl.EnqueueReadBuffer(q, block.mem, CL_TRUE, 0, sizeof back, back, 0, NULL, NULL), CL_SUCCESS);
  CHECK_BYTES(back, values, sizeof values);
  cl_mem mem = pinned.mem;
  gpu_pinned_free(&pinned);
  CHECK_NULL(pinned.mem);
  REQUIRE_OK(gpu_pinned_alloc(d, 100000, &pinned, NULL), NULL);
  CHECK(pinned.mem == mem);
  gpu_pinned_free(&pinned);
  gpu_free(&block);
  gpu_budget_unref(budget);
  gpu_device_leave(d);
}

/* ---- limits of sessions ---- */

static void gpu_memory__errors_name_the_limit(void)
{
  GPU_PARTS_DEVICE(d);
  tn_error err = TN_ERROR_INIT;
  gpu_budget *small, *other;
  gpu_block a, b, c;
  REQUIRE_OK(gpu_budget_create(d, 1 << 20, &small, &err), &err);
  REQUIRE_OK(gpu_budget_create(d, 0, &other, &err), &err);
  REQUIRE_OK(gpu_alloc(small, 700 << 10, &a, &err), &err);
  CHECK_INT(gpu_budget_used(small), a.bytes);
  CHECK_STATUS(gpu_alloc(small, 400 << 10, &b, &err), TN_RESOURCE_EXHAUSTED, &err);
  CHECK_NULL(b.mem);
  CHECK_CONTAINS(tn_error_message(&err), "409600 bytes");
  CHECK_CONTAINS(tn_error_message(&err), "may have 1048576");
  char used[40];
  snprintf(used, sizeof used, "uses %zu", a.bytes);
  CHECK_CONTAINS(tn_error_message(&err), used);
  CHECK_CONTAINS(tn_error_message(&err), d->name);
  CHECK_OK(gpu_alloc(other, 400 << 10, &c, &err), &err); /* another session has its own limit */
  gpu_free(&a);
  CHECK_INT(gpu_budget_used(small), 0);
  CHECK_OK(gpu_alloc(small, 400 << 10, &b, &err), &err);
  gpu_free(&b);
  gpu_free(&c);
  gpu_budget_unref(small);
  gpu_budget_unref(other);
  gpu_device_leave(d);
  tn_error_clear(&err);
}

static void gpu_memory__sizes_beyond_the_device_are_rejected(void)
{
  GPU_PARTS_DEVICE(d);
  tn_error err = TN_ERROR_INIT;
  gpu_budget *budget;
  gpu_block b;
  const size_t sizes[] = { (size_t)d->max_alloc_bytes + 1, (size_t)1 << 62, SIZE_MAX };
  REQUIRE_OK(gpu_budget_create(d, INT64_MAX, &budget, &err), &err);
  for (int i = 0; i < 3; i++) {
    CHECK_STATUS(gpu_alloc(budget, sizes[i], &b, &err), TN_RESOURCE_EXHAUSTED, &err);
    CHECK_CONTAINS(tn_error_message(&err), "gives at most");
    CHECK_NULL(b.mem);
  }
  CHECK_INT(gpu_budget_used(budget), 0);
  gpu_budget_unref(budget);
  gpu_device_leave(d);
  tn_error_clear(&err);
}

/* A driver without memory for the first `refusals` calls. */
static __typeof__(cl.CreateBuffer) true_create;
static int refusals;
static cl_mem create_seldom(cl_context context, cl_mem_flags flags, size_t bytes, void *host, cl_int *code)
{
  if (refusals == 0) return true_create(context, flags, bytes, host, code);
  refusals--;
  *code = CL_MEM_OBJECT_ALLOCATION_FAILURE;
  return NULL;
}

static void gpu_memory__allocation_is_retried_after_freeing_kept_blocks(void)
{
  GPU_PARTS_DEVICE(d);
  tn_error err = TN_ERROR_INIT;
  gpu_budget *budget;
  gpu_block a, b;
  REQUIRE_OK(gpu_budget_create(d, 0, &budget, &err), &err);
  REQUIRE_OK(gpu_alloc(budget, MIB, &a, &err), &err);
  gpu_free(&a);
  true_create = cl.CreateBuffer;
  cl.CreateBuffer = create_seldom;
  refusals = 1;
  CHECK_OK(gpu_alloc(budget, 8 * MIB, &b, &err), &err);
  CHECK_INT(stats_of(d).free_bytes, 0);
  gpu_free(&b);
  refusals = 2;
  CHECK_STATUS(gpu_alloc(budget, 16 * MIB, &b, &err), TN_RESOURCE_EXHAUSTED, &err);
  CHECK_CONTAINS(tn_error_message(&err), "CL_MEM_OBJECT_ALLOCATION_FAILURE");
  CHECK_CONTAINS(tn_error_message(&err), "16777216 bytes");
  CHECK_NULL(b.mem);
  CHECK_INT(gpu_budget_used(budget), 0);
  cl.CreateBuffer = true_create;
  gpu_budget_unref(budget);
  gpu_device_leave(d);
  tn_error_clear(&err);
}

/* A driver that detects lack of memory at the first use, as those of GPUs do. */
static __typeof__(cl.EnqueueFillBuffer) true_fill;
static cl_int fill_seldom(cl_command_queue q, cl_mem mem, const void *pattern, size_t size, size_t at, size_t n,
                          cl_uint waits, const cl_event *list, cl_event *done)
{
  if (refusals == 0) return true_fill(q, mem, pattern, size, at, n, waits, list, done);
  refusals--;
  return CL_MEM_OBJECT_ALLOCATION_FAILURE;
}

static void gpu_memory__memory_missing_at_first_use_is_detected(void)
{
  GPU_PARTS_DEVICE(d);
  tn_error err = TN_ERROR_INIT;
  bool visible = d->host_visible;
  gpu_budget *budget;
  gpu_block a, b;
  d->host_visible = false;
  REQUIRE_OK(gpu_budget_create(d, 0, &budget, &err), &err);
  REQUIRE_OK(gpu_alloc(budget, MIB, &a, &err), &err);
  CHECK_NULL(a.host);
  gpu_free(&a);
  true_fill = cl.EnqueueFillBuffer;
  cl.EnqueueFillBuffer = fill_seldom;
  refusals = 1;
  CHECK_OK(gpu_alloc(budget, 8 * MIB, &b, &err), &err);
  gpu_free(&b);
  refusals = 2;
  CHECK_STATUS(gpu_alloc(budget, 16 * MIB, &b, &err), TN_RESOURCE_EXHAUSTED, &err);
  CHECK_CONTAINS(tn_error_message(&err), "16777216 bytes");
  CHECK_INT(gpu_budget_used(budget), 0);
  cl.EnqueueFillBuffer = true_fill;
  gpu_budget_unref(budget);
  gpu_device_leave(d);
  d->host_visible = visible;
  tn_error_clear(&err);
}

static void *alloc_and_free(void *user)
{
  gpu_budget *budget = user;
  gpu_block b[4];
  for (int i = 0; i < 300; i++) {
    for (int k = 0; k < 4; k++)
      if (gpu_alloc(budget, (size_t)(i * k) * 37 + 1, &b[k], NULL) != TN_OK) return user;
    for (int k = 0; k < 4; k++) gpu_free(&b[k]);
  }
  return NULL;
}

static void gpu_memory__threads_share_a_pool(void)
{
  GPU_PARTS_DEVICE(d);
  gpu_budget *budget;
  pthread_t threads[4];
  void *failed;
  REQUIRE_OK(gpu_budget_create(d, 0, &budget, NULL), NULL);
  for (int i = 0; i < 4; i++) REQUIRE(pthread_create(&threads[i], NULL, alloc_and_free, budget) == 0);
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], &failed);
    CHECK_NULL(failed);
  }
  CHECK_INT(gpu_budget_used(budget), 0);
  gpu_budget_unref(budget);
  gpu_device_leave(d);
}

/* ---- tensors ---- */

static tn_status fill_block(gpu_device *d, gpu_block *b, const float *values, size_t n)
{
  cl_command_queue q = gpu_parts_queue(d);
  CHECK_INT(cl.EnqueueWriteBuffer(q, b->mem, CL_TRUE, 0, n * sizeof *values, values, 0, NULL, NULL), CL_SUCCESS);
  cl.ReleaseCommandQueue(q);
  return TN_OK;
}

static const float six[6] = { 1, 2, 3, 4, 5, 6 };
static const int64_t two_by_three[2] = { 2, 3 };

static tn_tensor *tensor_of_six(gpu_device *d, gpu_budget *budget)
{
  gpu_block b;
  tn_tensor *t;
  REQUIRE_OK(gpu_alloc(budget, sizeof six, &b, NULL), NULL);
  fill_block(d, &b, six, 6);
  REQUIRE_OK(gpu_tensor(&b, NULL, TN_FLOAT, two_by_three, 2, &t, NULL), NULL);
  CHECK_NULL(b.mem); /* the tensor owns it now */
  return t;
}

static void gpu_memory__tensors_outlive_session_and_budget(void) /* P-45 */
{
  GPU_PARTS_DEVICE(d);
  float found[6];
  gpu_budget *budget;
  REQUIRE_OK(gpu_budget_create(d, 0, &budget, NULL), NULL);
  tn_tensor *t = tensor_of_six(d, budget), *again;
  gpu_budget_unref(budget);
  gpu_device_leave(d); /* for the session */
  CHECK_INT(d->n_users, 1);
  REQUIRE_OK(tn_tensor_read(t, found, sizeof found, NULL), NULL);
  CHECK_BYTES(found, six, sizeof six);
  const tn_buffer_desc *desc = tn_buffer_describe(tn_tensor_buffer(t));
  CHECK_INT(desc->memory, d->host_visible ? TN_MEMORY_SHARED : TN_MEMORY_DEVICE);
  CHECK((tn_tensor_data(t) != NULL) == d->host_visible);
  const int64_t flat[1] = { 6 };
  REQUIRE_OK(tn_tensor_reshape(t, flat, 1, &again, NULL), NULL);
  tn_tensor_unref(t);
  CHECK_INT(d->n_users, 1);
  REQUIRE_OK(tn_tensor_read(again, found, sizeof found, NULL), NULL);
  CHECK_BYTES(found, six, sizeof six);
  tn_tensor_unref(again);
  CHECK_INT(d->n_users, 0);
  CHECK_NULL(d->context); /* and so is everything that the driver had allocated */
}

static void gpu_memory__the_runtime_recognises_its_tensors(void)
{
  GPU_PARTS_DEVICE(d);
  gpu_budget *budget;
  cl_mem mem;
  size_t offset;
  cl_event ready;
  REQUIRE_OK(gpu_budget_create(d, 0, &budget, NULL), NULL);
  tn_tensor *t = tensor_of_six(d, budget), *part, *host;
  CHECK(gpu_tensor_memory(t, d, &mem, &offset, &ready));
  CHECK(mem == (cl_mem)tn_buffer_describe(tn_tensor_buffer(t))->handle);
  CHECK_INT(offset, 0);
  CHECK_NULL(ready);
  gpu_device other = { .name = NULL };
  CHECK(!gpu_tensor_memory(t, &other, &mem, &offset, &ready));
  REQUIRE_OK(tn_tensor_from_data(TN_FLOAT, two_by_three, 2, six, sizeof six, &host, NULL), NULL);
  CHECK(!gpu_tensor_memory(host, d, &mem, &offset, &ready));
  const int64_t three[1] = { 3 };
  REQUIRE_OK(tn_tensor_from_buffer(TN_FLOAT, three, 1, tn_tensor_buffer(t), 12, &part, NULL), NULL);
  if (gpu_tensor_memory(part, d, &mem, &offset, &ready)) CHECK_INT(offset, 12);
  tn_tensor_unref(part);
  tn_tensor_unref(host);
  tn_tensor_unref(t);
  gpu_budget_unref(budget);
  gpu_device_leave(d);
}

static void gpu_memory__a_tensor_waits_for_its_content(void)
{
  GPU_PARTS_DEVICE(d);
  gpu_budget *budget;
  gpu_block b;
  cl_event ready = NULL;
  tn_tensor *t;
  const size_t n = 4 * MIB;
  const int64_t dims[1] = { (int64_t)n };
  cl_uchar seven = 7;
  unsigned char *found = tn_alloc(n);
  REQUIRE_OK(gpu_budget_create(d, 0, &budget, NULL), NULL);
  REQUIRE_OK(gpu_alloc(budget, n, &b, NULL), NULL);
  cl_command_queue q = gpu_parts_queue(d);
  REQUIRE_INT(cl.EnqueueFillBuffer(q, b.mem, &seven, 1, 0, n, 0, NULL, &ready), CL_SUCCESS);
  REQUIRE_INT(cl.Flush(q), CL_SUCCESS);
  REQUIRE_OK(gpu_tensor(&b, ready, TN_UINT8, dims, 1, &t, NULL), NULL);
  cl.ReleaseEvent(ready);
  REQUIRE_OK(tn_tensor_read(t, found, n, NULL), NULL);
  CHECK(found[0] == 7 && found[n - 1] == 7);
  tn_tensor_unref(t);
  cl.ReleaseCommandQueue(q);
  gpu_budget_unref(budget);
  gpu_device_leave(d);
  tn_free(found);
}

static void gpu_memory__empty_tensors(void)
{
  GPU_PARTS_DEVICE(d);
  gpu_budget *budget;
  gpu_block b;
  tn_tensor *t;
  const int64_t dims[2] = { 0, 3 };
  char nothing[1];
  REQUIRE_OK(gpu_budget_create(d, 0, &budget, NULL), NULL);
  REQUIRE_OK(gpu_alloc(budget, 0, &b, NULL), NULL);
  REQUIRE_OK(gpu_tensor(&b, NULL, TN_FLOAT, dims, 2, &t, NULL), NULL);
  CHECK_OK(tn_tensor_read(t, nothing, 0, NULL), NULL);
  tn_tensor_unref(t);
  gpu_budget_unref(budget);
  gpu_device_leave(d);
}

/* As on a device with memory of its own. */
static void gpu_memory__device_memory_is_mapped_for_reading(void)
{
  GPU_PARTS_DEVICE(d);
  bool visible = d->host_visible;
  float found[6];
  gpu_budget *budget;
  d->host_visible = false;
  REQUIRE_OK(gpu_budget_create(d, 0, &budget, NULL), NULL);
  tn_tensor *t = tensor_of_six(d, budget), *copy;
  CHECK_NULL(tn_tensor_data(t));
  CHECK_INT(tn_buffer_describe(tn_tensor_buffer(t))->memory, TN_MEMORY_DEVICE);
  REQUIRE_OK(tn_tensor_read(t, found, sizeof found, NULL), NULL);
  CHECK_BYTES(found, six, sizeof six);
  REQUIRE_OK(tn_tensor_copy(t, &copy, NULL), NULL);
  CHECK_BYTES(tn_tensor_data(copy), six, sizeof six);
  cl_mem mem;
  size_t offset = 1;
  cl_event ready;
  CHECK(gpu_tensor_memory(t, d, &mem, &offset, &ready));
  CHECK_INT(offset, 0);
  tn_tensor *part; /* its offset is unknown, so it is read like any other */
  const int64_t three[1] = { 3 };
  REQUIRE_OK(tn_tensor_from_buffer(TN_FLOAT, three, 1, tn_tensor_buffer(t), 12, &part, NULL), NULL);
  CHECK(!gpu_tensor_memory(part, d, &mem, &offset, &ready));
  REQUIRE_OK(tn_tensor_read(part, found, 12, NULL), NULL);
  CHECK_BYTES(found, six + 3, 12);
  tn_tensor_unref(part);
  tn_tensor_unref(copy);
  tn_tensor_unref(t);
  gpu_budget_unref(budget);
  gpu_device_leave(d);
  d->host_visible = visible;
}

static tn_status tensor_with_little_memory(void *user)
{
  gpu_device *d = user;
  gpu_budget *budget = NULL;
  gpu_block b = { 0 };
  tn_tensor *t = NULL;
  gpu_pool *pool = d->pool, *fresh = NULL;
  tn_status st = gpu_pool_create(d, &fresh, NULL);
  if (st != TN_OK) return st;
  d->pool = fresh;
  st = gpu_budget_create(d, 0, &budget, NULL);
  if (st == TN_OK) st = gpu_alloc(budget, sizeof six, &b, NULL);
  if (st == TN_OK) st = gpu_tensor(&b, NULL, TN_FLOAT, two_by_three, 2, &t, NULL);
  CHECK((st == TN_OK) == (t != NULL));
  tn_tensor_unref(t);
  gpu_free(&b);
  CHECK_INT(stats_of(d).used_bytes, 0);
  gpu_budget_unref(budget);
  gpu_pool_destroy(fresh);
  d->pool = pool;
  return st;
}

static void gpu_memory__missing_host_memory_leaks_nothing(void)
{
  GPU_PARTS_DEVICE(d);
  tn_test_oom_sweep(tensor_with_little_memory, d);
  CHECK_INT(d->n_users, 1);
  gpu_device_leave(d);
}

/* ---- nodes ---- */

/* A device of which only the limits are used. */
static const gpu_device numbers = { .max_group = 256, .local_bytes = 1000 };
static const int64_t dims3[1] = { 3 };
static const float elements[3] = { 7, 8, 9 };
static const gpu_value in[2] = { { TN_FLOAT, 1, dims3, 3, 12, NULL, false },
                                 { TN_FLOAT, 1, dims3, 3, 12, elements, true } };
static const gpu_value out[1] = { { TN_FLOAT, 1, dims3, 3, 12, NULL, false } };

static tn_status plan_node(gpu_node *n, tn_status (*plan)(gpu_node *n, tn_error *err), tn_error *err)
{
  const gpu_op op = { .op = "Any", .plan = plan };
  *n = (gpu_node){ .device = &numbers, .n_inputs = 2, .n_outputs = 1, .inputs = in, .outputs = out };
  return gpu_node_plan(n, &op, err);
}

static int n_packed;

static tn_status reverse(const void *user, const gpu_value *from, void *to, tn_error *err)
{
  (void)err;
  n_packed++;
  if (user != NULL) CHECK_INT(*(const int *)user, 42);
  for (int i = 0; i < 3; i++) ((float *)to)[i] = ((const float *)from->host)[2 - i];
  return TN_OK;
}

static tn_status plan_all(gpu_node *n, tn_error *err)
{
  const int32_t table[2] = { 4, 5 };
  size_t first = gpu_scratch(n, 5), second = gpu_scratch(n, 7);
  uint32_t packed = gpu_packed(n, 1, 1, 12, reverse, &(int){ 42 }, sizeof(int)),
           there = gpu_table(n, table, sizeof table);
  CHECK(second >= first + 5);
  gpu_launch *l = gpu_launch_text(n, "text", "first");
  gpu_define(l, "T", "%s", gpu_type(TN_FLOAT));
  gpu_define(l, "N", "%d", 3);
  gpu_arg_input(l, 0);
  gpu_arg_output(l, 0);
  gpu_arg_scratch(l, second);
  gpu_arg_packed(l, packed);
  gpu_arg_packed(l, there);
  gpu_arg_int(l, -2);
  gpu_arg_long(l, INT64_C(1) << 40);
  gpu_arg_float(l, 0.5f);
  gpu_arg_local(l, 100);
  gpu_range_2d(l, (int64_t[2]){ 30, 5 }, (int64_t[2]){ 16, 4 });
  gpu_range_1d(gpu_launch_file(n, "file", "empty"), 0, 64);
  gpu_copy(n, 0, 1);
  return gpu_node_done(n, err);
}

static void gpu_nodes__launches_are_as_requested(void)
{
  gpu_node n;
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(plan_node(&n, plan_all, &err), &err);
  const gpu_launch *l = n.built->launches;
  REQUIRE_PTR(l);
  CHECK_STR(l->options, "-DT=float -DN=3");
  CHECK_STR(l->text, "text");
  CHECK_STR(l->kernel, "first");
  static const int kinds[] = { GPU_ARG_INPUT, GPU_ARG_OUTPUT, GPU_ARG_SCRATCH, GPU_ARG_PACKED, GPU_ARG_PACKED,
                               GPU_ARG_VALUE, GPU_ARG_VALUE,  GPU_ARG_VALUE,   GPU_ARG_LOCAL };
  REQUIRE_INT(l->n_args, 9);
  for (int i = 0; i < 9; i++) CHECK_INT(l->args[i].kind, kinds[i]);
  cl_int small;
  cl_long large;
  float real;
  memcpy(&small, l->values + l->args[5].at, sizeof small);
  memcpy(&large, l->values + l->args[6].at, sizeof large);
  memcpy(&real, l->values + l->args[7].at, sizeof real);
  CHECK(small == -2 && large == INT64_C(1) << 40 && real == 0.5f);
  CHECK_INT(l->n_dims, 2);
  CHECK(l->global[0] == 32 && l->global[1] == 8 && l->local[0] == 16 && l->local[1] == 4);
  REQUIRE_PTR(l->next); /* the empty launch was removed */
  CHECK(l->next->copies && l->next->copy_to == 0 && l->next->copy_from == 1);
  CHECK_NULL(l->next->next);
  CHECK_INT(n.built->n_packs, 2);
  CHECK(n.built->scratch_bytes >= 12);
  CHECK_INT(n_packed, 0); /* the device may have it already */
  CHECK_INT(n.built->packs->bytes, 12);
  CHECK_BYTES(n.built->packs->next->data, ((const int32_t[]){ 4, 5 }), 8);
  gpu_built_destroy(n.built);
}

/* The constant read by nodes of two shapes is packed for the first of them. It is freed with its
 * last user, and packed anew for the next. */
static void gpu_nodes__a_constant_is_packed_once(void)
{
  GPU_PARTS_DEVICE(d);
  tn_error err = TN_ERROR_INIT;
  gpu_budget *budget;
  gpu_node first, second;
  gpu_constant *a = NULL, *b = NULL;
  tn_tensor *t;
  float there[3];
  REQUIRE_OK(gpu_budget_create(d, 0, &budget, &err), &err);
  REQUIRE_OK(tn_tensor_from_data(TN_FLOAT, dims3, 1, elements, sizeof elements, &t, &err), &err);
  cl_command_queue queue = cl.CreateCommandQueue(d->context, d->id, 0, NULL);
  REQUIRE_PTR(queue);
  REQUIRE_OK(plan_node(&first, plan_all, &err), &err);
  REQUIRE_OK(plan_node(&second, plan_all, &err), &err);
  n_packed = 0;
  for (int round = 1; round <= 2; round++) {
    REQUIRE_OK(gpu_constant_get(budget, d, queue, t, first.built->packs, &a, &err), &err);
    REQUIRE_OK(gpu_constant_get(budget, d, queue, t, second.built->packs, &b, &err), &err);
    CHECK(a == b);
    CHECK_INT(n_packed, round);
    REQUIRE_INT(cl.EnqueueReadBuffer(queue, a->block.mem, CL_TRUE, 0, 12, there, 0, NULL, NULL), CL_SUCCESS);
    CHECK_BYTES(there, ((const float[]){ 9, 8, 7 }), 12);
    gpu_constant_put(a);
    gpu_constant_put(b);
  }
  gpu_built_destroy(first.built);
  gpu_built_destroy(second.built);
  cl.ReleaseCommandQueue(queue);
  tn_tensor_unref(t);
  gpu_budget_unref(budget);
  gpu_device_leave(d);
}

static tn_status sweep_node(void *user)
{
  gpu_node n;
  (void)user;
  tn_status st = plan_node(&n, plan_all, NULL);
  CHECK((st == TN_OK) == (n.built != NULL));
  gpu_built_destroy(n.built);
  return st;
}
static void gpu_nodes__missing_memory_leaks_nothing(void) { tn_test_oom_sweep(sweep_node, NULL); }

static tn_status plan_group(gpu_node *n, tn_error *err)
{
  gpu_launch *l = gpu_launch_file(n, "f", "big");
  gpu_range_1d(l, 1000, 512);
  gpu_arg_input(l, 77); /* the first error is reported */
  return gpu_node_done(n, err);
}
static tn_status plan_local(gpu_node *n, tn_error *err)
{
  gpu_launch *l = gpu_launch_file(n, "f", "hungry");
  gpu_arg_local(l, 600);
  gpu_arg_local(l, 600);
  gpu_range_1d(l, 1, 1);
  return gpu_node_done(n, err);
}
static tn_status plan_large(gpu_node *n, tn_error *err)
{
  gpu_launch *l = gpu_launch_file(n, "f", "large");
  gpu_arg_int(l, INT64_C(1) << 31);
  gpu_range_1d(l, 1, 1);
  return gpu_node_done(n, err);
}
static tn_status plan_double(gpu_node *n, tn_error *err)
{
  gpu_launch *l = gpu_launch_file(n, "f", "precise");
  gpu_define(l, "T", "%s", gpu_type(TN_DOUBLE));
  gpu_range_1d(l, 1, 1);
  return gpu_node_done(n, err);
}
static tn_status plan_said(gpu_node *n, tn_error *err)
{
  (void)n;
  return gpu_decline(err, "rank %d", 9);
}
static tn_status plan_wrong_input(gpu_node *n, tn_error *err)
{
  gpu_launch *l = gpu_launch_file(n, "f", "wrong");
  gpu_arg_input(l, 2);
  gpu_range_1d(l, 1, 1);
  return gpu_node_done(n, err);
}
static tn_status plan_no_range(gpu_node *n, tn_error *err)
{
  gpu_launch_file(n, "f", "endless");
  return gpu_node_done(n, err);
}
static tn_status plan_words(gpu_node *n, tn_error *err)
{
  gpu_launch *l = gpu_launch_file(n, "f", "words");
  gpu_define(l, "T", "two words");
  return gpu_node_done(n, err);
}
static tn_status plan_not_constant(gpu_node *n, tn_error *err)
{
  (void)gpu_packed(n, 0, 1, 12, reverse, NULL, 0);
  return gpu_node_done(n, err);
}

static void gpu_nodes__errors_explain_why_a_node_cannot_be_built(void)
{
  static const struct {
    tn_status (*plan)(gpu_node *n, tn_error *err);
    tn_status wanted;
    const char *text;
  } cases[] = { { plan_group, TN_UNIMPLEMENTED, "groups of 512, the device has at most 256" },
                { plan_local, TN_UNIMPLEMENTED, "1200 bytes of local memory" },
                { plan_large, TN_UNIMPLEMENTED, "2147483648 is too large for kernel 'large'" },
                { plan_double, TN_UNIMPLEMENTED, "no double precision" },
                { plan_said, TN_UNIMPLEMENTED, "rank 9" },
                { plan_wrong_input, TN_INTERNAL, "'wrong' wants input 2 of 2" },
                { plan_no_range, TN_INTERNAL, "'endless' has no range" },
                { plan_words, TN_INTERNAL, "-DT of kernel 'words'" },
                { plan_not_constant, TN_INTERNAL, "input 0, which is no constant" } };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    gpu_node n;
    tn_error err = TN_ERROR_INIT;
    CHECK_STATUS(plan_node(&n, cases[i].plan, &err), cases[i].wanted, &err);
    CHECK_CONTAINS(tn_error_message(&err), cases[i].text);
    CHECK_NULL(n.built);
    tn_error_clear(&err);
  }
}

TAP_MAIN(
  TAP_TEST(gpu_memory__freed_blocks_are_reused),
  TAP_TEST(gpu_memory__blocks_have_every_size),
  TAP_TEST(gpu_memory__free_blocks_are_released_when_shapes_change),
  TAP_TEST(gpu_memory__the_pool_is_freed_with_the_last_user),
  TAP_TEST(gpu_memory__pinned_memory_is_in_the_host_and_kept),
  TAP_TEST(gpu_memory__errors_name_the_limit),
  TAP_TEST(gpu_memory__sizes_beyond_the_device_are_rejected),
  TAP_TEST(gpu_memory__allocation_is_retried_after_freeing_kept_blocks),
  TAP_TEST(gpu_memory__memory_missing_at_first_use_is_detected),
  TAP_TEST(gpu_memory__threads_share_a_pool),
  TAP_TEST(gpu_memory__tensors_outlive_session_and_budget),
  TAP_TEST(gpu_memory__the_runtime_recognises_its_tensors),
  TAP_TEST(gpu_memory__a_tensor_waits_for_its_content),
  TAP_TEST(gpu_memory__empty_tensors),
  TAP_TEST(gpu_memory__device_memory_is_mapped_for_reading),
  TAP_TEST(gpu_memory__missing_host_memory_leaks_nothing),
  TAP_TEST(gpu_nodes__launches_are_as_requested),
  TAP_TEST(gpu_nodes__a_constant_is_packed_once),
  TAP_TEST(gpu_nodes__missing_memory_leaks_nothing),
  TAP_TEST(gpu_nodes__errors_explain_why_a_node_cannot_be_built))
#endif
